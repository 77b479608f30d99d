"""A component's connections in a window: to whom, how many at once, and on how many an answer is awaited
(docs/recording.md, "Peers"). Layouts: linux/tcp.h."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from loadframe.errors import RecordingError
from loadframe.recording.derivation import Metrics
from loadframe.recording.process_window import ProcessInWindow
from loadframe.recording.socket_rows import SYN_SENT, OpenSocket, TcpTimes, fullest, parse_rows
from loadframe.recording.wait_classes import Role

SOCKETS, LISTENERS = "sockets", "listeners"
MOST_PEERS = 16
"""Those with most connections are named."""
REST = "others"
FIRST_EPHEMERAL = 32768
"""Default of ip_local_port_range: connections are made from such ports, seldom served at them."""


@dataclass(frozen=True, slots=True)
class Look:
    at_s: float
    sockets: Mapping[int, OpenSocket]


class Connections:
    """names: of other components, by the port they listen on."""

    def __init__(self, processes: Sequence[ProcessInWindow], names: Mapping[str, str] | None = None) -> None:
        self._names = names or {}
        self._processes = processes
        self.by_process = {process.pid: list(_looks(process, SOCKETS)) for process in processes}

    @cached_property
    def looks(self) -> list[Look]:
        """Within the window: others show another load."""
        return self._together(self.by_process.values())

    def looks_at_listeners(self) -> list[Look]:
        """As `looks`, with the looks at listening sockets only, which are many times as frequent."""
        return self._together(_looks(process, SOCKETS, LISTENERS) for process in self._processes)

    def _together(self, of_processes: Iterable[Iterable[tuple[float, list[OpenSocket]]]]) -> list[Look]:
        together: dict[float, dict[int, OpenSocket]] = defaultdict(dict)
        for process, rows in zip(self._processes, of_processes, strict=True):
            for at_s, sockets in rows:
                if process.window.start_s <= at_s <= process.window.end_s:
                    together[at_s].update({socket.inode: socket for socket in sockets})
        return [Look(at_s, by_inode) for at_s, by_inode in sorted(together.items())]

    @cached_property
    def listening(self) -> frozenset[str]:
        rows = [row for looks in self.by_process.values() for _, row in looks]
        return frozenset(port_of(socket.local) for row in rows for socket in row if socket.listens)

    def role(self, socket: OpenSocket) -> Role:
        if socket.listens:
            return "listening"
        if socket.state == 0 or not (socket.remote or socket.local):
            return "datagrams"
        local = port_of(socket.local)
        served = local in self.listening or not socket.remote
        from_below = not served and local.isdecimal() and int(local) < FIRST_EPHEMERAL <= int(port_of(socket.remote))
        return "served" if served or from_below else "peer"

    def peer(self, socket: OpenSocket) -> str:
        port = port_of(socket.remote)
        return self._names.get(port, socket.remote) if is_here(socket) else socket.remote

    @cached_property
    def mute(self) -> frozenset[int]:
        """Data is sent repeatedly and never received: they await no answer."""
        if not self.looks:
            return frozenset()
        first, last = (
            {inode: socket.times for inode, socket in look.sockets.items() if socket.times is not None}
            for look in (self.looks[0], self.looks[-1])
        )
        return frozenset(
            inode
            for inode, times in last.items()
            if inode in first and times.data_out - first[inode].data_out >= 2 and times.data_in == first[inode].data_in
        )

    def named(self) -> frozenset[str]:
        sockets = (socket for look in self.looks for socket in look.sockets.values())
        counts = Counter(self.peer(socket) for socket in sockets if self.role(socket) == "peer")
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        return frozenset(ranked if len(ranked) <= MOST_PEERS else ranked[: MOST_PEERS - 1])


def _looks(process: ProcessInWindow, *sources: str) -> Iterator[tuple[float, list[OpenSocket]]]:
    for tick in process.window.around:
        for source in sources:
            if source in tick.entries:
                with suppress(RecordingError):
                    yield tick.monotonic_s, parse_rows(tick.entries[source])


def port_of(address: str) -> str:
    """Of a Unix socket its path."""
    return address if address.startswith("unix:") else address.rpartition(":")[2]


def is_here(socket: OpenSocket) -> bool:
    host, remote = socket.local.rpartition(":")[0], socket.remote.rpartition(":")[0]
    return socket.remote.startswith("unix:") or host == remote or remote.startswith("127.") or remote == "[::1]"


def peer_metrics(connections: Connections) -> Metrics:
    looks = connections.looks
    queues = _queues(connections.looks_at_listeners())
    if not looks:
        return queues
    named = connections.named()
    made: dict[str, list[list[OpenSocket]]] = {}
    for index, look in enumerate(looks):
        for socket in look.sockets.values():
            if connections.role(socket) == "peer":
                peer = connections.peer(socket)
                made.setdefault(peer if peer in named else REST, [[] for _ in looks])[index].append(socket)
    together = sum(len(sockets) for moments in made.values() for sockets in moments)
    metrics: Metrics = {"peers.connections": together / len(looks)}
    for peer, moments in made.items():
        metrics |= {f"peer.{peer}.{what}": value for what, value in _numbers(moments, connections.mute).items()}
        metrics[f"peer.{peer}.retransmits"] = _retransmits(moments, looks)
        # the component itself listens at the other end
        inside = any(
            is_here(socket) and port_of(socket.remote) in connections.listening
            for moment in moments
            for socket in moment
        )
        metrics[f"peer.{peer}.inside"] = float(inside)
    return metrics | queues


def _numbers(looks: Sequence[Collection[OpenSocket]], mute: Collection[int]) -> Metrics:
    counts = [len(sockets) for sockets in looks]
    metrics: Metrics = {"connections": sum(counts) / len(counts), "connections_most": max(counts)}
    pace = pace_of(socket for sockets in looks for socket in sockets if socket.inode not in mute)
    busy = [[socket.inode not in mute and awaits_answer(socket, pace) for socket in sockets] for sockets in looks]
    if any(counts) and all(known is None for sockets in busy for known in sockets):
        return metrics
    awaited = [sum(known is True for known in sockets) for sockets in busy]
    return metrics | {"busy": sum(awaited) / len(awaited), "busy_most": max(awaited)}


def _retransmits(moments: Sequence[Collection[OpenSocket]], looks: Sequence[Look]) -> float:
    elapsed_s = looks[-1].at_s - looks[0].at_s
    if elapsed_s <= 0:
        return 0.0
    first = {socket.inode: socket.times.retransmits for socket in moments[0] if socket.times}
    grown = (
        socket.times.retransmits - first.get(socket.inode, 0) for socket in moments[-1] if socket.times is not None
    )
    return sum(max(0, count) for count in grown) / elapsed_s


def _queues(looks: Sequence[Look]) -> Metrics:
    sockets = [socket for look in looks for socket in look.sockets.values() if socket.listens and socket.send]
    if not sockets:
        return {}
    waiting, most = fullest([(socket.receive, socket.send) for socket in sockets])
    together = sum(socket.receive for socket in sockets) / len(looks)
    return {"accept_queue": waiting, "accept_queue.limit": most, "accept_queue.waiting": together}


PACES = ((1, 1), (1, 2), (2, 1), (2, 2))
"""Segments of a request and of an answer: a small one is one segment, a head and a body are two."""
FEWEST_ANSWERS = 8
"""Segments of answers on a connection that show whether their number keeps pace with the requests'."""
FEW_ANSWERS = 3
"""The same if requests and answers account for every segment of the connection, which is no coincidence."""
MOST_AHEAD = 8
"""Exchanges by which greetings and logins may have put one side ahead for good."""
AGREE = 0.9
"""Share of the looks at a peer's connections that must fit a pace."""
FEWEST_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Pace:
    """request, answer: segments. ahead: the lead of requests, in units of both, while none is in flight."""

    request: int
    answer: int
    ahead: int


def awaits_answer(socket: OpenSocket, pace: Pace | None = None) -> bool | None:
    """Whether a request is in flight on a connection that was made; None if unknown."""
    times = socket.times
    if socket.state == SYN_SENT:
        return True
    if times is None:
        return None
    if (busy := _by_ticks(times)) is not None:
        return busy
    if times.data_in == 0:
        return times.data_out > 0
    if socket.send > 0 or times.heard_ms < times.received_ms:
        return True
    return pace is not None and _is_out(times, pace)


def pace_of(looks: Iterable[OpenSocket]) -> Pace | None:
    """What the looks at all connections to a peer have in common. A look with its two moments in different ticks allows
    one lead; the others allow two."""
    quiet = [socket.times for socket in looks if socket.times is not None and socket.send == socket.receive == 0]
    settled, young = (
        [times for times in quiet if _segments(times)[1] >= fewest] for fewest in (FEWEST_ANSWERS, FEW_ANSWERS)
    )
    return _agreed(settled, MOST_AHEAD) or _agreed(young, 0)


def _agreed(looks: Sequence[TcpTimes], most_ahead: int) -> Pace | None:
    if len(looks) < FEWEST_LOOKS:
        return None
    votes = Counter(
        Pace(request, answer, ahead)
        for request, answer in PACES
        for times in looks
        for ahead in _allowed(times, request, answer)
    )
    agreed = [
        (pace, count)
        for pace, count in votes.items()
        if abs(pace.ahead) <= most_ahead * pace.request * pace.answer and count >= AGREE * len(looks)
    ]
    return max(agreed, key=lambda vote: (vote[1], -abs(vote[0].ahead)), default=(None, 0))[0]


def _by_ticks(times: TcpTimes) -> bool | None:
    """None if the last data sent and received are in the same tick."""
    if times.sent_ms == times.received_ms:
        return None
    return times.sent_ms < times.received_ms and times.data_out > 0


def _segments(times: TcpTimes) -> tuple[int, int]:
    """Of requests and of answers; what was sent again counts once."""
    return max(0, times.data_out - times.retransmits), times.data_in


def _allowed(times: TcpTimes, request: int, answer: int) -> Iterator[int]:
    requests, answers = _segments(times)
    ahead, known = requests * answer - answers * request, _by_ticks(times)
    if known is not True:
        yield ahead
    if known is not False:
        yield ahead - request * answer


def _is_out(times: TcpTimes, pace: Pace) -> bool:
    requests, answers = _segments(times)
    return requests * pace.answer - answers * pace.request > pace.ahead
