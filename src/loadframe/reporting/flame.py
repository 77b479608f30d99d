"""Profiles in words, and as flame graphs (Gregg, The Flame Graph, CACM 59(6), 2016), coloured by class of work or by
change. In a differential graph (Gregg, Differential Flame Graphs, 2014) a box is as wide as the mean of its two shares;
red: a larger share after, blue: a smaller one, beyond chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from loadframe.model import ClassShare, FlameFrame, Investigation, Profile, ProfileKind, Stack
from loadframe.progress import counted
from loadframe.reporting import rounding, words
from loadframe.reporting.html import element
from loadframe.version import __version__

PLACES = {
    "below": "below the bend",
    "past": "past the bend",
    "lowest": "at the lowest level",
    "highest": "at the highest level",
}
BASELINES = {**PLACES, "below": "what it costs below the bend", "lowest": "the lowest level"}
HIGH = ("past", "highest")
MOST_CLASSES = 3
SMALL = 0.02


def of_kind(inv: Investigation, kind: ProfileKind, component: str = "target") -> tuple[Profile, ...]:
    return tuple(profile for profile in inv.profiles if (profile.kind, profile.component) == (kind, component))


def where(inv: Investigation, profile: Profile) -> str:
    at = "" if profile.place in ("lowest", "highest") else "at "
    after = ", after the changes" if inv.rounds and profile.treatment != inv.rounds[0].treatment else ""
    return f"{PLACES[profile.place]}, {at}{words.load(profile.level, inv.study.load_unit)}{after}"


def rows(profiles: Sequence[Profile]) -> list[tuple[str, list[ClassShare | None]]]:
    by_id = [{class_share.id: class_share for class_share in profile.classes} for profile in profiles]
    shares = [class_share for profile in profiles for class_share in profile.classes]
    titles: dict[str, str] = {}
    for largest in sorted(shares, key=lambda class_share: -class_share.share):
        titles.setdefault(largest.id, largest.title)
    return [(title, [classes.get(class_id) for classes in by_id]) for class_id, title in titles.items()]


def share(class_share: ClassShare | None) -> str:
    if class_share is None:
        return ""
    if not rounding.has_width(class_share.low, class_share.high):
        return rounding.percent(class_share.share)
    low, high = (rounding.percent(end).removesuffix(" %") for end in (class_share.low, class_share.high))
    return f"{rounding.percent(class_share.share)} ({low} to {high})"


def cost(value_ms: float) -> str:
    return words.milliseconds(value_ms) if value_ms >= 1 else f"{rounding.plain(1000 * value_ms)} µs"


def threads(class_share: ClassShare | None) -> str:
    return rounding.plain(class_share.amount) if class_share is not None else ""


def demand_ms(profile: Profile) -> float | None:
    parts = [class_share.demand_ms for class_share in profile.classes if class_share.demand_ms is not None]
    return sum(parts) if parts else None


def cpu_sentence(inv: Investigation, profile: Profile) -> str:
    parts = ", ".join(f"{class_share.title} {share(class_share)}" for class_share in _largest(profile))
    total = demand_ms(profile)
    price = f"; a request costs {cost(total)} of CPU" if total is not None else ""
    return f"{where(inv, profile)}, the {profile.component}'s CPU time is {parts}{price}{_changes(inv, profile)}"


def _largest(profile: Profile) -> list[ClassShare]:
    return [class_share for class_share in profile.classes if class_share.share >= SMALL][:MOST_CLASSES]


def _changes(inv: Investigation, profile: Profile) -> str:
    changed = [
        f"{rounding.plain(class_share.change)} times in {class_share.title}"
        for class_share in profile.classes
        if class_share.change is not None and class_share.share >= SMALL
    ]
    return f", against {baseline_words(inv, profile)} {', '.join(changed[:MOST_CLASSES])}" if changed else ""


def quality_sentence(profile: Profile) -> str:
    parts = [f"{counted(profile.samples, 'sample')} in {rounding.seconds(profile.seconds)}"]
    if profile.unresolved_share:
        parts.append(f"{rounding.percent(profile.unresolved_share)} of them in functions without a name")
    if profile.truncated_share:
        parts.append(f"{rounding.percent(profile.truncated_share)} with their outermost callers cut off")
    if profile.lost:
        parts.append(f"{profile.lost:,} more were lost")
    return ", ".join(parts)


def with_flame(inv: Investigation) -> tuple[Profile, ...]:
    """Profiles to draw: the target's, past the bend first, then the driver's at high load."""
    driver = [profile for profile in of_kind(inv, "cpu", "driver") if profile.place in HIGH][:1]
    target = sorted(of_kind(inv, "cpu"), key=lambda profile: profile.place not in HIGH)
    return tuple(profile for profile in (*target, *driver) if profile.flame)


def baseline_words(inv: Investigation, profile: Profile) -> str:
    base = profile.against
    if base is None:
        return ""
    if base.treatment != profile.treatment:
        return "the state as given"
    return f"{BASELINES[base.place]} ({words.load(base.level, inv.study.load_unit)})"


def missing_sentences(inv: Investigation) -> list[str]:
    return [
        f"Not sampled: {requirement.what} ({words.strip(requirement.how_to_get_it)})."
        for requirement in inv.profile_missing
    ]


def summary(inv: Investigation) -> list[str]:
    sentences = [cpu_sentence(inv, profile) for profile in of_kind(inv, "cpu") if profile.place in HIGH]
    for profile in of_kind(inv, "threads"):
        if profile.place in HIGH:
            parts = ", ".join(f"{threads(class_share)} {class_share.title}" for class_share in _largest(profile))
            total = rounding.plain(sum(class_share.amount for class_share in profile.classes))
            sentences.append(f"{where(inv, profile)}, of {total} threads on average: {parts}")
    return [*map(words.sentence, sentences[:1]), *missing_sentences(inv)]


WIDTH = 1200
ROW = 18
CHARACTER = 6.7
"""Width in pixels of the 11-pixel monospace face."""
PADDING = 4
FEWEST = 5
SHADES = (math.log(1.25), math.log(2.0))


def svg(profile: Profile, *, label: str) -> Markup:
    if not profile.flame:
        return Markup("")
    whole = f"all of {counted(profile.samples, 'sample')}"
    boxes = [Box(whole, whole, "", -1, 0.0, 1.0)]
    for frame in profile.flame:
        bare, name = _named(frame.name)
        text = f"{name}: {rounding.percent(frame.width)} of the samples"
        if frame.change is not None:
            text += f", {rounding.plain(frame.change)} times the CPU time per request"
        classes = f"{f'k-{frame.class_id} ' if frame.class_id else ''}{shade(frame.change)}".strip()
        boxes.append(Box(bare, text, classes, frame.depth, frame.start, frame.width))
    return _graph("flame", label, boxes)


def _named(name: str) -> tuple[str, str]:
    bare = name.removesuffix("_[k]")
    return bare, f"{bare}{' (kernel)' if bare != name else ''}"


@dataclass(frozen=True, slots=True)
class Box:
    """depth: -1 for the whole, at the bottom. start, width: shares of the whole."""

    name: str
    text: str
    classes: str
    depth: int
    start: float
    width: float


def _graph(look: str, label: str, boxes: Sequence[Box]) -> Markup:
    height = (max(box.depth for box in boxes) + 2) * ROW
    drawn = []
    for box in boxes:
        x, y, width = box.start * WIDTH, height - (box.depth + 2) * ROW, box.width * WIDTH
        text = fitted(box.name, width)
        written = element("text", {"x": f"{x + PADDING:.1f}", "y": y + ROW - 5}, text) if text else Markup("")
        rect = element("rect", {"x": f"{x:.2f}", "y": y, "width": f"{max(width, 0.01):.2f}", "height": ROW - 1})
        about = {"class": box.classes, "data-name": box.name}
        drawn.append(element("g", about, element("title", {}, box.text), rect, written))
    size = {"class": look, "viewBox": f"0 0 {WIDTH} {height}", "role": "img", "aria-label": label}
    return element("svg", size, *drawn)


def fitted(name: str, width: float) -> str:
    room = int((width - 2 * PADDING) / CHARACTER)
    if room < FEWEST:
        return ""
    return name if len(name) <= room else name[: room - 2] + ".."


def shade(change: float | None) -> str:
    """A class: up or down, 1 (slight) to 3 (strong)."""
    return "" if change is None or change <= 0 else _shade(math.log(change), SHADES)


def _shade(by: float, steps: Sequence[float]) -> str:
    return f"{'up' if by > 0 else 'down'}{1 + sum(abs(by) >= step for step in steps)}"


Z_BOX = 3.29
"""As in one profile (analysis/stacks.py)."""
ALL = "all of the CPU time"
NARROWEST = 0.0025
POINTS = (0.02, 0.1)
FIRST = 3


@dataclass(slots=True)
class Node:
    name: str
    before: float = 0.0
    after: float = 0.0
    below: "dict[str, Node]" = field(default_factory=dict)

    @property
    def width(self) -> float:
        return (self.before + self.after) / 2

    @property
    def change(self) -> float:
        return abs(self.after - self.before)


@dataclass(frozen=True, slots=True)
class Difference:
    before: Profile
    after: Profile


def pair_of(inv: Investigation) -> Difference | None:
    if not inv.rounds:
        return None
    first = inv.rounds[0].treatment
    sampled = [profile for profile in of_kind(inv, "cpu") if profile.flame and profile.place in HIGH]
    before = next((profile for profile in sampled if profile.treatment == first), None)
    after = next((profile for profile in reversed(sampled) if profile.treatment != first), None)
    return Difference(before, after) if before is not None and after is not None else None


def merged(difference: Difference) -> Node:
    root = Node(ALL, 1.0, 1.0)
    for side, profile in (("before", difference.before), ("after", difference.after)):
        row: list[tuple[FlameFrame, Node]] = []
        previous, depth = row, 0
        for frame in sorted(profile.flame, key=lambda frame: (frame.depth, frame.start)):
            if frame.depth != depth:
                previous, row, depth = row, [], frame.depth
            middle = frame.start + frame.width / 2
            within = (node for below, node in previous if below.start <= middle <= below.start + below.width)
            parent = root if frame.depth == 0 else next(within, None)
            if parent is not None:
                node = parent.below.setdefault(frame.name, Node(frame.name))
                setattr(node, side, getattr(node, side) + frame.width)
                row.append((frame, node))
    return root


def beyond_chance(node: Node, difference: Difference) -> bool:
    before, after = difference.before.samples, difference.after.samples
    pooled = (node.before * before + node.after * after) / (before + after)
    spread = math.sqrt(max(pooled * (1 - pooled), 0.0) * (1 / before + 1 / after))
    return node.change >= Z_BOX * spread > 0


def difference_shade(node: Node, difference: Difference) -> str:
    return _shade(node.after - node.before, POINTS) if beyond_chance(node, difference) else ""


def difference_sentence(inv: Investigation, difference: Difference) -> str:
    before, after = demand_ms(difference.before), demand_ms(difference.after)
    where = f"at {words.load(difference.after.level, inv.study.load_unit)}"
    parts = [f"The {difference.after.component}'s CPU time {where}, before against after the changes"]
    if before is not None and after is not None:
        parts.append(f"A request costs {cost(before)} of CPU before and {cost(after)} after")
    moved = "; ".join(f"{name} {_shares(node)}" for name, node in changed(difference)[:FIRST])
    parts.append(f"Shares that changed most: {moved}" if moved else "No share differs beyond chance")
    return ". ".join(parts)


def changed(difference: Difference) -> list[tuple[str, Node]]:
    """The innermost boxes whose share differs beyond chance, the largest difference first, each function once."""
    pending, leaves = list(merged(difference).below.values()), dict[str, Node]()
    while pending:
        node = pending.pop()
        inner = node.below.values()
        pending += inner
        differing = [child for child in inner if beyond_chance(child, difference)]
        if beyond_chance(node, difference) and all(child.change < node.change / 2 for child in differing):
            bare, _ = _named(node.name)
            leaf = leaves.setdefault(bare, Node(bare))
            leaf.before += node.before
            leaf.after += node.after
    return sorted(leaves.items(), key=lambda item: -item[1].change)


def _shares(node: Node) -> str:
    return f"{_percent(node.before)} before, {_percent(node.after)} after"


def _percent(share: float) -> str:
    return rounding.percent(share) if share >= NARROWEST else "less than 0.25 %"


def difference_svg(inv: Investigation, difference: Difference) -> Markup:
    boxes, pending = list[Box](), [(merged(difference), -1, 0.0)]
    while pending:
        node, depth, start = pending.pop()
        bare, name = _named(node.name)
        text = ALL if node.name == ALL else f"{name}: {_shares(node)}"
        boxes.append(Box(bare, text, difference_shade(node, difference), depth, start, node.width))
        for _, below in sorted(node.below.items()):
            if below.width >= NARROWEST:
                pending.append((below, depth + 1, start))
            start += below.width
    label = f"Flame graph, before against after. {difference_sentence(inv, difference)}."
    return _graph("flame difference", label, boxes)


# --- for another viewer ---


@dataclass(frozen=True, slots=True)
class TitledStacks:
    """weight: CPU-seconds, or average threads, that one sample stands for."""

    title: str
    stacks: Sequence[Stack]
    weight: float
    seconds: bool


def speedscope_json(name: str, profiles: Sequence[TitledStacks]) -> dict[str, Any]:
    """A document for https://www.speedscope.app; equal frames are written once."""
    frames: dict[str, int] = {}
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": f"loadframe {__version__}",
        "activeProfileIndex": 0,
        "profiles": [_sampled(profile, frames) for profile in profiles],
        "shared": {"frames": [{"name": frame} for frame in frames]},
    }


def _sampled(profile: TitledStacks, frames: dict[str, int]) -> dict[str, Any]:
    weights = [stack.count * profile.weight for stack in profile.stacks]
    return {
        "type": "sampled",
        "name": profile.title,
        "unit": "seconds" if profile.seconds else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in profile.stacks],
        "weights": weights,
    }
