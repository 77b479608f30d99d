"""A whole recording as a table: every tick of it parsed column by column, for metrics.parquet.

What a window says (recording.metrics) is about its edges; this is about the way between them. COLUMNS is the table of
what is read where; adding a row adds a metric.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, and_
from pathlib import Path

import polars

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.frames import UNRECORDED, Facts, Tick
from loadframe.recording.readers import RecordingReader
from loadframe.units import METRICS


@dataclass(frozen=True, slots=True)
class Column:
    """A number in a source's text: a group of a pattern, in the syntax of the regular expressions that polars has.
    counter: its growth per second is the metric, not itself. factor: into the metric's unit."""

    metric: str
    source: str
    pattern: str
    counter: bool
    factor: float = 1.0
    group: int = 1


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """table: columns host, at_s (CLOCK_MONOTONIC), wall_s, metric, value: every metric at every tick of the schedule
    that has it, in the order of time; counters as their growth per second since the tick before. None where there is
    nothing to read. warnings: what is missing from it and why, in sentences."""

    table: polars.DataFrame | None
    warnings: tuple[str, ...] = ()


def _table(rows: str) -> tuple[Column, ...]:
    columns = []
    for row in rows.strip().splitlines():
        metric, source, pattern, kind, factor = (cell.strip() for cell in row.split(" | "))
        columns.append(Column(metric, f"system:/proc/{source}", f"(?m){pattern}", kind == "counter", float(factor)))
    return tuple(columns)


COLUMNS = _table(r"""
system.memory.available       | meminfo         | ^MemAvailable:\s+(\d+)             | level   | 1024
system.memory.dirty           | meminfo         | ^Dirty:\s+(\d+)                    | level   | 1024
system.memory.writeback       | meminfo         | ^Writeback:\s+(\d+)                | level   | 1024
system.paging.major_faults    | vmstat          | ^pgmajfault (\d+)                  | counter | 1
system.paging.direct_scan     | vmstat          | ^pgscan_direct (\d+)               | counter | 1
system.paging.refaults        | vmstat          | ^workingset_refault(?:_file)? (\d+) | counter | 1
system.paging.swap_in         | vmstat          | ^pswpin (\d+)                      | counter | 1
system.paging.swap_out        | vmstat          | ^pswpout (\d+)                     | counter | 1
system.context_switches       | stat            | ^ctxt (\d+)                        | counter | 1
system.processes.created      | stat            | ^processes (\d+)                   | counter | 1
system.processes.running      | stat            | ^procs_running (\d+)               | level   | 1
system.processes.blocked      | stat            | ^procs_blocked (\d+)               | level   | 1
system.files.allocated        | sys/fs/file-nr  | ^(\d+)                             | level   | 1
system.pressure.cpu.some      | pressure/cpu    | ^some .*total=(\d+)                | counter | 1e-6
system.pressure.memory.some   | pressure/memory | ^some .*total=(\d+)                | counter | 1e-6
system.pressure.memory.full   | pressure/memory | ^full .*total=(\d+)                | counter | 1e-6
system.pressure.io.some       | pressure/io     | ^some .*total=(\d+)                | counter | 1e-6
system.pressure.io.full       | pressure/io     | ^full .*total=(\d+)                | counter | 1e-6
""")

_CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_CPU_LINE = "(?m)^cpu +" + " ".join([r"(\d+)"] * len(_CPU_FIELDS))
_CPU = {field: Column(field, "system:/proc/stat", _CPU_LINE, True, group=i) for i, field in enumerate(_CPU_FIELDS, 1)}

_DISK_LINE = r"(?m)^ *\d+ +\d+ {name} (\d+) \d+ (\d+) \d+ (\d+) \d+ (\d+) \d+ \d+ (\d+)"
_DISK = (
    ("system.disk.reads", 1, 1.0),
    ("system.disk.read_bytes", 2, procfs.SECTOR_BYTES),
    ("system.disk.writes", 3, 1.0),
    ("system.disk.write_bytes", 4, procfs.SECTOR_BYTES),
    ("system.disk.busy", 5, 1e-3),
)

_AFTER_NAME = r"(?s)^.*\) \S"  # the last bracket closes the name, which may contain anything
_PROCESS = (
    Column("cpu.cores", "cpu", r"^(\d+)", True, 1e-9),
    Column("threads.count", "threads", r"^(\d+)", False),
    Column("open_files", "fd", r"^(\d+)", False),
    Column("paging.minor_faults", "stat", _AFTER_NAME + r"(?: -?\d+){6} (\d+)", True),
    Column("paging.major_faults", "stat", _AFTER_NAME + r"(?: -?\d+){8} (\d+)", True),
    Column("memory.rss", "stat", _AFTER_NAME + r"(?: -?\d+){20} (\d+)", False),
)
"""Of each followed process; the source is the last word of its name."""


def metric_series(path: Path) -> MetricSeries:
    """A recording that no longer grows, as a table. RecordingError as for read_frames.

    Damaged blocks and a torn tail are left out with a warning, and what the recorder could not record is told. A
    counter that went back has no value there.
    """
    with RecordingReader(path) as reader:
        facts = reader.facts
        ticks = reader.all_ticks()
        warnings = [f"In the recording {path.name}: {fact}" for fact in reader.warnings]
    warnings += [_text(tick.entries[UNRECORDED]) for tick in ticks if UNRECORDED in tick.entries]
    table = _metric_table([tick for tick in ticks if tick.sample], facts)
    return MetricSeries(table, tuple(dict.fromkeys(warnings)))


def _metric_table(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    times = polars.DataFrame(
        [(tick.monotonic_s, tick.wall_s) for tick in ticks],
        schema={"at_s": polars.Float64, "wall_s": polars.Float64},
        orient="row",
    ).unique("at_s", keep="first", maintain_order=True)
    parts = [_system(ticks), _processes(ticks, facts)]
    return (
        polars.concat(parts)
        .filter(polars.col("value").is_not_null() & polars.col("value").is_finite())
        .join(times, on="at_s")
        .select(polars.lit(facts.host).alias("host"), "at_s", "wall_s", "metric", "value")
        .sort("at_s", "metric")
    )


# --- the machine ----------------------------------------------------------------------------------------------------


def _system(ticks: Sequence[Tick]) -> polars.DataFrame:
    """Columns at_s, metric, value: of the machine, and the gaps between ticks."""
    columns = [*COLUMNS, *_disk_columns(ticks)]
    sources = sorted({column.source for column in (*columns, *_CPU.values())})
    frame = polars.DataFrame(
        {"at_s": [tick.monotonic_s for tick in ticks]}
        | {name: [_text(tick.entries[name]) if name in tick.entries else None for tick in ticks] for name in sources},
        schema={"at_s": polars.Float64} | dict.fromkeys(sources, polars.String),
    ).sort("at_s")
    by_metric: dict[str, list[polars.Expr]] = {}
    for column in columns:
        number = _number(column, column.source)
        by_metric.setdefault(column.metric, []).append(_per_second(number) if column.counter else number)
    expressions = [_of_all(metric, values).alias(metric) for metric, values in by_metric.items()]
    expressions += [*_cpu(), (1000 * polars.col("at_s").diff()).alias("recorder.tick_gap")]
    return frame.select("at_s", *expressions).unpivot(index="at_s", variable_name="metric")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(column: Column, text: str) -> polars.Expr:
    return column.factor * polars.col(text).str.extract(column.pattern, column.group).cast(polars.Float64, strict=False)


def _per_second(counter: polars.Expr) -> polars.Expr:
    """Growth since the reading before, however many ticks ago; null where it went back."""
    grown = counter - counter.forward_fill().shift(1)
    at_s = polars.when(counter.is_not_null()).then(polars.col("at_s"))
    return polars.when(grown >= 0).then(grown / (at_s - at_s.forward_fill().shift(1)))


def _of_all(metric: str, disks: Sequence[polars.Expr]) -> polars.Expr:
    """The busiest disk's, or the sum of all of them."""
    if len(disks) == 1:
        return disks[0]
    if metric == "system.disk.busy":
        return polars.max_horizontal(*disks)
    missing = reduce(and_, (value.is_null() for value in disks))
    return polars.when(~missing).then(polars.sum_horizontal(*disks))


def _disk_columns(ticks: Sequence[Tick]) -> list[Column]:
    source = "system:/proc/diskstats"
    text = next((tick.entries[source] for tick in ticks if source in tick.entries), b"")
    try:
        disks = procfs.parse_diskstats(text)
    except RecordingError:
        return []
    return [
        Column(metric, source, _DISK_LINE.replace("{name}", re.escape(name)), True, factor, group)
        for name in disks
        for metric, group, factor in _DISK
    ]


def _cpu() -> list[polars.Expr]:
    """Shares of all CPUs' time since the tick before. idle and iowait may go back by a tick (proc(5))."""
    spent = {name: _per_second(_number(column, column.source)).fill_null(0.0) for name, column in _CPU.items()}
    total = reduce(add, spent.values())
    parts = {
        "system.cpu.utilization": total - spent["idle"] - spent["iowait"],
        "system.cpu.user": spent["user"] + spent["nice"],
        "system.cpu.system": spent["system"] + spent["irq"] + spent["softirq"],
        "system.cpu.iowait": spent["iowait"],
        "system.cpu.steal": spent["steal"],
    }
    return [polars.when(total > 0).then(part / total).alias(name) for name, part in parts.items()]


# --- processes ------------------------------------------------------------------------------------------------------

_SOURCE = re.compile(r"([^:]+):(\d+):(cpu|threads|fd|/proc/\2/stat)")


def _processes(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    """Columns at_s, metric, value: of each component's processes together. Open files: of the one that has most."""
    split: dict[str, tuple[str, int, str] | None] = {}
    rows = []
    for tick in ticks:
        for name, data in tick.entries.items():
            if name not in split:
                found = _SOURCE.fullmatch(name)
                split[name] = (found[1], int(found[2]), found[3].rpartition("/")[2]) if found else None
            if (source := split[name]) is not None:
                rows.append((tick.monotonic_s, *source, _text(data)))
    names = ("at_s", "component", "pid", "kind", "text")
    kinds = (polars.Float64, polars.String, polars.Int64, polars.String, polars.String)
    frame = polars.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row").sort("at_s")
    parts = []
    for column in _PROCESS:
        number = _number(column, "text")
        value = _per_second(number).over("component", "pid") if column.counter else number
        together = polars.col("value").max() if column.metric == "open_files" else polars.col("value").sum()
        metric = polars.concat_str(polars.col("component"), polars.lit(f".{column.metric}")).alias("metric")
        parts.append(
            frame.filter(polars.col("kind") == column.source)
            .with_columns(value.alias("value"))
            .filter(polars.col("value").is_not_null())
            .group_by("component", "at_s")
            .agg(together * (facts.page_bytes if column.metric == "memory.rss" else 1))
            .select("at_s", metric, "value")
        )
    return polars.concat(parts).filter(polars.col("metric").is_in(list(METRICS)))
