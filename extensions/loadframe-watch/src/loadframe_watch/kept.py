"""Checks of learned values that were stored as JSON: each returns the value, or raises ValueError. Only the standard
library: the lasting process of a watch imports it."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")
MOST = 1e18
"""Larger numbers were never measured; their squares are still finite."""


def number(value: Any, *, least: float = -MOST, most: float = MOST) -> float:
    """A number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{_shown(value)} is no number from {least:g} to {most:g}")
    return float(value)


def whole(value: Any, *, least: int = 0) -> int:
    """A whole number, not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise ValueError(f"{_shown(value)} is no whole number from {least} on")
    return value


def optional(value: Any, check: Callable[[Any], A]) -> A | None:
    """None, or the result of `check`."""
    return None if value is None else check(value)


def listed(value: Any, check: Callable[[Any], A]) -> list[A]:
    """A list, with `check` applied to its members."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{_shown(value)} is no list")
    return [check(member) for member in value]


def pair(value: Any, first: Callable[[Any], A], second: Callable[[Any], B]) -> tuple[A, B]:
    """A list of two."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{_shown(value)} is no pair")
    return first(value[0]), second(value[1])


def pairs(value: Any, first: Callable[[Any], A], second: Callable[[Any], B]) -> list[tuple[A, B]]:
    """A list of lists of two."""
    return listed(value, lambda member: pair(member, first, second))


def table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{_shown(value)} is no table")
    return value


def fields(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """A table with exactly these fields."""
    if set(table(value)) != set(names):
        raise ValueError(f"it has other fields than {', '.join(names)}")
    return table(value)


def rising(values: list[float]) -> list[float]:
    """The values, if strictly ascending."""
    if any(second <= first for first, second in pairwise(values)):
        raise ValueError("they do not rise")
    return values


def _shown(value: Any) -> str:
    return f"{str(value)[:40]!r}"
