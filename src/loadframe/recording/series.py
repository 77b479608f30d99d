"""A whole recording as a table: every tick of it parsed column by column, for metrics.parquet.

What a window says (recording.metrics) is about its edges; this is about the way between them. What is read where is in
series_columns.py.
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
from loadframe.metrics import METRICS
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.recording import procfs
from loadframe.recording.frames import UNRECORDED, Facts, Tick
from loadframe.recording.metrics import COUNTERS_NOTE, SERVICE_NOTE, read_counters, read_specs
from loadframe.recording.process_metrics import STATES
from loadframe.recording.readers import RecordingReader
from loadframe.recording.series_columns import (
    CAGE,
    CPU,
    DISK,
    DISK_LINE,
    FREQUENCY,
    IN_PAGES,
    MACHINE,
    OF_THE_MOST,
    PROCESS,
    PROTOCOL_LINE,
    RESIDENT,
    SHARED,
    Column,
)
from loadframe.recording.system_metrics import NETWORK


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """table: columns host, at_s (CLOCK_MONOTONIC), wall_s, metric, value: every metric at every tick of the schedule
    that has it, in the order of time; counters as their growth per second since the tick before. None where there is
    nothing to read. warnings: what is missing from it and why, in sentences."""

    table: polars.DataFrame | None
    warnings: tuple[str, ...] = ()


LONGEST_BETWEEN_NOTES_S = 3.0
"""The server is asked once per second; notes farther apart are of different steps."""


def metric_series(path: Path, *, descriptor: int | None = None) -> MetricSeries:
    """A recording that no longer grows, as a table. RecordingError as for read_frames. descriptor: as RecordingReader.

    Damaged blocks and a torn tail are left out with a warning, and what the recorder could not record is told. A
    counter that went back has no value there.
    """
    with RecordingReader(path, descriptor=descriptor) as reader:
        facts = reader.facts
        ticks = reader.all_ticks()
        warnings = [f"In the recording {path.name}: {fact}" for fact in reader.warnings]
    warnings += [_text(tick.entries[UNRECORDED]) for tick in ticks if UNRECORDED in tick.entries]
    with in_words(f"No table can be made of the recording {path.name}", RecordingError, room_bytes=ROOM_BYTES):
        table = _metric_table(ticks, facts)
    return MetricSeries(table, tuple(dict.fromkeys(warnings)))


def _metric_table(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    times = polars.DataFrame(
        [(tick.monotonic_s, tick.wall_s) for tick in ticks],
        schema={"at_s": polars.Float64, "wall_s": polars.Float64},
        orient="row",
    ).unique("at_s", keep="first", maintain_order=True)
    sampled = [tick for tick in ticks if tick.sample]
    parts = [_system(sampled, facts), _components(sampled, facts), _thread_states(sampled), _service(ticks)]
    return (
        polars.concat(parts)
        .filter(polars.col("value").is_not_null() & polars.col("value").is_finite())
        .join(times, on="at_s")
        .select(polars.lit(facts.host).alias("host"), "at_s", "wall_s", "metric", "value")
        .sort("at_s", "metric")
    )


# --- the machine ----------------------------------------------------------------------------------------------------


def _system(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    """Columns at_s, metric, value: of the machine, and the gaps between ticks."""
    columns = [*MACHINE, *_disk_columns(ticks), *_protocol_columns(ticks), *_frequency_columns(ticks)]
    sources = sorted({column.source for column in (*columns, *CPU.values())})
    frame = polars.DataFrame(
        {"at_s": [tick.monotonic_s for tick in ticks]}
        | {name: [_text(tick.entries[name]) if name in tick.entries else None for tick in ticks] for name in sources},
        schema={"at_s": polars.Float64} | dict.fromkeys(sources, polars.String),
    ).sort("at_s")
    by_metric: dict[str, list[polars.Expr]] = {}
    for column in columns:
        number = _number(column, column.source, facts)
        by_metric.setdefault(column.metric, []).append(_per_second(number) if column.counter else number)
    expressions = [_of_all(metric, values).alias(metric) for metric, values in by_metric.items()]
    expressions += [*_cpu(facts), (1000 * polars.col("at_s").diff()).alias("recorder.tick_gap")]
    return frame.select("at_s", *expressions).unpivot(index="at_s", variable_name="metric")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(column: Column, text: str, facts: Facts) -> polars.Expr:
    factor = column.factor * (facts.page_bytes if column.metric in IN_PAGES else 1)
    if not column.every:
        found = polars.col(text).str.extract(column.pattern, column.group)
        return factor * found.cast(polars.Float64, strict=False)
    one = polars.element().str.extract(column.pattern, column.group).cast(polars.Float64, strict=False)
    return factor * polars.col(text).str.extract_all(column.pattern).list.eval(one).list.sum()


def _per_second(counter: polars.Expr) -> polars.Expr:
    """Growth since the reading before, however many ticks ago; null where it went back."""
    grown = counter - counter.forward_fill().shift(1)
    at_s = polars.when(counter.is_not_null()).then(polars.col("at_s"))
    return polars.when(grown >= 0).then(grown / (at_s - at_s.forward_fill().shift(1)))


def _of_all(metric: str, values: Sequence[polars.Expr]) -> polars.Expr:
    """The busiest disk's or the fastest CPU's, or the sum of all of them."""
    if len(values) == 1:
        return values[0]
    if metric in OF_THE_MOST:
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
        for metric, skipped, factor in DISK
    ]


def _disk_pattern(name: str, skipped: int) -> str:
    return _with_skipped(DISK_LINE.replace("{name}", re.escape(name)), skipped)


def _with_skipped(pattern: str, numbers: int) -> str:
    return pattern.replace("{skipped}", f"{{{numbers}}}")


def _protocol_columns(ticks: Sequence[Tick]) -> list[Column]:
    """Which place of its line a counter has is told by the line of names above; it differs between kernels."""
    columns = []
    for metric, (path, protocol, name) in NETWORK.items():
        source = f"system:{path}"
        text = next((tick.entries[source] for tick in ticks if source in tick.entries), b"")
        lines = [line.split() for line in _text(text).splitlines() if line.startswith(f"{protocol}:")]
        if lines and name in lines[0]:
            pattern = _with_skipped(PROTOCOL_LINE.replace("{protocol}", protocol), lines[0].index(name) - 1)
            columns.append(Column(metric, source, pattern, True))
    return columns


def _frequency_columns(ticks: Sequence[Tick]) -> list[Column]:
    """Recorded once per second, all CPUs at the same ticks."""
    names = next((found for tick in ticks if (found := list(filter(FREQUENCY.fullmatch, tick.entries)))), [])
    return [Column("system.cpu.frequency", name, r"^(\d+)", False, 1000) for name in names]


def _cpu(facts: Facts) -> list[polars.Expr]:
    """Shares of all CPUs' time since the tick before. idle and iowait may go back by a tick (proc(5))."""
    spent = {name: _per_second(_number(column, column.source, facts)).fill_null(0.0) for name, column in CPU.items()}
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
    re.compile(rf"([^:]+):cgroup:(.*)(/(?:{'|'.join(sorted({re.escape(column.source) for column in CAGE}))}))"),
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
    for column in (*PROCESS, *CAGE):
        number = _number(column, "text", facts)
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


_CENSUS = re.compile(r"([^:]+):(\d+):tasks")


def _thread_states(ticks: Sequence[Tick]) -> polars.DataFrame:
    """Columns at_s, metric, value: the threads of each component's processes by state."""
    counts: dict[tuple[float, str], float] = {}
    for tick in ticks:
        for name, census in tick.entries.items():
            if found := _CENSUS.fullmatch(name):
                for state, count in _by_state(census, tick.entries.get(f"{found[1]}:{found[2]}:threads", b"0")).items():
                    key = (tick.monotonic_s, f"{found[1]}.threads.{state}")
                    counts[key] = counts.get(key, 0.0) + count
    rows = [(at_s, metric, count) for (at_s, metric), count in counts.items() if metric in METRICS]
    schema = {"at_s": polars.Float64, "metric": polars.String, "value": polars.Float64}
    return polars.DataFrame(rows, schema=schema, orient="row")


def _by_state(census: bytes, threads: bytes) -> dict[str, float]:
    """How many of a process's threads are in each state; those that were looked at stand for all. Empty where none was
    or the recording is damaged."""
    try:
        seen = [task.state for task in procfs.parse_tasks(census)]
        everybody = max(len(seen), procfs.parse_count(threads))
    except RecordingError:
        return {}
    return {state: everybody * seen.count(letter) / len(seen) for state, letter in STATES.items()} if seen else {}


def _memory(frame: polars.DataFrame, facts: Facts) -> polars.DataFrame:
    """Columns at_s, metric, value: the memory of each component's processes together. Shared memory is recorded less
    often than the rest: what a process said last holds on."""
    members = ["component", "member"]
    shared = (
        frame.filter(polars.col("kind") == "status")
        .with_columns(polars.sum_horizontal(*(_number(column, "text", facts) for column in SHARED)).alias("shared"))
        .select("at_s", *members, "shared")
    )
    return (
        frame.filter(polars.col("kind") == RESIDENT.source)
        .with_columns(_number(RESIDENT, "text", facts).alias("whole"))
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
