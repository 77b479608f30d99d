"""Blocks of a ladder on the hosts of a fleet, as many at a time as there are hosts.

A block is whole on one host: what is compared is compared within it, so that the host, like everything else that is
the same for a block, cancels in the ratios. That hosts are alike is asked first all the same: what a change is worth
may depend on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.bench.bookkeeping import Block, Bookkeeping
from loadframe.errors import TargetError
from loadframe.experiments.ladder_states import LadderStates
from loadframe.experiments.side_by_side import START
from loadframe.experiments.sweep import measure_block
from loadframe.experiments.tuning_start import Start
from loadframe.fleet.on_hosts import TakesOnHosts, Work
from loadframe.fleet.trying import alike, steps_asked
from loadframe.model import Purpose, Step
from loadframe.runs.entries import Treatment
from loadframe.runs.folder import RunFolder

START_ROUND = 1
MOST_LEVELS = 2
"""At which hosts are told apart: the highest, and the middle one."""
ALIKE_SHARE = 0.4
"""Of the budget: beyond the fewest blocks the question whether hosts are alike takes no more."""


class BlocksOnHosts(TakesOnHosts):
    """Takes the blocks of a ladder on these hosts."""

    _states: LadderStates
    _book: Bookkeeping
    _number = 0

    def begin(self, book: Bookkeeping, run: RunFolder, states: LadderStates, notes: list[str]) -> None:
        """Measure the start on this machine once and on all hosts until they are known to be alike. notes: what a
        reader must know is added to them. FleetError where hosts differ."""
        study = book.bench.study
        self._book, self._states = book, states
        self._over(book, run, notes)
        levels = study.levels
        levels = tuple(dict.fromkeys((levels[-1], levels[len(levels) // 2])))[:MOST_LEVELS]
        hosts = self._engine.hosts
        book.progress.phase("the start on this machine, once", len(levels))
        measure_block(book, START, levels, 1, round_number=START_ROUND)
        here = Start.of(book.of(START), levels)
        book.progress.phase(f"the start on each of {len(hosts)} hosts, to see whether they are alike", 0)

        def affords() -> bool:
            return book.budget.spent_s() + (len(hosts) + 1) * self._on.longest_s <= ALIKE_SHARE * book.budget.total_s

        found = alike(self._on, study, run, levels, book.random, notes, affords)
        there = next(iter(found.starts.values())).reference
        notes.append(
            "All blocks were measured on the hosts, each of them whole on one. As given, the hosts serve "
            f"{there[levels[0]] / here.reference[levels[0]]:.2f} of what this machine serves at {levels[0]:g}."
        )
        book.elsewhere = self

    @property
    def at_once(self) -> int:
        return max(1, len(self._engine.hosts) - len(self._on.unfit))

    def __call__(self, blocks: Sequence[Block], *, round_number: int | None, purpose: Purpose) -> list[Step]:
        """See TakesBlocks. FleetError where no host is left."""
        done = self._on.all_of([self._work(block, round_number, purpose) for block in blocks])
        for one in done:
            if one.failed:
                raise TargetError(f"{one.failed} (on host {one.host})", remedy="See the log of the target there.")
        steps = [step for one in done for step in one.steps]
        for step in steps:
            self._book.progress.step(f"{step.treatment} at {step.level:g}: {step.throughput:,.0f}/s")
        return steps

    def _work(self, block: Block, round_number: int | None, purpose: Purpose) -> Work:
        self._number += 1
        names = dict.fromkeys(name for name, _ in block.order if name != START)
        states = [Treatment(name, *self._states.titled(name)) for name in names]
        asked = steps_asked(
            self._book.bench.study, block.order, states=states, block=block.number, round_number=round_number,
            purpose=purpose,
        )  # fmt: skip
        return Work("block", self._number, f"Block {block.number}", lambda _: asked)
