"""The table of the USE method (Gregg, Thinking Methodically about Performance, CACM 56(2), 2013), before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadframe.model import Investigation
from loadframe.reporting import document as doc
from loadframe.reporting import facts, finding_words, plots, waits, words
from loadframe.units import show_metric


@dataclass(frozen=True, slots=True)
class Resource:
    """A row. use, saturation, errors: metrics, of each the first that was measured is shown; () where nothing counts
    it. high: the use, by the first of them, from which on it is worth a word."""

    name: str
    use: tuple[str, ...]
    saturation: tuple[str, ...]
    errors: tuple[str, ...]
    high: float = 0.9


RESOURCES = (
    Resource(
        "CPUs of the machine",
        ("system.cpu.utilization",),
        ("system.pressure.cpu.some", "system.processes.running"),
        ("system.cpu.throttles",),
        0.95,
    ),
    Resource("CPUs of the target", ("target.cpu.utilization", "target.cpu.cores"), ("target.cpu.run_delay",), (), 0.95),
    Resource("Busiest thread of the target", ("target.cpu.hottest_thread",), (), (), 0.95),
    Resource(
        "Memory of the machine",
        ("system.memory.utilization",),
        ("system.pressure.memory.some", "system.paging.direct_stalls"),
        (),
    ),
    Resource(
        "Memory of the target",
        ("target.memory.rss",),
        ("target.paging.major_faults",),
        ("target.cage.memory.oom_kills",),
        math.inf,
    ),
    Resource("Busiest disk", ("system.disk.busy",), ("system.disk.queue", "system.pressure.io.some"), (), 0.7),
    Resource("Open files of the target", ("target.open_files.share", "target.open_files"), (), (), 0.8),
    Resource(
        "Connections to the target",
        ("target.accept_queue.share",),
        ("target.accept_queue.waiting",),
        ("system.network.listen_overflows", "system.network.listen_drops"),
        0.8,
    ),
    Resource("TCP of the machine", ("system.network.tcp_memory",), (), ("system.network.retransmits",), math.inf),
    Resource("Lock that one request holds", ("workload.lock_held",), ("workload.lock_waiting",), ()),
    Resource(
        "Load driver",
        ("driver.cpu.utilization", "driver.cpu.cores"),
        ("driver.cpu.run_delay",),
        ("workload.errors",),
    ),
)
COLUMNS = ("Use", "Saturation", "Errors")
NOT_COUNTED = "not counted"


def metrics() -> frozenset[str]:
    """What the page shows of every run, where it was measured, besides what its evidence names."""
    of_resources = (name for one in RESOURCES for name in (*one.use, *one.saturation, *one.errors))
    return frozenset((*of_resources, *waits.METRICS))


def level(inv: Investigation) -> float | None:
    """The highest level that every shown state was measured at; None for none."""
    levels = [set(facts.by_level(each.round)) for each in plots.measured_ends(inv)]
    return max(set.intersection(*levels), default=None) if levels else None


def heading(inv: Investigation) -> str:
    """ "At 320 active jobs, before -> after the changes"."""
    at = level(inv)
    if at is None:
        return ""
    sides = ", before \u2192 after the changes" if len(plots.measured_ends(inv)) > 1 else ""
    where = f"At {words.load(at, words.axis_unit(inv))}{sides}"
    return f"{where}. Averages of the steps there. Resources whose numbers are all 0 are left out."


def table(inv: Investigation, to: str = "") -> tuple[doc.Cells, ...]:
    """The resources of which anything was measured and is not zero, at the highest level. to: where its steps are."""
    at = level(inv)
    if at is None:
        return ()
    states = [facts.means(facts.by_level(each.round)[at]) for each in plots.measured_ends(inv)]
    rows: list[doc.Cells] = []
    for one in RESOURCES:
        quantities = ((one.use, one.high), (one.saturation, math.inf), (one.errors, math.inf))
        if any(state.get(name) for names, _ in quantities for name in _first(names, states) for state in states):
            rows.append((one.name, *(_cell(names, states, high, to) for names, high in quantities)))
    return tuple(rows)


def _first(names: Sequence[str], states: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    return tuple(name for name in names if any(name in state for state in states))[:1]


def _cell(names: Sequence[str], states: Sequence[Mapping[str, float]], high: float, to: str) -> doc.Words:
    """The values in each state, and the metric in words; high where a value is worth a word."""
    for name in _first(names, states):
        shown = [
            # seconds of waiting in each second are the threads that wait, on average
            show_metric(name, state[name]).replace(" s/s", " threads") if name in state else "not measured"
            for state in states
        ]
        loud = name == names[0] and any(state.get(name, 0.0) >= high for state in states)
        what = words.sentence(finding_words.metric_words(name))[:-1]
        return doc.Span(" \u2192 ".join(shown), "high" if loud else "", to), doc.Span(what, "below")
    return doc.Span(NOT_COUNTED, "note")
