"""What a metric follows from, and what must agree with it."""

from collections.abc import Callable
from dataclasses import dataclass

SILENT = 0.1
"""A counter of the same events that counts less than a tenth is blind. Less can be right: data written is dropped
before it reaches a disk, a server counts statements in its own way."""
PARTIAL = 0.5
"""CPU time of a thread, its process and its group comes from one clock: less than half of it is incomplete."""


@dataclass(frozen=True, slots=True)
class Derived:
    """metric follows from `needs`, given to `compute` in that order. either: those that are there suffice."""

    metric: str
    needs: tuple[str, ...]
    compute: Callable[..., float]
    either: bool = False


def derived(metric: str, needs: str, compute: Callable[..., float]) -> Derived:
    """A metric KIND.NAME that follows from others of its kind; needs: their names without it, separated by blanks."""
    kind = metric.partition(".")[0]
    return Derived(metric, tuple(f"{kind}.{name}" for name in needs.split()), compute)


@dataclass(frozen=True, slots=True)
class Agreement:
    """counter: metrics whose sum must be at least `share` of the smallest of `witnesses`, each a sum of metrics;
    checked where that is `floor` or more and all were measured. also: what is blind with it; a name that ends with a
    dot stands for all rates that begin so. whole: not checked of a target in pieces."""

    counter: tuple[str, ...]
    witnesses: tuple[tuple[str, ...], ...]
    share: float
    floor: float
    why: str
    also: tuple[str, ...] = ()
    whole: bool = False


def requests(*counter: str, also: tuple[str, ...]) -> Agreement:
    """Requests, as the server counts them and as the driver does."""
    why = "the server asked is not the one that is loaded, or reports its counters late"
    return Agreement(counter, (("throughput",),), SILENT, 10.0, why, also)


def connections(gauge: str) -> Agreement:
    """Each request in progress in a closed loop has a connection. Of shards only the fullest one's are counted. Web
    servers and caches may keep nearly all connections waiting: these are not checked."""
    why = "the server asked is not the one that is loaded"
    return Agreement((gauge,), (("workload.concurrency",),), PARTIAL, 4.0, why, whole=True)


def ratio(use: float, ceiling: float) -> float:
    """The use over its ceiling: 0 without a ceiling; above 1 beyond it."""
    return use / ceiling if ceiling > 0 else 0.0


def share(part: float, whole: float) -> float:
    """A part of a whole: 0 where nothing happened."""
    return min(1.0, part / whole) if whole > 0 else 0.0


def of_both(part: float, other: float) -> float:
    """The share that the first of two has of both."""
    return share(part, part + other)


def difference(more: float, less: float) -> float:
    """0 at least: two readings are never of the same moment."""
    return max(0.0, more - less)
