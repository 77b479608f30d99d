"""Metrics of pipelines: `pipeline.STAGE.END` of a stage, `changelog.LOG.END` of a change log (families.txt). What a
stage prints (formats/stage_lines.py) is recorded as it is; the rest is derived here."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

Values = Mapping[str, float]
STAGES, LOGS = "pipeline.", "changelog."
CUMULATIVE = frozenset(
    {"done", "entries", "busy_s", "idle_s", "blocked_s", "server_s", "read", "applied"}
    | {"busy_weighted", "idle_weighted", "blocked_weighted"}
)
GROWING = {"waiting": "waiting_growth", "lag_s": "lag_growth"}
"""Levels whose growth in a window is reported, too."""
SEEN_OFTEN = 5
"""Readings of a window from which on the largest number of operations in work counts as the most at once."""
_NAME = re.compile(r"(pipeline|changelog)\.([A-Za-z][A-Za-z0-9_-]{0,39})\.([a-z_]+)", re.ASCII)


def is_level(metric: str) -> bool:
    """Over a window the mean of a level counts, not the most."""
    match = _NAME.fullmatch(metric)
    return match is not None and match[3] not in CUMULATIVE


def names(metrics: Iterable[str], of: str = STAGES) -> list[str]:
    matches = (_NAME.fullmatch(name) for name in metrics if name.startswith(of))
    return sorted({match[2] for match in matches if match is not None})


def in_order(metrics: Values) -> list[str]:
    stages = names(metrics)
    return sorted(stages, key=lambda stage: (metrics.get(f"{STAGES}{stage}.order", float("inf")), stage))


def growth(metric: str, readings: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Growth per second of a level that fills up. readings: (time, value)."""
    prefix, _, end = metric.rpartition(".")
    if end not in GROWING or not is_level(metric) or len(readings) < 2 or readings[-1][0] <= readings[0][0]:
        return {}
    (first_s, first), (last_s, last) = readings[0], readings[-1]
    return {f"{prefix}.{GROWING[end]}": (last - first) / (last_s - first_s)}


def most(metric: str, values: Sequence[float]) -> dict[str, float]:
    prefix, _, end = metric.rpartition(".")
    if end != "current" or not is_level(metric) or len(values) < SEEN_OFTEN:
        return {}
    return {f"{prefix}.current_most": max(values)}


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


def _shares(own: Values, busy: float | None) -> dict[str, float]:
    """Workers at work, idle, blocked; several processes are weighted by entries (recording/stage_tail.py)."""
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
