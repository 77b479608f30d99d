"""What the target of a search serves as given: measured first, and what every trial is held against."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from loadframe.bench.beside import START
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping, measure_block
from loadframe.errors import RunError
from loadframe.model import Step


def measure_start(book: Bookkeeping) -> None:
    """The start at the study's levels, in the fewest blocks."""
    levels = book.bench.study.levels
    book.progress.phase(f"measuring {len(levels)} levels as given", len(levels) * FEWEST_BLOCKS)
    for block in range(1, FEWEST_BLOCKS + 1):
        measure_block(book, START, levels, block, round_number=1)


def reference(steps: Sequence[Step], level: float) -> float:
    """Throughput (1/s) of the start at a level. RunError where it serves nothing there."""
    mine = [step.throughput for step in steps if step.level == level and step.throughput > 0]
    if not mine:
        raise RunError(f"as given, no request is served at {level:g}", remedy="Lower the load, or mend the settings.")
    return geometric_mean(mine)
