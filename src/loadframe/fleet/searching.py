"""A search for settings whose trials run side by side on the hosts of a fleet: each is held against the start of its
own host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from loadframe.analysis.divergence import MARGIN
from loadframe.errors import FleetError
from loadframe.experiments.side_by_side import START
from loadframe.experiments.tuning_proof import kept_s
from loadframe.experiments.tuning_trials import TRIALS_ROUND, Trials, named
from loadframe.fleet.observing import Observing
from loadframe.fleet.on_hosts import Done, TakesOnHosts, Work
from loadframe.fleet.tasks import Engine
from loadframe.fleet.trying import Calibrated, alike, start_of, steps_asked
from loadframe.runs.entries import Treatment
from loadframe.tuning.search import Proposal

TRIED = "T"
"""What a host calls the settings of its trial."""


class SideBySide(TakesOnHosts):
    """Takes the trials of a search on these hosts."""

    def __init__(self, engine: Engine, notes: Sequence[str] = (), observing: Observing | None = None) -> None:
        super().__init__(engine, notes, observing)
        self._proposals: dict[int, Proposal] = {}
        self._tuned: Trials

    def __call__(self, tuned: Trials, most: int) -> None:
        """FleetError where the hosts cannot be compared, or none is left."""
        self._tuned = tuned
        self._over(tuned.book, tuned.run, tuned.notes, f"go on: --resume {tuned.run.path}")
        try:
            calibrated = self._calibrated()
            self._tell_this_machine(calibrated)
            self._search(calibrated, most)
            self._look_again(calibrated)
        finally:
            self._engine.close()

    # --- before anything is compared --------------------------------------------------------------------------------

    def _calibrated(self) -> Calibrated:
        tuned, hosts = self._tuned, self._engine.hosts
        book = tuned.book
        book.progress.phase(f"the start on each of {len(hosts)} hosts, to see whether they are alike", 0)
        return alike(
            self._on, book.bench.study, tuned.run, tuned.levels, book.random, tuned.notes,
            lambda: self._time_left(len(hosts) + 1),
        )  # fmt: skip

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
        trials = max(0, most - len(tuned.done))
        tuned.book.progress.phase(
            f"up to {trials} trials of {len(tuned.space.dimensions)} settings, side by side", trials
        )
        begun, first = 0, tuned.next_number

        def draw() -> Work:
            nonlocal begun
            begun += 1
            return self._proposed(first + begun - 1, calibrated)

        self._on.carry_out(
            lambda: begun < trials and self._time_left(1), draw, lambda done: self._ended(done, calibrated)
        )

    def _proposed(self, number: int, calibrated: Calibrated) -> Work:
        tuned = self._tuned
        pending = [self._proposals[work.number].point for work in self._on.running]
        proposal = self._proposals[number] = tuned.search.propose(pending)
        changes = tuned.space.changes(proposal.point)
        state = replace(tuned.state, settings={**tuned.state.settings, **changes})
        name = TRIED if changes else START
        states = [Treatment(TRIED, named(changes), state)] if changes else []

        def asked(host: str) -> dict[str, object]:
            return steps_asked(
                tuned.book.bench.study, [(name, level) for level in tuned.levels], states=states, block=number,
                round_number=TRIALS_ROUND, floors=tuned.floors(calibrated.starts[host]),
            )  # fmt: skip

        return Work("trial", number, f"Trial {number}", asked, changes)

    def _ended(self, done: Done, calibrated: Calibrated) -> None:
        tuned, number = self._tuned, done.work.number
        start = calibrated.starts[done.host]
        trial = tuned.judged(number, self._proposals[number], done.steps, done.failed, start, done.host)
        tuned.add(trial)
        tuned.say(trial)
        tuned.book.progress.step(f"trial {trial.number}")

    def _look_again(self, calibrated: Calibrated) -> None:
        """Whether the hosts still serve what they did: what has changed meanwhile has changed its trials."""
        hosts, tuned = self._engine.hosts, self._tuned
        if not self._time_left(1) or self._engine.present() != set(hosts) or self._on.unfit:
            self._on.say("Whether the hosts still serve after the trials what they did before was not measured.")
            return
        try:
            after = start_of(self._on, tuned.book.bench.study, tuned.levels, 0, "together", hosts)
        except FleetError as error:
            self._on.say(f"Whether the hosts still serve what they did was not measured: {error.fact}")
            return
        for host, steps in after.items():
            served = all(step.throughput > 0 for step in steps)
            ratio = math.exp(calibrated.starts[host].value(steps)) if served else 0.0
            if not 1 / MARGIN <= ratio <= MARGIN:
                self._on.say(
                    f"After the trials host {host} serves {ratio:.2f} of what it did before, with the same settings: "
                    "its trials may be told wrongly. The proof does not rest on them"
                )

    def _time_left(self, tasks: int) -> bool:
        """Whether that number of tasks, one after another, leaves the time that the proof needs."""
        book = self._tuned.book
        return book.budget.left_s() - kept_s(book, self._tuned.levels) >= tasks * self._on.longest_s
