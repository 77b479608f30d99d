"""A search for settings whose trials run side by side on the hosts of a fleet.

Each trial is held against the start of its own host. A task that is lost with its worker is no trial: it is told, and
the trial is begun again, on the host that is free first, as all of them are known to be alike. Every task has a name of
its own, and only the one that a trial waits for counts.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadframe.analysis.likeness import MARGIN
from loadframe.errors import FleetError, RunError
from loadframe.experiments.tuning_proof import kept_s
from loadframe.experiments.tuning_start import Start
from loadframe.experiments.tuning_trials import Trials
from loadframe.fleet.calibrating import Calibrated, calibrate, likeness_sentences
from loadframe.fleet.tasks import Came, Engine
from loadframe.model import SettingValue, Step
from loadframe.model.fleet_trials import FleetAttempt, FleetHosts, TaskPurpose
from loadframe.runs import fleet_files
from loadframe.runs.formats import decode
from loadframe.tuning.search import Proposal

RETURNS_WITHIN_S = 30.0
"""A worker that was killed: after so long without any host the search is over."""
MOST_ATTEMPTS = 3
"""A trial that has lost its worker so often has killed it, as far as can be told."""
PATIENCE, LEAST_PATIENCE_S = 10.0, 60.0
"""A task hangs that takes this many times as long as the longest one so far, and at least this many seconds."""
POLL_S = 0.5


@dataclass(slots=True)
class Work:
    """What is to be measured: a trial of the search, or (proposal None) the start in a block of the calibration."""

    purpose: TaskPurpose
    number: int
    changes: Mapping[str, SettingValue]
    proposal: Proposal | None = None
    attempts: int = 0
    began_s: float = 0.0
    hosts_lost: list[str] = field(default_factory=list)


class SideBySide:
    """Takes the trials of a search on these hosts: an experiments.tuning.Searching."""

    def __init__(self, engine: Engine, notes: Sequence[str] = ()) -> None:
        """notes: for the report."""
        self._engine = engine
        self._notes = notes
        self._running: dict[str, tuple[str, Work]] = {}
        self._unfit: dict[str, str] = {}
        self._longest_s = 0.0
        self._mine = secrets.token_hex(8)
        """In the names of our tasks: of two with one name an engine would carry out one."""
        self._tuned: Trials

    def __call__(self, tuned: Trials, most: int) -> None:
        """FleetError where the hosts cannot be compared, or none is left."""
        self._tuned = tuned
        tuned.notes.extend(self._notes)
        try:
            calibrated = self._calibrated()
            self._tell_this_machine(calibrated)
            self._search(calibrated, most)
            self._look_again(calibrated)
        finally:
            self._engine.close()

    # --- before anything is compared --------------------------------------------------------------------------------

    def _calibrated(self) -> Calibrated:
        tuned = self._tuned
        book, hosts = tuned.book, self._engine.hosts
        book.progress.phase(f"the start on each of {len(hosts)} hosts, to see whether they are alike", 0)

        def note(found: FleetHosts) -> None:
            fleet_files.add_hosts(tuned.run, found)
            tuned.notes.extend(likeness_sentences(found))

        return calibrate(
            hosts, tuned.levels, self._start_on, book.random, note, lambda: self._time_left(len(hosts) + 1)
        )

    def _start_on(self, block: int, purpose: TaskPurpose, hosts: Sequence[str]) -> Mapping[str, Sequence[Step]]:
        """The start on these hosts, all at the same time. What is lost is measured again, with all of them."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            self._await_present(hosts)
            for host in hosts:
                self._begin(host, Work(purpose, block, {}, attempts=attempt), {})
            ended = [self._next() for _ in hosts]
            refused = [came for came, _ in ended if came.answer is not None and came.answer.get("error")]
            if refused:
                raise _cannot(refused[0])
            complete = all(came.answer is not None for came, _ in ended)
            steps = {came.host: self._keep(came, work, counted=complete) for came, work in ended}
            if complete:
                return steps
        raise FleetError(
            f"the start was lost {MOST_ATTEMPTS} times in a row", remedy="See why workers end on these hosts."
        )

    def _await_present(self, hosts: Sequence[str]) -> None:
        until = time.monotonic() + RETURNS_WITHIN_S
        while missing := set(hosts) - self._engine.present():
            if time.monotonic() > until:
                raise FleetError(f"host {min(missing)!r} has gone", remedy="Start its worker again, or take it out.")
            time.sleep(POLL_S)

    def _tell_this_machine(self, calibrated: Calibrated) -> None:
        """The proof is of this machine: whether the hosts are like it matters to what may hold here, not to whether
        it does."""
        mine, theirs = self._tuned.start.reference, next(iter(calibrated.starts.values())).reference
        level = self._tuned.levels[0]
        self._tuned.notes.append(
            "The start, its cause and the proof are of this machine. As given, the hosts serve "
            f"{theirs[level] / mine[level]:.2f} of what it serves at {level:g}."
        )

    # --- the search -------------------------------------------------------------------------------------------------

    def _search(self, calibrated: Calibrated, most: int) -> None:
        tuned = self._tuned
        left = max(0, most - len(tuned.done))
        tuned.book.progress.phase(f"up to {left} trials of {len(tuned.space.dimensions)} settings, side by side", left)
        waiting: list[Work] = []
        given, number, deserted_s = len(tuned.done), tuned.next_number, time.monotonic()
        while True:
            free = sorted(self._engine.present() - set(self._unfit))
            if free or self._running:
                deserted_s = time.monotonic()
            while free and (waiting or (given < most and self._time_left(1))):
                if waiting:
                    work = waiting.pop(0)
                else:
                    work = self._proposed(number)
                    given, number = given + 1, number + 1
                work.attempts += 1
                host = free.pop(0)
                self._begin(host, work, tuned.floors(calibrated.starts[host]))
            if not self._running and not waiting and (given >= most or not self._time_left(1)):
                return
            if time.monotonic() - deserted_s > RETURNS_WITHIN_S or len(self._unfit) == len(self._engine.hosts):
                self._deserted()
            came = self._engine.came(POLL_S)
            if came is not None and came.task in self._running:  # what comes after its loss was told counts no more
                waiting += self._ended(came, calibrated.starts[came.host])

    def _look_again(self, calibrated: Calibrated) -> None:
        """Whether the hosts still serve what they did: what has changed meanwhile has changed its trials."""
        hosts = self._engine.hosts
        if not self._time_left(1) or self._engine.present() != set(hosts) or self._unfit:
            self._say("Whether the hosts still serve after the trials what they did before was not measured.")
            return
        try:
            after = self._start_on(0, "together", hosts)
        except FleetError as error:
            self._say(f"Whether the hosts still serve what they did was not measured: {error.fact}")
            return
        for host, steps in after.items():
            served = all(step.throughput > 0 for step in steps)
            ratio = math.exp(calibrated.starts[host].value(steps)) if served else 0.0
            if not 1 / MARGIN <= ratio <= MARGIN:
                self._say(
                    f"After the trials host {host} serves {ratio:.2f} of what it did before, with the same settings: "
                    "its trials may be told wrongly. The proof does not rest on them"
                )

    def _proposed(self, number: int) -> Work:
        tuned = self._tuned
        pending = [work.proposal.point for _, work in self._running.values() if work.proposal is not None]
        proposal = tuned.search.propose(pending)
        return Work("trial", number, tuned.space.changes(proposal.point), proposal)

    def _ended(self, came: Came, start: Start) -> list[Work]:
        """What is to be done again."""
        tuned = self._tuned
        _, work = self._running.pop(came.task)
        assert work.proposal is not None
        if came.answer is not None and came.answer.get("error"):
            self._unfit[came.host] = str(came.answer["error"])
            self._keep(came, work, counted=False)
            self._say(f"Host {came.host} takes no more trials: {came.answer['error']}")
            return [work]
        steps = self._keep(came, work, counted=came.answer is not None)
        if came.answer is None:
            work.hosts_lost.append(came.host)
            self._say(f"Trial {work.number} was lost on {came.host}: {came.lost}.")
            if work.attempts < MOST_ATTEMPTS:
                return [work]
            failed = f"it was lost {work.attempts} times, on {', '.join(work.hosts_lost)}: {came.lost}"
        else:
            failed = str(came.answer.get("failed", ""))
        trial = tuned.judged(work.number, work.proposal, steps, failed, start, came.host)
        tuned.add(trial)
        tuned.say(trial)
        tuned.book.progress.step(f"trial {trial.number}")
        return []

    def _deserted(self) -> None:
        why = "; ".join(f"{host}: {words}" for host, words in self._unfit.items())
        raise FleetError(
            f"no host of the fleet is left to take trials{': ' if why else ''}{why}",
            remedy=f"Start their workers again, and go on: --resume {self._tuned.run.path}",
        )

    # --- tasks ------------------------------------------------------------------------------------------------------

    def _begin(self, host: str, work: Work, floors: Mapping[float, float]) -> None:
        study = self._tuned.book.bench.study
        task = f"{self._mine}-{work.purpose}-{work.number}-{work.attempts}-{host}"
        work.began_s = time.time()
        asked: dict[str, Any] = {
            "study": study.resolved(),
            "changes": dict(work.changes),
            "levels": list(self._tuned.levels),
            "floors": list(floors.items()),
            "number": work.number,
            "within_s": max(LEAST_PATIENCE_S, PATIENCE * self._longest_s) if self._longest_s else study.measure.budget,
        }
        self._running[task] = host, work
        self._engine.begin(host, task, asked)

    def _next(self) -> tuple[Came, Work]:
        """The next of our tasks that ends."""
        while (came := self._engine.came(POLL_S)) is None or came.task not in self._running:
            continue
        return came, self._running.pop(came.task)[1]

    def _keep(self, came: Came, work: Work, *, counted: bool) -> tuple[Step, ...]:
        """On the disk; the steps of its answer. RunError for an answer that is none."""
        answer = came.answer or {}
        try:
            steps = tuple(
                decode("step", str(line).encode(), Step, where=f"the answer of host {came.host}")
                for line in answer.get("steps", ())
            )
        except RunError as error:
            raise FleetError(error.fact, remedy="Install the same Loadframe on all hosts.") from error
        ended_s = time.time()
        if came.answer is not None:
            self._longest_s = max(self._longest_s, ended_s - work.began_s)
        attempt = FleetAttempt(
            task=came.task, purpose=work.purpose, number=work.number, attempt=work.attempts, host=came.host,
            changes=work.changes, began_s=work.began_s, ended_s=ended_s, boot=str(answer.get("boot", "")),
            process=int(answer.get("process", 0)), steps=steps, lost=came.lost or str(answer.get("error", "")),
            failed=str(answer.get("failed", "")), counted=counted,
        )  # fmt: skip
        fleet_files.add_attempt(self._tuned.run, attempt)
        return steps

    def _time_left(self, tasks: int) -> bool:
        """Whether that number of tasks, one after another, leaves the time that the proof needs."""
        book = self._tuned.book
        return book.budget.left_s() - kept_s(book, self._tuned.levels) >= tasks * self._longest_s

    def _say(self, words: str) -> None:
        self._tuned.book.progress.say(words)
        self._tuned.notes.append(words if words.endswith(".") else f"{words}.")


def _cannot(came: Came) -> FleetError:
    assert came.answer is not None
    return FleetError(
        f"host {came.host!r} cannot carry out the study: {came.answer['error']}",
        remedy=str(came.answer.get("remedy", "")) or "Mend that there.",
    )
