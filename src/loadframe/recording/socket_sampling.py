"""The sockets of followed processes, looked at for a bounded share of one CPU, and once in each window of a step
(docs/recording.md, "Peers")."""

from __future__ import annotations

import ctypes
import math
import os
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.errors import RecordingError
from loadframe.recording import socket_rows as diag
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.held_files import opened

if TYPE_CHECKING:
    from loadframe.recording.sampling import ProcessFiles

EVERY_S = 0.5
CPU_SHARE = 0.0015
"""Of one CPU, at most, over the time until the next look."""
LONGEST_S = 5.0
LOADED_SHARE = 0.01
"""The same over the window of a step that would otherwise have no look; a look that costs more is not made."""
LOOKS = (2, 1)
"""Per window: two if they cost no more than LOADED_SHARE."""
REMEMBERED = 3
"""Looks whose median cost is used: an interrupted one costs more."""
_ROUNDING = 1e-6

MANY_DESCRIPTORS, SELDOM_S = 4096, 5.0
"""Processes with more open files are searched at most this often."""
MOST_SOCKETS = 70_000
"""Of a look; further ones are ignored. A range of local ports has fewer."""
PORTS_EVERY_S, PORTS_AT_MOST_S, PORTS_SHARE = 0.25, 4.5, 0.005
"""How often local ports are counted, and only if sockets in TIME_WAIT could fill a quarter of their range: it lists
every connection of the last minute. Less often if it takes more than this share of the time."""
LOCAL_PORTS = "system:local-ports"
"""Source: the largest number of local ports that connections to one destination take."""

_INODE = struct.Struct("=I")
_INFO_ATTRIBUTE = 2
_TIME_WAIT = 6
_STATES = 1 << diag.ESTABLISHED | 1 << diag.SYN_SENT | 1 << diag.CLOSE_WAIT | 1 << diag.LISTEN
_UNIX_STATES = 1 << diag.ESTABLISHED | 1 << diag.LISTEN
_TIMEOUT_S = 1
_NEW_NETWORK = 0x40000000

Row = tuple[int, bytes, bytes]
"""Family, message, and what is kept of its attributes."""


class LookSchedule:
    """Times are CLOCK_MONOTONIC. Looks happen at the recorder's ticks (interval_s), cheap ones every_s."""

    def __init__(self, interval_s: float, every_s: float = EVERY_S) -> None:
        self._interval_s = interval_s
        self._every_s = every_s
        self._spent_s: deque[float] = deque((0.0,), REMEMBERED)
        self._window_s = 0.0
        self._looked_s = -math.inf
        self._due_s = -math.inf

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def looked(self, now_s: float, spent_s: float) -> None:
        if self._looked_s == -math.inf:
            self._spent_s.clear()
        self._spent_s.append(spent_s)
        self._looked_s = now_s
        self._due_s = now_s + (self._in_step_s() or self._usual_s()) - self._interval_s / 2

    def begin_step(self, at_s: float, warmup_s: float, window_s: float) -> None:
        """The window begins after the warm-up at the earliest, which gets no look."""
        self._window_s = window_s
        if (apart_s := self._in_step_s()) is not None:
            self._due_s = at_s + warmup_s + min(apart_s, window_s / 2)

    def end_step(self) -> None:
        self._window_s = 0.0
        self._due_s = self._looked_s + self._usual_s() - self._interval_s / 2

    def _cost_s(self) -> float:
        return sorted(self._spent_s)[len(self._spent_s) // 2]

    def _usual_s(self) -> float:
        return min(LONGEST_S, max(self._every_s, self._cost_s() / CPU_SHARE))

    def _in_step_s(self) -> float | None:
        """In whole intervals; None outside a step, or where it would cost too much."""
        for looks in LOOKS if self._window_s > 0 else ():
            intervals = math.ceil(self._window_s / looks / self._interval_s - _ROUNDING) - 1
            apart_s = self._interval_s * max(1, intervals)
            if looks * self._cost_s() <= LOADED_SHARE * self._window_s:
                return min(apart_s, self._usual_s())
        return None


class _Owner:
    """descriptors: inode -> descriptor of its sockets, as last searched."""

    def __init__(self, process: ProcessFiles, sources: Mapping[str, int], network: int) -> None:
        self.process = process
        self.sources = sources
        self.network = network
        self.descriptors: Mapping[int, int] = {}
        self.denied, self.seen = False, False
        self.due_s = 0.0

    def look_through(self, now_s: float) -> None:
        if now_s < self.due_s:
            return
        try:
            self.descriptors, count = open_sockets(self.process.directory)
        except OSError:  # no permission, or gone
            self.denied = True
            return
        self.seen = True
        self.due_s = now_s + (SELDOM_S if count > MANY_DESCRIPTORS else 0.0)


class SocketSampler:
    """All followed processes except the driver's, whose connections are the target's seen from the other side.
    interval_s: between calls of `sample`. cpu_s: this thread's CPU clock."""

    def __init__(
        self, root: Path, writer: FrameWriter, *, interval_s: float = 0.1, cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._cpu_s = cpu_s
        self.schedule = LookSchedule(interval_s)
        self._at_listeners = LookSchedule(interval_s, every_s=interval_s)
        self._writer = writer
        self._live = root == Path("/")
        self._owners: dict[tuple[str, int], _Owner] = {}
        self._networks: dict[int, socket.socket | None] = {}
        self._own_network = Path("/proc/self/ns/net").stat().st_ino if self._live else 0
        self._foreign: set[int] = set()
        self._ports_due_s = 0.0
        self._ports = writer.source(LOCAL_PORTS)
        self._range = port_range() if self._live else 0
        self._info_at = diag.INET_MESSAGE.size
        self._buffer = bytearray(1 << 18)
        self._view = memoryview(self._buffer)

    def sample(self, now_s: float, processes: Iterable[ProcessFiles]) -> None:
        """Append an entry per process, of all sockets or only of listening ones."""
        at_all = self._live and self.schedule.is_due(now_s)
        if not at_all and not (self._live and self._at_listeners.is_due(now_s)):
            return
        began_s = self._cpu_s()
        self._follow(processes)
        for network in {owner.network for owner in self._owners.values() if not owner.denied}:
            self._look(network, now_s, at_all=at_all)
        if at_all and now_s >= self._ports_due_s:
            counting_s = self._cpu_s()
            self._count_ports()
            cost_s = (self._cpu_s() - counting_s) / PORTS_SHARE
            self._ports_due_s = now_s + min(max(cost_s, PORTS_EVERY_S), PORTS_AT_MOST_S)
        (self.schedule if at_all else self._at_listeners).looked(now_s, self._cpu_s() - began_s)

    def _follow(self, processes: Iterable[ProcessFiles]) -> None:
        wanted = {(files.component, files.pid): files for files in processes if files.component != "driver"}
        for key in self._owners.keys() - wanted.keys():
            del self._owners[key]
            for what in _WORDS:
                self._writer.retire(_name(key, what))
        for key, process in wanted.items():
            owner = self._owners.get(key)
            if owner is None or owner.process is not process:
                try:
                    network = os.stat("ns/net", dir_fd=process.directory).st_ino
                except OSError:  # unknown: ours is asked
                    network = 0
                sources = {what: self._writer.source(_name(key, what)) for what in _WORDS}
                self._owners[key] = _Owner(process, sources, network)
                self._foreign = set()  # what it had open before it was followed is no longer another's

    def _look(self, network: int, now_s: float, *, at_all: bool) -> None:
        asking = self._asking(network)
        if asking is None:
            return
        owners = [owner for owner in self._owners.values() if owner.network == network and not owner.denied]
        try:
            listed = dict(self._listed(asking, _STATES if at_all else 1 << diag.LISTEN))
        except (OSError, RecordingError):  # the kernel does not list them, or not all: there is no entry
            asking.close()
            del self._networks[network]
            return
        known = {inode for owner in owners for inode in owner.descriptors}
        strange = bool(listed.keys() - known - self._foreign)
        for owner in owners:
            if strange or not owner.seen:
                owner.look_through(now_s)
        foreign = listed.keys() - {inode for owner in owners for inode in owner.descriptors}
        self._foreign = foreign if at_all else self._foreign | foreign
        for owner in owners:
            if owner.seen and not owner.denied:
                self._write(owner, listed, at_all=at_all)
        if at_all and network not in (0, self._own_network):  # TCP's counters of the machine are those of ours
            with suppress(OSError), opened("net/netstat", owners[0].process.directory) as held:  # it ended
                self._writer.read(owners[0].sources["netstat"], held)

    def _write(self, owner: _Owner, listed: Mapping[int, Row | None], *, at_all: bool) -> None:
        rows = []
        for inode in owner.descriptors if at_all else owner.descriptors.keys() & listed.keys():
            family, message, extra = listed.get(inode) or (0, b"", b"")
            rows += [diag.ROW.pack(owner.descriptors[inode], inode, family, len(message), len(extra)), message, extra]
        if at_all or rows:
            self._writer.put(owner.sources["sockets" if at_all else "listeners"], b"".join(rows))

    def _count_ports(self) -> None:
        """With TIME_WAIT. A port on which something listens accepts connections, and makes none."""
        if not self._range or 4 * _in_time_wait() < self._range:
            return
        try:
            with diag.netlink(_TIMEOUT_S) as asking:
                listening, made = set[bytes](), Counter[bytes]()
                for states in (1 << diag.LISTEN, _STATES & ~(1 << diag.LISTEN) | 1 << _TIME_WAIT):
                    for family in diag.FAMILIES:
                        for begin, _ in self._dump(asking, diag.inet_request(family, states)):
                            local = bytes(self._view[begin + 4 : begin + 6])
                            if states == 1 << diag.LISTEN:
                                listening.add(local)
                            elif local not in listening:
                                remote = self._view[begin + 6 : begin + 8], self._view[begin + 24 : begin + 40]
                                made[b"".join(remote)] += 1
        except (OSError, RecordingError):  # not reported this time
            return
        self._writer.put(self._ports, b"%d\n" % max(made.values(), default=0))

    def _asking(self, network: int) -> socket.socket | None:
        if network not in self._networks:
            owner = next(owner for owner in self._owners.values() if owner.network == network)
            self._networks[network] = _netlink_in(owner.process.directory, network)
        return self._networks[network]

    def _listed(self, asking: socket.socket, states: int) -> Iterator[tuple[int, Row | None]]:
        """Inode -> row of each TCP and Unix stream socket; None for one of other processes."""
        size, foreign = diag.INET_MESSAGE.size, self._foreign
        for family in diag.FAMILIES:
            request = diag.inet_request(family, states, extensions=1 << _INFO_ATTRIBUTE - 1)
            for begin, end in self._dump(asking, request):
                (inode,) = _INODE.unpack_from(self._buffer, begin + size - _INODE.size)
                if inode in foreign or end - begin < size:
                    yield inode, None
                else:
                    yield inode, (family, bytes(self._view[begin : begin + size]), self._times(begin, end))
        unix = {
            _INODE.unpack_from(self._buffer, begin + 4)[0]: bytes(self._view[begin:end])
            for begin, end in self._dump(asking, diag.unix_request(states & _UNIX_STATES))
            if end - begin >= diag.UNIX_MESSAGE.size
        }
        parts = {inode: diag.unix_parts(row) for inode, row in unix.items()}
        for inode, (name, peer, queues) in parts.items():
            theirs = parts[peer][0] if peer in parts else b""
            extra = diag.UNIX_EXTRA.pack(peer, *queues, len(name)) + name + theirs
            yield inode, (socket.AF_UNIX, unix[inode][: diag.UNIX_MESSAGE.size], extra)

    def _times(self, begin: int, end: int) -> bytes:
        """A connection's tcp_info mostly lies where that of the one before did."""
        if begin + self._info_at + diag.ATTRIBUTE.size <= end:
            length, kind = diag.ATTRIBUTE.unpack_from(self._buffer, begin + self._info_at)
            if kind == _INFO_ATTRIBUTE and begin + self._info_at + length <= end:
                return self._kept(begin + self._info_at + diag.ATTRIBUTE.size, begin + self._info_at + length)
        for kind, first, last in diag.attributes(self._buffer, begin + diag.INET_MESSAGE.size, end):
            if kind == _INFO_ATTRIBUTE:
                self._info_at = first - diag.ATTRIBUTE.size - begin
                return self._kept(first, last)
        return b""

    def _kept(self, first: int, last: int) -> bytes:
        kept = b"".join([self._view[first + low : min(first + high, last)] for low, high in diag.INFO_PARTS])
        return kept if len(kept) == diag.INFO.size else b""

    def _dump(self, asking: socket.socket, request: bytes) -> Iterator[tuple[int, int]]:
        answers = enumerate(diag.dump(asking, self._buffer, request))
        return (place for number, place in answers if number < MOST_SOCKETS)

    def close(self) -> None:
        for asking in self._networks.values():
            if asking is not None:
                asking.close()


def open_sockets(directory: int) -> tuple[dict[int, int], int]:
    """Sockets by inode, and the number of all descriptors. OSError."""
    descriptors: dict[int, int] = {}
    with opened("fd", directory) as folder:
        names = os.listdir(folder)  # noqa: PTH208 - a held directory
        for name in names:
            try:
                leads_to = os.readlink(name, dir_fd=folder)
            except FileNotFoundError:  # closed meanwhile
                continue
            if leads_to.startswith("socket:["):
                descriptors.setdefault(int(leads_to[8:-1]), int(name))
    return descriptors, len(names)


_WORDS = ("sockets", "listeners", "netstat")


def _name(key: tuple[str, int], what: str) -> str:
    return f"{key[0]}:{key[1]}:{what}"


def port_range() -> int:
    """Local ports for connections to one destination; 0 if unknown."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii", errors="replace").split()
        return max(0, int(high) - int(low) + 1)
    except (OSError, ValueError):
        return 0


def _in_time_wait() -> int:
    try:
        words = Path("/proc/net/sockstat").read_text(encoding="ascii", errors="replace").split()
        return int(words[words.index("tw") + 1])
    except (OSError, ValueError, IndexError):
        return 0


def _netlink_in(directory: int, network: int) -> socket.socket | None:
    """None without permission."""
    with suppress(OSError), opened("/proc/self/ns/net") as ours:
        if network in (0, os.fstat(ours).st_ino):
            return diag.netlink(_TIMEOUT_S)
        with opened("ns/net", directory) as theirs:
            _enter(theirs)
        try:
            return diag.netlink(_TIMEOUT_S)
        finally:
            _enter(ours)
    return None


def _enter(namespace: int) -> None:
    """This thread is the recorder's only one."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")
