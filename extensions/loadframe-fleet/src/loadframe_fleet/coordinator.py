"""One step over many hosts: all drivers are ready, all begin at one instant, all logs come back, or the step is void.
    clocks     exchanges with each host, the shortest round trip of which bounds its clock (clocks.py)
    prepare    each driver prepares what its share of the load needs, and waits
    start      each receives the instant by its own clock; receiving it too late voids the step
    ended      each answers once its load is over
    clocks     again: a clock that was set meanwhile voids the step
    read       the request logs, compressed, piece by piece
Whatever is lost voids the step, and the load of all others is ended: a lost share is never spread over those that
remain. Any transport will do (transport.py); nothing here reads a clock or sleeps by itself."""

import base64
import binascii
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from loadframe.errors import ChangeError, RecordingError, StepVoid, StudyError, TargetError
from loadframe_fleet.clocks import DRIFT, ClockInStep, Exchange, Offset, offset
from loadframe_fleet.records import VoidReason
from loadframe_fleet.transport import ERRORS, REMEDY, Arrived, Transport, checked
from loadframe_fleet.wire import PIECE_BYTES, Message

EXCHANGES = 12
"""Round trips with each host, before and after a step."""
CLOCKS_WITHIN_S = 10.0
"""Time for one host; the exchanges measured by then give its bounds."""
PACE_S = 0.3e-3
"""Between two questions for the time, to whichever hosts: twice what each takes of our CPU (benchmarks/fleet.py
--measured), so that none waits for another."""
READY_WITHIN_S = 90.0
"""A driver may make thousands of connections and log in on each."""
LEAD_S = 0.25
"""From announcing the start to the first host until the start, plus LEAD_TRIPS round trips and LEAD_SENDS times the
time that sending to all of them took before."""
LEAD_TRIPS = 3.0
LEAD_SENDS = 2.0
LATE_S = 60.0
"""How long after its end a load may finish what it has begun; the agent itself ends it long before."""
FLUSHED_WITHIN_S = 30.0
MOST_RECORDED_BYTES = 64 << 20
READ_WITHIN_S = 60.0
"""Time for any piece, while some are requested."""
READ_AT_ONCE_BYTES = 16 * PIECE_BYTES
"""Requested pieces of all hosts: a slow host keeps none of the others from sending."""
CLOCKS_APART_S = 0.005
"""How far, beyond its bound, the clock by which a host begins may differ from the one it reported."""
PLACE_WITHIN_S = 240.0
"""A server's owner's command may take 30 s, a restart two minutes."""
TARGET_WITHIN_S = 900.0
"""A large cache is filled, a long log recovered from. Its host is checked meanwhile."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Drivers were asked to begin at start_s (the coordinator's clock). clocks: of each host then."""

    name: str
    shares: Mapping[str, int]
    start_s: float
    duration_s: float
    clocks: Mapping[str, Offset]


@dataclass(frozen=True, slots=True)
class LogOf:
    """compressed: by zstd; size: of the log itself, in bytes; answer: at the end."""

    host: str
    share: int
    clock: ClockInStep
    compressed: bytes
    size: int
    answer: Message


class Coordinator:
    """Takes one step at a time. watched: hosts that do not drive, but losing one voids it. All methods but `cancel`
    raise StepVoid."""

    def __init__(self, transport: Transport, drivers: Sequence[str], watched: Sequence[str] = ()) -> None:
        self._transport = transport
        self.drivers = tuple(drivers)
        self.watched = tuple(host for host in watched if host not in drivers)
        self._ended: dict[str, Message] = {}
        self._numbers: dict[int, str] = {}
        self._begun: Begun | None = None
        self._answered_s: dict[str, float] = {}
        self._sending_s = 0.0
        self.watched_clocks: dict[str, ClockInStep] = {}

    def ask_all(
        self, questions: Mapping[str, tuple[str, Message]], within_s: float, reason: VoidReason
    ) -> dict[str, Message]:
        """StepVoid where an answer is missing, with this reason unless the agent gives one."""
        begun_s = self._transport.now_s()
        asked = {self._transport.ask(host, *question): host for host, question in questions.items()}
        self._sending_s = self._transport.now_s() - begun_s
        answers = dict[str, Message]()
        for came in self._answers(asked, within_s, reason):
            if came.answer is None:
                self._fail(came, reason)
            answers[came.host] = came.answer
            self._answered_s[came.host] = came.at_s
        return answers

    def ask(
        self, host: str, question: str, values: Message, within_s: float, reason: VoidReason, *, alone: bool = False
    ) -> Arrived:
        """StepVoid also where nothing comes in that time. alone: ignore the loss of other hosts."""
        return next(self._answers({self._transport.ask(host, question, values): host}, within_s, reason, alone=alone))

    def _answers(
        self, asked: dict[int, str], within_s: float, reason: VoidReason, *, alone: bool = False
    ) -> Iterator[Arrived]:
        until_s = self._transport.now_s() + within_s
        while asked:
            came = self._transport.arrived(until_s)
            if came is None:
                silent = next(iter(asked.values()))
                self._void(silent, reason, f"host {silent!r} has not answered within {within_s:g} s")
            if alone and came.host not in asked.values():
                continue
            self._refuse_loss(came, reason, ())
            self._note_end(came)
            if asked.pop(came.number, None) is not None:
                yield came

    def ask_place(self, host: str, values: Message) -> Message:
        """For a place of settings (changing.py); putting back also where other hosts are lost. ChangeError, StudyError,
        TargetError where the place refuses."""
        back = values["do"] == "back"
        came = self.ask(host, "back" if back else "change", values, PLACE_WITHIN_S, "change-failed", alone=back)
        if came.answer is None:
            kind = ERRORS.get(came.kind)
            if kind in (ChangeError, StudyError, TargetError):
                raise kind(came.error, remedy=came.remedy or "See what is wrong there.")
            self._fail(came, "change-failed")
        return came.answer

    def ask_target(self, host: str, said: Message) -> Message:
        """UserError as raised there."""
        return checked(self.ask(host, "target", said, TARGET_WITHIN_S, "agent-lost"))

    def clocks(self, hosts: Iterable[str], exchanges: int = EXCHANGES) -> dict[str, Offset]:
        """How far the monotonic clock of each is ahead of ours."""
        by_host: dict[str, list[Exchange]] = {host: [] for host in hosts}
        waiting: dict[int, tuple[str, float]] = {}
        first_s: dict[str, float] = {}
        in_turn, ask_s = deque(by_host), self._transport.now_s()
        while in_turn or waiting:
            now_s = self._transport.now_s()
            if in_turn and now_s >= ask_s:
                host = in_turn.popleft()
                first_s.setdefault(host, now_s)
                waiting[self._transport.ask(host, "clock", {})] = host, now_s
                ask_s = now_s + PACE_S
                continue
            came = self._transport.arrived(ask_s if in_turn else ask_s + CLOCKS_WITHIN_S)
            if came is None and in_turn:
                continue
            if came is None:  # distant ones have their bounds
                break
            self._refuse_loss(came, "agent-lost", waiting)
            if came.number not in waiting or came.answer is None:
                continue
            host, sent_s = waiting.pop(came.number)
            theirs_s = came.answer.get("monotonic_s")
            if not isinstance(theirs_s, int | float):
                self._void(host, "agent-lost", f"host {host!r} reported no time")
            by_host[host].append(Exchange(sent_s, float(theirs_s), came.at_s))
            if len(by_host[host]) < exchanges and came.at_s - first_s[host] < CLOCKS_WITHIN_S:
                in_turn.appendleft(host)
        if late := next((host for host, answers in by_host.items() if not answers), None):
            self._void(late, "agent-lost", f"host {late!r} has not reported the time within {CLOCKS_WITHIN_S:g} s")
        return {host: offset(answers) for host, answers in by_host.items()}

    def begin(
        self,
        name: str,
        shares: Mapping[str, int],
        duration_s: float,
        more: Message | None = None,
        by_host: Mapping[str, Message] | None = None,
    ) -> Begun:
        """Let the hosts begin at one instant. more: values for all; by_host: for single ones. StepVoid where one does
        not get ready, or receives the start too late."""
        self._ended, self._numbers = {}, {}
        common, own = {"step": name, "duration_s": duration_s, **(more or {})}, by_host or {}
        self.ask_all(
            {host: ("prepare", {**common, **own.get(host, {}), "share": share}) for host, share in shares.items()},
            READY_WITHIN_S,
            "not-ready",
        )
        clocks = self.clocks((*shares, *self.watched))
        longest_s = max(clock.round_trip_s for clock in clocks.values())
        lead_s = LEAD_S + LEAD_TRIPS * longest_s + LEAD_SENDS * self._sending_s
        sent_s = self._transport.now_s()
        start_s = sent_s + lead_s
        heard = self.ask_all(
            {host: ("start", {"at_s": start_s + clocks[host].offset_s}) for host in shares},
            lead_s + CLOCKS_WITHIN_S,
            "late-start",
        )
        for host, answer in heard.items():
            self._check_heard(host, answer.get("late_s"), start_s, sent_s, clocks[host])
        self._begun = Begun(name, dict(shares), start_s, duration_s, clocks)
        self._numbers = {self._transport.ask(host, "ended", {}): host for host in shares}
        return self._begun

    def wait(self, within_s: float) -> bool:
        """Whether all loads are over. StepVoid if one has failed."""
        begun = self._going()
        until_s = self._transport.now_s() + within_s
        while len(self._ended) < len(begun.shares):
            came = self._transport.arrived(until_s)
            if came is None:
                last_s = begun.start_s + begun.duration_s + LATE_S
                if self._transport.now_s() > last_s:
                    slow = next(host for host in begun.shares if host not in self._ended)
                    self._void(slow, "load-failed", f"the load of host {slow!r} has not ended by {LATE_S:g} s after it")
                return False
            self._refuse_loss(came, "load-failed", ())
            self._note_end(came)
        return True

    def collect(self, most_bytes: int) -> list[LogOf]:
        """The request logs. most_bytes: of all of them together, uncompressed."""
        begun = self._going()
        after = self.clocks((*begun.shares, *self.watched))
        clocks = {host: self.unset(host, begun.clocks[host], after[host]) for host in after}
        self.watched_clocks = {host: clocks[host] for host in self.watched}
        sizes = {host: self._sizes(host, self._ended[host]) for host in begun.shares}
        if (total := sum(size for size, _ in sizes.values())) > most_bytes:
            largest = max(sizes, key=lambda host: sizes[host][0])
            fact = f"the request logs have {total:,} bytes, more than {most_bytes:,}; that of host {largest!r} is the "
            self._void(largest, "log-refused", f"{fact}largest", "Give measure.window less time, or lower the level.")
        sent: dict[str, list[bytes]] = {host: [] for host in begun.shares}
        for host, piece in self.pieces({host: ("log", 0, sizes[host][1]) for host in sent}, "log-refused"):
            sent[host].append(piece)
        return [
            LogOf(host, share, clocks[host], b"".join(sent[host]), sizes[host][0], self._ended[host])
            for host, share in begun.shares.items()
        ]

    def recorded(self, hosts: Iterable[str], offsets: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
        """What is recorded from each host's offset on, in pieces, as all together may exceed memory."""
        asked = {host: ("flush", Message()) for host in hosts}
        wanted = {}
        for host, answer in self.ask_all(asked, FLUSHED_WITHIN_S, "recorder-failed").items():
            begin, end = offsets.get(host, 0), answer.get("bytes")
            if not isinstance(end, int) or not begin <= end <= begin + MOST_RECORDED_BYTES:
                self._void(host, "recorder-failed", f"host {host!r} has recorded {end!r} bytes after {begin:,}")
            wanted[host] = "recording", begin, end
        yield from self.pieces(wanted, "recorder-failed")

    def pieces(self, wanted: Mapping[str, tuple[str, int, int]], reason: VoidReason) -> Iterator[tuple[str, bytes]]:
        """What each host has under a name, from one offset to another, as it comes, in order."""
        places = {host: begin for host, (_, begin, end) in wanted.items() if begin < end}
        in_turn, asked, under_way = deque(places), dict[int, tuple[str, int]](), 0
        until_s = self._transport.now_s() + READ_WITHIN_S
        while places:
            while in_turn:
                what, _, end = wanted[in_turn[0]]
                size = min(PIECE_BYTES, end - places[in_turn[0]])
                if under_way + size > READ_AT_ONCE_BYTES:
                    break
                host, under_way = in_turn.popleft(), under_way + size
                question = {"what": what, "offset": places[host], "size": size}
                asked[self._transport.ask(host, "read", question)] = host, size
            came = self._transport.arrived(until_s)
            if came is None:
                silent = next(iter(asked.values()))[0]
                self._void(silent, reason, f"host {silent!r} has not answered within {READ_WITHIN_S:g} s")
            self._refuse_loss(came, reason, asked)
            if came.number not in asked or came.answer is None:
                continue
            host, size = asked.pop(came.number)
            under_way -= size
            try:
                piece = base64.b64decode(str(came.answer.get("data", "")), validate=True)
            except binascii.Error:
                self._void(host, reason, f"host {host!r} sent something else than its log")
            if not 0 < len(piece) <= size:
                self._void(host, reason, f"host {host!r} sent {len(piece):,} bytes instead of a piece of {size:,}")
            places[host] += len(piece)
            if places[host] < wanted[host][2]:
                in_turn.appendleft(host)
            else:
                del places[host]
            yield host, piece
            until_s = self._transport.now_s() + READ_WITHIN_S

    def cancel(self) -> None:
        """End the load. A host that misses this ends it once its lease is over. Never raises."""
        self._begun = None
        for host in self.drivers:
            self._transport.ask(host, "cancel", {})

    def _going(self) -> Begun:
        assert self._begun is not None, "a step was begun"
        return self._begun

    def _note_end(self, came: Arrived) -> None:
        if came.number not in self._numbers:
            return
        self._refuse_loss(came, "load-failed", self._numbers)
        if came.answer is not None:
            self._ended[came.host] = came.answer

    def _refuse_loss(self, came: Arrived, reason: VoidReason, asked: Iterable[int]) -> None:
        if came.gone:
            self._void(came.host, "agent-lost", f"host {came.host!r} is lost: {came.gone}")
        if came.error and came.number in asked:
            self._fail(came, reason)

    def _fail(self, came: Arrived, reason: VoidReason) -> NoReturn:
        reason = "recorder-failed" if came.kind == RecordingError.__name__ else reason
        self._void(came.host, reason, f"host {came.host!r}: {came.why_not}", came.remedy)

    def _void(self, host: str, reason: str, fact: str, remedy: str = "") -> NoReturn:
        self.cancel()
        raise StepVoid(host, reason, fact, remedy=remedy or REMEDY)

    def _check_heard(self, host: str, late_s: object, start_s: float, sent_s: float, clock: Offset) -> None:
        """In time, and, by the clock with which the load begins, after sending and before the answer."""
        if not isinstance(late_s, int | float) or late_s > 0:
            self._void(host, "late-start", f"host {host!r} heard of the start {_ms(late_s)} after it")
        heard_s = start_s + late_s
        early_s = sent_s - clock.uncertainty_s - heard_s
        after_s = heard_s - self._answered_s[host] - clock.uncertainty_s
        if max(early_s, after_s) > CLOCKS_APART_S:
            wrong = _ms(max(early_s, after_s))
            self._void(
                host, "clock-set", f"host {host!r} begins by a clock that is {wrong} off the one that it reported"
            )

    def unset(self, host: str, before: Offset, after: Offset) -> ClockInStep:
        """StepVoid where the host's clock was set in between."""
        apart_s = after.at_s - before.at_s
        moved_s = abs(after.offset_s - before.offset_s)
        if moved_s > before.uncertainty_s + after.uncertainty_s + DRIFT * apart_s:
            fact = f"the clock of host {host!r} moved by {_ms(moved_s)} against ours within {apart_s:.3g} s"
            self._void(host, "clock-set", fact)
        return ClockInStep(
            before.offset_s, before.uncertainty_s, before.round_trip_s, before.at_s,
            after.offset_s, after.uncertainty_s, after.at_s, EXCHANGES,
        )  # fmt: skip

    def _sizes(self, host: str, answer: Message) -> tuple[int, int]:
        size, sent = answer.get("log_bytes"), answer.get("sent_bytes")
        if not isinstance(size, int) or not isinstance(sent, int) or min(size, sent) < 0:
            self._void(host, "log-refused", f"host {host!r} does not say how large its log is")
        if sent > size + size // 128 + 1024:  # ZSTD_compressBound is less
            self._void(host, "log-refused", f"host {host!r} sends {sent:,} bytes for a log of {size:,}")
        return size, sent


def shares_of(level: int, drivers: Sequence[str]) -> dict[str, int]:
    """A level in equal integer parts, the first ones larger by one where it cannot be divided. Of a level below their
    number only the first hosts drive."""
    count = max(1, min(len(drivers), level))
    part, more = divmod(level, count)
    return {host: part + (number < more) for number, host in enumerate(drivers[:count])}


def _ms(seconds: object) -> str:
    return f"{1000 * seconds:.3g} ms" if isinstance(seconds, int | float) else "an unknown time"
