"""A setting that a study declares: what may be tried with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loadframe.model.target import Layer, SettingValue

SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Knob:
    """values: all that it may have, as declared; none where it may have any number from low to high. raises: the limit
    or the cause that a larger value lifts, "" where the study says none. gives_up: what may be lost with values other
    than the first, in words. price: what such a value costs besides. layer: "server" for a setting of a service,
    "application" for an option of the workload.
    """

    name: str
    values: tuple[SettingValue, ...] = ()
    low: float | None = None
    high: float | None = None
    raises: str = ""
    gives_up: str | None = None
    layer: Layer = "server"
    price: str = ""

    def above(self, now: SettingValue) -> tuple[SettingValue, ...]:
        """The values above this one that are declared, in rising order; of words those that stand behind it. None for a
        range."""
        have, sized = amount(now), [(amount(value), value) for value in self.values]
        if have is not None and all(size is not None for size, _ in sized):
            return tuple(value for size, value in sorted(sized, key=lambda row: row[0] or 0.0) if (size or 0.0) > have)
        return self.values[self.values.index(now) + 1 :] if now in self.values else ()


def amount(value: SettingValue) -> float | None:
    """How much a value is, of sizes ("512m") in bytes; None for a word and a switch."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = SIZE.fullmatch(value.strip())
    return None if found is None else float(found[1]) * SIZES[found[2].lower()]
