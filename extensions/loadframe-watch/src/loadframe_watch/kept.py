"""Checks of learned values stored as JSON, which raise ValueError; only the standard library."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")
MOST = 1e18
"""Larger numbers were never measured; their squares are finite."""


def number(value: Any, *, least: float = -MOST, most: float = MOST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{_shown(value)} is no number from {least:g} to {most:g}")
    return float(value)


def whole(value: Any, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise ValueError(f"{_shown(value)} is no whole number from {least} on")
    return value


def optional(value: Any, check: Callable[[Any], A]) -> A | None:
    return None if value is None else check(value)


def listed(value: Any, check: Callable[[Any], A]) -> list[A]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{_shown(value)} is no list")
    return [check(member) for member in value]


def pair(value: Any, first: Callable[[Any], A], second: Callable[[Any], B]) -> tuple[A, B]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{_shown(value)} is no pair")
    return first(value[0]), second(value[1])


def pairs(value: Any, first: Callable[[Any], A], second: Callable[[Any], B]) -> list[tuple[A, B]]:
    return listed(value, lambda member: pair(member, first, second))


def table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{_shown(value)} is no table")
    return value


def fields(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if set(table(value)) != set(names):
        raise ValueError(f"it has other fields than {', '.join(names)}")
    return table(value)


def rising(values: list[float]) -> list[float]:
    if any(second <= first for first, second in pairwise(values)):
        raise ValueError("they do not rise")
    return values


def _shown(value: Any) -> str:
    return f"{str(value)[:40]!r}"
