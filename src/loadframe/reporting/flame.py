"""Flame graphs as SVG: the width of a box is its share of the samples, its row the depth of the call (Gregg, The Flame
Graph, CACM 59(6), 2016). Of one profile, coloured by class of work or by the change against another profile; or of two
at once (Gregg, Differential Flame Graphs, 2014), where a box is as wide as the mean of its shares, so that what
vanished is still seen; red: a larger share after, blue: a smaller one, where that is beyond chance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from markupsafe import Markup

from loadframe.model import FlameFrame, Investigation, Profile
from loadframe.progress import counted
from loadframe.reporting import profiles, rounding, words
from loadframe.reporting.markup import element

WIDTH = 1200
ROW = 18
CHARACTER = 6.7
"""Width of a character of the 11-pixel monospace face, in pixels."""
PADDING = 4
FEWEST = 5
"""Fewer characters of a name tell nothing."""
SHADES = (1.25, 2.0)
"""Changes below the first ratio are the palest shade, from the second on the strongest."""


def svg(profile: Profile, *, label: str) -> Markup:
    """One flame graph, WIDTH units wide; empty where there is nothing to draw. label: its name for screen readers."""
    if not profile.flame:
        return Markup("")
    depth = max(frame.depth for frame in profile.flame) + 2
    height = depth * ROW
    whole = f"all of {counted(profile.samples, 'sample')}"
    boxes = [box(whole, whole, "", 0.0, float(WIDTH), height - ROW)]
    boxes += [_frame(frame, height - (frame.depth + 2) * ROW) for frame in profile.flame]
    about = {"class": "flame", "viewBox": f"0 0 {WIDTH} {height}", "role": "img", "aria-label": label}
    return element("svg", about, *boxes)


def _frame(frame: FlameFrame, y: int) -> Markup:
    name = frame.name.removesuffix("_[k]")
    said = f"{name}{' (kernel)' if name != frame.name else ''}: {rounding.percent(frame.width)} of the samples"
    if frame.change is not None:
        said += f", {rounding.plain(frame.change)} times the CPU time per request"
    classes = " ".join(part for part in (f"k-{frame.class_id}" if frame.class_id else "", shade(frame.change)) if part)
    return box(name, said, classes, frame.start * WIDTH, frame.width * WIDTH, y)


def box(name: str, said: str, classes: str, x: float, width: float, y: int) -> Markup:
    text = fitted(name, width)
    written = element("text", {"x": f"{x + PADDING:.1f}", "y": y + ROW - 5}, text) if text else Markup("")
    rect = element("rect", {"x": f"{x:.2f}", "y": y, "width": f"{max(width, 0.01):.2f}", "height": ROW - 1})
    return element("g", {"class": classes, "data-name": name}, element("title", {}, said), rect, written)


def fitted(name: str, width: float) -> str:
    """As much of a name as fits into a box; nothing where only a few characters do."""
    room = int((width - 2 * PADDING) / CHARACTER)
    if room < FEWEST:
        return ""
    return name if len(name) <= room else name[: room - 2] + ".."


def shade(change: float | None) -> str:
    """The mark for a change: up or down, 1 (slight) to 3 (strong); nothing for none."""
    if change is None or change <= 0:
        return ""
    size = abs(math.log(change))
    strength = 1 + sum(size >= math.log(step) for step in SHADES)
    return f"{'up' if change > 1 else 'down'}{strength}"


Z_BOX = 3.29
"""As for the changes of one profile's boxes (analysis/stacks.py)."""
ALL = "all of the CPU time"
NARROWEST = 0.0025
"""Boxes below a quarter of a per cent have no name and are left out."""
POINTS = (0.02, 0.1)
"""Differences below the first are the palest shade, from the second on the strongest."""
FIRST = 3


@dataclass(slots=True)
class Node:
    """A frame with its shares before and after, and what it called."""

    name: str
    before: float = 0.0
    after: float = 0.0
    below: dict[str, Node] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return (self.before + self.after) / 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Two CPU profiles of the target, at one place of the curve, in the first state and in the last."""

    before: Profile
    after: Profile


def pair_of(inv: Investigation) -> Difference | None:
    """The pair where the load is high; None where one of the two was not sampled."""
    if not inv.rounds:
        return None
    first = inv.rounds[0].treatment
    sampled = [one for one in profiles.of_kind(inv, "cpu") if one.flame and one.place in profiles.HIGH]
    before = next((one for one in sampled if one.treatment == first), None)
    after = next((one for one in reversed(sampled) if one.treatment != first), None)
    return Difference(before, after) if before is not None and after is not None else None


def merged(found: Difference) -> Node:
    """One tree of both profiles; its root is all of the CPU time."""
    root = Node(ALL, 1.0, 1.0)
    _grow(root, found.before.flame, "before")
    _grow(root, found.after.flame, "after")
    return root


def _grow(root: Node, boxes: tuple[FlameFrame, ...], side: str) -> None:
    """A box stands on the one row below that it lies within."""
    row: list[tuple[FlameFrame, Node]] = []
    previous: list[tuple[FlameFrame, Node]] = []
    depth = 0
    for frame in sorted(boxes, key=lambda one: (one.depth, one.start)):
        if frame.depth != depth:
            previous, row, depth = row, [], frame.depth
        parent = root if frame.depth == 0 else _within(previous, frame)
        if parent is not None:
            node = parent.below.setdefault(frame.name, Node(frame.name))
            setattr(node, side, getattr(node, side) + frame.width)
            row.append((frame, node))


def _within(row: list[tuple[FlameFrame, Node]], frame: FlameFrame) -> Node | None:
    middle = frame.start + frame.width / 2
    return next((node for below, node in row if below.start <= middle <= below.start + below.width), None)


def beyond_chance(node: Node, found: Difference) -> bool:
    """Whether the two shares differ by more than samples do by chance: the test of two proportions."""
    before, after = found.before.samples, found.after.samples
    pooled = (node.before * before + node.after * after) / (before + after)
    spread = math.sqrt(max(pooled * (1 - pooled), 0.0) * (1 / before + 1 / after))
    return abs(node.after - node.before) >= Z_BOX * spread > 0


def difference_shade(node: Node, found: Difference) -> str:
    """up or down, 1 (slight) to 3 (strong); nothing for no proven difference."""
    if not beyond_chance(node, found):
        return ""
    size = abs(node.after - node.before)
    return f"{'up' if node.after > node.before else 'down'}{1 + sum(size >= step for step in POINTS)}"


# --- in words ---------------------------------------------------------------------------------------------------------


def difference_sentence(inv: Investigation, found: Difference) -> str:
    """What a request cost before and after, and the functions whose share changed most."""
    before, after = profiles.demand_ms(found.before), profiles.demand_ms(found.after)
    cost = ""
    if before is not None and after is not None:
        cost = f"a request costs {profiles.cost(before)} of CPU before and {profiles.cost(after)} after"
    moved = [f"{name} {_shares(node)}" for name, node in changed(found)[:FIRST]]
    where = f"at {words.load(found.after.level, words.axis_unit(inv))}"
    told = [f"the {found.after.component}'s CPU time {where}, before against after the changes"]
    told += [cost] if cost else []
    told += [f"shares that changed most: {'; '.join(moved)}"] if moved else ["no share differs beyond chance"]
    return ". ".join(part[:1].upper() + part[1:] for part in told)


def changed(found: Difference) -> list[tuple[str, Node]]:
    """The innermost boxes whose share differs beyond chance, the largest difference first, each function once."""
    pending, leaves = list(merged(found).below.values()), dict[str, Node]()
    while pending:
        node = pending.pop()
        most = abs(node.after - node.before) / 2
        inner = [
            one for one in node.below.values() if beyond_chance(one, found) and abs(one.after - one.before) >= most
        ]
        if not inner and beyond_chance(node, found):
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


# --- the drawing ------------------------------------------------------------------------------------------------------


def difference_svg(inv: Investigation, found: Difference) -> Markup:
    """The graph, flame.WIDTH units wide, with a tooltip for each box."""
    root = merged(found)
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
    drawn = [_box(node, found, height - (depth + 2) * ROW, start) for node, depth, start in boxes]
    about = {
        "class": "flame difference",
        "viewBox": f"0 0 {WIDTH} {height}",
        "role": "img",
        "aria-label": f"Flame graph, before against after. {difference_sentence(inv, found)}.",
    }
    return element("svg", about, *drawn)


def _box(node: Node, found: Difference, y: int, start: float) -> Markup:
    bare = node.name.removesuffix("_[k]")
    name = f"{bare}{' (kernel)' if bare != node.name else ''}"
    said = ALL if node.name == ALL else f"{name}: {_shares(node)}"
    return box(bare, said, difference_shade(node, found), start * WIDTH, node.width * WIDTH, y)
