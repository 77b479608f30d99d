"""From collapsed stacks to shares by class of work, the hottest functions, and a flame graph. A stack belongs to the
class of its innermost frame in frames.toml. Demands: utilisation law, D = U / X."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path

from loadframe.knowledge.kinds import rows
from loadframe.knowledge.rows import CLASSES, FrameRow, Scope, frame_rows
from loadframe.model import (
    ClassShare,
    FlameFrame,
    FunctionShare,
    Profile,
    ProfileBaseline,
    ProfiledStep,
    ProfileKind,
    ProfileSource,
    Stack,
)

KERNEL_SUFFIX = "_[k]"
TRUNCATED = "[truncated]"
Z_BOX = 3.29
"""A change by chance of one in a thousand: a flame graph has hundreds of boxes."""
Z_CLASS = 2.87
"""The same for a class: 5 % over a dozen classes together (Bonferroni)."""
NARROWEST = 0.0025
"""Share below which a box is not drawn: three pixels of a page."""
MOST_FRAMES = 1000
HOTTEST = 8
MAINLY = 0.5


@dataclass(frozen=True, slots=True)
class Baseline:
    """per_request: CPU-seconds per request that one sample stands for. of: its step."""

    stacks: Sequence[Stack]
    per_request: float
    of: ProfileBaseline | None = None


NO_BASELINE = Baseline((), 0.0)


def classify(frames: Sequence[str], kind: ProfileKind = "cpu") -> str:
    """An id of CLASSES. frames: the outermost first."""
    for frame in reversed(frames):
        if (class_ := class_of_frame(frame)) is not None:
            return class_
    if kind == "threads":
        return "waiting"
    return "kernel" if frames and frames[-1].endswith(KERNEL_SUFFIX) else "user"


def profile(
    stacks: Sequence[Stack], source: ProfileSource, step: ProfiledStep, baseline: Baseline | None = None
) -> Profile | None:
    """The largest class first; None without samples. Intervals are Wilson's, 95 %; thread states have none, because
    samples 20 ms apart see the same wait again."""
    kind, rate, seconds = source.kind, source.rate, source.seconds
    total = sum(stack.count for stack in stacks)
    if not total or rate <= 0 or seconds <= 0:
        return None
    baseline = baseline or NO_BASELINE
    by_class, before = _by_class(stacks, kind), _by_class(baseline.stacks, kind)
    by_function: Counter[str] = Counter()
    for stack in stacks:
        by_function[stack.frames[-1]] += stack.count
    now_s = per_request(rate, seconds, step.throughput)
    per_sample = 1 / (rate * seconds) if kind == "cpu" else 1 / rate
    demand_ms = 1000 * now_s if kind == "cpu" and now_s > 0 else None
    classes = [
        ClassShare(
            class_id,
            CLASSES[class_id],
            count / total,
            *(wilson(count, total) if kind == "cpu" else (count / total, count / total)),
            count * per_sample,
            count * demand_ms if demand_ms is not None else None,
            _change(count, before[class_id], now_s, baseline.per_request, Z_CLASS),
        )
        for class_id, count in by_class.most_common()
    ]
    return Profile(
        kind=kind,
        component=source.component,
        place=step.place,
        treatment=step.treatment,
        level=step.level,
        throughput=step.throughput,
        samples=total,
        lost=source.lost,
        seconds=seconds,
        kernel_share=_share(stacks, total, lambda frames: frames[-1].endswith(KERNEL_SUFFIX)),
        unresolved_share=_share(stacks, total, lambda frames: is_unresolved(frames[-1])) if kind == "cpu" else 0.0,
        truncated_share=_share(stacks, total, lambda frames: TRUNCATED in frames[:2]),
        classes=tuple(classes),
        hottest=tuple(
            FunctionShare(name, classify((name,), kind), count / total)
            for name, count in by_function.most_common(HOTTEST)
        ),
        flame=flame(stacks, kind, now_s=now_s, baseline=baseline),
        against=baseline.of,
    )


def _by_class(stacks: Sequence[Stack], kind: ProfileKind) -> Counter[str]:
    counts: Counter[str] = Counter()
    for stack in stacks:
        counts[classify(stack.frames, kind)] += stack.count
    return counts


def is_unresolved(frame: str) -> bool:
    name = frame.removesuffix(KERNEL_SUFFIX)
    return name.startswith("[") and name.endswith("]") and class_of_frame(frame) is None


def _share(stacks: Sequence[Stack], total: int, wanted: Callable[[tuple[str, ...]], bool]) -> float:
    return sum(stack.count for stack in stacks if wanted(stack.frames)) / total


@dataclass(slots=True)
class _Node:
    count: int = 0
    before: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    below: "dict[str, _Node]" = field(default_factory=dict)


def flame(
    stacks: Sequence[Stack], kind: ProfileKind = "cpu", *, now_s: float = 0.0, baseline: Baseline = NO_BASELINE
) -> tuple[FlameFrame, ...]:
    """Outer boxes before inner, children by name. now_s: CPU-seconds per request that one sample stands for; boxes that
    differ from the baseline's beyond chance carry the ratio."""
    root = _Node()
    for stack in stacks:
        node, class_id = root, classify(stack.frames, kind)
        node.count += stack.count
        for frame in stack.frames:
            node = node.below.setdefault(frame, _Node())
            node.count += stack.count
            node.classes[class_id] += stack.count
    if root.count == 0:
        return ()
    for stack in baseline.stacks:
        node = root
        for frame in stack.frames:
            if frame not in node.below:
                break
            node = node.below[frame]
            node.before += stack.count
    nodes = list(root.below.values())
    for node in nodes:  # it grows by those below
        nodes += node.below.values()
    counts = sorted((node.count for node in nodes), reverse=True)
    least = max(NARROWEST, counts[MOST_FRAMES] / root.count) if len(counts) > MOST_FRAMES else NARROWEST
    frames: list[FlameFrame] = []
    pending = [(root, 0, 0.0)]
    while pending:
        parent, depth, start = pending.pop()
        for name, node in sorted(parent.below.items()):
            width = node.count / root.count
            if width >= least:
                top, most = node.classes.most_common(1)[0]
                of = top if most >= MAINLY * node.count else ""
                change = _change(node.count, node.before, now_s, baseline.per_request, Z_BOX)
                frames.append(FlameFrame(name, depth, start, width, of, change))
                pending.append((node, depth + 1, start))
            start += width
    return tuple(sorted(frames, key=lambda frame: (frame.depth, frame.start)))


def _change(count: int, before: int, now_s: float, before_s: float, z: float) -> float | None:
    """None where chance explains it: |a k1 - b k0| < z sqrt(a^2 k1 + b^2 k0) for Poisson counts, a and b the time of
    one sample. A baseline without samples counts as one."""
    if now_s <= 0 or before_s <= 0:
        return None
    spread = math.sqrt(now_s**2 * count + before_s**2 * before)
    if abs(now_s * count - before_s * before) < z * spread:
        return None
    return now_s * count / (before_s * max(before, 1))


def per_request(rate: float, seconds: float, throughput: float) -> float:
    """CPU-seconds per request that one sample stands for; 0 where no request completed."""
    return 1 / (rate * seconds * throughput) if rate > 0 and seconds > 0 and throughput > 0 else 0.0


_OF_ANY_PROGRAM = frame_rows(Path(__file__).with_name("frames.toml"))
ROWS = (*_OF_ANY_PROGRAM, *chain.from_iterable(rows("frames", "FRAMES", FrameRow).values()))
"""Rows of the kernel, libraries and garbage collectors, then of each kind of server (`kinds/NAME/frames.toml`)."""
_OF_COLLECTORS = tuple(re.compile(row.pattern) for row in _OF_ANY_PROGRAM if row.class_id == "collecting")


def _compiled(scope: Scope) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(row.pattern), row.class_id) for row in ROWS if row.scope == scope)


_KERNEL, _USER = _compiled("kernel"), _compiled("user")


@lru_cache(maxsize=65536)
def class_of_frame(frame: str) -> str | None:
    in_kernel = frame.endswith(KERNEL_SUFFIX)
    name = frame.removesuffix(KERNEL_SUFFIX)
    rows = _KERNEL if in_kernel else _USER
    return next((class_id for pattern, class_id in rows if pattern.fullmatch(name)), None)


@dataclass(frozen=True, slots=True)
class Collecting:
    """Share of samples in garbage collection, 95 % (Wilson)."""

    share: float
    low: float
    high: float


@lru_cache(maxsize=65536)
def collects(function: str) -> bool:
    return any(pattern.fullmatch(function) for pattern in _OF_COLLECTORS)


def collecting(stacks: Sequence[Stack]) -> Collecting | None:
    """The share in a CPU profile; None without any named function of a collector."""
    total = sum(stack.count for stack in stacks)
    samples = sum(stack.count for stack in stacks if any(map(collects, stack.frames)))
    return Collecting(samples / total, *wilson(samples, total)) if samples else None


Z_INTERVAL = 1.96


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's score interval, 95 % (JASA 22, 1927)."""
    share, z2 = count / total, Z_INTERVAL**2
    middle = share + z2 / (2 * total)
    half = Z_INTERVAL * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    scale = 1 + z2 / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
