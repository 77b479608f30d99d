"""Data of production, in the files that monitoring writes: Prometheus, sysstat, Performance Co-Pilot, CSV.

`import_observed` finds out which it is. Several files become one: their series are joined by their times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from loadframe.errors import SampleError
from loadframe.formats import observed_csv, prometheus_range, sysstat
from loadframe.formats.csv_text import header, name_of, read_text, rows
from loadframe.formats.observations import MOST_LOADS, parse_observations
from loadframe.formats.observed_series import MOST_SERIES, Series, Table, assemble
from loadframe.model import Observations, Observed, ObservedMapping

REMEDY = "Give a run folder, CSV, the JSON of a Prometheus range query, or what `sadf -j` or `sadf -d` writes."
FEWER = "Export the series that are needed alone."
NOTHING_SAID = ObservedMapping()


def import_observed(place: str, mapping: ObservedMapping = NOTHING_SAID, *, also: Sequence[str] = ()) -> Observed:
    """The rows of a file of monitoring, "-" is standard input. mapping: which series is what, where the usual names do
    not say it. also: more files, whose series are joined by their times. SampleError names the line, the series or the
    value that is wrong."""
    text = read_text(place, remedy=REMEDY)
    return assemble(_joined([_table(text, name_of(place)), *(_table_of(one) for one in also)]), mapping)


def read_data(
    place: str, mapping: ObservedMapping = NOTHING_SAID, *, also: Sequence[str] = ()
) -> Observations | Observed:
    """A curve's levels, or rows in time order, whichever the file has: it is in time order if it says so (a column of
    times, JSON, sysstat's text), if a mapping or further files are given, or if its loads are too many for levels.
    SampleError as `import_observed` and `read_observations`."""
    text, name = read_text(place, remedy=REMEDY), name_of(place)
    sysstat.check_not_of_sar(text, name)
    if _kind(text) != "csv" or observed_csv.is_timed(text) or mapping.given or also:
        return assemble(_joined([_table(text, name), *(_table_of(one) for one in also)]), mapping)
    if text.count("\n") > MOST_LOADS and (table := _many_loads(text, name)) is not None:
        return assemble(table, mapping)
    return parse_observations(text, name)


def _many_loads(text: str, name: str) -> Table | None:
    """CSV without times whose loads are too many for levels, as rows in time order; None for levels. SampleError where
    the rows are sorted by load: their order in time is lost."""
    if "load" not in header(rows(text.removeprefix("\ufeff").lstrip().partition("\n")[0], name)):
        return None
    table = observed_csv.parse_table(text, name, untimed=True)
    loads = [value for one in table.series if one.name == "load" for value in one.values if math.isfinite(value)]
    if len(set(loads)) <= MOST_LOADS:
        return None
    rises = sum(after >= before for before, after in pairwise(loads))
    if rises in (0, len(loads) - 1):
        raise SampleError(
            f"{name} has {len(set(loads)):,} different loads, sorted, and no column of times; a curve has at most "
            f"{MOST_LOADS} levels",
            remedy="Add a column `time` and keep the rows in time order, or round the loads to levels.",
        )
    return table


def _table_of(place: str) -> Table:
    return _table(read_text(place, remedy=REMEDY), name_of(place))


def _kind(text: str) -> str:
    """By how the text begins."""
    begins = text.removeprefix("\ufeff").lstrip()[:1]
    if begins in ("{", "["):
        return "sysstat" if sysstat.is_json(text) else "prometheus"
    return "sysstat" if sysstat.is_text(text) else "csv"


def _table(text: str, name: str) -> Table:
    sysstat.check_not_of_sar(text, name)
    kind = _kind(text)
    if kind == "prometheus":
        return prometheus_range.parse_table(text, name)
    if kind == "sysstat":
        return sysstat.parse_table(text, name)
    return observed_csv.parse_table(text, name, untimed=not observed_csv.is_timed(text))


def _joined(tables: Sequence[Table]) -> Table:
    """One table of all; what an earlier one says of the usual names comes first."""
    if len(tables) == 1:
        return tables[0]
    series: list[Series] = [one for table in tables for one in table.series]
    if len(series) > MOST_SERIES:
        raise SampleError(f"the files have {len(series):,} series; at most {MOST_SERIES:,} are read", remedy=FEWER)
    usual = tables[0].usual
    for table in tables[1:]:
        more = table.usual
        usual = replace(
            usual,
            load=usual.load or more.load,
            throughput=usual.throughput or more.throughput,
            response=usual.response or more.response,
            response_is=usual.response_is if usual.response else more.response_is,
            use={**more.use, **usual.use},
        )
    servers = {name: count for table in reversed(tables) for name, count in table.servers.items()}
    notes = tuple(note for table in tables for note in table.notes)
    return Table(tables[0].name, tuple(series), usual, servers, notes)
