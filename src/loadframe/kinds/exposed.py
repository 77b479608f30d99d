"""The counters that a service exposes, read while it is loaded: each source by a thread, at most once a second, five
times in a short step. Answers are parsed after the load."""

import contextlib
import difflib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.connections.address import decide, joined
from loadframe.connections.bounds import MIB, shown
from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.errors import StudyError, UserError
from loadframe.formats.exposition import (
    EXAMPLES,
    MOST_SERIES,
    Exposed,
    ExpositionError,
    Pick,
    read_json,
    read_lines,
    read_prometheus,
)
from loadframe.formats.said import why, words
from loadframe.host.environment import NO_FOLDER, passed_on
from loadframe.host.processes import Allowance, runnable, spawn
from loadframe.host.to_its_end import until_end
from loadframe.metrics import METRICS
from loadframe.metrics.exposed import OF, resolve
from loadframe.model import CounterSpec, Reading
from loadframe.study.exposed_tables import LOG, PORT, Address, MetricsTable

ANSWER_BYTES, ANSWER_S = 8 * MIB, 2.0
Port = Callable[[], int]
"""The port at which the target is loaded now: another one after each start."""
Who = Callable[[], Allowance]
Environment = Callable[[], Mapping[str, str]]
EVERY_S, SHORTEST_S, IN_A_STEP = 1.0, 0.2, 5
HELD_BYTES = 32 * MIB
GIVEN_UP_AFTER = 3
"""Failures in a row, after which a source is not asked again in the same step."""
GIVEN_UP_FOR_GOOD = 6
"""Failures in a row that end it for the run: an endless answer, or none, costs the measured service."""
MOST_REMEMBERED = 10_000


class UnreadError(Exception): ...


@dataclass(frozen=True, slots=True)
class Taken:
    """at_s: CLOCK_MONOTONIC when the answer began. after: the load had ended: its levels are not those of the load."""

    at_s: float
    data: bytes
    content_type: str = ""
    after: bool = False


class HttpSource:
    """words: its name in messages, with the port of its last reading. Each reading opens a connection: one kept open
    could occupy a worker of the service."""

    def __init__(self, table: MetricsTable, address: Address, pick: Pick, port: Port) -> None:
        self.words = self._text = table.prometheus or table.json_address or ""
        self.pick = pick
        self._address, self._prometheus, self._port = address, table.prometheus is not None, port

    def take(self) -> Taken:
        """UnreadError where it does not answer, or not with counters."""
        number = self._port() if self._address.port is None else self._address.port
        self.words = self._text.replace(PORT, str(number))
        try:
            place = decide(self._address.host, number)
        except StudyError as error:
            raise UnreadError(words(error.fact)) from error
        named, where = joined(place.host, place.port), joined(place.number, place.port)
        connection = Connection(where, host=named, most_bytes=ANSWER_BYTES, within_s=ANSWER_S, silent_s=ANSWER_S)
        try:
            with contextlib.closing(connection):
                answer = connection.get(self._address.path)
                at_s = time.monotonic()
                if answer.status != 200:
                    raise UnreadError(f"it answered {answer.status} {words(answer.reason, 40)}".rstrip())
                return Taken(at_s, body(answer), words(answer.getheader("Content-Type", ""), 100).lower())
        except TimeoutError as error:
            raise UnreadError(f"no answer ended within {ANSWER_S:g} s") from error
        except ERRORS as error:
            raise UnreadError(why(error)) from error

    def read(self, taken: Taken) -> Exposed:
        """The counters in an answer. ExpositionError."""
        if self._prometheus:
            return read_prometheus(taken.data, self.pick, content_type=taken.content_type)
        return read_json(taken.data, self.pick)


class CommandSource:
    """A command that prints counters; killed with its whole session once it has answered or its time is over."""

    def __init__(self, command: Sequence[str], pick: Pick, port: Port, who: Who, env: Environment) -> None:
        self.words = f"the command {words(' '.join(command), 80)}"
        self.pick = pick
        self._command, self._port, self._who, self._env = tuple(command), port, who, env

    def take(self) -> Taken:
        at_s = time.monotonic()
        command = [word.replace(PORT, str(self._port())) if PORT in word else word for word in self._command]
        self.words = f"the command {words(' '.join(command), 80)}"
        try:
            allowance = self._who()
            program = command[0] if "/" in command[0] else runnable(command[0], allowance.user) or command[0]
            command = [program, *command[1:]]
            process = spawn(
                command, allowance, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=NO_FOLDER, env=self._env()
            )
        except (UserError, OSError) as error:
            raise UnreadError(words(error.fact if isinstance(error, UserError) else error)) from error
        assert process.stdout is not None
        try:
            data = until_end(process.stdout, at_s + ANSWER_S, ANSWER_BYTES)
            if len(data) > ANSWER_BYTES:
                raise UnreadError(f"its answer is longer than {shown(ANSWER_BYTES)}")
            code = process.wait(timeout=max(0.1, ANSWER_S - (time.monotonic() - at_s)))
        except subprocess.TimeoutExpired as error:
            raise UnreadError(f"it did not end within {ANSWER_S:g} s") from error
        except OSError as error:
            raise UnreadError(words(error)) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its session is its own (spawn)
            process.wait()
            process.stdout.close()
        if code != 0:
            raise UnreadError(f"it ended with exit code {code}" if code > 0 else f"it was ended by signal {-code}")
        return Taken((at_s + time.monotonic()) / 2, data)

    def read(self, taken: Taken) -> Exposed:
        return read_lines(taken.data, self.pick)


Source = HttpSource | CommandSource


def sources_of(
    tables: Sequence[MetricsTable], first: Sequence[str], port: Port, who: Who, env: Environment = passed_on
) -> list[Source]:
    """The sources in a study's tables. first: names that are kept before others. who, env: for commands; TargetError
    where they are not known."""
    sources: list[Source] = []
    for table in tables:
        pick = Pick(tuple(table.select), tuple(table.counters), (*first, *table.requests))
        if table.address is not None:
            sources.append(HttpSource(table, table.address, pick, port))
        elif table.stages is None:
            sources.append(CommandSource(table.command or (), pick, port, who, env))
    return sources


def stage_files(tables: Sequence[MetricsTable], log: Path | None = None) -> tuple[Path, ...]:
    named = (table.stages for table in tables if table.stages is not None)
    return tuple(path for name in named if (path := log if name == LOG else Path(name)) is not None)


@dataclass
class _Asked:
    source: Source
    waiting: list[Taken] = field(default_factory=list)
    tried: int = 0
    in_a_row: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, dict[str, None]] = field(default_factory=dict)
    types: dict[str, frozenset[str]] = field(default_factory=dict)
    changed: dict[str, tuple[str, str]] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    went_back: dict[str, int] = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        self.failed[reason] = self.failed.get(reason, 0) + 1


class Exposure:
    """wanted: metric names that a study's limits mention, and who mentions them, in words."""

    def __init__(self, sources: Sequence[Source] = (), wanted: Mapping[str, str] | None = None) -> None:
        self._asked = [_Asked(source) for source in sources]
        self._wanted = wanted or {}
        self._specs: dict[str, CounterSpec] = {}
        self._owner: dict[str, _Asked] = {}
        self._readings: list[Reading] = []
        self._reading = threading.Lock()

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        return tuple(self._specs.values())

    @contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        every_s = min(EVERY_S, max(SHORTEST_S, seconds / IN_A_STEP))
        over = threading.Event()
        threads = []
        for asked in self._asked:
            asked.last.clear()  # between two steps a service may have been restarted
            threads.append(threading.Thread(target=self._ask, args=(asked, every_s, over), daemon=True))
            threads[-1].start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def readings(self) -> list[Reading]:
        """The readings since the last call."""
        for asked in self._asked:
            self._read(asked)
        with self._reading:
            readings, self._readings = self._readings, []
        return readings

    def now(self) -> dict[str, float]:
        """Ask all sources once: counters by CounterSpec.name; a source that does not answer contributes none."""
        for asked in self._asked:
            self._take(asked)
        return {name: value for reading in self.readings() for name, value in reading.counters.items()}

    def _ask(self, asked: _Asked, every_s: float, over: threading.Event) -> None:
        """Once more at the end of the load: a cumulative counter needs a reading there."""
        failures, due_s = 0, time.monotonic()
        while failures < GIVEN_UP_AFTER and asked.in_a_row < GIVEN_UP_FOR_GOOD:
            failures = 0 if self._take(asked) else failures + 1
            due_s = max(due_s + every_s, time.monotonic())
            if over.wait(max(0.0, due_s - time.monotonic())):
                break
        if not failures and not asked.in_a_row:
            self._take(asked, after=True)

    def _take(self, asked: _Asked, *, after: bool = False) -> bool:
        asked.tried += 1
        try:
            taken = asked.source.take()
        except UnreadError as error:
            asked.fail(str(error))
            asked.in_a_row += 1
            return False
        asked.in_a_row = 0
        with self._reading:
            asked.waiting.append(Taken(taken.at_s, taken.data, taken.content_type, after))
            too_much = sum(len(answer.data) for answer in asked.waiting) > HELD_BYTES
        if too_much:
            self._read(asked)
        return True

    def _read(self, asked: _Asked) -> None:
        with self._reading:
            waiting, asked.waiting = asked.waiting, []
            for taken in waiting:
                try:
                    exposed = asked.source.read(taken)
                except ExpositionError as error:
                    asked.fail(str(error))
                    continue
                if not exposed.values and not exposed.left_out:
                    names = asked.source.pick.select
                    asked.fail("it has none of the names of `select`" if names else "there is no number in it")
                    continue
                if counters := self._counters(asked, exposed, taken):
                    self._readings.append(Reading(taken.at_s, counters))

    def _counters(self, asked: _Asked, exposed: Exposed, taken: Taken) -> dict[str, float]:
        for family, types in exposed.types.items():
            before = asked.types.get(family, types)
            asked.types[family] = before | types
            if before.isdisjoint(types):
                asked.changed.setdefault(family, (" and ".join(sorted(before)), " and ".join(sorted(types))))
        for reason, names in exposed.left_out.items():
            _add(asked.left_out, reason, names)
        counters = {}
        for name, value in exposed.values.items():
            counted = name in exposed.counted
            if exposed.families[name] in asked.changed or not self._is_ours(asked, name, counted=counted):
                continue
            if counted and value < asked.last.get(name, 0.0):
                asked.went_back[name] = asked.went_back.get(name, 0) + 1
            if counted:
                asked.last[name] = value
            if counted or not taken.after:
                counters[f"{OF}{name}"] = value
        return counters

    def _is_ours(self, asked: _Asked, name: str, *, counted: bool) -> bool:
        metric, owner = f"{OF}{name}", self._owner.get(name)
        if owner is None and metric in METRICS:
            _add(asked.left_out, "have names of Loadframe's own", [name])
        elif owner is None and len(self._specs) >= MOST_SERIES:
            _add(asked.left_out, f"are beyond the first {MOST_SERIES:,}", [name])
        elif owner is None:
            self._owner[name] = asked
            self._specs[name] = CounterSpec(metric, metric, cumulative=counted)
            return True
        elif owner is not asked:
            _add(asked.left_out, f"are reported by {owner.source.words}, too", [name])
        return owner is asked

    def missing(self) -> tuple[str, ...]:
        sentences = [sentence for asked in self._asked for sentence in _missing_of(asked)]
        if self._specs:
            there = {spec.metric for spec in self._specs.values()}
            sentences += [
                f"{who} speaks of {words(name, 80)}, which the service does not expose{_alike(name, there)}."
                for name, who in self._wanted.items()
                if resolve(name, there) is None
            ]
        return tuple(sentences)


def _missing_of(asked: _Asked) -> Iterator[str]:
    where = words(asked.source.words)
    for reason, count in asked.failed.items():
        yield f"Counters of {where}: {count:,} of {asked.tried:,} readings failed: {reason}."
    if asked.in_a_row >= GIVEN_UP_FOR_GOOD:
        failures = f"{asked.in_a_row} failures in a row"
        yield f"Counters of {where}: not asked again after {failures}, as asking costs the service."
    for reason, names in asked.left_out.items():
        yield f"Counters of {where}: {len(names):,} series {reason} and are left out: {_some(list(names))}."
    for family, (before, after) in list(asked.changed.items())[:EXAMPLES]:
        yield f"Counters of {where}: {words(family, 80)} was a {before}, then a {after}; it is left out from then on."
    if asked.went_back:
        count = sum(asked.went_back.values())
        times = "once" if count == 1 else f"{count:,} times"
        yield (
            f"Counters of {where}: {_some(list(asked.went_back))} went back {times}, so the rate is not known "
            "there: the process was restarted, or several processes answer in turn."
        )


def _add(left_out: dict[str, dict[str, None]], reason: str, names: Sequence[str]) -> None:
    known = left_out.setdefault(reason, {})
    for name in names:
        if len(known) >= MOST_REMEMBERED:
            return
        known[name] = None


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(words(name, 80) for name in names[:EXAMPLES])
    return f"{listed} and {len(names) - EXAMPLES:,} more" if len(names) > EXAMPLES else listed


def _alike(name: str, there: set[str]) -> str:
    base, bases = name.partition("{")[0], {metric: metric.removeprefix(OF).partition("{")[0] for metric in there}
    series = sorted(metric for metric in there if bases[metric] == base)
    if len(series) > 1:
        return f" as one series; name its labels, for example {words(series[0].removeprefix(OF), 120)}"
    close = difflib.get_close_matches(base, sorted({*bases.values()}), n=1)
    return f"; did you mean {close[0]}?" if close else ""
