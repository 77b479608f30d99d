"""Collapsed stacks: one line per stack, frames from the outermost on, joined by semicolons, a blank and the count: the
format of Brendan Gregg's FlameGraph (stackcollapse-*.pl), which flame graph tools read. Frames of the kernel end with
`_[k]`, as with `stackcollapse-perf.pl --kernel`."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from loadframe.model import Stack

COUNT = re.compile(r"[1-9][0-9]{0,17}")
MOST_FRAMES = 512
"""perf itself follows a stack no further than kernel.perf_event_max_stack, 127 by default."""


@dataclass(frozen=True, slots=True)
class Collapsed:
    """The stacks of a file, the most frequent first. damaged: lines that could not be read."""

    stacks: tuple[Stack, ...]
    damaged: int = 0


def collapse(samples: Iterable[tuple[str, ...]]) -> tuple[Stack, ...]:
    """Equal stacks counted together; the most frequent first, ties by name."""
    counts = Counter(tuple(_clean(frame) for frame in frames) for frames in samples)
    counts.pop((), None)
    return tuple(Stack(frames, count) for frames, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def render(stacks: Iterable[Stack]) -> str:
    """The text of a file of collapsed stacks."""
    return "".join(f"{';'.join(stack.frames)} {stack.count}\n" for stack in stacks)


def parse(text: str) -> Collapsed:
    """The stacks of a file. Other lines (a damaged or foreign file) are counted and left out."""
    counts: Counter[tuple[str, ...]] = Counter()
    damaged = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        stack, _, count = line.rstrip("\r").rpartition(" ")
        frames = tuple(stack.split(";"))
        if not COUNT.fullmatch(count) or len(frames) > MOST_FRAMES or any(_clean(frame) != frame for frame in frames):
            damaged += 1
        else:
            counts[frames] += int(count)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Collapsed(tuple(Stack(frames, count) for frames, count in ranked), damaged)


def _clean(frame: str) -> str:
    """A frame's name without what would end it or the line (Java's names have semicolons)."""
    plain = "".join(char if char.isprintable() else "?" for char in frame.replace(";", ":"))
    return plain.strip() or "[unknown]"
