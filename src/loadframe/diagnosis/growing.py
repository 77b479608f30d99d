"""Costs that grow with the requests served, or with time: never a limit of the load."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from loadframe.analysis.growth import LEAST, Growth, Of, growth
from loadframe.model import CLIENT_AXES, OPEN_LOOP_AXES, Evidence, Finding, Step, Steps, by_level
from loadframe.units import show

REQUESTS, TIME = "growth.requests", "growth.time"
GROWTH = (REQUESTS, TIME)
GROWS = "workload.cost_growth"
SCORE = 0.9
"""Before any signature: a curve whose levels had different costs says little of its bend."""
SERVED = 0.95
"""Share of a rate below which the backlog makes response times grow by itself."""
NAMED = ("the number of requests served so far", "time")
LOOK = (
    " for what is kept of each request and searched by the next ones: a list, a log, a table without an index, a cache "
    "without an end.",
    " for what grows by itself: a timer that adds up, data that a feed brings, memory that leaks.",
)
COSTS: tuple[Of, ...] = ("response", "cpu")
WHAT: Mapping[Of, str] = {"response": "response time", "cpu": "CPU time of a request"}
GREW: Mapping[Of, tuple[str, str]] = {
    "response": ("costs {:.2g} times as much", "longer"),
    "cpu": ("takes {:.2g} times as much CPU time", "more CPU time"),
}
PER = {"requests": 1000.0, "time": 60.0}


def growing(axis: str, steps: Steps) -> Finding | None:
    kept, trend = _judged(axis, steps)
    return None if trend is None else _finding(trend, kept)


def grown(axis: str, steps: Steps) -> Growth | None:
    """The growth proved in a state's steps, in order. Only steps before any of another state count: a restart resets
    it."""
    return _judged(axis, steps)[1]


def cost_ms(step: Step, of: Of) -> float:
    """0 where not known. CPU time: of the target's processes."""
    if of == "response":
        return step.latency.mean_ms
    cores = step.metrics.get("target.cpu.cores", 0.0)
    return 1000 * cores / step.throughput if step.throughput > 0 else 0.0


def _judged(axis: str, steps: Steps) -> tuple[list[Step], Growth | None]:
    if axis not in CLIENT_AXES | OPEN_LOOP_AXES:
        return [], None
    ordered = sorted(steps, key=lambda step: step.number)
    # Up to the first step of another state, or that does not count.
    ordered = [step for index, step in enumerate(ordered) if step.number == ordered[0].number + index]
    done, served_by = 0.0, list[float]()  # before the middle of each step's window, warm-ups included
    for step in ordered:
        middle_s = (step.window_start_s + step.window_end_s) / 2 - step.started_s
        served_by.append(done + step.throughput * middle_s)
        done += step.throughput * (step.ended_s - step.started_s)
    rows = [  # without a backlog: else a response time is no cost
        (step, served)
        for step, served in zip(ordered, served_by, strict=True)
        if step.latency.mean_ms > 0 and (axis in CLIENT_AXES or step.throughput >= SERVED * step.level)
    ]
    often = Counter(step.level for step, _ in rows)
    repeated = [(step, served) for step, served in rows if often[step.level] >= 2]
    kept, served = [step for step, _ in repeated], [served for _, served in repeated]
    middles = [(step.window_start_s + step.window_end_s) / 2 - rows[0][0].started_s for step in kept]
    for of in COSTS:
        costs = [cost_ms(step, of) for step in kept]
        trend = growth([step.level for step in kept], costs, served, middles) if all(costs) else None
        if trend is not None:
            return kept, replace(trend, of=of)
    return kept, None


def _finding(growth: Growth, steps: Steps) -> Finding:
    requests = growth.by == "requests"
    unit = "1,000 requests" if requests else "minute"
    per = (growth.times - 1) / max((growth.last - growth.first) / PER[growth.by], 1e-9)
    where = f"over {len(steps)} steps, levels in random order"
    span = (
        f"from {show(growth.first, 'count')} to {show(growth.last, 'count')} requests served"
        if requests
        else f"from {show(growth.first, 's')} to {show(growth.last, 's')} after the first step began"
    )
    what, other = NAMED if requests else NAMED[::-1]
    if not growth.distinct:
        what = f"either {what} or {other}"
    apart = "" if growth.distinct else " These steps cannot tell the two apart."
    look = " Or look".join(LOOK if not growth.distinct else LOOK[:1] if requests else LOOK[1:])
    costs, took = GREW[growth.of]
    return Finding(
        id=REQUESTS if requests else TIME,
        title=f"a request {costs.format(growth.times)} at the end as at first, and its cost follows {what}, "
        "not the load",
        reached_at=None,
        evidence=(
            Evidence(GROWS, growth.times, ">=", LEAST, where, f"{WHAT[growth.of]} at equal levels, last over first"),
            *_each_level(steps),
        ),
        score=SCORE,
        explanation=f"At every level requests took {took} the later they were measured, {span}: each {unit} added "
        f"{_share(per)} the cost of a request at first.{apart} This is no limit of the load: under any load the cost "
        f"goes on growing, and the curve shows the service at different costs. Look{look} A restart that makes "
        "requests cheap again confirms it.",
    )


def _share(share: float) -> str:
    """ "51 % of" or "5.9 times", to precede "the cost"."""
    if share >= 1.0:
        return f"{share:.2g} times" if share < 100 else f"{share:,.0f} times"
    return f"{100 * share:.0f} % of" if share >= 0.1 else f"{100 * share:.2g} % of"


def _each_level(steps: Steps) -> list[Evidence]:
    lowest = next(iter(by_level(steps).values()))
    times_ms = [step.latency.mean_ms for step in lowest if step.latency_known]
    half = max(1, len(times_ms) // 2)
    first, last = (fmean(part or [0.0]) for part in (times_ms[:half], times_ms[-half:]))
    if last <= first:
        return []
    return [Evidence("workload.response_ms", last, ">", first, "at the lowest level, its last steps against its first")]
