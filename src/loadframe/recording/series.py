"""A whole recording as a table, for metrics.parquet."""

import math
import re
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars

from loadframe.errors import RecordingError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.said import words
from loadframe.knowledge.families import derived
from loadframe.metrics import is_known
from loadframe.metrics.exposed import with_quantiles
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.recording.cage_metrics import CAGE, FILES, named
from loadframe.recording.derivation import Track, texts_of
from loadframe.recording.frames import UNRECORDED, Facts, Tick
from loadframe.recording.metrics import COUNTERS_NOTE, MISSING_NOTE, SERVICE_NOTE, read_counters, read_specs
from loadframe.recording.process_metrics import KINDS, ComponentTrack, recorder_rows, split_source
from loadframe.recording.readers import RecordingReader
from loadframe.recording.system_metrics import MACHINE


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """table: columns host, at_s (CLOCK_MONOTONIC), wall_s, metric, value, in time order; counters as growth per second
    since the tick before. None if there is nothing to read. warnings: what is missing, in sentences."""

    table: polars.DataFrame | None
    warnings: tuple[str, ...] = ()


MOST_SENTENCES, LONGEST_SENTENCE = 100, 1_000
MOST_ENTRIES = 800_000
"""Entries of a recording that is tabulated tick by tick: 10 to 20 us of CPU each. A longer one is thinned, like one of
more than readers.MOST_HELD_BYTES (benchmarks/report.py)."""
LONGEST_BETWEEN_NOTES_S = 3.0
"""The server is asked once per second; notes farther apart are of different steps."""


def metric_series(path: Path, *, descriptor: int | None = None) -> MetricSeries:
    """Of a recording that no longer grows. Damage, and what could not be recorded, become warnings. RecordingError."""
    with RecordingReader(path, descriptor=descriptor) as reader:
        facts = reader.facts
        ticks = reader.all_ticks(most_entries=MOST_ENTRIES)
        thinned = reader.thinned
        warnings = [f"In the recording {path.name}: {fact}" for fact in reader.warnings]
    warnings += [text.decode("utf-8", "replace") for text in texts_of(ticks, UNRECORDED)]
    for text in texts_of(ticks, MISSING_NOTE)[-1:]:
        with suppress(JsonError):
            noted = parse_json(text)
            listed = noted[:MOST_SENTENCES] if isinstance(noted, list) else []
            warnings += [words(sentence, LONGEST_SENTENCE) for sentence in listed]
    with in_words(f"No table can be made of the recording {path.name}", RecordingError, room_bytes=ROOM_BYTES):
        table = _metric_table(ticks, facts, gaps=not thinned)
    return MetricSeries(table, tuple(dict.fromkeys(warnings)))


def _metric_table(ticks: Sequence[Tick], facts: Facts, *, gaps: bool) -> polars.DataFrame:
    times = polars.DataFrame(
        [(tick.monotonic_s, tick.wall_s) for tick in ticks],
        schema={"at_s": polars.Float64, "wall_s": polars.Float64},
        orient="row",
    ).unique("at_s", keep="first", maintain_order=True)
    columns = _Columns()
    _add_recorded(columns, [tick for tick in ticks if tick.sample], facts, gaps=gaps)
    _add_service(columns, ticks)
    return (
        columns.table()
        .filter(polars.col("value").is_finite())
        .join(times, on="at_s")
        .select(polars.lit(facts.host).alias("host"), "at_s", "wall_s", "metric", "value")
        .sort("at_s", "metric")
    )


def _add_recorded(columns: "_Columns", ticks: Sequence[Tick], facts: Facts, *, gaps: bool) -> None:
    machine = Track((*MACHINE, *recorder_rows(facts.clock_ticks_per_s)), facts.page_bytes)
    cages: dict[str, Track] = {}
    components: dict[str, ComponentTrack] = {}
    before_s = None
    for tick in ticks:
        at_s = tick.monotonic_s
        caged: dict[str, dict[str, bytes]] = {}
        followed: dict[str, dict[int, dict[str, bytes]]] = {}
        for name, text in tick.entries.items():
            owner, pid, word = _split(name)
            if pid is not None:
                followed.setdefault(owner, {}).setdefault(pid, {})[word] = text
            elif owner:
                caged.setdefault(owner, {})[word] = text
        columns.add(at_s, "", machine.step(at_s, tick.entries))
        for folder, entries in caged.items():
            track = cages.setdefault(folder, Track(CAGE, facts.page_bytes))
            columns.add(at_s, "", named(folder.partition(":")[0], track.step(at_s, entries)))
        for component in components.keys() | followed.keys():
            processes = components.setdefault(component, ComponentTrack(facts))
            columns.add(at_s, f"{component}.", processes.step(at_s, before_s, followed.get(component, {})))
        if gaps and before_s is not None:
            columns.add(at_s, "", {"recorder.tick_gap": 1000 * (at_s - before_s)})
        before_s = at_s


_CAGED = re.compile(r"([^:]+:cgroup:.*)/([^/]+)")


@lru_cache(maxsize=4096)
def _split(name: str) -> tuple[str, int | None, str]:
    """Owner (component, of a control group with its folder), pid or None, last word; ("", None, "") for any other
    source."""
    group = _CAGED.fullmatch(name)
    if group is not None and group[2] in FILES:
        return group[1], None, group[2]
    process = split_source(name)
    return process if process is not None and process[2] in KINDS else ("", None, "")


class _Columns:
    def __init__(self) -> None:
        self._by_metric: dict[str, tuple[array[float], array[float]]] = {}

    def add(self, at_s: float, owner: str, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            times, values = self._by_metric.setdefault(owner + name, (array("d"), array("d")))
            times.append(at_s)
            values.append(value)

    def table(self) -> polars.DataFrame:
        known = {metric: columns for metric, columns in self._by_metric.items() if is_known(metric)}
        times, values = (np.concatenate([np.empty(0), *(columns[at] for columns in known.values())]) for at in (0, 1))
        which = np.repeat(np.arange(len(known)), [len(columns[0]) for columns in known.values()])
        names = polars.Series(list(known), dtype=polars.String)
        return polars.DataFrame({"at_s": times, "metric": names.gather(which), "value": values})


def _add_service(columns: _Columns, ticks: Sequence[Tick]) -> None:
    """Counters have their growth since the note before, and none if they went back, or between steps: the server may
    have been restarted. Histograms become quantiles."""
    specs = {spec.metric: spec for text in texts_of(ticks, COUNTERS_NOTE) for spec in read_specs(text)}
    before: dict[str, tuple[float, float]] = {}
    noted_s = -math.inf
    for tick in ticks:
        if SERVICE_NOTE not in tick.entries:
            continue
        at_s, counters = tick.monotonic_s, read_counters(tick.entries[SERVICE_NOTE])
        values = {metric: counters[spec.name] for metric, spec in specs.items() if spec.name in counters}
        for metric in [metric for metric in values if specs[metric].cumulative]:
            count = values.pop(metric)
            then_s, first = before.get(metric, (at_s, count))
            if then_s < at_s <= noted_s + LONGEST_BETWEEN_NOTES_S and count >= first:
                values[metric] = (count - first) / (at_s - then_s)
            before[metric] = at_s, count
        noted_s = at_s
        values = with_quantiles(values)
        columns.add(at_s, "", values | derived(values))
