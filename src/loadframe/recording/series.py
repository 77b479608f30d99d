"""A whole recording as a table, for metrics.parquet: what a window says (recording.metrics) is about its edges; this is
about the way between them. The machine and the cages are derived as they are there (system_metrics, cage_metrics); what
is read of processes is in series_columns.py."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars

from loadframe.errors import RecordingError
from loadframe.metrics import METRICS
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.recording import procfs
from loadframe.recording.cage_metrics import CAGE, FILES
from loadframe.recording.derivation import Track
from loadframe.recording.frames import UNRECORDED, Facts, Tick
from loadframe.recording.metrics import COUNTERS_NOTE, SERVICE_NOTE, read_counters, read_specs
from loadframe.recording.process_metrics import STATES
from loadframe.recording.readers import RecordingReader
from loadframe.recording.series_columns import IN_PAGES, PROCESS, RESIDENT, SHARED, Column
from loadframe.recording.system_metrics import MACHINE


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """table: columns host, at_s (CLOCK_MONOTONIC), wall_s, metric, value: every metric at every tick of the schedule
    that has it, in the order of time; counters as their growth per second since the tick before. None where there is
    nothing to read. warnings: what is missing from it and why, in sentences."""

    table: polars.DataFrame | None
    warnings: tuple[str, ...] = ()


MOST_ENTRIES = 2_000_000
"""Of a recording that is made into a table tick by tick: 5 us each. A small server's has 40 in a tick, so 80 minutes;
from longer ones moments are taken (benchmarks/report.py)."""
LONGEST_BETWEEN_NOTES_S = 3.0
"""The server is asked once per second; notes farther apart are of different steps."""


def metric_series(path: Path, *, descriptor: int | None = None) -> MetricSeries:
    """A recording that no longer grows, as a table. RecordingError as for read_frames. descriptor: as RecordingReader.

    Damaged blocks and a torn tail are left out with a warning, and what the recorder could not record is told. A
    counter that went back has no value there.
    """
    with RecordingReader(path, descriptor=descriptor) as reader:
        facts = reader.facts
        ticks = reader.all_ticks(most_entries=MOST_ENTRIES)
        thinned = reader.thinned
        warnings = [f"In the recording {path.name}: {fact}" for fact in reader.warnings]
    warnings += [_text(tick.entries[UNRECORDED]) for tick in ticks if UNRECORDED in tick.entries]
    with in_words(f"No table can be made of the recording {path.name}", RecordingError, room_bytes=ROOM_BYTES):
        table = _metric_table(ticks, facts, gaps=not thinned)
    return MetricSeries(table, tuple(dict.fromkeys(warnings)))


def _metric_table(ticks: Sequence[Tick], facts: Facts, *, gaps: bool) -> polars.DataFrame:
    times = polars.DataFrame(
        [(tick.monotonic_s, tick.wall_s) for tick in ticks],
        schema={"at_s": polars.Float64, "wall_s": polars.Float64},
        orient="row",
    ).unique("at_s", keep="first", maintain_order=True)
    sampled = [tick for tick in ticks if tick.sample]
    parts = [_machine(sampled, facts, gaps=gaps), _components(sampled, facts), _thread_states(sampled), _service(ticks)]
    return (
        polars.concat(parts)
        .filter(polars.col("value").is_not_null() & polars.col("value").is_finite())
        .join(times, on="at_s")
        .select(polars.lit(facts.host).alias("host"), "at_s", "wall_s", "metric", "value")
        .sort("at_s", "metric")
    )


# --- the machine and its cages --------------------------------------------------------------------------------------


def _machine(ticks: Sequence[Tick], facts: Facts, *, gaps: bool) -> polars.DataFrame:
    """Columns at_s, metric, value: of the machine, of the control groups of each component, and the gaps between ticks
    where all of them are here."""
    found = _Columns()
    tracks: dict[str, Track] = {"": Track(MACHINE, facts.page_bytes)}
    split: dict[str, tuple[str, str]] = {}
    before_s = None
    for tick in ticks:
        caged: dict[str, dict[str, bytes]] = {}
        for name, text in tick.entries.items():
            if name not in split:
                group = _CAGED.fullmatch(name)
                split[name] = (group[1], group[2]) if group else ("", "")
            folder, file = split[name]
            if file in FILES:
                caged.setdefault(folder, {})[file] = text
        found.add(tick.monotonic_s, "", tracks[""].step(tick.monotonic_s, tick.entries))
        for folder, entries in caged.items():
            track = tracks.setdefault(folder, Track(CAGE, facts.page_bytes))
            component = folder.partition(":")[0]
            found.add(tick.monotonic_s, f"{component}.", track.step(tick.monotonic_s, entries))
        if gaps and before_s is not None:
            found.add(tick.monotonic_s, "", {"recorder.tick_gap": 1000 * (tick.monotonic_s - before_s)})
        before_s = tick.monotonic_s
    return found.table()


_CAGED = re.compile(r"([^:]+:cgroup:.*)/([^/]+)")
"""Component and folder, and the file."""


class _Columns:
    """Values as they come, by their metric."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[array[float], array[float]]] = {}

    def add(self, at_s: float, owner: str, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            times, values = self._found.setdefault(owner + name, (array("d"), array("d")))
            times.append(at_s)
            values.append(value)

    def table(self) -> polars.DataFrame:
        """Columns at_s, metric, value; of metrics that are registered."""
        schema = {"at_s": polars.Float64, "metric": polars.String, "value": polars.Float64}
        parts = [
            polars.DataFrame({"at_s": np.frombuffer(times), "value": np.frombuffer(values)}).select(
                "at_s", polars.lit(metric).alias("metric"), "value"
            )
            for metric, (times, values) in self._found.items()
            if metric in METRICS
        ]
        return polars.concat([polars.DataFrame(schema=schema), *parts])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(column: Column, text: str, facts: Facts) -> polars.Expr:
    factor = column.factor * (facts.page_bytes if column.metric in IN_PAGES else 1)
    return factor * polars.col(text).str.extract(column.pattern).cast(polars.Float64, strict=False)


def _per_second(counter: polars.Expr) -> polars.Expr:
    """Growth since the reading before, however many ticks ago; null where it went back."""
    grown = counter - counter.forward_fill().shift(1)
    at_s = polars.when(counter.is_not_null()).then(polars.col("at_s"))
    return polars.when(grown >= 0).then(grown / (at_s - at_s.forward_fill().shift(1)))


# --- components -----------------------------------------------------------------------------------------------------

_SOURCE = re.compile(r"([^:]+):(\d+):(cpu|threads|fd|/proc/\2/stat|/proc/\2/status)")
"""Component, process, and what is read of it."""


def _components(ticks: Sequence[Tick], facts: Facts) -> polars.DataFrame:
    """Columns at_s, metric, value: of each component's processes together. Open files: of the process that has
    most."""
    split: dict[str, tuple[str, str, str] | None] = {}
    rows = []
    for tick in ticks:
        for name, data in tick.entries.items():
            if name not in split:
                found = _SOURCE.fullmatch(name)
                split[name] = (found[1], found[2], found[3].rpartition("/")[2]) if found else None
            if (source := split[name]) is not None:
                rows.append((tick.monotonic_s, *source, _text(data)))
    names = ("at_s", "component", "member", "kind", "text")
    kinds = (polars.Float64, *[polars.String] * 4)
    frame = polars.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row").sort("at_s")
    parts = []
    for column in PROCESS:
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
    server may have been restarted: there is no growth from one to the other."""
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
