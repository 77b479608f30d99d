"""Rows of benchmarks/sceptic.py on what took something from steps besides the study: effects and disturbances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from claims import Figure, rate, row
from loadframe.analysis.disturbance import BY_FLAG, effects
from loadframe.analysis.selection import select

STEAL = BY_FLAG["steal"]
LOUD = 0.30
"""Of the CPUs, while a neighbour is there."""
OF_IO, SCATTER = 0.14, 0.3
"""What the hypervisor's threads take while a target reads from its disk (media-cache on a virtual machine: 0.08 to
0.16), and by how much that scatters from step to step."""


@dataclass(frozen=True, slots=True)
class Design:
    """A run: so many states at so many levels in so many blocks, each in drawn order."""

    states: int
    levels: int
    blocks: int

    def order(self, random: np.random.Generator) -> list[tuple[str, float, int]]:
        """State, level and block of each step, in the order of time: the states in turn, as the bench takes them."""
        taken = []
        for block in range(self.blocks):
            for state in random.permutation(self.states):
                taken += [("AB"[state], float(level), block) for level in random.permutation(self.levels)]
        return taken


USUAL = Design(states=2, levels=4, blocks=3)
DESIGNS = (USUAL, Design(1, 4, 3), Design(2, 2, 3), Design(2, 2, 6), Design(1, 6, 3))


def bursts(random: np.random.Generator, steps: int) -> np.ndarray:
    """A neighbour that is there a third of the time, for three steps on average."""
    there = np.empty(steps, dtype=np.bool_)
    there[0] = random.random() < 1 / 3
    for i in range(1, steps):
        there[i] = random.random() < (2 / 3 if there[i - 1] else 1 / 6)
    return LOUD * there + random.exponential(0.01, steps)


def by_the_clock(random: np.random.Generator, steps: int, *, every: int) -> np.ndarray:
    """One that comes in every so many steps, for one."""
    return LOUD * ((np.arange(steps) + random.integers(every)) % every == 0) + random.exponential(0.01, steps)


def half_of_the_run(random: np.random.Generator, steps: int) -> np.ndarray:
    """One that comes within the run and stays."""
    return LOUD * (np.arange(steps) >= random.integers(1, steps)) + random.exponential(0.01, steps)


Neighbour = Callable[[np.random.Generator, int], np.ndarray]
NEIGHBOURS: dict[str, Neighbour] = {
    "bursts": bursts,
    "one step of a block": partial(by_the_clock, every=8),
    "every second step": partial(by_the_clock, every=2),
    "it comes and stays": half_of_the_run,
}


def step(number: int, treatment: str, level: float, block: int, steal: float) -> Any:
    """What the rules see of a step."""
    return SimpleNamespace(
        number=number, treatment=treatment, level=level, block=block, round=1, purpose="curve", counts=True,
        started_s=0.0, window_start_s=0.2, window_end_s=1.2, metrics={"system.cpu.steal": steal},
        flags=("steal",) if steal > STEAL.threshold else (),
    )  # fmt: skip


def taken(random: np.random.Generator, design: Design, neighbour: Neighbour | None, *, works: bool) -> list[Any]:
    """The steps of a run. works: the upper half of the levels reads from the disk, in the first state alone where there
    are two."""
    order = design.order(random)
    steal = neighbour(random, len(order)) if neighbour else random.exponential(0.01, len(order))
    for i, (state, level, _) in enumerate(order):
        if works and state == "A" and level >= design.levels / 2:
            steal[i] += OF_IO * math.exp(random.normal(0, SCATTER))
    return [step(i, *each, min(float(steal[i]), 0.9)) for i, each in enumerate(order)]


def called_effects(design: Design, neighbour: Neighbour, series: int) -> Figure:
    """How often a neighbour is; beside a rule that goes by the medians of states and loads alone."""
    random, drawn = np.random.default_rng(31), min(series, 1000)
    wrong = naive = 0
    for _ in range(drawn):
        steps = taken(random, design, neighbour, works=False)
        wrong += any(amount > STEAL.threshold / 2 for amount in effects(STEAL, steps).values())
        cells = {(each.treatment, each.level) for each in steps}
        of = {
            cell: [one.metrics["system.cpu.steal"] for one in steps if (one.treatment, one.level) == cell]
            for cell in cells
        }
        middle = [float(np.median(values)) for values in of.values()]
        naive += max(middle) - min(middle) > STEAL.threshold / 2
    return rate(wrong, drawn, rival=f"by the medians alone {100 * naive / drawn:.0f}")


for _name, _neighbour in NEIGHBOURS.items():
    for _design in DESIGNS:
        row(
            f"effect: {_name}, {_design.states} x {_design.levels}, {_design.blocks} blocks",
            f"a neighbour that follows time alone called an effect: {_name}, {_design.states} states, "
            f"{_design.levels} levels, {_design.blocks} blocks",
            section=10,
            goal=5,
        )(partial(called_effects, _design, _neighbour))


def effects_found(design: Design, neighbour: Neighbour | None, series: int) -> Figure:
    """How often I/O that costs the hypervisor CPU time is told as an effect."""
    random, drawn = np.random.default_rng(32), min(series, 1000)
    found = 0
    for _ in range(drawn):
        known = effects(STEAL, taken(random, design, neighbour, works=True))
        found += known.get(("A", float(design.levels - 1)), 0.0) > STEAL.threshold / 2
    return Figure(100 * found / drawn, 2.0)


for _design, _goal in zip(DESIGNS, (99, 90, 30, 95, 99), strict=True):
    row(
        f"effect: found, {_design.states} x {_design.levels}, {_design.blocks} blocks",
        f"I/O that costs the hypervisor 14 % of the CPUs told as an effect, {_design.states} states, {_design.levels} "
        f"levels, {_design.blocks} blocks",
        section=10,
        goal=_goal,
        most=False,
    )(partial(effects_found, _design, None))
row(
    "effect: found beside a neighbour",
    "the same beside a neighbour in bursts, 6 blocks",
    section=10,
    goal=50,
    most=False,
)(partial(effects_found, Design(2, 4, 6), bursts))


@row("selection: effects", "steps of I/O that costs the hypervisor CPU time left out", section=10, goal=5)
def left_out(series: int) -> Figure:
    """Beside the rule that leaves out what carries the flag."""
    random, drawn = np.random.default_rng(33), min(series, 500)
    out = flagged = of = 0
    for _ in range(drawn):
        steps = taken(random, USUAL, None, works=True)
        mine = [each for each in steps if each.treatment == "A" and each.level >= USUAL.levels / 2]
        kept = {each.number for each in select(steps).steps}
        out += sum(each.number not in kept for each in mine)
        flagged += sum(bool(each.flags) for each in mine)
        of += len(mine)
    return rate(out, of, rival=f"by the flag, where enough others are, up to {100 * flagged / of:.0f}")


@row(
    "selection: disturbances",
    "disturbed steps that count beside two quiet ones of their state and load",
    section=10,
    goal=5,
)
def that_count(series: int) -> Figure:
    """A neighbour in bursts, 5 blocks."""
    random, drawn = np.random.default_rng(34), min(series, 500)
    wrong = of = 0
    for _ in range(drawn):
        steps = taken(random, Design(2, 4, 5), bursts, works=False)
        kept = {each.number for each in select(steps).steps}
        for each in (one for one in steps if one.metrics["system.cpu.steal"] >= LOUD):
            cell = [one for one in steps if (one.treatment, one.level) == (each.treatment, each.level)]
            if sum(one.metrics["system.cpu.steal"] < LOUD for one in cell) >= 2:
                of += 1
                wrong += each.number in kept
    return rate(wrong, of)
