"""What an agent sees of its own machine: what it is, who uses its CPUs at this moment, and through which interface it
reaches an address (Linux, IPv4)."""

import functools
import hashlib
import ipaddress
import os
import platform
import struct
import time
from pathlib import Path
from typing import Any

from loadframe.cages.groups import text
from loadframe.connections.address import look_up
from loadframe.errors import StudyError
from loadframe.version import __version__

FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of the line `cpu` in /proc/stat (proc(5)); guest time is part of user."""


def facts(root: Path = Path("/")) -> dict[str, Any]:
    """Versions, kernel, CPUs that this process may use, memory in bytes. code: of two checkouts of one version it
    differs; boot: one kernel has one."""
    memory = next(
        (line.split() for line in text(root / "proc/meminfo").splitlines() if line.startswith("MemTotal:")), []
    )
    return {
        "loadframe": __version__,
        "code": code_digest(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory[1]) * 1024 if len(memory) > 1 else None,
        "boot": text(root / "proc/sys/kernel/random/boot_id").strip(),
    }


def use_of_cpus(seconds: float, root: Path = Path("/")) -> dict[str, Any]:
    """Who uses the CPUs for so long. busy_cpus: all but this process; steal_cpus: taken by other guests of the same
    hardware; loudest: of the processes that are there at both ends, the one that used most."""
    before, mine, begin = _looked(root), time.process_time(), time.monotonic()
    time.sleep(seconds)
    after, mine, lasted = _looked(root), time.process_time() - mine, time.monotonic() - begin
    ticks = os.sysconf("SC_CLK_TCK")
    spent = {name: (after[0].get(name, 0) - before[0].get(name, 0)) / ticks / lasted for name in FIELDS}
    busy = sum(spent[name] for name in ("user", "nice", "system", "irq", "softirq"))
    used = {key: (count - before[1][key]) / ticks / lasted for key, count in after[1].items() if key in before[1]}
    used.pop((os.getpid(), _started(root, os.getpid())), None)
    loudest = max(used, key=lambda key: used[key], default=None)
    return {
        "busy_cpus": max(0.0, busy - mine / lasted),
        "steal_cpus": spent["steal"],
        "loudest": "" if loudest is None or not used[loudest] else _name(root, loudest[0]),
        "loudest_cpus": 0.0 if loudest is None else used[loudest],
    }


def _looked(root: Path) -> tuple[dict[str, int], dict[tuple[int, int], int]]:
    """Clock ticks of the machine by state, and of each process (number, start)."""
    line = next(iter(text(root / "proc/stat").splitlines()), "").split()[1:]
    machine = {name: int(each) for name, each in zip(FIELDS, line, strict=False)}
    processes = {}
    for folder in (root / "proc").glob("[0-9]*"):
        fields = _fields(folder)
        if fields:
            processes[int(folder.name), int(fields[19])] = int(fields[11]) + int(fields[12])
    return machine, processes


def _fields(folder: Path) -> list[str]:
    """Of /proc/PID/stat after the name, which may have blanks and brackets: state is the first."""
    return text(folder / "stat").rpartition(")")[2].split()


def _started(root: Path, number: int) -> int:
    fields = _fields(root / f"proc/{number}")
    return int(fields[19]) if fields else 0


def _name(root: Path, number: int) -> str:
    return text(root / f"proc/{number}/comm").strip()[:40]


SUFFIXES = (".py", ".lua", ".toml", ".txt")
"""What runs on a host: Python, the rows that it reads, and what load drivers are given. Pages for reports are not."""
DIGITS = 12


def code_digest(root: Path = Path(__file__).parents[1]) -> str:
    """Of the names and contents of the package's own source files; "" where they cannot be read. Takes 30 ms of a CPU,
    once."""
    return _of(root)


@functools.cache
def _of(root: Path) -> str:
    whole = hashlib.sha256()
    try:
        for path in sorted(each for each in root.rglob("*") if each.suffix in SUFFIXES and each.is_file()):
            place = path.relative_to(root)
            if place.parts[0] == "cases":  # studies: a checkout has a link there, which is not followed
                continue
            data = path.read_bytes()
            whole.update(f"{place.as_posix()}\0{len(data)}\0".encode())
            whole.update(data)
    except OSError:
        return ""
    return whole.hexdigest()[:DIGITS]


LOOPBACK = "lo"
UP = 0x1
"""RTF_UP of include/uapi/linux/route.h."""


def interface_to(address: str, root: Path = Path("/")) -> str:
    """Of the route that fits best; of an address of the host itself that of its network. "" where none is known, as
    for IPv6."""
    number = ipaddress.ip_address(address)
    if number.is_loopback:
        return LOOPBACK
    if number.version != 4:
        return ""
    best = (-1, 0, "")
    for line in text(root / "proc/net/route").splitlines()[1:]:
        fields = line.split()
        if len(fields) < 8 or not int(fields[3], 16) & UP:
            continue
        destination, mask = (int.from_bytes(struct.pack("=I", int(each, 16)), "big") for each in (fields[1], fields[7]))
        if int(number) & mask == destination:
            best = max(best, (mask.bit_count(), -int(fields[6]), fields[0]))
    return best[2]


def route(address: str) -> dict[str, Any]:
    """interface: see above. network: of which namespace it is; "" where that cannot be told."""
    try:
        network = str(Path("/proc/self/ns/net").readlink())
    except OSError:
        network = ""
    return {"interface": interface_to(address), "network": network}


def listening_number(address: str) -> str:
    """The one at which this host is to listen. StudyError where the address is several, or none that others reach."""
    number, *others = look_up(address)
    if others:
        raise StudyError(
            f"the address {address} is {len(others) + 1} numbers: {', '.join((number, *others))}",
            remedy="Write the one on which the target is to listen as the address of its host in the fleet file.",
        )
    check_is_reached(address)
    return number


def check_is_reached(address: str) -> None:
    """StudyError for a name that is of the loopback here, as the own name of a machine often is in its /etc/hosts, or
    stands for all addresses."""
    for number in look_up(address):
        found = ipaddress.ip_address(number.partition("%")[0])
        if address in (number, "localhost") or not (found.is_loopback or found.is_unspecified):
            continue
        what = ": every address of it" if found.is_unspecified else ", where no other one reaches it"
        raise StudyError(
            f"the address {address} is {number} on that host itself{what}",
            remedy="Write the number by which drivers reach it as the address of its host in the fleet file.",
        )
