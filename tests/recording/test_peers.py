"""To whom a component is connected, and where an answer is awaited, from recorded sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pytest

from loadframe.errors import RecordingError
from loadframe.metrics import metric, parts_of
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import window_metrics
from loadframe.recording.peer_metrics import FEWEST_LOOKS, MOST_PEERS, Pace, awaits_answer, pace_of
from loadframe.recording.socket_rows import (
    LISTEN,
    ROW,
    SYN_SENT,
    UNIX_EXTRA,
    UNIX_MESSAGE,
    OpenSocket,
    TcpTimes,
    address_of,
    parse_rows,
)

FACTS = Facts(0.1, 100, 2, 4096, 0.0, 0.0, 1e9)


def looked(*looks: bytes, seconds: float = 1.0) -> dict[str, float]:
    """The metrics of a window with these looks at the sockets of one process, evenly apart; of one look, twice."""
    looks = looks if len(looks) > 1 else looks * 2
    apart_s = seconds / max(1, len(looks) - 1)
    ticks = [
        Tick(place * apart_s, 1e9, {"target:7:threads": b"1\n", "target:7:sockets": rows}, FACTS)
        for place, rows in enumerate(looks)
    ]
    return window_metrics(ticks, 0.0, seconds)


AWAITED = {"ago_ms": (4, 20, 20)}
ANSWERED = {"ago_ms": (20, 4, 4)}


def test_connections_are_counted_by_peer_and_those_with_a_request_on_its_way(connection: Callable[..., bytes]) -> None:
    one = connection(3, 80, 0, state=LISTEN, queues=(2, 128)) + connection(5, 80, 50001, ago_ms=(30, 8, 8))
    first = one + connection(6, 41000, 5432, **AWAITED) + connection(7, 41001, 5432, **ANSWERED)
    second = one + connection(6, 41000, 5432, **AWAITED) + connection(7, 41001, 5432, **AWAITED, retransmits=3)
    found = looked(first, second, seconds=2.0)
    peer = "target.peer.127.0.0.1:5432"
    assert found[f"{peer}.connections"] == found[f"{peer}.connections_most"] == 2
    assert (found[f"{peer}.busy"], found[f"{peer}.busy_most"]) == (1.5, 2)
    assert found[f"{peer}.retransmits"] == 1.5
    assert (found["target.accept_queue"], found["target.accept_queue.limit"]) == (2, 128)
    assert found["target.accept_queue.waiting"] == 2


def test_the_accept_queue_is_of_the_looks_at_listeners_too(connection: Callable[..., bytes]) -> None:
    """Also in a window in which connections were not looked at."""
    queues = [connection(3, 80, 0, state=LISTEN, queues=(waiting, 128)) for waiting in (2, 96, 4)]
    idle = {"target:7:threads": b"1\n"}
    ticks = [Tick(0.1 * place, 1e9, idle | {"target:7:listeners": rows}, FACTS) for place, rows in enumerate(queues)]
    ticks.append(Tick(0.3, 1e9, idle | {"target:7:sockets": queues[0] + connection(6, 41000, 5432)}, FACTS))
    for end_s, waiting in ((0.2, 34), (0.3, 26)):
        found = window_metrics(ticks, 0.0, end_s)
        assert (found["target.accept_queue"], found["target.accept_queue.limit"]) == (96, 128)
        assert found["target.accept_queue.waiting"] == waiting
        assert ("target.peer.127.0.0.1:5432.connections" in found) == (end_s == 0.3)


def times(sent: int, received: int, heard: int, data_in: int = 3, data_out: int = 3) -> TcpTimes:
    return TcpTimes(sent, received, heard, 0, data_in, data_out)


def made(seen: TcpTimes | None, *, receive: int = 0, send: int = 0, state: int = 1) -> OpenSocket:
    return OpenSocket(3, 1003, 2, state, "127.0.0.1:40000", "127.0.0.1:80", receive, send, seen)


@pytest.mark.parametrize(
    ("one", "awaits"),
    [
        (made(times(4, 24, 24)), True),  # sent after the last answer
        (made(times(24, 4, 4)), False),  # answered since
        (made(times(8, 8, 8), send=40), True),  # in one tick of the kernel: not acknowledged
        (made(times(8, 8, 4)), True),  # acknowledged by itself, without an answer
        (made(times(8, 8, 8)), False),
        (made(times(8, 8, 8, data_in=0, data_out=1)), True),  # the first one
        (made(times(8, 8, 8, data_in=0, data_out=0)), False),  # just connected
        (made(times(0, 0, 0), state=SYN_SENT), True),
        (made(None), None),
    ],
)
def test_an_answer_is_awaited_where_the_kernel_says_so(one: OpenSocket, awaits: bool | None) -> None:
    assert awaits_answer(one) is awaits


SAME_TICK = {"ago_ms": (8, 8, 8)}


def test_a_look_beside_the_window_says_nothing_of_it(connection: Callable[..., bytes]) -> None:
    """A step of one connection was looked at, then one of four, in whose window there was no look."""
    rows = connection(3, 80, 0, state=LISTEN) + connection(6, 41000, 5432, **AWAITED)
    ticks = [Tick(0.1 * place, 1e9, {"target:7:threads": b"1\n"}, FACTS) for place in range(20)]
    ticks[4].entries["target:7:sockets"] = rows  # type: ignore[index]
    before, after = window_metrics(ticks, 0.0, 0.5), window_metrics(ticks, 0.65, 1.15)
    assert before["target.peer.127.0.0.1:5432.connections"] == 1
    told = ("target.peer", "target.accept_queue")
    assert not [name for name in after if name.startswith(told)]


def test_a_request_that_follows_the_answer_at_once_is_awaited_as_any_other(connection: Callable[..., bytes]) -> None:
    """All connections to a slow peer are busy: of most the last answer and the next request are in one tick of the
    kernel, and the request was acknowledged in it."""
    first = [connection(6 + number, 41000 + number, 5432, **SAME_TICK, data=(20, 21)) for number in range(7)]
    second = [connection(6 + number, 41000 + number, 5432, **SAME_TICK, data=(25, 26)) for number in range(7)]
    certain = [connection(20, 42000, 5432, **AWAITED, data=(often, often + 1)) for often in (30, 35)]
    idle = [connection(21, 42001, 5432, **SAME_TICK, data=(often, often)) for often in (30, 31)]
    found = looked(b"".join([*first, certain[0], idle[0]]), b"".join([*second, certain[1], idle[1]]))
    assert found["target.peer.127.0.0.1:5432.connections"] == 9
    assert found["target.peer.127.0.0.1:5432.busy"] == 8


def test_young_connections_of_a_short_window_tell_of_it_too(connection: Callable[..., bytes]) -> None:
    """Sixteen connections to a peer that serves four at a time, half a second after they were made: four to six
    requests on each, none but the last without its answer. One look, as of a real service."""
    rows = [
        connection(6 + number, 41000 + number, 5432, ago_ms=(ago_ms, ago_ms, ago_ms), data=(answers, answers + 1))
        for number, (ago_ms, answers) in enumerate([(48, 5)] * 5 + [(24, 5)] * 4 + [(100, 4)] * 7)
    ]
    assert looked(b"".join(rows))["target.peer.127.0.0.1:5432.busy"] == 16


def of_pace(request: int, answer: int, ahead: int = 0) -> list[OpenSocket]:
    """Looks at connections of which every other one has a request out, in ticks that differ."""
    return [
        made(times(4, 24, 24, data_in=often * answer, data_out=(often + 1) * request + ahead))
        if often % 2
        else made(times(24, 4, 4, data_in=often * answer, data_out=often * request + ahead))
        for often in range(20, 30)
    ]


@pytest.mark.parametrize(("request_segments", "answer_segments"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("greeting", [0, 3])
def test_segments_tell_where_requests_and_answers_have_a_number_of_them(
    request_segments: int, answer_segments: int, greeting: int
) -> None:
    pace = pace_of(of_pace(request_segments, answer_segments, greeting))
    assert pace is not None
    for exchanges, out in ((90, 0), (90, 1)):
        sent = (exchanges + out) * request_segments + greeting
        one = made(times(8, 8, 8, data_in=exchanges * answer_segments, data_out=sent))
        assert awaits_answer(one, pace) is bool(out)


def test_what_was_sent_again_is_no_further_request() -> None:
    sent = TcpTimes(8, 8, 8, 5, 90, 95)
    assert awaits_answer(made(sent), Pace(1, 1, 0)) is False


@pytest.mark.parametrize(
    "looks",
    [
        [made(times(8, 8, 8, data_in=20 * one, data_out=13 * one)) for one in range(5, 25)],  # answers of any size
        of_pace(1, 1)[: FEWEST_LOOKS - 1],
        [made(times(8, 8, 8, data_in=2, data_out=3)) for _ in range(20)],  # hardly used
        [made(times(8, 8, 8, data_in=3 * one, data_out=one)) for one in (2, 3, 4, 5)],  # young, and of other answers
        [made(times(8, 8, 8, data_in=4, data_out=7)) for _ in range(4)],  # young, and greeted before
        [made(times(4, 24, 24, data_in=one, data_out=40 + one)) for one in range(20, 40)],  # one behind the other
    ],
)
def test_without_a_pace_the_segments_tell_nothing(looks: list[OpenSocket]) -> None:
    assert pace_of(looks) is None
    assert awaits_answer(made(times(8, 8, 8, data_in=20, data_out=21))) is False


def test_who_only_sends_awaits_no_answer(connection: Callable[..., bytes]) -> None:
    """Metrics, logs: again and again, and never a byte back."""
    looks = [connection(6, 41000, 8125, ago_ms=(4, 9000, 40), data=(0, count)) for count in (10, 20, 30)]
    found = looked(*looks)
    assert found["target.peer.127.0.0.1:8125.connections"] == 1
    assert found["target.peer.127.0.0.1:8125.busy"] == 0


def test_peers_beyond_the_sixteenth_are_told_together(connection: Callable[..., bytes]) -> None:
    rows = b"".join(connection(10 + port, 40000 + port, 6000 + port) for port in range(30))
    found = looked(rows + connection(99, 42000, 5432) + connection(98, 42001, 5432))
    peers = {peer for name in found if (peer := parts_of(name).get("peer")) is not None}
    assert len(peers) == MOST_PEERS
    assert found["target.peer.127.0.0.1:5432.connections"] == 2
    assert sum(found[f"target.peer.{peer}.connections"] for peer in peers) == 32
    assert metric("target.peer.others.busy").what.startswith("connections of the target to all others together")


def unix(descriptor: int, own: bytes, peer: bytes, state: int = 1) -> bytes:
    message = UNIX_MESSAGE.pack(1, 1, state, 500 + descriptor, 0, 0)
    rest = UNIX_EXTRA.pack(7, 0, 5, len(own)) + own + peer
    return ROW.pack(descriptor, 500 + descriptor, 1, len(message), len(rest)) + message + rest


def test_a_unix_socket_has_the_name_of_the_path_and_no_times() -> None:
    found = looked(unix(3, b"/run/a.sock\0", b"", LISTEN) + unix(4, b"/run/a.sock\0", b"") + unix(5, b"", b"\0other"))
    assert found["target.peer.unix:@other.connections"] == 1
    assert "target.peer.unix:@other.busy" not in found
    assert found["target.peer.unix:@other.inside"] == 0


def test_a_peer_at_which_the_component_listens_itself_is_inside() -> None:
    """A front, and the workers that it has started, behind a socket of their own."""
    found = looked(unix(3, b"/run/w.sock\0", b"", LISTEN) + unix(4, b"", b"/run/w.sock\0"))
    assert found["target.peer.unix:/run/w.sock.inside"] == 1


def test_of_a_socket_that_several_processes_have_open_one_counts(connection: Callable[..., bytes]) -> None:
    rows = connection(3, 80, 0, state=LISTEN) + connection(6, 41000, 5432)
    entries = {
        f"target:{pid}:{name}": text for pid in (7, 8) for name, text in (("threads", b"1\n"), ("sockets", rows))
    }
    found = window_metrics([Tick(at_s, 1e9, entries, FACTS) for at_s in (0.0, 1.0)], 0.0, 1.0)
    assert found["target.peer.127.0.0.1:5432.connections"] == 1


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_damaged_list_is_as_if_there_were_none(cut: int, connection: Callable[..., bytes]) -> None:
    rows = connection(6, 41000, 5432)
    with pytest.raises(RecordingError, match="lacks its end"):
        parse_rows(rows[:-cut])
    assert not [name for name in looked(rows[:-cut], rows[:-cut]) if "peer" in name]


def test_no_byte_of_a_list_is_trusted() -> None:
    for family in (1, 2, 10):
        with pytest.raises(RecordingError):
            parse_rows(ROW.pack(3, 4, family, 3, 0) + b"abc")
    assert parse_rows(struct.pack("<IIBHH", 3, 4, 0, 0, 0))[0].remote == ""


def test_an_address_of_ipv6_is_in_brackets_and_one_of_ipv4_within_it_is_what_it_is() -> None:
    port = socket.htons(443)
    assert address_of(10, socket.inet_pton(10, "fe80::1"), port) == "[fe80::1]:443"
    assert address_of(10, socket.inet_pton(10, "::ffff:10.0.0.1"), port) == "10.0.0.1:443"
