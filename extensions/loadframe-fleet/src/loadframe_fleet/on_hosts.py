"""Tasks on the hosts of a fleet, one on a host at a time, and the interface of their engine: dask (engine.py) or a
test's own. A task that is lost with its worker is no measurement: its work is begun again on the host that is free
first, or on the one that it is bound to, under another unique name."""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import FleetError, RunError
from loadframe.model import Capacity, Investigation, SettingValue, Step
from loadframe.progress import Progress
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import decode
from loadframe_fleet.observing import Observing
from loadframe_fleet.records import ATTEMPTS, FleetAttempt, Record, TaskPurpose
from loadframe_fleet.wire import Message


@dataclass(frozen=True, slots=True)
class Came:
    """How a task ended: its answer; or lost: why there is none."""

    task: str
    host: str
    answer: Message | None = None
    lost: str = ""


class Engine(Protocol):
    @property
    def hosts(self) -> tuple[str, ...]:
        """All of the fleet, present or not."""

    def present(self) -> frozenset[str]:
        """Hosts that may be given a task now. FleetError where there will be none any more."""

    def begin(self, host: str, task: str, asked: Message) -> None:
        """task: a unique name."""

    def came(self, within_s: float) -> Came | None:
        """The next task that has ended. FleetError as `present`."""

    def close(self) -> None:
        """Stop all tasks. Idempotent."""


RETURNS_WITHIN_S = 30.0
"""Time for a killed worker to return; after so long without any host it is over."""
MOST_ATTEMPTS = 3
"""Work that has lost its worker so often has probably killed it."""
PATIENCE, LEAST_PATIENCE_S = 10.0, 60.0
"""A task hangs that takes this many times as long as the longest one so far, and at least this many seconds."""
POLL_S = 0.5


@dataclass(slots=True)
class Work:
    """title: as in "Trial 3"; asked: the question (trial.py). only: its host; "" for any."""

    purpose: TaskPurpose
    number: int
    title: str
    asked: Callable[[str], Message]
    changes: Mapping[str, SettingValue] = field(default_factory=dict)
    only: str = ""
    attempts: int = 0
    began_s: float = 0.0
    hosts_lost: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Done:
    """failed: why there is none: the target did not work, or it was lost too often."""

    work: Work
    host: str
    steps: tuple[Step, ...] = ()
    capacity: Capacity | None = None
    failed: str = ""
    investigation: Investigation | None = None


class OnHosts:
    """Its maker closes it. FleetError where no host is left."""

    def __init__(
        self,
        engine: Engine,
        run: RunFolder,
        progress: Progress,
        first_within_s: float,
        notes: list[str],
        again: str,
        kernels: Mapping[str, str] | None = None,
        observing: Observing | None = None,
    ) -> None:
        """first_within_s: time limit of a task before any has ended. notes: for the report. again: what to do where no
        host is left. kernels: of hosts; those of one take turns. observing: entered; it records each task."""
        self.engine = engine
        self._run = run
        self._progress = progress
        self._first_within_s = first_within_s
        self._notes = notes
        self._again = again
        self._kernels = kernels or {}
        self._observing = observing
        self._notes.extend(() if observing is None else observing.notes)
        self._begun: Counter[str] = Counter()
        self._seen_s = dict.fromkeys(engine.hosts, time.monotonic())
        self._running: dict[str, tuple[str, Work]] = {}
        self.unfit: dict[str, str] = {}
        self.longest_s = 0.0
        """Of the tasks that have ended."""
        self._mine = secrets.token_hex(8)
        """In the names of our tasks: of two with one name an engine would carry out one."""

    @property
    def running(self) -> list[Work]:
        return [work for _, work in self._running.values()]

    def say(self, words: str) -> None:
        self._progress.say(words)
        self._notes.append(words if words.endswith(".") else f"{words}.")

    def carry_out(
        self,
        left: Callable[[], bool],
        draw: Callable[[], Work],
        ended: Callable[[Done], None],
        known: Sequence[Work] = (),
    ) -> None:
        """Carry out the known work, then drawn work, until all has ended."""
        waiting = list(known)
        deserted_s = time.monotonic()
        while True:
            free = self._free()
            if free or self._running:
                deserted_s = time.monotonic()
            for host in free:
                if (work := self._taken_by(host, waiting, left, draw)) is not None:
                    self._begin(host, work)
            late_s = time.monotonic() - RETURNS_WITHIN_S
            for work in list(waiting):
                if work.only and (work.only in self.unfit or self._seen_s[work.only] < late_s):
                    waiting.remove(work)
                    ended(Done(work, work.only, failed=f"its host has gone{_because(self.unfit.get(work.only, ''))}"))
            if not self._running and not waiting and not left():
                return
            if time.monotonic() - deserted_s > RETURNS_WITHIN_S or len(self.unfit) == len(self.engine.hosts):
                why = "; ".join(f"{host}: {words}" for host, words in self.unfit.items())
                raise FleetError(f"no host of the fleet is left to take trials{_because(why)}", remedy=self._again)
            if (came := self._came()) is None:
                continue
            done = self._ended(came)
            if isinstance(done, Work):
                waiting.append(done)
            else:
                ended(done)

    def all_of(self, works: Sequence[Work], notify: Callable[[Done], None] = lambda _: None) -> list[Done]:
        """Carry out each piece on one host; results in its order. notify: called with each as it ends."""
        by_work = dict[int, Done]()

        def ended(done: Done) -> None:
            by_work[id(done.work)] = done
            notify(done)

        self.carry_out(lambda: False, lambda: works[0], ended, works)
        return [by_work[id(work)] for work in works]

    def _free(self) -> list[str]:
        free = self.engine.present() - set(self.unfit)
        for host in {*free, *(host for host, _ in self._running.values())}:
            self._seen_s[host] = time.monotonic()
        return sorted(free, key=lambda host: (self._begun[host], host))

    def _taken_by(
        self, host: str, waiting: list[Work], left: Callable[[], bool], draw: Callable[[], Work]
    ) -> Work | None:
        kernel = self._kernels.get(host)
        if kernel is not None and any(self._kernels.get(other) == kernel for other, _ in self._running.values()):
            return None
        for work in waiting:
            if work.only in ("", host):
                waiting.remove(work)
                return work
        return draw() if left() else None

    def _ended(self, came: Came) -> Done | Work:
        _, work = self._running.pop(came.task)
        error = (came.answer or {}).get("error")
        done = self._keep(came, work, counted=came.answer is not None and not error)
        if error:
            self.unfit[came.host] = str(error)
            self.say(f"Host {came.host} takes no more trials: {error}")
            return work
        if came.answer is not None:
            return done
        work.hosts_lost.append(came.host)
        self.say(f"{work.title} was lost on {came.host}: {came.lost}.")
        if work.attempts < MOST_ATTEMPTS:
            return work
        why = f"it was lost {work.attempts} times, on {', '.join(work.hosts_lost)}: {came.lost}"
        return Done(work, came.host, failed=why)

    def together(self, hosts: Sequence[str], work: Work) -> dict[str, Done]:
        """Carry it out on all at a time; all again if one is lost. FleetError where a host cannot do it, or it is lost
        too often."""
        for attempt in range(MOST_ATTEMPTS):
            until = time.monotonic() + RETURNS_WITHIN_S
            while missing := set(hosts) - self.engine.present():
                if time.monotonic() > until:
                    gone = f"host {min(missing)!r} has gone"
                    raise FleetError(gone, remedy="Start its worker again, or take it out.")
                time.sleep(POLL_S)
            for host in hosts:
                self._begin(host, replace(work, attempts=work.attempts + attempt))
            ended = list[tuple[Came, Work]]()
            while len(ended) < len(hosts):
                if (came := self._came()) is not None:
                    ended.append((came, self._running.pop(came.task)[1]))
            for came, _ in ended:
                if came.answer is not None and came.answer.get("error"):
                    raise FleetError(
                        f"host {came.host!r} cannot carry out the study: {came.answer['error']}",
                        remedy=str(came.answer.get("remedy", "")) or "Mend that there.",
                    )
            complete = all(came.answer is not None for came, _ in ended)
            done = {came.host: self._keep(came, piece, counted=complete) for came, piece in ended}
            if complete:
                return done
        lost = f"the start was lost {MOST_ATTEMPTS} times in a row"
        raise FleetError(lost, remedy="See why workers end on these hosts.")

    def _begin(self, host: str, work: Work) -> None:
        work.attempts += 1
        self._begun[host] += 1
        task = f"{self._mine}-{work.purpose}-{work.number}-{work.attempts}-{host}"
        work.began_s = time.time()
        known = max(LEAST_PATIENCE_S, PATIENCE * self.longest_s) if self.longest_s else self._first_within_s
        asked = {"changes": dict(work.changes), "number": work.number, "within_s": known, **work.asked(host)}
        if self._observing is not None:
            self._observing.begin(task)
        self._running[task] = host, work
        self.engine.begin(host, task, asked)

    def _came(self) -> Came | None:
        if self._observing is not None:
            self._observing.check()
        came = self.engine.came(POLL_S)
        return came if came is not None and came.task in self._running else None

    def _keep(self, came: Came, work: Work, *, counted: bool) -> Done:
        answer, where = came.answer or {}, f"the answer of host {came.host}"

        def record(name: str, kind: type[Record]) -> Record | None:
            line = str(answer.get(name, ""))
            return decode(f"{name}-record", line.encode(), kind, where=where) if line else None

        try:
            steps = tuple(decode("step", str(line).encode(), Step, where=where) for line in answer.get("steps", ()))
            capacity, investigation = record("capacity", Capacity), record("investigation", Investigation)
        except RunError as error:
            raise FleetError(error.fact, remedy="Install the same Loadframe on all hosts.") from error
        ended_s = time.time()
        if came.answer is not None:
            self.longest_s = max(self.longest_s, ended_s - work.began_s)
        failed = str(answer.get("failed", ""))
        attempt = FleetAttempt(
            task=came.task, purpose=work.purpose, number=work.number, attempt=work.attempts, host=came.host,
            changes=work.changes, began_s=work.began_s, ended_s=ended_s, boot=str(answer.get("boot", "")),
            process=int(answer.get("process", 0)), steps=steps, lost=came.lost or str(answer.get("error", "")),
            failed=failed, counted=counted, capacity=capacity, investigation=investigation,
        )  # fmt: skip
        if self._observing is not None:
            attempt = replace(attempt, observed=self._observing.end(came.task, self._run))
            for words in self._observing.newly_full(attempt.observed):
                self.say(f"{work.title} on {came.host}: {words}")
        ATTEMPTS.add(self._run, attempt)
        return Done(work, came.host, steps, capacity, failed, investigation)


class TakesOnHosts:
    _on: OnHosts

    def __init__(self, engine: Engine, notes: Sequence[str] = (), observing: Observing | None = None) -> None:
        self._engine = engine
        self._notes = notes
        self._observing = observing

    def _over(
        self, book: Bookkeeping, run: RunFolder, notes: list[str], again: str = "run it again.", longer_s: float = 0.0
    ) -> None:
        """again: what to do once workers are back. longer_s: added to the budget of a task."""
        notes.extend(self._notes)
        within_s = book.bench.study.measure.budget + longer_s
        again = f"Start their workers again, and {again}"
        self._on = OnHosts(self._engine, run, book.progress, within_s, notes, again, observing=self._observing)


def _because(why: str) -> str:
    return f": {why}" if why else ""
