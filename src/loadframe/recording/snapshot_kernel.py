"""What a snapshot reads of the kernel's tables and of the process's network. The counters of a process's network are
below /proc/PID/net, wherever we run; its sysctls can only be read from within its network namespace. Layouts:
Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst,
Documentation/networking/nf_conntrack-sysctl.rst, net/core/net-procfs.c (softnet_stat), RFC 4898 names in netstat."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import PAGE_BYTES, Derivation, Metrics
from loadframe.recording.snapshot import Pair, Place, Source, derived, each_below
from loadframe.recording.system_metrics import FILE_NUMBERS, NETSTAT, SNMP, SOCKSTAT, parse_port_range

SYN_RECEIVED, LISTENING, NEW_SYN_RECEIVED = 0x03, 0x0A, 0x0C
"""include/net/tcp_states.h"""
_MEGABIT_BYTES = 125_000
NETWORK = "a network table"


# --- kernel tables ---


THREADS = Derivation("system:/proc/loadavg", procfs.parse_threads, (lambda count: {"system.threads.count": count},))


def _sysctl(name: str, metric: str) -> Source:
    """A setting or a count of the kernel; of several numbers the last (the most pages of net.ipv4.tcp_mem)."""
    factor = PAGE_BYTES if name == "net.ipv4.tcp_mem" else 1

    def parse(pair: Pair) -> Metrics:
        *_, number = pair.last.split() or [b""]
        return {metric: float(factor * procfs.parse_count(number))}

    fetch = fetch_here if name.startswith("net.") else Place.text
    absent = "conntrack is not loaded" if "conntrack" in name else f"this kernel has no {name}"
    return Source(f"proc/sys/{name.replace('.', '/')}", (metric,), parse, fetch, absent)


# --- the network ---


def elsewhere(place: Place) -> bool:
    """Whether the process is in another network namespace than we are. False if unknown."""
    try:
        theirs, ours = (place.path(name).readlink() for name in ("proc/{pid}/ns/net", "proc/self/ns/net"))
    except OSError:
        return False
    return theirs != ours


def fetch_here(place: Place, path: str) -> bytes:
    """A sysctl of our own network namespace. Raises RecordingError if the process is in another."""
    if elsewhere(place):
        remedy = f"nsenter --target {place.pid} --net"
        raise RecordingError(f"the process is in another network namespace; run Loadframe in it: {remedy}")
    return place.text(path)


def _port_range(pair: Pair) -> Metrics:
    ports, _, reserved = pair.last.partition(b"\n")
    return {"system.network.local_ports.limit": float(parse_port_range(ports, reserved))}


def fetch_port_range(place: Place, path: str) -> bytes:
    """ip_local_port_range, then the line of ip_local_reserved_ports."""
    folder = Path(path).parent
    return fetch_here(place, path).strip() + b"\n" + place.text(str(folder / "ip_local_reserved_ports"))


def fetch_connections(place: Place, path: str) -> bytes:
    """tcp, and tcp6 if there is one."""
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
    """Hexadecimal, one line per CPU: processed, dropped, squeezed, ...; as the 12th, since 5.10, packets waiting."""
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
    """Mean packets per round of the receiving softirq, from softnet_stat, an empty line and softirqs."""
    (packets, rounds), (later_packets, later_rounds) = _packets(pair.first), _packets(pair.last)
    passed = pair.rate(rounds, later_rounds)
    return {"system.network.packets_per_round": pair.rate(packets, later_packets) / passed if passed else 0.0}


def _packets(text: bytes) -> tuple[int, int]:
    softnet, _, softirqs = text.partition(b"\n\n")
    counts = [line.split()[1:] for line in softirqs.splitlines() if line.split()[:1] == [b"NET_RX:"]]
    if not counts:
        raise RecordingError("softirqs has no line NET_RX.")
    return sum(row[0] for row in _columns(softnet)), sum(map(procfs.parse_count, counts[0]))


def _links(pair: Pair) -> Metrics:
    """The lines of net/dev, then "NAME MEGABITS" for each interface that has a speed: others answer EINVAL."""
    first, last = (
        {name.encode(): (counts.received_bytes, counts.sent_bytes) for name, counts in parse_interfaces(text).items()}
        for text in (pair.first, pair.last)
    )
    rates = []
    for line in pair.last.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] in first and words[0] in last:
            speed = procfs.parse_count(words[1]) * _MEGABIT_BYTES
            both = [pair.rate(a, b) for a, b in zip(first[words[0]], last[words[0]], strict=True)]
            if speed > 0:
                rates.append((max(both), float(speed)))
    if not rates:
        return {}
    used, most = max(rates, key=lambda rate: rate[0] / rate[1])
    return {"system.network.link": used, "system.network.link.limit": most}


FIELDS = 16
"""Eight of what was received, then eight of what was sent (net/core/net-procfs.c)."""


@dataclass(frozen=True, slots=True)
class InterfaceCounts:
    """Bytes and packets since the interface exists, with the headers of every frame."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int


def parse_interfaces(text: bytes) -> dict[str, InterfaceCounts]:
    """By name. Raises RecordingError for an invalid count."""
    interfaces = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(b":")
        fields = rest.split()
        if colon and len(fields) >= FIELDS:
            counts = [procfs.parse_count(fields[place]) for place in (0, 1, 8, 9)]
            interfaces[name.strip().decode("utf-8", "replace")] = InterfaceCounts(*counts)
    return interfaces


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
SOURCES: tuple[Source, ...] = (
    derived(FILE_NUMBERS, "system.files.allocated", "system.files.limit"),
    derived(THREADS, "system.threads.count"),
    *(_sysctl(name, metric) for name, metric in _SYSCTLS.items()),
    Source(
        "proc/sys/net/ipv4/ip_local_port_range", ("system.network.local_ports.limit",), _port_range, fetch_port_range
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
        absent="Linux 5.10 or later tells how many packets wait",
    ),
    Source(
        "rounds",
        ("system.network.packets_per_round",),
        _rounds,
        lambda place, path: place.text(path).rstrip() + b"\n\n" + place.text("proc/softirqs"),
        path="proc/{pid}/net/softnet_stat",
    ),
    Source(
        "proc/{pid}/net/dev",
        ("system.network.link", "system.network.link.limit"),
        _links,
        lambda place, path: place.text(path) + each_below(place.path("sys/class/net"), "speed"),
        "no interface tells its speed: virtual ones do not",
    ),
)
"""In the order of the page: tables, sockets, packets."""
