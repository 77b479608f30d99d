"""Whose turn it is on a connection: whether a request is out and its answer is not there.

The kernel remembers when data was last sent and last received, in its own ticks (4 ms at 250 Hz), and counts segments.
Of two moments in different ticks the later one decides. Where the next request follows an answer at once both are in
the same tick: then segments decide, if the connections to that peer exchange a fixed number of them, which the looks
show by themselves: as many segments are out beyond those of the answers, or a request more. Where no such number holds
(answers of any size, requests one behind the other), the acknowledgements decide: an answer carries that of its
request, so data that is not acknowledged, or that was acknowledged by itself, has no answer yet. An acknowledgement in
the same tick tells nothing; the connection then counts as idle, so that too few are told. Layouts: linux/tcp.h.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from loadframe.recording.socket_rows import SYN_SENT, OpenSocket, TcpTimes

Side = Literal["made", "served"]
"""Whether the component sends the requests of a connection, or the answers."""
PACES = ((1, 1), (1, 2), (2, 1), (2, 2))
"""Segments of a request and of an answer that are tried: a small one is one segment, a head and a body are two."""
FEWEST_ANSWERS = 8
"""Segments of answers on a connection, from which on it shows whether their number keeps pace with the requests'."""
FEW_ANSWERS = 3
"""The same where each request and its answer account for every segment of the connection: that is no chance."""
MOST_AHEAD = 8
"""Exchanges by which greetings and logins may have put one side ahead for good."""
AGREE = 0.9
"""Share of the looks at all connections to a peer that must fit a pace."""
FEWEST_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Pace:
    """request, answer: segments of each. ahead: of the requests' segments, in units of both, while none is out."""

    request: int
    answer: int
    ahead: int


def awaits_answer(one: OpenSocket, pace: Pace | None = None) -> bool | None:
    """Whether a request is on its way on a connection that the component made; None where it cannot be told."""
    times = one.times
    if one.state == SYN_SENT:
        return True
    if times is None:
        return None
    if (told := _by_ticks(times, "made")) is not None:
        return told
    if times.data_in == 0:
        return times.data_out > 0
    if one.send > 0 or times.heard_ms < times.received_ms:
        return True
    return pace is not None and _is_out(times, "made", pace)


def is_asked(one: OpenSocket, pace: Pace | None = None) -> bool | None:
    """Whether a request came on a served connection and has no answer yet; None where it cannot be told."""
    times = one.times
    if one.receive > 0:
        return True
    if times is None:
        return None
    if times.data_in == 0:
        return False
    if (told := _by_ticks(times, "served")) is not None:
        return told
    if times.data_out == 0:
        return True
    if one.send > 0 or times.heard_ms < times.received_ms:
        return False
    return pace is None or _is_out(times, "served", pace)


def pace_of(looks: Iterable[OpenSocket], side: Side) -> Pace | None:
    """The pace that the looks at all connections to one peer have in common; None where they have none. Those in
    different ticks tell it; of the others each allows two."""
    quiet = [one.times for one in looks if one.times is not None and one.send == one.receive == 0]
    told, young = (
        [times for times in quiet if _segments(times, side)[1] >= fewest] for fewest in (FEWEST_ANSWERS, FEW_ANSWERS)
    )
    return _agreed(told, side, MOST_AHEAD) or _agreed(young, side, 0)


def _agreed(told: Sequence[TcpTimes], side: Side, most_ahead: int) -> Pace | None:
    """The pace on which most of them agree, with at most that many exchanges ahead."""
    if len(told) < FEWEST_LOOKS:
        return None
    best: tuple[int, Pace] | None = None
    for request, answer in PACES:
        votes = Counter(ahead for times in told for ahead in _allowed(times, side, request, answer))
        for ahead, count in votes.items():
            if abs(ahead) > most_ahead * request * answer or count < AGREE * len(told):
                continue
            pace = Pace(request, answer, ahead)
            if best is None or (count, -abs(ahead)) > (best[0], -abs(best[1].ahead)):
                best = count, pace
    return None if best is None else best[1]


def _by_ticks(times: TcpTimes, side: Side) -> bool | None:
    """Whether a request is out, where what was sent last and what came last are in different ticks."""
    if times.sent_ms == times.received_ms:
        return None
    if side == "made":
        return times.sent_ms < times.received_ms and times.data_out > 0
    return times.received_ms < times.sent_ms


def _segments(times: TcpTimes, side: Side) -> Sequence[int]:
    """Of requests and of answers; what was sent again counts once."""
    out = max(0, times.data_out - times.retransmits)
    return (out, times.data_in) if side == "made" else (times.data_in, out)


def _ahead(times: TcpTimes, side: Side, request: int, answer: int) -> int:
    requests, answers = _segments(times, side)
    return requests * answer - answers * request


def _allowed(times: TcpTimes, side: Side, request: int, answer: int) -> Iterator[int]:
    """By how much requests may be ahead while none is out, as far as this look tells."""
    ahead, known = _ahead(times, side, request, answer), _by_ticks(times, side)
    if known is not True:
        yield ahead
    if known is not False:
        yield ahead - request * answer


def _is_out(times: TcpTimes, side: Side, pace: Pace) -> bool:
    return _ahead(times, side, pace.request, pace.answer) > pace.ahead
