"""What a snapshot reads of the machine. The counters of a process's network are below /proc/PID/net, wherever we run;
its sysctls can only be read within its network namespace. Layouts: proc(5),
Documentation/admin-guide/{sysctl/,iostats.rst,pm/cpufreq.rst}, accounting/psi.rst, ABI/testing/sysfs-devices-system-cpu
(thermal_throttle), networking/{ip-sysctl,nf_conntrack-sysctl}.rst; net/core/net-procfs.c (softnet_stat); RFC 4898 names
in netstat."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import PAGE_BYTES, Derivation, Metrics, growth
from loadframe.recording.procfs import SystemStat
from loadframe.recording.snapshot import Pair, Place, Source, below, derived, each_below
from loadframe.recording.system_metrics import (
    DISKSTATS,
    FILE_NUMBERS,
    MEMINFO,
    NETSTAT,
    PAGING,
    PRESSURE,
    PRESSURES,
    SNMP,
    SOCKSTAT,
    STAT,
    VMSTAT,
    Disks,
    both,
    parse_port_range,
    spent_on,
)

BLOCKS = "sys/block"
CPUS = "sys/devices/system/cpu"
SYN_RECEIVED, LISTENING, NEW_SYN_RECEIVED = 0x03, 0x0A, 0x0C
"""include/net/tcp_states.h"""
_MEGABIT_BYTES = 125_000
NETWORK = "a network table"


def _fullest(names: tuple[str, str], uses: Sequence[tuple[float, float]]) -> Metrics:
    if not uses:
        return {}
    use, limit = max(uses, key=lambda use: use[0] / use[1])
    return {names[0]: use, names[1]: limit}


def _softirqs(first: SystemStat, last: SystemStat, _elapsed_s: float) -> Metrics:
    spent = [spent_on(first.cpus[name], times) for name, times in last.cpus.items() if name in first.cpus]
    shares = [ticks["softirq"] / max(1, sum(ticks.values())) for ticks in spent]
    return {"system.cpu.softirq_busiest": max(shares)} if shares else {}


def _frequency(pair: Pair) -> Metrics:
    """Of each CPU the present and the highest one (kHz)."""
    lost = []
    for now, most in pair.last.values():
        highest = procfs.parse_count(most)
        if highest > 0:
            lost.append(max(0.0, 1 - procfs.parse_count(now) / highest))
    return {"system.cpu.frequency_missing": sum(lost) / len(lost)} if lost else {}


def _throttling(pair: Pair) -> Metrics:
    pairs = ((*pair.first[name], *texts) for name, texts in pair.last.items() if name in pair.first)
    shares = [pair.rate(*map(procfs.parse_count, texts)) / 1000 for texts in pairs]
    return {"system.cpu.throttled": min(1.0, max(shares))} if shares else {}


def _swap(pair: Pair) -> Metrics:
    sizes = procfs.parse_meminfo(pair.last)
    total = sizes.get("SwapTotal", 0)
    return {"system.swap.limit": total, "system.swap.used": total - sizes.get("SwapFree", 0)} if total > 0 else {}


def _paging_shares(first: dict[str, int], last: dict[str, int], elapsed_s: float) -> Metrics:
    """pgpgin counts KiB read from disks."""
    rates, values = VMSTAT.between(first, last, elapsed_s), {}
    direct, background = (rates.get(f"system.paging.{kind}_scan") for kind in ("direct", "background"))
    if direct is not None and background is not None:
        values["system.paging.direct_share"] = direct / (direct + background) if direct else 0.0
    if "system.paging.refaults" in rates and "pgpgin" in first and "pgpgin" in last:
        read_bytes = 1024 * growth(first["pgpgin"], last["pgpgin"]) / elapsed_s
        again = rates["system.paging.refaults"] * PAGE_BYTES
        values["system.paging.refault_share"] = min(1.0, again / read_bytes) if read_bytes else 0.0
    return values


def _writing(counted: dict[str, int]) -> Metrics:
    if not {"nr_dirty_threshold", "nr_dirty"} <= counted.keys():
        return {}
    return {
        "system.memory.dirty_limit": counted["nr_dirty_threshold"] * PAGE_BYTES,
        "system.memory.unwritten": (counted["nr_dirty"] + counted.get("nr_writeback", 0)) * PAGE_BYTES,
    }


def _flushes(first: Disks, last: Disks, elapsed_s: float) -> Metrics:
    shares = [
        growth(earlier.flush_ms, later.flush_ms) / elapsed_s / 1000
        for earlier, later in both(first, last)
        if earlier.flush_ms is not None and later.flush_ms is not None
    ]
    return {"system.disk.flushing": min(1.0, max(shares))} if shares else {}


QUEUE = ("system.disk.queue_fullest", "system.disk.queue_limit")


def _queues(pair: Pair) -> Metrics:
    """diskstats, and of each block device the requests that it can queue."""
    (first, _), (last, limits) = pair.first, pair.last
    before, after = procfs.parse_diskstats(first), procfs.parse_diskstats(last)
    queues = [
        (pair.rate(before[name].queue_ms, disk.queue_ms) / 1000, float(limit))
        for name, disk in after.items()
        if name in before and name in limits and (limit := procfs.parse_count(limits[name][0])) > 0
    ]
    return _fullest(QUEUE, queues)


def fetch_filesystems(place: Place, name: str) -> dict[bytes, os.statvfs_result]:
    """By mount point. Those of the network could hang us."""
    virtual = {line.split()[-1] for line in place.text("proc/filesystems").splitlines() if line.startswith(b"nodev")}
    mounted, seen = {}, set()
    for line in place.text(name).splitlines():
        fields = line.split(b" ")
        if len(fields) < 4 or (fields[2] in virtual and fields[2] not in (b"tmpfs", b"overlay")):
            continue
        mount = fields[1].replace(b"\\040", b" ")
        root = place.path("proc/{pid}/root") if place.pid is not None else place.root
        try:
            status = os.statvfs(os.fsencode(root) + b"/" + mount.lstrip(b"/"))
        except OSError:  # a mount point that is hidden from us, or that another mount covers
            continue
        writable = b"ro" not in fields[3].split(b",")
        if writable and status.f_blocks and status.f_fsid not in seen:
            seen.add(status.f_fsid)
            mounted[mount] = status
    return mounted


def _filesystems(pair: Pair) -> Metrics:
    """The fullest one, in blocks and in inodes, as shares of what an ordinary user may use (as df(1) does)."""
    shares: dict[str, list[float]] = {"system.filesystem.space": [], "system.filesystem.inodes": []}
    for status in pair.last.values():
        used = status.f_blocks - status.f_bfree
        if used + status.f_bavail > 0:
            shares["system.filesystem.space"].append(used / (used + status.f_bavail))
        if status.f_files > 0:
            shares["system.filesystem.inodes"].append(1 - status.f_favail / status.f_files)
    return {metric: max(values) for metric, values in shares.items() if values}


THREADS = Derivation("system:/proc/loadavg", procfs.parse_threads, (lambda count: {"system.threads.count": count},))


def _sysctl(name: str, metric: str) -> Source:
    """Of several numbers the last (the most pages of net.ipv4.tcp_mem)."""
    factor = PAGE_BYTES if name == "net.ipv4.tcp_mem" else 1

    def parse(pair: Pair) -> Metrics:
        *_, number = pair.last.split() or [b""]
        return {metric: float(factor * procfs.parse_count(number))}

    fetch = fetch_here if name.startswith("net.") else Place.text
    absent = "conntrack is not loaded" if "conntrack" in name else f"this kernel has no {name}"
    return Source(f"proc/sys/{name.replace('.', '/')}", (metric,), parse, fetch, absent)


def elsewhere(place: Place) -> bool:
    """In another network namespace than we are; False if unknown."""
    try:
        theirs, ours = (place.path(name).readlink() for name in ("proc/{pid}/ns/net", "proc/self/ns/net"))
    except OSError:
        return False
    return theirs != ours


def fetch_here(place: Place, path: str) -> bytes:
    """A sysctl of our own network namespace. RecordingError if the process is in another."""
    if elsewhere(place):
        remedy = f"nsenter --target {place.pid} --net"
        raise RecordingError(f"the process is in another network namespace; run Loadframe in it: {remedy}")
    return place.text(path)


def fetch_connections(place: Place, path: str) -> bytes:
    text = place.text(path)
    try:
        return text + place.text(f"{path}6")
    except FileNotFoundError:  # IPv6 is switched off
        return text


def _connections(pair: Pair) -> Metrics:
    """A connection from a port that listens was made by the other side and takes no local port."""
    half_open = 0
    listening, connections = set(), list[tuple[bytes, bytes]]()
    for line in pair.last.splitlines():
        fields = line.split()
        if len(fields) < 4 or not fields[0].endswith(b":") or b":" not in fields[1]:
            continue
        state = procfs.parse_hexadecimal(fields[3], NETWORK)
        port = fields[1].rpartition(b":")[2]
        if state == LISTENING:
            listening.add(port)
        elif state in (SYN_RECEIVED, NEW_SYN_RECEIVED):
            half_open += 1
        else:
            connections.append((port, fields[2]))
    destinations = Counter(remote for port, remote in connections if port not in listening)
    return {
        "system.network.syn_received": float(half_open),
        "system.network.local_ports": float(max(destinations.values(), default=0)),
    }


def _softnet(pair: Pair) -> Metrics:
    """Hexadecimal, a line per CPU: processed, dropped, squeezed, ...; as the 12th, since 5.10, packets waiting."""
    first, last = _columns(pair.first), _columns(pair.last)
    drops, squeezes = (pair.rate(sum(row[at] for row in first), sum(row[at] for row in last)) for at in (1, 2))
    values: Metrics = {"system.network.backlog_drops": drops, "system.network.squeezes": squeezes}
    if all(len(row) >= 13 for row in last):
        values["system.network.backlog"] = float(max(row[11] for row in last))
    return values


def _columns(text: bytes) -> list[list[int]]:
    rows = [[procfs.parse_hexadecimal(field, NETWORK) for field in line.split()] for line in text.splitlines()]
    if not rows or any(len(row) < 3 for row in rows):
        raise RecordingError("softnet_stat lacks its columns.")
    return rows


def _rounds(pair: Pair) -> Metrics:
    """Mean packets per round of the receiving softirq."""
    moments = []
    for softnet, softirqs in (pair.first, pair.last):
        counts = [line.split()[1:] for line in softirqs.splitlines() if line.split()[:1] == [b"NET_RX:"]]
        if not counts:
            raise RecordingError("softirqs has no line NET_RX.")
        moments.append((sum(row[0] for row in _columns(softnet)), sum(map(procfs.parse_count, counts[0]))))
    packets, rounds = (pair.rate(*counts) for counts in zip(*moments, strict=True))
    return {"system.network.packets_per_round": packets / rounds if rounds else 0.0}


LINK = ("system.network.link", "system.network.link.limit")


def _links(pair: Pair) -> Metrics:
    """net/dev, and the megabits of each interface that has a speed: others answer EINVAL."""
    (first, _), (last, speeds) = pair.first, pair.last
    before, after = parse_interfaces(first), parse_interfaces(last)
    rates = []
    for name, texts in speeds.items():
        speed = procfs.parse_count(*texts) * _MEGABIT_BYTES
        if name in before and name in after and speed > 0:
            a, b = before[name], after[name]
            grown = pair.rate(a.received_bytes, b.received_bytes), pair.rate(a.sent_bytes, b.sent_bytes)
            rates.append((max(grown), float(speed)))
    return _fullest(LINK, rates)


FIELDS = 16
"""Columns of net/dev: eight of what was received, then eight of what was sent (net/core/net-procfs.c)."""


@dataclass(frozen=True, slots=True)
class InterfaceCounts:
    """Bytes and packets since the interface exists, with the headers of every frame."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int


def parse_interfaces(text: bytes) -> dict[str, InterfaceCounts]:
    """By name. RecordingError for an invalid count."""
    interfaces = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(b":")
        fields = rest.split()
        if colon and len(fields) >= FIELDS:
            counts = [procfs.parse_count(fields[place]) for place in (0, 1, 8, 9)]
            interfaces[name.strip().decode("utf-8", "replace")] = InterfaceCounts(*counts)
    return interfaces


NO_TIME = "no CPU time passed between two readings"
NO_PRESSURE = "it needs Linux 4.20 with CONFIG_PSI, booted with psi=1"
EVENTS = tuple(
    f"system.network.{name}"
    for name in ("listen_overflows", "syn_drops", "time_wait_overflows", "tcp_memory_pressures")
)
_SYSCTLS = {
    "fs.nr_open": "system.files.per_process_limit",
    "kernel.threads-max": "system.threads.limit",
    "kernel.pid_max": "system.pids.limit",
    "vm.max_map_count": "system.mappings.limit",
    "fs.aio-nr": "system.aio",
    "fs.aio-max-nr": "system.aio.limit",
    "fs.epoll.max_user_watches": "system.epoll_watches.limit",
    "fs.inotify.max_user_watches": "system.inotify_watches.limit",
    "fs.inotify.max_user_instances": "system.inotify_instances.limit",
    "net.core.somaxconn": "system.network.somaxconn",
    "net.core.netdev_max_backlog": "system.network.backlog.limit",
    "net.core.netdev_budget": "system.network.packets_per_round.limit",
    "net.ipv4.tcp_max_syn_backlog": "system.network.syn_backlog",
    "net.ipv4.tcp_max_tw_buckets": "system.network.time_wait.limit",
    "net.ipv4.tcp_mem": "system.network.tcp_memory.limit",
    "net.netfilter.nf_conntrack_count": "system.network.conntrack",
    "net.netfilter.nf_conntrack_max": "system.network.conntrack.limit",
}
PORTS = "proc/sys/net/ipv4/ip_local_"
SOURCES: tuple[Source, ...] = (
    derived(
        STAT,
        *("system.cpu.count", "system.processes.running", "system.cpu.busy_cores", "system.cpu.steal"),
        absent=NO_TIME,
    ),
    derived(replace(STAT, levels=(), rates=(_softirqs,)), "system.cpu.softirq_busiest", absent=NO_TIME),
    Source(
        "frequencies",
        ("system.cpu.frequency_missing",),
        _frequency,
        below("cpufreq/scaling_cur_freq", "cpufreq/cpuinfo_max_freq"),
        "no cpufreq here: a virtual machine, or a kernel without a driver for it",
        path=CPUS,
    ),
    Source(
        "throttling",
        ("system.cpu.throttled",),
        _throttling,
        below("thermal_throttle/core_throttle_total_time_ms"),
        "no thermal_throttle here: a virtual machine, no Intel CPU, or a kernel before 5.8",
        path=CPUS,
    ),
    derived(MEMINFO, "system.memory.limit", "system.memory.used"),
    Source(
        "swap", ("system.swap.limit", "system.swap.used"), _swap, absent="this machine has no swap", path="proc/meminfo"
    ),
    derived(VMSTAT, *PAGING),
    derived(replace(VMSTAT, rates=(_paging_shares,)), "system.paging.direct_share", "system.paging.refault_share"),
    derived(replace(VMSTAT, levels=(_writing,), rates=()), "system.memory.unwritten", "system.memory.dirty_limit"),
    *(derived(row, *PRESSURES[resource], absent=NO_PRESSURE) for resource, row in PRESSURE.items()),
    derived(DISKSTATS, "system.disk.busy", absent="no disk is counted here"),
    derived(
        replace(DISKSTATS, rates=(_flushes,)), "system.disk.flushing", absent="Linux 5.5 or later counts cache flushes"
    ),
    Source(
        "queues",
        QUEUE,
        _queues,
        lambda place, path: (place.text("proc/diskstats"), each_below(place.path(path), "queue/nr_requests")),
        "no disk reports how many requests it queues",
        path=BLOCKS,
    ),
    Source(
        "filesystems",
        ("system.filesystem.space", "system.filesystem.inodes"),
        _filesystems,
        fetch_filesystems,
        "no file system on a device is mounted for it",
        path="proc/{pid}/mounts",
    ),
    derived(FILE_NUMBERS, "system.files.allocated", "system.files.limit"),
    derived(THREADS, "system.threads.count"),
    *(_sysctl(name, metric) for name, metric in _SYSCTLS.items()),
    Source(
        f"{PORTS}port_range",
        ("system.network.local_ports.limit",),
        lambda pair: {"system.network.local_ports.limit": float(parse_port_range(*pair.last))},
        lambda place, path: (fetch_here(place, path), place.text(f"{PORTS}reserved_ports")),
    ),
    derived(NETSTAT, *EVENTS, path="proc/{pid}/net/netstat"),
    derived(SNMP, "system.network.connections_opened", path="proc/{pid}/net/snmp"),
    derived(SOCKSTAT, "system.network.time_wait", "system.network.tcp_memory", path="proc/{pid}/net/sockstat"),
    Source(
        "proc/{pid}/net/tcp",
        ("system.network.syn_received", "system.network.local_ports"),
        _connections,
        fetch_connections,
    ),
    Source(
        "proc/{pid}/net/softnet_stat",
        ("system.network.backlog", "system.network.backlog_drops", "system.network.squeezes"),
        _softnet,
        absent="Linux 5.10 or later reports how many packets wait",
    ),
    Source(
        "rounds",
        ("system.network.packets_per_round",),
        _rounds,
        lambda place, path: (place.text(path), place.text("proc/softirqs")),
        path="proc/{pid}/net/softnet_stat",
    ),
    Source(
        "proc/{pid}/net/dev",
        LINK,
        _links,
        lambda place, path: (place.text(path), each_below(place.path("sys/class/net"), "speed")),
        "no interface reports its speed: virtual ones do not",
    ),
)
