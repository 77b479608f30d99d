"""What an agent reads of its own machine: facts, current CPU use, and its interface to an address (Linux, IPv4)."""

import functools
import hashlib
import ipaddress
import os
import platform
import struct
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import loadframe
from loadframe.cages.groups import text
from loadframe.connections.address import look_up
from loadframe.errors import StudyError
from loadframe.recording.procfs import parse_meminfo, parse_stat
from loadframe.system import kernel
from loadframe.version import __version__

WORKING = ("user", "nice", "system", "irq", "softirq")
"""Columns of the line `cpu` in /proc/stat (proc(5)); guest time is part of user."""


def facts() -> dict[str, Any]:
    """Of HostFacts. code: differs between two checkouts of one version; boot: the same for all hosts of one kernel."""
    return {
        "loadframe": __version__,
        "code": code_digest(),
        "python": platform.python_version(),
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": parse_meminfo(Path("/proc/meminfo").read_bytes()).get("MemTotal"),
        "boot": text(Path("/proc/sys/kernel/random/boot_id")).strip(),
    }


def use_of_cpus(seconds: float) -> dict[str, Any]:
    """Of HostUse, without this process and its children. steal_cpus: used by other guests of the hardware."""
    before, first, mine, begin = _states(), kernel.spent(), time.process_time(), time.monotonic()
    time.sleep(seconds)
    after, last, mine, lasted = _states(), kernel.spent(), time.process_time() - mine, time.monotonic() - begin
    used = {name: (after[name] - before[name]) / kernel.PER_SECOND / lasted for name in after}
    loudest, cpus = next(iter(kernel.between(first, last, lasted, {os.getpid()}).items()), ("", 0.0))
    return {
        "busy_cpus": max(0.0, sum(used[name] for name in WORKING) - mine / lasted),
        "steal_cpus": used["steal"],
        "loudest": loudest,
        "loudest_cpus": cpus,
    }


def _states() -> dict[str, int]:
    return asdict(parse_stat(Path("/proc/stat").read_bytes()).all_cpus)


SUFFIXES = (".py", ".lua", ".toml", ".txt")
"""Files that matter on a host: Python, its tables, and what load drivers are given. Pages for reports do not."""
DIGITS = 12


@functools.cache
def code_digest(*roots: Path) -> str:
    """A digest of names and contents of these packages' source files, by default the core's and this one's; "" if
    unreadable. Takes 30 ms of a CPU."""
    whole = hashlib.sha256()
    try:
        for root in roots or (Path(str(loadframe.__file__)).parent, Path(__file__).parent):
            for path in sorted(file for file in root.rglob("*") if file.suffix in SUFFIXES and file.is_file()):
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
    """The interface of the most specific route; for the host's own address of its network. "" where unknown, as for
    IPv6."""
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
        destination, mask = (
            int.from_bytes(struct.pack("=I", int(field, 16)), "big") for field in (fields[1], fields[7])
        )
        if int(number) & mask == destination:
            best = max(best, (mask.bit_count(), -int(fields[6]), fields[0]))
    return best[2]


def route(address: str) -> dict[str, Any]:
    """network: its namespace; "" where unknown."""
    try:
        network = str(Path("/proc/self/ns/net").readlink())
    except OSError:
        network = ""
    return {"interface": interface_to(address), "network": network}


def listening_number(address: str) -> str:
    """StudyError for several, or one that others cannot reach."""
    number, *others = look_up(address)
    if others:
        raise StudyError(
            f"the address {address} is {len(others) + 1} numbers: {', '.join((number, *others))}",
            remedy="Write the one on which the target is to listen as the address of its host in the fleet file.",
        )
    check_is_reached(address)
    return number


def check_is_reached(address: str) -> None:
    """StudyError for a name of all addresses, or on the loopback, as a machine's own often is in its /etc/hosts."""
    for number in look_up(address):
        parsed = ipaddress.ip_address(number.partition("%")[0])
        if address in (number, "localhost") or not (parsed.is_loopback or parsed.is_unspecified):
            continue
        what = ": every address of it" if parsed.is_unspecified else ", where no other one reaches it"
        raise StudyError(
            f"the address {address} is {number} on that host itself{what}",
            remedy="Write the number by which drivers reach it as the address of its host in the fleet file.",
        )
