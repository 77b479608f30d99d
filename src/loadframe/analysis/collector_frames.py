"""Functions in which a runtime collects garbage: a table of name patterns, each with its source.

A pattern matches a whole function name, as perf shows it. What the program does for a collector while it runs (write
barriers, allocation) is not among them. A page fault or a lock within such a function is the collector's time, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from loadframe.analysis.proportion import wilson
from loadframe.knowledge.frame import FrameRow
from loadframe.model import Stack

COLLECTING = "collecting"
OF_COLLECTORS: tuple[FrameRow, ...] = (
    FrameRow(
        COLLECTING,
        "user",
        r"v8::internal::(\(anonymous namespace\)::)?((Minor)?Mark(Compact|Sweep)Collector|Scavenger(Collector)?"
        r"|ScavengeVisitor|ConcurrentMarking(Visitor)?|IncrementalMarking(Job)?|(Concurrent)?Sweeper|(Full|NewSpace)?Evacuator"
        r"|PageEvacuationJob|PointersUpdatingJob|RememberedSetUpdatingItem|MainMarkingVisitor|MarkingVisitorBase)(<.*>)?::.*"
        r"|v8::internal::Heap::(CollectGarbage|CollectAllGarbage|PerformGarbageCollection|Scavenge|(Minor)?Mark(Compact|Sweep)"
        r"|StartIncrementalMarking|FinalizeIncrementalMarking\w*|(Ensure|Complete)Sweeping\w*)|cppgc::internal::(\w*Marker|Sweeper)\w*::.*",
        "V8 src/heap/: Node.js, Deno, Chromium",
    ),
    FrameRow(
        COLLECTING,
        "user",
        r"runtime\.(gcBgMark\w+|gcDrain\w*|gcAssist\w+|gcMark\w*|gcStart|gcSweep|gcFlushBgCredit|gcParkAssist|scan(object|block|stack"
        r"|frameworker|Conservative|Span)\w*|greyobject|markroot\w*|bgsweep|bgscavenge|sweepone|wbBufFlush\w*|\(\*sweepLocked\)\.sweep"
        r"|\(\*gcWork\)\.\w+)(\.func[\d.]+)?",
        "Go src/runtime/mgc*.go, mgcmark*.go, mgcsweep.go",
    ),
    FrameRow(
        COLLECTING,
        "user",
        r"gc_collect_(main|region|full|young|increment|internal|generations|with_callback)|_?PyGC_Collect\w*|_Py_RunGC"
        r"|deduce_unreachable|subtract_refs|move_unreachable",
        "CPython Modules/gcmodule.c, Python/gc.c",
    ),
    FrameRow(
        COLLECTING,
        "user",
        r"(G1(?!BarrierSet|CollectedHeap)\w+|PS(ParallelCompact|Scavenge|PromotionManager|MarkSweep)\w*|ParCompactionManager"
        r"|DefNewGeneration|TenuredGeneration|GenMarkSweep|MarkSweep|SerialFullGC|Z(Mark|Relocate|Driver)\w*"
        r"|Shenandoah(?!BarrierSet|Heap)\w+)(<.*>)?::(?!\w*allocate).*"
        r"|(G1CollectedHeap|GenCollectedHeap|SerialHeap|ParallelScavengeHeap|ShenandoahHeap)::(do_\w*collection\w*|collect\w*|evacuate\w*)",
        "HotSpot src/hotspot/share/gc/",
    ),
)
_PATTERNS = tuple(re.compile(row.pattern) for row in OF_COLLECTORS)


@dataclass(frozen=True, slots=True)
class Collecting:
    """The share of a CPU profile's samples in which garbage was collected, with its 95 % interval (Wilson)."""

    share: float
    low: float
    high: float


@lru_cache(maxsize=65536)
def collects(function: str) -> bool:
    """Whether a function belongs to a collector."""
    return any(pattern.fullmatch(function) for pattern in _PATTERNS)


def collecting(stacks: Sequence[Stack]) -> Collecting | None:
    """Of a CPU profile; None without samples, and where no function of a collector has a name in it: then there may be
    none, or it may be stripped."""
    total = sum(stack.count for stack in stacks)
    found = sum(stack.count for stack in stacks if any(map(collects, stack.frames)))
    return Collecting(found / total, *wilson(found, total)) if found else None
