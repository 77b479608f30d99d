"""A load observed up to some size in, its rate and time at larger sizes out, or why they are unknown (docs/growth.md).
The law of `size_law` is drawn from, and the errors of such laws on real databases are added: MODEL_ERROR per doubling,
chosen on the loads of role `tuned` of benchmarks/growth_loads.toml and scored on the others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.model import Estimate, LoadInterval
from loadframe_watch.growth import size_law
from loadframe_watch.growth.size_law import HIGH, LOW, LoadWindow, SizeLaw

FURTHEST = 16.0
"""Times the largest observed size: no forecast was scored further."""
UNKNOWN = 4.0
"""The same, where neither an end of memory was seen nor its size is known, or too little beyond it was seen."""
WELL_BEYOND = 2.0
"""Half of the keys are outside of memory at twice its end: from there on the height of the climb is known."""
EARLY = 0.5
"""Memory was seen to end from this share of its bytes on: a part of it holds other things."""
LEAST_PART = 1 / 4
"""Share of an entry's bytes in use: the indexes of a wide table. Seen on a real load: 1 / 3.6."""
ALIKE = 2.0
"""Two ends of memory less than this factor apart are one."""
LEAST_CLIMB = 1.25
"""Flushing and checkpoints were seen to make a cost climb by less."""
MODEL_ERROR = {"in memory": 0.05, "beyond": 0.10}
"""Standard deviation of the logarithm, per doubling."""
TAILS = 4
"""Degrees of freedom of the t-distributed error."""
SEED = 20261126
ROUNDING = 1e-9
"""Rounding error of sizes that are sums of the entries of windows."""
NOT_SCORED = (
    "Not scored: no load was noted on its way from an empty database to that size, so that neither the rate there nor "
    "the time to it is known."
)
UNKNOWN_MEMORIES: Mapping[str, float] = {}
NEAR = 1.1
"""Windows within this factor of a size measure it."""


@dataclass(frozen=True, slots=True)
class MemoryEnd:
    """Where the database outgrows its memory. entries: by the cost, with its 90 % interval; by_reads: by its own
    counter of reads. times: the cost of an entry at the end over that before. confirmed: both rise, and their intervals
    meet or lie within a factor of 2. memory: the one whose size lies that near, or ""."""

    entries: LoadInterval
    by_reads: LoadInterval | None
    times: float
    confirmed: bool
    memory: str = ""


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """rate: entries/s at this size. seconds: to fill an empty database up to it."""

    entries: float
    rate: Estimate
    seconds: Estimate


@dataclass(frozen=True, slots=True)
class GrowthRefusal:
    entries: float
    because: str


@dataclass(frozen=True, slots=True)
class GrowthScored:
    entries: float
    rate: float
    rate_inside: bool
    seconds: float
    seconds_inside: bool


@dataclass(frozen=True, slots=True)
class GrowthForecast:
    """entries: the largest size seen. windows: their number. now: the rate there. end: of memory. walls: sizes at which
    other memories end, by name. refused: why nothing is forecast."""

    entries: float
    windows: int
    now: Estimate | None = None
    end: MemoryEnd | None = None
    walls: Mapping[str, float] = field(default_factory=dict)
    at: tuple[GrowthPoint, ...] = ()
    not_at: tuple[GrowthRefusal, ...] = ()
    scored: tuple[GrowthScored, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str | None = None


def forecast(
    windows: Sequence[LoadWindow], at: Sequence[float] = (), memories: Mapping[str, float] = UNKNOWN_MEMORIES
) -> GrowthForecast:
    """The forecast for the sizes `at` (entries; by default 2 and 4 times the largest observed). memories: that the
    database may use (a buffer pool, the cage), in the entries that fill each, by name; reads count beyond the smallest;
    without any, no end of memory is forecast. Seeded: the same windows give the same forecast. ValueError for
    impossible windows, and for sizes not finite and above zero."""
    if not all(math.isfinite(size) and size > 0 for size in at):
        raise ValueError(f"sizes to forecast must be finite and above zero, got {list(at)}")
    last = max((window.after for window in windows), default=0.0)
    foretold = GrowthForecast(last, len(windows))
    law = size_law.fit(windows)
    if law is None:
        return replace(
            foretold,
            refused=f"{len(size_law.joined(windows))} windows that span an eighth of a doubling of the entries each; "
            f"{size_law.FEWEST} are needed. Load more entries, or note the time more often.",
        )
    if _is_unbounded(law, last):
        return replace(foretold, refused=_too_noisy(law))
    reads = size_law.fit(windows, of_reads=True)
    end = _memory_end(law, reads, memories)
    reads_end = None if reads is None else reads.end
    walls = _walls(memories, last, end, reads_end)
    points, refused = [], []
    for size in sorted(set(at)) or [2 * last, 4 * last]:
        why = _refused(size, last, end, walls, is_known=bool(memories))
        why = why or (_too_noisy(law) if _is_unbounded(law, size) else None)
        if why is None:
            points.append(_point(law, windows, size))
        else:
            refused.append(GrowthRefusal(size, why))
    now = _estimate(_rates(law, last))
    notes = tuple(_notes(windows, end, reads_end))
    return replace(foretold, now=now, end=end, walls=walls, at=tuple(points), not_at=tuple(refused), notes=notes)


def score(forecast: GrowthForecast, windows: Sequence[LoadWindow]) -> GrowthForecast:
    """The forecast with the results of all windows, later ones included, at the sizes that they reach: the mean time of
    repeated loads. Unchanged for loads that do not begin with an empty database, or have a gap; where they would reach
    a size, a note explains why it is not scored."""
    reached = max((window.after for window in windows), default=0.0)
    within = [point for point in forecast.at if point.entries <= reached * (1 + ROUNDING)]
    loads = _loads(windows)
    if loads is None:
        more = any(point.entries > forecast.entries for point in within)
        return replace(forecast, notes=(*forecast.notes, NOT_SCORED)) if more else forecast
    scored = []
    for point in within:
        size = point.entries
        there = _reaching(loads, size)
        near = [window for load in there for window in _near(load, size)]
        rate = sum(window.after - window.before for window in near) / sum(window.seconds for window in near)
        seconds = fmean(_seconds_to(load, size) for load in there)
        rate_inside = point.rate.low <= rate <= point.rate.high
        seconds_inside = point.seconds.low <= seconds <= point.seconds.high
        scored.append(GrowthScored(size, rate, rate_inside, seconds, seconds_inside))
    return replace(forecast, scored=tuple(scored))


def _near(load: Sequence[LoadWindow], size: float) -> list[LoadWindow]:
    near = [window for window in load if size / NEAR <= window.before and window.after <= size * NEAR]
    return near or [window for window in load if window.before < size <= window.after * (1 + ROUNDING)]


def _loads(windows: Sequence[LoadWindow]) -> list[list[LoadWindow]] | None:
    """In order; None where a load does not begin with an empty database or has a gap, and where only one's total is
    known, which has no rate at a size."""
    loads: list[list[LoadWindow]] = []
    ends: dict[float, list[list[LoadWindow]]] = {}
    for window in sorted(windows, key=lambda window: (window.before, window.after)):
        if window.before == 0:
            load: list[LoadWindow] = []
            loads.append(load)
        elif going := ends.get(window.before):
            load = going.pop()
        else:
            return None
        load.append(window)
        ends.setdefault(window.after, []).append(load)
    return loads if loads and all(len(load) > 1 for load in loads) else None


def _is_unbounded(law: SizeLaw, size: float) -> bool:
    """Whether an entry may cost nothing at this size: its rate then has no highest value."""
    return float(np.quantile(law.costs(size), LOW / 2)) <= 0


def _too_noisy(law: SizeLaw) -> str:
    return (
        f"The times of the windows scatter by {100 * law.noise:.0f} % around any law, so that an entry may cost "
        "nothing, as far as they show. Load again on a quiet machine, or load more."
    )


def _memory_end(law: SizeLaw, reads: SizeLaw | None, sizes: Mapping[str, float]) -> MemoryEnd | None:
    if (entries := law.end) is None:
        return None
    times = float(np.median(law.costs(law.last)) / np.median(law.costs(min(entries.low, law.last))))
    if times < LEAST_CLIMB:
        return None
    by_reads = None if reads is None else reads.end
    near = {name: abs(math.log(size / entries.load)) for name, size in sizes.items()}
    memory = min((name for name in near if near[name] < math.log(ALIKE)), key=lambda name: near[name], default="")
    confirmed = by_reads is not None and (entries.meets(by_reads) or 1 / ALIKE < entries.load / by_reads.load < ALIKE)
    return MemoryEnd(entries, by_reads, times, confirmed, memory)


def _walls(
    sizes: Mapping[str, float], last: float, end: MemoryEnd | None, reads: LoadInterval | None
) -> dict[str, float]:
    """Of memories not left yet. reads: where the counted reads begin to rise. They go beyond the database's own memory,
    the smallest: where they confirm the end of the cost, or cost nothing, that memory is left, but not before its bytes
    are written. Where neither end was seen, only a part of an entry's bytes may be in use, and memory hold more of
    them."""
    own = min(sizes.values(), default=0.0) if reads is not None and (end is None or end.confirmed) else 0.0
    left = max(own, 0.0 if end is None else end.entries.load * ALIKE)
    seen = WELL_BEYOND if end is not None or reads is not None else 1 / LEAST_PART
    return {name: size for name, size in sizes.items() if last < size or (last < seen * size and size > left)}


def _refused(
    size: float, last: float, end: MemoryEnd | None, walls: Mapping[str, float], *, is_known: bool
) -> str | None:
    if size <= last:
        return None
    for name, wall in sorted(walls.items(), key=lambda item: item[1]):
        if size > EARLY * wall and last < WELL_BEYOND * wall:
            return f"Memory ({name}) ends at about {wall:,.0f} entries; nothing beyond was seen."
        if size > EARLY * wall:
            return (
                f"Memory ({name}) holds {wall:,.0f} whole entries, and no end of it was seen up to {last:,.0f}: what is"
                " in use of an entry may be a part of it, and end later. "
                f"Load at least {wall / LEAST_PART:,.0f}."
            )
    times = size / last
    if times > FURTHEST:
        return (
            f"{times:,.0f} times the {last:,.0f} entries that were seen; "
            f"forecasts were scored up to {FURTHEST:g} times."
        )
    if times <= UNKNOWN:
        return None
    if end is not None and last < WELL_BEYOND * end.entries.load:
        return (
            f"Memory ends at about {end.entries.load:,.0f} entries, and only {last:,.0f} were seen: too little beyond "
            f"it to tell more than {UNKNOWN:g} times as many. Load at least {WELL_BEYOND * end.entries.load:,.0f}."
        )
    if end is None and not is_known:
        return (
            f"No end of memory was seen up to {last:,.0f} entries, and its size is not known: no more than "
            f"{UNKNOWN:g} times as many are forecast. Give the size of the memory, or load more."
        )
    return None


def _point(law: SizeLaw, windows: Sequence[LoadWindow], size: float) -> GrowthPoint:
    random = np.random.default_rng(SEED)
    off = random.standard_t(TAILS, size_law.DRAWS) / math.sqrt(TAILS / (TAILS - 2))
    beyond = max(0.0, math.log2(size / law.last))
    spread = MODEL_ERROR["beyond" if law.left_memory > 0.5 else "in memory"] * beyond
    rates = _rates(law, size) * np.exp(off * math.hypot(spread, law.noise))
    there = _reaching(_loads(windows) or [], law.last)  # observed all the way from an empty database
    seen = there and size > law.last
    seconds = law.seconds(law.last if seen else 0.0, size) * np.exp(-off * math.hypot(spread, law.noise / 2))
    if seen:
        seconds = fmean(_seconds_to(load, law.last) for load in there) + seconds
    return GrowthPoint(size, _estimate(rates), _estimate(seconds))


def _rates(law: SizeLaw, size: float) -> Floats:
    """The few draws with a cost of nothing (`_is_unbounded`) are beyond every end."""
    costs = law.costs(size)
    return np.asarray(1 / np.maximum(costs, 1e-6 * float(np.median(costs))))


def _reaching(loads: Sequence[Sequence[LoadWindow]], size: float) -> list[Sequence[LoadWindow]]:
    return [load for load in loads if size <= load[-1].after * (1 + ROUNDING)]


def _seconds_to(load: Sequence[LoadWindow], size: float) -> float:
    return sum(
        window.seconds * min(max((size - window.before) / (window.after - window.before), 0.0), 1.0) for window in load
    )


def _estimate(draws: Floats) -> Estimate:
    low, middle, high = (float(np.quantile(draws, p)) for p in (LOW, 0.5, HIGH))
    return Estimate(middle, low, high)


def _notes(windows: Sequence[LoadWindow], end: MemoryEnd | None, reads_end: LoadInterval | None) -> list[str]:
    if end is None and reads_end is not None:
        return [
            f"Reads from beyond memory rise from {reads_end.load:,.0f} entries on ({reads_end.low:,.0f} to "
            f"{reads_end.high:,.0f}), and the cost does not climb there by more than it grows with each doubling: "
            "these reads are cheap, as from a page cache. Where they come from a disk is not foreseen."
        ]
    if end is None:
        return ["No end of memory was seen: the forecast holds as long as the database stays in memory."]
    if end.confirmed:
        return []
    if end.by_reads is not None and not end.memory:
        return ["The cost climbs at another size than the reads from beyond memory: a second cause is likely."]
    if any(window.reads is None for window in windows):
        return ["Reads from beyond memory were not counted: that memory ended is suspected from the cost alone."]
    if end.memory:
        return [f"The cost climbs where the memory ({end.memory}) is full, but the counted reads do not rise there."]
    return [
        "The cost climbs, but no reads from beyond memory rise with it: the cause is not the memory that is counted."
    ]
