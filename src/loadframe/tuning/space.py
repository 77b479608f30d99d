"""What may be searched: settings with a few values each, as what lies between two neighbours drowns in the noise of a
measurement of seconds, and what must fit into memory together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loadframe.model import SettingValue

STEPS = 7
"""Values of a range: from 128 MiB to 8 GiB each is twice the one before."""

Point = tuple[int, ...]
"""A state of the settings: for each dimension the position of its value."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A setting that may be varied. values: each once, rising where they are ordered. start: the position of the value
    that it has now. ordered: False for words without an order. bytes_each: memory that each unit of a value takes."""

    name: str
    values: tuple[SettingValue, ...]
    start: int
    ordered: bool = True
    bytes_each: float = 0.0

    def position(self, value: SettingValue) -> int:
        """Of the value that is nearest, in logarithms where all are positive numbers; of a word, of itself."""
        if not self.ordered or value in self.values:
            return self.values.index(value)
        numbers = [float(each) for each in self.values]
        scale = math.log if min(*numbers, float(value)) > 0 else float
        return min(range(len(numbers)), key=lambda place: abs(scale(numbers[place]) - scale(float(value))))


@dataclass(frozen=True, slots=True)
class Space:
    """All settings that may be varied, the most promising first. memory_bytes: what they may take together."""

    dimensions: tuple[Dimension, ...]
    memory_bytes: float = math.inf
    start: Point = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(each.start for each in self.dimensions))

    def fits(self, point: Point) -> bool:
        """Whether what the settings take fits into memory; what they take at the start does by definition."""
        return point == self.start or self.takes(point) <= max(self.memory_bytes, self.takes(self.start))

    def takes(self, point: Point) -> float:
        """Bytes of memory that the settings take."""
        return math.fsum(
            each.bytes_each * float(each.values[place])
            for each, place in zip(self.dimensions, point, strict=True)
            if each.bytes_each
        )

    def settings(self, point: Point) -> dict[str, SettingValue]:
        """Every setting with its value."""
        return {each.name: each.values[place] for each, place in zip(self.dimensions, point, strict=True)}

    def changes(self, point: Point) -> dict[str, SettingValue]:
        """The settings that differ from the start."""
        return {
            each.name: each.values[place]
            for each, place in zip(self.dimensions, point, strict=True)
            if place != each.start
        }

    def point(self, changes: Mapping[str, SettingValue]) -> Point:
        """The state with these changes to the start; of values between two, the nearest; of settings that are not
        searched, nothing."""
        return tuple(
            each.position(changes[each.name]) if each.name in changes else each.start for each in self.dimensions
        )


def spread(low: float, high: float, *, whole: bool = True, steps: int = STEPS) -> tuple[float, ...]:
    """Values from low to high in equal ratios (in equal steps from 0 or below), in two digits; whole numbers of MiB or
    KiB where low is one."""
    if low <= 0:
        values = [low + (high - low) * step / (steps - 1) for step in range(steps)]
    else:
        values = [low * (high / low) ** (step / (steps - 1)) for step in range(steps)]
    unit = next((each for each in (1 << 20, 1 << 10) if low >= each and low % each == 0), 1)
    inner = [unit * _two_digits(value / unit) if whole else value for value in values[1:-1]]
    kept = sorted({low, high, *(value for value in inner if low < value < high)})
    return tuple(int(value) if whole else value for value in kept)


def _two_digits(value: float) -> float:
    """Powers of two stay what they are."""
    nearest = 2 ** round(math.log2(value)) if value >= 1 else 0
    if abs(nearest - value) <= 0.01 * value:
        return nearest
    return round(value, -max(0, math.floor(math.log10(value)) - 1) if value >= 1 else 0)


def dimension(
    name: str, values: Sequence[SettingValue], start: SettingValue, *, ordered: bool, bytes_each: float = 0.0
) -> Dimension:
    """A setting with these values and the one that it has now. ValueError where there is nothing to vary."""
    every = {*values, start}
    chosen = tuple(sorted(every, key=float)) if ordered else tuple(dict.fromkeys([start, *values]))
    if len(chosen) < 2:
        raise ValueError(f"{name} has one value, {start!r}")
    return Dimension(name, chosen, chosen.index(start), ordered, bytes_each)
