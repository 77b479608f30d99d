"""Data of production, in the files that monitoring writes: Prometheus, sysstat, Performance Co-Pilot, CSV.

`import_observed` finds out which it is. Several files become one: their series are joined by their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadframe.errors import SampleError
from loadframe.formats import observed_csv, prometheus_range, sysstat
from loadframe.formats.csv_text import name_of, read_text
from loadframe.formats.observations import parse_observations
from loadframe.formats.observed_series import MOST_SERIES, Series, Table, assemble
from loadframe.model import Observations, Observed, ObservedMapping

REMEDY = "Give a run folder, CSV, the JSON of a Prometheus range query, or what `sadf -j` or `sadf -d` writes."
FEWER = "Export the series that are needed alone."
NOTHING_SAID = ObservedMapping()


def import_observed(place: str, mapping: ObservedMapping = NOTHING_SAID, *, also: Sequence[str] = ()) -> Observed:
    """The rows of a file of monitoring, "-" is standard input. mapping: which series is what, where the usual names do
    not say it. also: more files, whose series are joined by their times. SampleError names the line, the series or the
    value that is wrong."""
    return _observed([(read_text(file, remedy=REMEDY), name_of(file)) for file in (place, *also)], mapping)


def read_data(
    place: str, mapping: ObservedMapping = NOTHING_SAID, *, also: Sequence[str] = ()
) -> Observations | Observed:
    """A curve's levels, or rows in time order, whichever the file has: it is in time order if it says so (a column of
    times, JSON, sysstat's text), or if a mapping or further files are given. SampleError as `import_observed` and
    `read_observations`."""
    files = [(read_text(file, remedy=REMEDY), name_of(file)) for file in (place, *also)]
    text, name = files[0]
    sysstat.check_not_of_sar(text, name)
    if _kind(text) != "csv" or observed_csv.is_timed(text) or mapping.given or also:
        return _observed(files, mapping)
    return parse_observations(text, name)


def _observed(files: Sequence[tuple[str, str]], mapping: ObservedMapping) -> Observed:
    return assemble(_joined([_table(text, name) for text, name in files]), mapping)


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
        return prometheus_range.parse_prometheus(text, name)
    if kind == "sysstat":
        return sysstat.parse_sysstat(text, name)
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
