"""What the target's threads do over the load: a band for each wait class, and a line for the CPUs they may use."""

import math
from collections.abc import Mapping

from loadframe.model import Investigation
from loadframe.reporting import facts, plots, rounding, words
from loadframe.reporting.vega import INK, Plot, Size, ValueAxis

BANDS: Mapping[str, tuple[str, str, str]] = {
    "running": ("on a CPU", "#0072B2", "run"),
    "runnable": ("no CPU free", "#D55E00", "wait for a CPU"),
    "disk": ("disk", "#7B3F00", "wait for a disk"),
    "network": ("a peer", "#009E73", "wait for a peer"),
    "socket": ("a socket", "#66C2A5", "wait for a socket"),
    "futex": ("lock or pool", "#CC79A7", "are at a lock or in an idle pool"),
    "sleeping": ("sleeping", "#E69F00", "sleep for a time"),
    "other": ("something else", "#8A8A8A", "wait for something else"),
    "unknown": ("not known", "#C4C9CF", "wait for what the kernel does not tell"),
    "idle": ("next request", "#DCE6EE", "wait for requests"),
}
"""Class -> label of the band, colour, and what a thread in it does; from the bottom up."""
METRICS = (*(f"target.waits.{name}" for name in BANDS), "target.cpu.limit")
SHOWN_FROM = 0.04
IDLE_HIDES = 3.0
"""Threads that wait for the next request are not drawn if they are this many times all others."""
CPUS_SHOWN_BELOW = 3.0
"""A line of CPUs this many times above all threads would flatten the bands."""


def rounds(inv: Investigation) -> list[tuple[str, facts.Series]]:
    return plots.seen(inv, "waits", _levels)


def title(series: facts.Series, unit: str) -> str:
    levels = _levels(series)
    load, where = plots.highest(series, levels, unit)
    counts = levels[load]
    many = sorted(((count, name) for name, count in counts.items() if count >= 0.5 and name != "idle"), reverse=True)
    most = words.and_list([f"{_threads(count)} {BANDS[name][2]}" for count, name in many[:2]])
    threads = f"{_threads(sum(counts.values()))} threads of the target"
    return f"{where}, of {threads} {most}" if most else f"{where}, {threads} wait for requests"


def _threads(count: float) -> str:
    """An average of a few dozen samples has no third digit."""
    return rounding.plain(round(count, 1) if count >= 0.1 else count)


def note(series: facts.Series) -> str:
    meaning = "Threads on average, by what they wait for. An idle pool and a lock look alike from outside."
    if idle := _hidden_idle(_levels(series)):
        meaning += f" Not drawn: up to {rounding.plain(idle)} threads that wait for the next request."
    return meaning


def chart(inv: Investigation, series: facts.Series, size: Size) -> Plot | None:
    levels = _levels(series)
    if len(levels) < 2:
        return None
    names = [name for name in BANDS if any(counts[name] for counts in levels.values())]
    if _hidden_idle(levels):
        names.remove("idle")
    top = max(sum(counts[name] for name in names) for counts in levels.values()) or 1.0
    limits = (row.get("target.cpu.limit", math.nan) for row in series.round.footprint)
    cpus = max(filter(math.isfinite, limits), default=None)
    high = max(top, cpus) if cpus is not None and cpus < CPUS_SHOWN_BELOW * top else top
    plot = Plot(size, plots.load_axis(inv).channel(), ValueAxis("threads", 0.0, high * 1.12))
    floor = dict.fromkeys(levels, 0.0)
    for name in names:
        label, colour, _ = BANDS[name]
        rows = [
            {"load": load, "low": floor[load], "value": floor[load] + counts[name]}
            for load, counts in sorted(levels.items())
        ]
        plot.draw("area", rows, colour, "low", "value", opacity=0.85)
        low, value = rows[-1]["low"], rows[-1]["value"]
        if value - low >= SHOWN_FROM * high:
            plot.end(label, colour if name != "idle" else INK, {**rows[-1], "value": (low + value) / 2})
        floor = {row["load"]: row["value"] for row in rows}
    if cpus is not None and cpus <= high:
        plot.ceiling(cpus, f"{rounding.plain(cpus)} CPUs", INK, min(levels))
    return plot


def _levels(series: facts.Series) -> dict[float, dict[str, float]]:
    levels: dict[float, dict[str, float]] = {}
    for level, rows in facts.by_level(series.round).items():
        means = facts.means(rows)
        if means.keys() >= set(METRICS[:-1]):
            levels[level] = {name: means[f"target.waits.{name}"] for name in BANDS}
    return levels


def _hidden_idle(levels: Mapping[float, Mapping[str, float]]) -> float:
    """The most threads that wait for the next request where they are not drawn, else 0."""
    idle = max(counts["idle"] for counts in levels.values())
    others = max(sum(counts.values()) - counts["idle"] for counts in levels.values())
    return idle if idle > IDLE_HIDES * others else 0.0
