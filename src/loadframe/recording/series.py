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
from loadframe.recording.metrics import COUNTERS_NOTE, SERVICE_NOTE, read_counters, read_specs
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

_DISK_LINE = r"(?m)^ *\d+ +\d+ {name}(?: \d+){skipped} (\d+)"
_DISK = (
    ("system.disk.reads", 0, 1.0),
    ("system.disk.read_bytes", 2, procfs.SECTOR_BYTES),
    ("system.disk.writes", 4, 1.0),
    ("system.disk.write_bytes", 6, procfs.SECTOR_BYTES),
    ("system.disk.busy", 9, 1e-3),
    ("system.disk.flushes", 15, 1.0),
)
"""Metric, how many numbers stand before it (Documentation/admin-guide/iostats.rst), factor."""
_FREQUENCY = re.compile(r"system:/sys/devices/system/cpu/cpu\d+/cpufreq/scaling_cur_freq")
_OF_THE_MOST = {"system.disk.busy", "system.cpu.frequency"}
"""Of the busiest disk and of the fastest CPU; others are sums over all disks."""

_AFTER_NAME = r"(?s)^.*\) \S"  # the last bracket closes the name, which may contain anything
_PROCESS = (
    Column("cpu.cores", "cpu", r"^(\d+)", True, 1e-9),
    Column("threads.count", "threads", r"^(\d+)", False),
    Column("open_files", "fd", r"^(\d+)", False),
    Column("paging.minor_faults", "stat", _AFTER_NAME + r"(?: -?\d+){6} (\d+)", True),
    Column("paging.major_faults", "stat", _AFTER_NAME + r"(?: -?\d+){8} (\d+)", True),
)
"""Of each followed process; the source is the last word of its name."""
_RESIDENT = Column("memory.rss", "stat", _AFTER_NAME + r"(?: -?\d+){20} (\d+)", False)
_SHARED = (
    Column("memory.rss", "status", r"(?m)^RssFile:\s+(\d+)", False, 1024),
    Column("memory.rss", "status", r"(?m)^RssShmem:\s+(\d+)", False, 1024),
)
"""What processes may share: of those of a component it counts once."""
_CAGE = (
    Column("cage.cpu", "cpuacct.usage", r"^(\d+)", True, 1e-9),
    Column("cage.cpu", "cpu.stat", r"(?m)^usage_usec (\d+)", True, 1e-6),
    Column("cage.cpu.throttled", "cpu.stat", r"(?m)^nr_throttled (\d+)", True),
    Column("cage.memory.usage", "memory.current", r"^(\d+)", False),
    Column("cage.memory.usage", "memory.usage_in_bytes", r"^(\d+)", False),
    Column("cage.pids", "pids.current", r"^(\d+)", False),
    Column("cage.pressure.cpu.some", "cpu.pressure", r"(?m)^some .*total=(\d+)", True, 1e-6),
    Column("cage.pressure.memory.some", "memory.pressure", r"(?m)^some .*total=(\d+)", True, 1e-6),
    Column("cage.pressure.io.some", "io.pressure", r"(?m)^some .*total=(\d+)", True, 1e-6),
)
"""Of each component's control groups, of either version; the source is the file."""


LONGEST_BETWEEN_NOTES_S = 3.0
"""The server is asked once per second; notes farther apart are of different steps."""


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
    table = _metric_table(ticks, facts)
    return MetricSeries(table, tuple(dict.fromkeys(warnings)))


def _metric_table(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    times = polars.DataFrame(
        [(tick.monotonic_s, tick.wall_s) for tick in ticks],
        schema={"at_s": polars.Float64, "wall_s": polars.Float64},
        orient="row",
    ).unique("at_s", keep="first", maintain_order=True)
    sampled = [tick for tick in ticks if tick.sample]
    parts = [_system(sampled), _components(sampled, facts), _service(ticks)]
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
    columns = [*COLUMNS, *_disk_columns(ticks), *_frequency_columns(ticks)]
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


def _of_all(metric: str, values: Sequence[polars.Expr]) -> polars.Expr:
    """The busiest disk's or the fastest CPU's, or the sum of all of them."""
    if len(values) == 1:
        return values[0]
    if metric in _OF_THE_MOST:
        return polars.max_horizontal(*values)
    missing = reduce(and_, (value.is_null() for value in values))
    return polars.when(~missing).then(polars.sum_horizontal(*values))


def _disk_columns(ticks: Sequence[Tick]) -> list[Column]:
    source = "system:/proc/diskstats"
    text = next((tick.entries[source] for tick in ticks if source in tick.entries), b"")
    try:
        disks = procfs.parse_diskstats(text)
    except RecordingError:
        return []
    return [
        Column(metric, source, _disk_pattern(name, skipped), True, factor)
        for name in disks
        for metric, skipped, factor in _DISK
    ]


def _disk_pattern(name: str, skipped: int) -> str:
    return _DISK_LINE.replace("{name}", re.escape(name)).replace("{skipped}", f"{{{skipped}}}")


def _frequency_columns(ticks: Sequence[Tick]) -> list[Column]:
    """Recorded once per second, all CPUs at the same ticks."""
    names = next((found for tick in ticks if (found := list(filter(_FREQUENCY.fullmatch, tick.entries)))), [])
    return [Column("system.cpu.frequency", name, r"^(\d+)", False, 1000) for name in names]


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


# --- components -----------------------------------------------------------------------------------------------------

_SOURCES = (
    re.compile(r"([^:]+):(\d+):(cpu|threads|fd|/proc/\2/stat|/proc/\2/status)"),
    re.compile(rf"([^:]+):cgroup:(.*)(/(?:{'|'.join(sorted({re.escape(column.source) for column in _CAGE}))}))"),
)
"""Component, process or folder, and what is read of it."""


def _components(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    """Columns at_s, metric, value: of each component's processes together, and of its control groups. Open files: of
    the process that has most."""
    split: dict[str, tuple[str, str, str] | None] = {}
    rows = []
    for tick in ticks:
        for name, data in tick.entries.items():
            if name not in split:
                found = next((match for pattern in _SOURCES if (match := pattern.fullmatch(name))), None)
                split[name] = (found[1], found[2], found[3].rpartition("/")[2]) if found else None
            if (source := split[name]) is not None:
                rows.append((tick.monotonic_s, *source, _text(data)))
    names = ("at_s", "component", "member", "kind", "text")
    kinds = (polars.Float64, *[polars.String] * 4)
    frame = polars.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row").sort("at_s")
    parts = []
    for column in (*_PROCESS, *_CAGE):
        number = _number(column, "text")
        value = _per_second(number).over("component", "member") if column.counter else number
        together = polars.col("value").max() if column.metric == "open_files" else polars.col("value").sum()
        metric = polars.concat_str(polars.col("component"), polars.lit(f".{column.metric}")).alias("metric")
        parts.append(
            frame.filter(polars.col("kind") == column.source)
            .with_columns(value.alias("value"))
            .filter(polars.col("value").is_not_null())
            .group_by("component", "at_s")
            .agg(together)
            .select("at_s", metric, "value")
        )
    parts.append(_memory(frame, facts))
    return polars.concat(parts).filter(polars.col("metric").is_in(list(METRICS)))


def _memory(frame: polars.DataFrame, facts: Facts) -> polars.DataFrame:
    """Columns at_s, metric, value: the memory of each component's processes together. Shared memory is recorded less
    often than the rest: what a process said last holds on."""
    members = ["component", "member"]
    shared = (
        frame.filter(polars.col("kind") == "status")
        .with_columns(polars.sum_horizontal(*(_number(column, "text") for column in _SHARED)).alias("shared"))
        .select("at_s", *members, "shared")
    )
    return (
        frame.filter(polars.col("kind") == _RESIDENT.source)
        .with_columns((_number(_RESIDENT, "text") * facts.page_bytes).alias("whole"))
        .join_asof(shared, on="at_s", by=members, strategy="backward", check_sortedness=False)
        .with_columns(polars.min_horizontal("whole", polars.col("shared").fill_null(0)).alias("shared"))
        .filter(polars.col("whole").is_not_null())
        .group_by("component", "at_s")
        .agg((polars.col("whole").sum() - polars.col("shared").sum() + polars.col("shared").max()).alias("value"))
        .select("at_s", polars.concat_str("component", polars.lit(".memory.rss")).alias("metric"), "value")
    )


# --- the server -----------------------------------------------------------------------------------------------------


def _service(ticks: Sequence[Tick]) -> polars.DataFrame:
    """Columns at_s, metric, value: of the server's counters at each note of them. Between steps nobody asks, and the
    server may have been started anew: there is no growth from one to the other."""
    told = [tick.entries[COUNTERS_NOTE] for tick in ticks if COUNTERS_NOTE in tick.entries]
    specs = {spec.metric: spec for text in told for spec in read_specs(text)}
    asked = [tick for tick in ticks if SERVICE_NOTE in tick.entries]
    notes = [(tick.monotonic_s, read_counters(tick.entries[SERVICE_NOTE])) for tick in asked]
    frame = polars.DataFrame(
        {"at_s": [at_s for at_s, _ in notes]}
        | {metric: [counters.get(spec.name) for _, counters in notes] for metric, spec in specs.items()},
        schema={"at_s": polars.Float64} | dict.fromkeys(specs, polars.Float64),
    )
    asked_on = polars.col("at_s").diff() <= LONGEST_BETWEEN_NOTES_S
    expressions = [
        polars.when(asked_on).then(_per_second(polars.col(metric))).alias(metric)
        for metric, spec in specs.items()
        if spec.cumulative
    ]
    return (
        frame.with_columns(expressions)
        .unpivot(index="at_s", variable_name="metric")
        .select("at_s", "metric", polars.col("value").cast(polars.Float64))
    )
