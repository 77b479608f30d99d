"""Which leaks a watch cannot have told yet, and from when on it can. Light: the lasting process imports it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from loadframe.analysis.saturation import FEWEST_ROWS, FORESIGHT_OF_GROWTH, LONGEST_S, WORTH, Leak

SLOWER = "slower ones"
SLOW_S = LONGEST_S / FORESIGHT_OF_GROWTH
"""Watched so long, all leaks that end within LONGEST_S are judged."""


def unjudged(
    name: str,
    times_s: Sequence[float],
    use: float,
    ceiling: float | None,
    row_s: float,
    waits: tuple[Leak, float] | None,
) -> dict[str, Any] | None:
    """Of one metric, JSON-ready: `why`, `from_s` (of the clock of times_s, those of its rows; None: it will not be),
    `per_hour` (growth from which on it is judged by now; None: none is). use: now. waits: a leak that is seen and not
    told yet, and from when on. None where all is judged."""
    if ceiling is None:
        return {"metric": name, "why": "its end is not known", "from_s": None, "per_hour": None}
    if len(times_s) < FEWEST_ROWS:
        first_s = times_s[0] if times_s else None
        from_s = None if first_s is None else first_s + FEWEST_ROWS * row_s
        return {"metric": name, "why": "a few minutes are too few", "from_s": from_s, "per_hour": None}
    if waits is not None:
        grows, from_s = waits
        return {"metric": name, "why": "files may be rotated", "from_s": from_s,
                "per_hour": grows.slope * 3600}  # fmt: skip
    watched_s = times_s[-1] - times_s[0]
    if not 0 < watched_s < SLOW_S:
        return None
    slowest = max(WORTH * use / watched_s, (ceiling - use) / (FORESIGHT_OF_GROWTH * watched_s))
    return {"metric": name, "why": SLOWER, "from_s": times_s[0] + SLOW_S, "per_hour": slowest * 3600}


def in_words(found: Iterable[Mapping[str, Any]], names: Mapping[str, str], amount: Callable[[str, float], str]) -> str:
    """One sentence, or nothing. amount: words of a metric's value, by name and value; from_s of the wall clock."""
    said: dict[str, list[str]] = {}
    for one in found:
        name, per_hour = names[one["metric"]], one["per_hour"]
        if one["why"] == SLOWER:
            name = f"{name} by less than {amount(one['metric'], per_hour)} an hour"
        elif per_hour is not None:
            name = f"{name}, which grows by {amount(one['metric'], per_hour)} an hour and may be a log"
        when = "" if one["from_s"] is None else f"from {_moment(one['from_s'])} on"
        said.setdefault(when or f"no time can be named: {one['why']}", []).append(name)
    each = "; ".join(f"{', '.join(which)} ({when})" for when, which in said.items())
    return f"Leaks that cannot be judged yet: {each}" if each else ""


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(min(at_s, 4e9)))
