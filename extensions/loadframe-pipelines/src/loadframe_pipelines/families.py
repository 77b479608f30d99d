"""Metrics of pipelines: `pipeline.STAGE.END` of a stage (stages.txt), `changelog.LOG.END` of a change log (logs.txt),
and their limits. What a stage prints (stage_lines.py) is recorded as it is; the rest is derived here."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean

from loadframe.knowledge.families import Family
from loadframe.knowledge.rows import LimitRule, metric_rows
from loadframe.knowledge.signature import Trace

Values = Mapping[str, float]
STAGES, LOGS = "pipeline.", "changelog."
CUMULATIVE = frozenset(
    {"done", "entries", "busy_s", "idle_s", "blocked_s", "server_s", "read", "applied"}
    | {"busy_weighted", "idle_weighted", "blocked_weighted"}
)
GROWING = {"waiting": "waiting_growth", "lag_s": "lag_growth"}
SEEN_OFTEN = 5
"""Readings of a window from which on the largest number of operations in work counts as the most at once."""
PRINTED = "statistics that the pipeline prints of its stages (docs/pipelines.md)"
ROBINHOOD = "RobinHood 3, EntryProcessor_DumpCurrentStages and cl_reader_dump_stats"
_NAME = re.compile(r"(pipeline|changelog)\.([A-Za-z][A-Za-z0-9_-]{0,39})\.([a-z_]+)", re.ASCII)


def is_cumulative(metric: str) -> bool:
    return metric.rpartition(".")[2] in CUMULATIVE


def names(metrics: Iterable[str], of: str = STAGES) -> list[str]:
    matches = (_NAME.fullmatch(name) for name in metrics if name.startswith(of))
    return sorted({match[2] for match in matches if match is not None})


def in_order(metrics: Values) -> list[str]:
    stages = names(metrics)
    return sorted(stages, key=lambda stage: (metrics.get(f"{STAGES}{stage}.order", float("inf")), stage))


def in_window(metric: str, readings: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Of a level, from its readings (time, value) in a window: its mean, its growth per second from the first to the
    last where it fills up, and the most operations in work at once, with SEEN_OFTEN readings."""
    if not readings or is_cumulative(metric) or _NAME.fullmatch(metric) is None:
        return {}
    values = [value for _, value in readings]
    prefix, _, end = metric.rpartition(".")
    known = {metric: fmean(values)}
    (first_s, first), (last_s, last) = readings[0], readings[-1]
    if end in GROWING and last_s > first_s:
        known[f"{prefix}.{GROWING[end]}"] = (last - first) / (last_s - first_s)
    if end == "current" and len(values) >= SEEN_OFTEN:
        known[f"{prefix}.current_most"] = max(values)
    return known


def derived(metrics: Values) -> dict[str, float]:
    values: dict[str, float] = {}
    for stage in names(metrics):
        prefix = f"{STAGES}{stage}."
        own = {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}
        values |= {prefix + end: value for end, value in _of_stage(own).items()}
    for log in names(metrics, LOGS):
        prefix = f"{LOGS}{log}."
        follow = _follow(
            metrics.get(prefix + "lag_growth"), metrics.get(prefix + "read"), metrics.get(prefix + "applied")
        )
        follow = metrics.get(prefix + "follow", follow)
        if follow is not None:
            values |= {prefix + "follow": follow, prefix + "behind": min(1.0, max(0.0, 1.0 - follow))}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _of_stage(own: Values) -> dict[str, float]:
    """The utilisation law (busy workers = rate x time) and Little's law (wait = number / rate)."""
    values = dict[str, float]()
    done, entries = own.get("done"), own.get("entries")
    if entries is None and done is not None:
        entries = values["entries"] = done * own.get("batch", 1.0)
    if done and entries is not None:
        values["batch"] = entries / done
    busy = own.get("busy_s")
    if busy is None and done is not None and "ms_per_op" in own:
        busy = done * own["ms_per_op"] / 1000
    elif busy is not None and done:
        values["ms_per_op"] = 1000 * busy / done
    values |= _shares(own, busy)
    if busy is None and "busy_share" in values and "workers" in own:
        busy = values["busy_share"] * own["workers"]
    if busy is not None:
        values["busy"] = busy
        values |= {"server_share": min(1.0, own["server_s"] / busy)} if busy > 0 and "server_s" in own else {}
    if entries:
        values |= {} if busy is None else {"ms_per_entry": 1000 * busy / entries}
        values |= {"capacity": entries / values["busy_share"]} if values.get("busy_share") else {}
    if done and "waiting" in own:
        values["wait_ms"] = 1000 * own["waiting"] / done
    if own.get("queue") and "waiting" in own:
        values["queue_share"] = own.get("queue_weighted", own["waiting"] / own["queue"])
    return values


def _shares(own: Mapping[str, float], busy: float | None) -> dict[str, float]:
    """Workers at work, idle, blocked; several processes are weighted by entries (stage_tail.py)."""
    workers = own.get("workers")
    idle = own["idle_s"] if "idle_s" in own else own.get("idle")
    blocked = own.get("blocked_s")
    if not workers:
        parts = (busy, own.get("idle_s"), blocked)
        workers = sum(part for part in parts if part is not None) if None not in parts else None
    if not workers:
        return {}
    if busy is None and idle is not None:
        busy = workers - idle - (blocked or 0.0)
    shares = {"busy_share": busy, "idle_share": idle, "blocked_share": blocked}
    values = {name: value / workers for name, value in shares.items() if value is not None}
    values |= {name: own[weighted] for name in values if (weighted := name.replace("share", "weighted")) in own}
    return {name: min(1.0, max(0.0, value)) for name, value in values.items()}


def _follow(lag_growth: float | None, read: float | None, applied: float | None) -> float | None:
    """Log time over real time: 1 minus the growth of the lag; without the lag, records applied of those read."""
    if lag_growth is not None:
        return max(0.0, 1.0 - lag_growth)
    return applied / read if read and applied is not None else None


def limits(there: Collection[str]) -> tuple[LimitRule, ...]:
    """Rules for the workers and the queue of each stage, and for the speed of following each change log: as shares, as
    more workers and more room may come with the load. A full queue costs nothing by itself: the diagnosis decides which
    stage limits."""
    share = partial(LimitRule, ceiling="one", layer="application", unit="share")
    stages = (
        (
            share(
                id=f"{STAGES}{name}",
                title=f"the workers of the stage {name}, those at work of all",
                use=f"{STAGES}{name}.busy_share",
                source=f"{PRINTED}: workers at work; {ROBINHOOD}",
                near=0.85,
            ),
            share(
                id=f"{STAGES}{name}.queue",
                title=f"the queue before the stage {name}, of its room",
                use=f"{STAGES}{name}.queue_share",
                source=f"{PRINTED}: entries that wait, at most `queue`; RobinHood's max_pending_operations",
            ),
        )
        for name in names(there)
    )
    logs = (
        share(  # 1 minus log time over real time: 0 where it is followed, 1 where nothing of it is applied
            id=f"{LOGS}{log}",
            title=f"how far the change log {log} is not followed",
            use=f"{LOGS}{log}.behind",
            source=f"{PRINTED}: log time over real time, below 1 it falls behind; {ROBINHOOD}",
            near_use=0.02,
        )
        for log in names(there, LOGS)
    )
    return (*chain.from_iterable(stages), *logs)


def trace(cause: str) -> Trace:
    if cause.startswith(LOGS):
        return Trace(f"{cause}.behind", "share")
    return Trace(f"{cause}.entries", "passes", ceiling=f"{cause}.capacity")  # "source" has no such metrics


_HERE = Path(__file__)
PIPELINE = Family(
    "pipeline",
    metric_rows(_HERE.with_name("stages.txt")),
    in_window,
    derived,
    limits,
    trace,
    in_series=True,
    tail="loadframe_pipelines.stage_tail",
    causes="loadframe_pipelines.causes",
    report="loadframe_pipelines.report",
)
CHANGELOG = Family("changelog", metric_rows(_HERE.with_name("logs.txt")), in_window, trace=trace)
"""What follows for change logs is derived, limited and diagnosed with the stages that follow them."""
