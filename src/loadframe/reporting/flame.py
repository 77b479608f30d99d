"""Profiles in words, and their flame graphs as SVG (Gregg, The Flame Graph, CACM 59(6), 2016), coloured by class of
work or by change. In a differential graph (Gregg, Differential Flame Graphs, 2014) a box is as wide as the mean of its
two shares, so that what vanished stays visible; red: a larger share after, blue: a smaller one, beyond chance."""

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
    level = words.load(profile.level, inv.study.load_unit)
    after = ", after the changes" if inv.rounds and profile.treatment != inv.rounds[0].treatment else ""
    if profile.place in ("lowest", "highest"):
        return f"{PLACES[profile.place]}, {level}{after}"
    return f"{PLACES[profile.place]}, at {level}{after}"


def rows(profiles: Sequence[Profile]) -> list[tuple[str, list[ClassShare | None]]]:
    """The title of every class, the largest share first, and its share in each profile."""
    by_class = [{class_share.id: class_share for class_share in profile.classes} for profile in profiles]
    largest: dict[str, ClassShare] = {}
    for classes in by_class:
        for class_id, class_share in classes.items():
            if class_id not in largest or class_share.share > largest[class_id].share:
                largest[class_id] = class_share
    ranked = sorted(largest.values(), key=lambda class_share: -class_share.share)
    return [(class_share.title, [classes.get(class_share.id) for classes in by_class]) for class_share in ranked]


def share(class_share: ClassShare | None) -> str:
    if class_share is None:
        return ""
    if not rounding.has_width(class_share.low, class_share.high):
        return rounding.percent(class_share.share)
    low, high = (rounding.percent(end).removesuffix(" %") for end in (class_share.low, class_share.high))
    return f"{rounding.percent(class_share.share)} ({low} to {high})"


def demand(class_share: ClassShare | None) -> str:
    return cost(class_share.demand_ms) if class_share is not None and class_share.demand_ms is not None else ""


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
    """Classes that cost more or less per request than in the baseline, beyond chance."""
    changed = [
        class_share for class_share in profile.classes if class_share.change is not None and class_share.share >= SMALL
    ][:MOST_CLASSES]
    if not changed:
        return ""
    parts = ", ".join(
        f"{rounding.plain(class_share.change or 0.0)} times in {class_share.title}" for class_share in changed
    )
    return f", against {baseline_words(inv, profile)} {parts}"


def rest_sentence(inv: Investigation, profile: Profile) -> str:
    cores = sum(class_share.amount for class_share in profile.classes)
    roots = sorted((box for box in profile.flame if box.depth == 0), key=lambda box: -box.width)
    names = ", ".join(f"{box.name} {rounding.percent(box.width)}" for box in roots[:MOST_CLASSES])
    most = f" ({names} of it)" if names else ""
    return f"{where(inv, profile)}, everything else on the machine used {rounding.plain(cores)} CPUs{most}"


def quality_sentence(profile: Profile) -> str:
    said = [f"{counted(profile.samples, 'sample')} in {rounding.seconds(profile.seconds)}"]
    if profile.unresolved_share:
        said.append(f"{rounding.percent(profile.unresolved_share)} of them in functions without a name")
    if profile.truncated_share:
        said.append(f"{rounding.percent(profile.truncated_share)} with their outermost callers cut off")
    if profile.lost:
        said.append(f"{profile.lost:,} more were lost")
    return ", ".join(said)


def with_flame(inv: Investigation) -> tuple[Profile, ...]:
    """CPU profiles to draw: the target's, past the bend first, then the driver's at high load."""
    driver = [profile for profile in of_kind(inv, "cpu", "driver") if profile.place in HIGH][:1]
    target = sorted(of_kind(inv, "cpu"), key=lambda profile: profile.place not in HIGH)
    return tuple(profile for profile in (*target, *driver) if profile.flame)


def baseline_words(inv: Investigation, profile: Profile) -> str:
    base = profile.against
    if base is None:
        return ""
    level = words.load(base.level, inv.study.load_unit)
    return "the state as given" if base.treatment != profile.treatment else f"{BASELINES[base.place]} ({level})"


def missing_sentences(inv: Investigation) -> list[str]:
    return [
        f"Not sampled: {requirement.what} ({words.strip(requirement.how_to_get_it)})."
        for requirement in inv.profile_missing
    ]


def summary(inv: Investigation) -> list[str]:
    """CPU time (or else the threads) of the first state past the bend, and what is missing."""
    cpu = [cpu_sentence(inv, profile) for profile in of_kind(inv, "cpu") if profile.place in HIGH]
    states = []
    for profile in (profile for profile in of_kind(inv, "threads") if profile.place in HIGH):
        parts = ", ".join(f"{threads(class_share)} {class_share.title}" for class_share in _largest(profile))
        total = rounding.plain(sum(class_share.amount for class_share in profile.classes))
        states.append(f"{where(inv, profile)}, of {total} threads on average: {parts}")
    return [*map(words.sentence, (cpu or states)[:1]), *missing_sentences(inv)]


WIDTH = 1200
ROW = 18
CHARACTER = 6.7
"""Width of a character of the 11-pixel monospace face, in pixels."""
PADDING = 4
FEWEST = 5
SHADES = (math.log(1.25), math.log(2.0))


def svg(profile: Profile, *, label: str) -> Markup:
    if not profile.flame:
        return Markup("")
    depth = max(frame.depth for frame in profile.flame) + 2
    height = depth * ROW
    whole = f"all of {counted(profile.samples, 'sample')}"
    boxes = [box(whole, whole, "", 0.0, float(WIDTH), height - ROW)]
    for frame in profile.flame:
        bare, name = _named(frame.name)
        said = f"{name}: {rounding.percent(frame.width)} of the samples"
        if frame.change is not None:
            said += f", {rounding.plain(frame.change)} times the CPU time per request"
        classes = f"{f'k-{frame.class_id} ' if frame.class_id else ''}{shade(frame.change)}".strip()
        y = height - (frame.depth + 2) * ROW
        boxes.append(box(bare, said, classes, frame.start * WIDTH, frame.width * WIDTH, y))
    about = {"class": "flame", "viewBox": f"0 0 {WIDTH} {height}", "role": "img", "aria-label": label}
    return element("svg", about, *boxes)


def _named(name: str) -> tuple[str, str]:
    """The bare name of a function, and its name for people."""
    bare = name.removesuffix("_[k]")
    return bare, f"{bare}{' (kernel)' if bare != name else ''}"


def box(name: str, said: str, classes: str, x: float, width: float, y: int) -> Markup:
    text = fitted(name, width)
    written = element("text", {"x": f"{x + PADDING:.1f}", "y": y + ROW - 5}, text) if text else Markup("")
    rect = element("rect", {"x": f"{x:.2f}", "y": y, "width": f"{max(width, 0.01):.2f}", "height": ROW - 1})
    return element("g", {"class": classes, "data-name": name}, element("title", {}, said), rect, written)


def fitted(name: str, width: float) -> str:
    room = int((width - 2 * PADDING) / CHARACTER)
    if room < FEWEST:
        return ""
    return name if len(name) <= room else name[: room - 2] + ".."


def shade(change: float | None) -> str:
    """The class of a change's shade: up or down, 1 (slight) to 3 (strong); "" for none."""
    return "" if change is None or change <= 0 else _shade(math.log(change), SHADES)


def _shade(by: float, steps: Sequence[float]) -> str:
    return f"{'up' if by > 0 else 'down'}{1 + sum(abs(by) >= step for step in steps)}"


Z_BOX = 3.29
"""As for the changes of one profile's boxes (analysis/stacks.py)."""
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
    _grow(root, difference.before.flame, "before")
    _grow(root, difference.after.flame, "after")
    return root


def _grow(root: Node, boxes: tuple[FlameFrame, ...], side: str) -> None:
    row: list[tuple[FlameFrame, Node]] = []
    previous: list[tuple[FlameFrame, Node]] = []
    depth = 0
    for frame in sorted(boxes, key=lambda frame: (frame.depth, frame.start)):
        if frame.depth != depth:
            previous, row, depth = row, [], frame.depth
        middle = frame.start + frame.width / 2
        within = (node for below, node in previous if below.start <= middle <= below.start + below.width)
        parent = root if frame.depth == 0 else next(within, None)
        if parent is not None:
            node = parent.below.setdefault(frame.name, Node(frame.name))
            setattr(node, side, getattr(node, side) + frame.width)
            row.append((frame, node))


def beyond_chance(node: Node, difference: Difference) -> bool:
    before, after = difference.before.samples, difference.after.samples
    pooled = (node.before * before + node.after * after) / (before + after)
    spread = math.sqrt(max(pooled * (1 - pooled), 0.0) * (1 / before + 1 / after))
    return abs(node.after - node.before) >= Z_BOX * spread > 0


def difference_shade(node: Node, difference: Difference) -> str:
    return _shade(node.after - node.before, POINTS) if beyond_chance(node, difference) else ""


def difference_sentence(inv: Investigation, difference: Difference) -> str:
    before, after = demand_ms(difference.before), demand_ms(difference.after)
    price = ""
    if before is not None and after is not None:
        price = f"a request costs {cost(before)} of CPU before and {cost(after)} after"
    moved = [f"{name} {_shares(node)}" for name, node in changed(difference)[:FIRST]]
    where = f"at {words.load(difference.after.level, inv.study.load_unit)}"
    parts = [f"the {difference.after.component}'s CPU time {where}, before against after the changes"]
    parts += [price] if price else []
    parts += [f"shares that changed most: {'; '.join(moved)}"] if moved else ["no share differs beyond chance"]
    return ". ".join(part[:1].upper() + part[1:] for part in parts)


def changed(difference: Difference) -> list[tuple[str, Node]]:
    """The innermost boxes whose share differs beyond chance, the largest difference first, each function once."""
    pending, leaves = list(merged(difference).below.values()), dict[str, Node]()
    while pending:
        node = pending.pop()
        most = abs(node.after - node.before) / 2
        inner = [
            child
            for child in node.below.values()
            if beyond_chance(child, difference) and abs(child.after - child.before) >= most
        ]
        if not inner and beyond_chance(node, difference):
            bare = node.name.removesuffix("_[k]")
            known = leaves.setdefault(bare, Node(bare))
            known.before += node.before
            known.after += node.after
        pending += node.below.values()
    return sorted(leaves.items(), key=lambda item: -abs(item[1].after - item[1].before))


def _shares(node: Node) -> str:
    return f"{_percent(node.before)} before, {_percent(node.after)} after"


def _percent(share: float) -> str:
    return rounding.percent(share) if share >= NARROWEST else "less than 0.25 %"


def difference_svg(inv: Investigation, difference: Difference) -> Markup:
    root = merged(difference)
    boxes: list[tuple[Node, int, float]] = []
    pending = [(root, -1, 0.0)]
    while pending:
        node, depth, start = pending.pop()
        boxes.append((node, depth, start))
        for _, below in sorted(node.below.items()):
            if below.width >= NARROWEST:
                pending.append((below, depth + 1, start))
            start += below.width
    height = (max(depth for _, depth, _ in boxes) + 2) * ROW
    drawn = []
    for node, depth, start in boxes:
        bare, name = _named(node.name)
        said = ALL if node.name == ALL else f"{name}: {_shares(node)}"
        look, y = difference_shade(node, difference), height - (depth + 2) * ROW
        drawn.append(box(bare, said, look, start * WIDTH, node.width * WIDTH, y))
    about = {
        "class": "flame difference",
        "viewBox": f"0 0 {WIDTH} {height}",
        "role": "img",
        "aria-label": f"Flame graph, before against after. {difference_sentence(inv, difference)}.",
    }
    return element("svg", about, *drawn)


# --- for another viewer ---


@dataclass(frozen=True, slots=True)
class TitledStacks:
    """One profile. weight: CPU-seconds, or average threads, that one sample stands for."""

    title: str
    stacks: Sequence[Stack]
    weight: float
    seconds: bool


def speedscope_json(name: str, profiles: Sequence[TitledStacks]) -> dict[str, Any]:
    """All profiles of a run as one document for https://www.speedscope.app; equal frames are written once."""
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
