"""Which functions belong to which class of work: rows of frames.toml, each with its source; and garbage collection in a
profile.

Rows are looked up from the innermost frame of a stack outwards; the first frame that has a row decides (stacks.py).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from loadframe.analysis.proportion import wilson
from loadframe.knowledge.frame import FrameRow, Scope, frame_rows
from loadframe.knowledge.kinds import rows
from loadframe.model import Stack

KERNEL_SUFFIX = "_[k]"
_OF_ANY_PROGRAM = frame_rows(Path(__file__).with_name("frames.toml"))
ROWS = (*_OF_ANY_PROGRAM, *chain.from_iterable(rows("frames", "FRAMES", FrameRow).values()))
"""Those of the kernel and its libraries, of collectors of garbage, then those of each kind of
server (`kinds/NAME/frames.toml`)."""
_OF_COLLECTORS = tuple(re.compile(row.pattern) for row in _OF_ANY_PROGRAM if row.class_id == "collecting")


def _compiled(scope: Scope) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(row.pattern), row.class_id) for row in ROWS if row.scope == scope)


_KERNEL, _USER = _compiled("kernel"), _compiled("user")


@lru_cache(maxsize=65536)
def class_of_frame(frame: str) -> str | None:
    """The class of a frame's function; None for one that no row names."""
    in_kernel = frame.endswith(KERNEL_SUFFIX)
    name = frame.removesuffix(KERNEL_SUFFIX)
    rows = _KERNEL if in_kernel else _USER
    return next((class_id for pattern, class_id in rows if pattern.fullmatch(name)), None)


@dataclass(frozen=True, slots=True)
class Collecting:
    """The share of a CPU profile's samples in which garbage was collected, with its 95 % interval (Wilson)."""

    share: float
    low: float
    high: float


@lru_cache(maxsize=65536)
def collects(function: str) -> bool:
    """Whether a function belongs to a collector."""
    return any(pattern.fullmatch(function) for pattern in _OF_COLLECTORS)


def collecting(stacks: Sequence[Stack]) -> Collecting | None:
    """Of a CPU profile; None without samples, and where no function of a collector has a name in it: then there may be
    none, or it may be stripped."""
    total = sum(stack.count for stack in stacks)
    found = sum(stack.count for stack in stacks if any(map(collects, stack.frames)))
    return Collecting(found / total, *wilson(found, total)) if found else None
