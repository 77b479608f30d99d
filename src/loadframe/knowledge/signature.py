"""The forms of a signature and of a trace, the conditions that several signatures share, and how rows are read."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, Literal, cast

from loadframe.knowledge.rows import documents, row_of
from loadframe.model import REACHED, Evidence

Comparison = Literal[">=", "<=", ">", "<"]
OPPOSITE: Mapping[Comparison, Comparison] = {">=": "<", ">": "<=", "<=": ">", "<": ">="}
HOLDS: Mapping[Comparison, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
_CONDITION = re.compile(r"(\S+) (>=|<=|>|<|reaches) (\S+)( per request)? \| (.+)")
Form = Literal["events", "rate", "waiting", "share", "passes", "at once", "spread"]
"""What must become of a trace if its cause limited the throughput: diagnosis/mechanism.py."""


class Rank(IntEnum):
    """From outside of the target and the hardware upwards. Of two signatures that hold alike the lower rank is the
    deeper cause: a lock that is held during a wait for the disk is a wait for the disk. The CPUs come last: they are
    busy with whatever else holds."""

    DRIVER = 0
    OTHERS = 1
    CAGE = 2
    MEMORY = 3
    DISK = 4
    ONE_WRITER = 5
    PROCESSES = 6
    NETWORK = 7
    FAILURES = 8
    CACHES = 9
    LOCKS = 10
    WORKERS = 11
    RUNTIME = 12
    CPU = 13

    @property
    def score(self) -> float:
        """0.6 for the deepest cause, down to 0.518: just above the number in service (0.51)."""
        return 0.6 - 0.088 * self / len(Rank)


@dataclass(frozen=True, slots=True)
class Condition:
    """source: of the threshold. per_request: the metric is a rate, and is first divided by the throughput of its
    window. by_half: half of the steps must meet it ("reaches" in a row), for a level that swings and is read too seldom
    for its average."""

    metric: str
    comparison: Comparison
    threshold: float
    source: str
    per_request: bool = False
    by_half: bool = False

    def holds(self, value: float) -> bool:
        return HOLDS[self.comparison](value, self.threshold)

    def of(self, metrics: Mapping[str, float]) -> float | None:
        """metrics: of one time, and its "throughput"; None where not measured."""
        value = metrics.get(self.metric)
        return value / max(metrics["throughput"], 1e-9) if value is not None and self.per_request else value

    def met(self, metrics: Mapping[str, float]) -> bool:
        """Whether it was measured and holds."""
        value = self.of(metrics)
        return value is not None and self.holds(value)

    def evidence(self, value: float, window: str, *, absent: bool = False) -> Evidence:
        """absent: it shows that the condition does not hold."""
        comparison = OPPOSITE[self.comparison] if absent else self.comparison
        return Evidence(self.metric, value, comparison, self.threshold, window, self.source)


@dataclass(frozen=True, slots=True)
class Signature:
    """present: all that the machine can measure must hold; the first one must be measured and carries the finding.
    absent: none may hold. explains_falling: it can make throughput fall with load where it is there at every level
    alike. explains: limits and causes that are seen in this way: where both are, this says more. explanation: for the
    report. whole: every condition of `present` must have been measured. failing_others: only checked where throughput
    levels off and nothing else was found. rises: where throughput levels off, the first condition must not hold below
    the knee. unloaded: it must hold at the lowest level, where no request waits for another."""

    id: str
    title: str
    present: tuple[Condition, ...]
    absent: tuple[Condition, ...]
    explanation: str
    rank: Rank
    explains_falling: bool = False
    explains: tuple[str, ...] = ()
    whole: bool = False
    failing_others: bool = False
    rises: bool = False
    unloaded: bool = False


CPU_BUSY = Condition("system.cpu.utilization", ">=", 0.9, "USE method: a resource at 90 % and above has queues")
OWN_CPU_BUSY = Condition("system.cpu.own", ">=", 0.9, "from 90 % on the study's own work fills the CPUs")
DISK_BUSY = Condition("system.disk.busy", ">=", 0.9, "iostats: a disk busy 90 % of the time has no reserve")
DISK_IDLE = Condition(
    "system.disk.working", "<", 0.1, "iostats: below 10 % no disk has anything to do, or to flush, most of the time"
)
OWN_PIPELINE = Condition("workload.stages", ">=", 1, "the load driver is the pipeline that is studied")
DIRECT_RECLAIM = Condition(
    "system.paging.direct_stalls", ">=", 10.0, "USE method: memory saturation is any direct reclaim"
)

SHARED: Mapping[str, Condition] = {
    "cpu_busy": CPU_BUSY,
    "own_cpu_busy": OWN_CPU_BUSY,
    "disk_busy": DISK_BUSY,
    "disk_idle": DISK_IDLE,
    "own_pipeline": OWN_PIPELINE,
    "direct_reclaim": DIRECT_RECLAIM,
}


@dataclass(frozen=True, slots=True)
class Trace:
    """price: whether an event costs the same before and after, so that the gain bounds what may be left. ceiling: the
    metric of what the limit lets pass ("passes"), most: its number."""

    metric: str
    form: Form = "events"
    price: bool = True
    ceiling: str = ""
    most: float | None = None


def signature_rows(file: Path) -> tuple[Signature, ...]:
    """[[signature]] and [[signature.again]] tables. ValueError for invalid ones."""
    return tuple(
        row
        for kind, document in documents(file)
        for table in document.get("signature", ())
        for row in _ways(table, _named(document))
        if row.present[0].metric.startswith(kind)
    )


def condition_rows(file: Path) -> dict[str, Condition]:
    """[conditions], and the shared ones, by name."""
    return {name: row for _, document in documents(file) for name, row in _named(document).items()}


def trace_rows(file: Path) -> dict[str, Trace]:
    """[traces], by cause."""
    traces = (row for _, document in documents(file) for row in document.get("traces", {}).items())
    return {cause: row_of(Trace, cause, columns) for cause, columns in traces}


def ruled_out_rows(file: Path) -> dict[str, tuple[Condition, ...]]:
    """[ruled_out_by], by cause."""
    conditions: dict[str, tuple[Condition, ...]] = {}
    for _, document in documents(file):
        for cause, texts in document.get("ruled_out_by", {}).items():
            conditions[cause] = (*conditions.get(cause, ()), *(_condition(text, SHARED) for text in texts))
    return conditions


def _named(document: Mapping[str, Any]) -> Mapping[str, Condition]:
    return {**SHARED, **{name: _condition(text, {}) for name, text in document.get("conditions", {}).items()}}


def _ways(table: Mapping[str, Any], named: Mapping[str, Condition]) -> Iterator[Signature]:
    columns = {"absent": (), **table}
    again = columns.pop("again", ())
    signature = row_of(Signature, str(columns.get("id", "a signature without an id")), _columns(columns, named))
    yield signature
    for changed in again:
        yield replace(signature, **_columns(changed, named))


def _columns(table: Mapping[str, Any], named: Mapping[str, Condition]) -> dict[str, Any]:
    columns = dict(table)
    columns |= {name: tuple(_condition(text, named) for text in columns[name])
                for name in ("present", "absent") if name in columns}  # fmt: skip
    if "rank" in columns:
        if columns["rank"] not in Rank.__members__:
            raise ValueError(f"rank is {columns['rank']!r}, not one of {', '.join(Rank.__members__)}")
        columns["rank"] = Rank[columns["rank"]]
    return columns


def _condition(text: str, named: Mapping[str, Condition]) -> Condition:
    if text in named:
        return named[text]
    if (match := _CONDITION.fullmatch(text)) is None:
        raise ValueError(f"{text!r} is no condition")
    metric, comparison, threshold, per_request, source = match.groups()
    at = REACHED if threshold == "REACHED" else float(threshold)
    by_half = comparison == "reaches"
    compared = cast(Comparison, ">=" if by_half else comparison)
    return Condition(metric, compared, at, source, per_request is not None, by_half)
