"""Student's t, without the second that importing scipy.stats takes at the start of every command; scipy.special, a
third of a second, is imported where it is needed first."""

from __future__ import annotations

from typing import Any


def quantile(probability: Any, freedom: Any) -> Any:
    """The value that a t-distributed one with `freedom` degrees of freedom stays below with `probability`; for numbers
    or arrays that broadcast together, as one or the other."""
    from scipy.special import stdtrit

    return stdtrit(freedom, probability)
