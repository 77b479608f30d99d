"""Production data, in the files that monitoring writes: Prometheus, sysstat, Performance Co-Pilot, CSV.
`import_observed` detects the format. Several files become one: their series are joined by their times."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import PurePath
from typing import Any

from loadframe.errors import SampleError, UsageError
from loadframe.formats.csv_tables import SADF, name_of, read_text
from loadframe.formats.plain_numbers import finite, is_number
from loadframe.formats.said import words
from loadframe.progress import counted
from loadframe_watch.observed.csv_files import MILLISECONDS_FROM, NO_ZONE, moment, parse_table, zoneless
from loadframe_watch.observed.records import Observed, ObservedMapping
from loadframe_watch.observed.series import MOST_SERIES, Series, Table, assemble, check_size, read_json

# --- Prometheus' answer to a range query: a matrix of series with labels (HTTP API, query_range), or a list of them ---

WHOLE_ANSWER = "Give the whole answer of /api/v1/query_range, or a list of such answers."
LONGER_STEP = "Ask for a longer step, a shorter range, or fewer series."
MOST_WARNINGS = 5
_NOT_NUMBERS = ("NaN", "+Inf", "-Inf", "Inf")


def parse_prometheus(text: str, name: str) -> Table:
    """One answer, or a list of them. SampleError, also for an error answer or too large ones."""
    document = read_json(text, name, WHOLE_ANSWER)
    answers = document if isinstance(document, list) else [document]
    series: list[Series] = []
    cells = left_out = 0
    for answer in answers:
        for result in _results(answer, name):
            metric, values = result.get("metric", {}), result.get("values", [])
            if not isinstance(metric, dict) or not isinstance(values, list):
                raise SampleError(f"{name} has a series without `metric` and `values`", remedy=WHOLE_ANSWER)
            if not values:
                left_out += 1
                continue
            cells += len(values)
            check_size(name, len(series) + 1, cells, LONGER_STEP)
            series.append(_series(metric, values, name))
    if not series:
        raise SampleError(
            f"{name} has no series with values", remedy="The query found nothing: check it and its range."
        )
    notes = [said for answer in answers if isinstance(answer, dict) for said in _warnings(answer)]
    if left_out:
        notes.append(f"{left_out:,} series without plain values (histograms, or empty) left out.")
    return Table(name, tuple(series), notes=tuple(notes))


def _warnings(answer: Mapping[str, Any]) -> Iterator[str]:
    """Of Prometheus, or of a store behind it."""
    said = answer.get("warnings")
    for warning in said[:MOST_WARNINGS] if isinstance(said, list) else ():
        yield f"Prometheus warned: {words(warning, 200)}"
    if answer.get("isPartial") is True:
        yield "The answer is partial, as its store says: rows and series may be missing."


def _results(answer: Any, name: str) -> Iterator[Mapping[str, Any]]:
    if not isinstance(answer, dict):
        shape = {str: "text", list: "a list", type(None): "null"}.get(type(answer), "a number")
        raise SampleError(f"{name} has {shape} where an answer of Prometheus is expected", remedy=WHOLE_ANSWER)
    if answer.get("status") == "error":
        raise SampleError(
            f"{name} is an error of Prometheus: {words(answer.get('error', ''))}", remedy="Ask again, then export."
        )
    data = answer.get("data", answer)
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind != "matrix":
        raise SampleError(
            f"{name} has a result of the type {words(kind, 40)!r}, not a matrix",
            remedy="Ask /api/v1/query_range with start, end and step; /api/v1/query gives one moment.",
        )
    results = data.get("result")
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise SampleError(f"{name} has a matrix whose `result` is no list of series", remedy=WHOLE_ANSWER)
    yield from results


def _series(metric: Mapping[str, Any], values: list[Any], name: str) -> Series:
    labels = {str(key): str(value)[:1000] for key, value in metric.items() if key != "__name__"}
    own = str(metric.get("__name__", "")) or PurePath(name).stem  # an expression, such as rate(...), has no name
    by_time: dict[float, float] = {}
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2:
            raise SampleError(f"{name}: a value of {words(own, 60)} is no pair of time and number", remedy=WHOLE_ANSWER)
        time_s = float(pair[0]) if is_number(pair[0]) else math.nan
        value = math.nan if pair[1] in _NOT_NUMBERS else finite(str(pair[1]))
        if value is None or not math.isfinite(time_s):
            raise SampleError(
                f'{name}: {words(own, 60)} has {words(pair, 60)} where [seconds, "number"] is expected',
                remedy=WHOLE_ANSWER,
            )
        by_time[time_s] = value
    return Series.of(own, labels, by_time)


# --- sysstat: `sadf -j` (JSON) and `sadf -d` (text with semicolons) ---
# Names are those of sar without % and /s, with the device as a label: idle{cpu="all"}, util{dev="sda"}, ldavg-1.

BY_SADF = "Write it with `sadf -j -- -u -d -q -n DEV` or `sadf -d -- -u`."
FEWER_ACTIVITIES = "Choose fewer activities, or a shorter range with -s and -e."
OF_SAR = re.compile(r"Linux \S+ \(.*\)\s.*\(\d+ CPU\)\s*$")
"""The first line of what sar itself prints."""
LABELS: Mapping[str, str] = {
    "cpu": "cpu", "dev": "dev", "disk-device": "dev", "iface": "iface", "intr": "intr", "filesystem": "filesystem",
    "mountpoint": "filesystem", "tty": "tty", "line": "tty", "bus": "bus", "number": "number",
}  # fmt: skip
"""Columns, or keys, that name a device and measure nothing -> the label that each becomes."""
OF_EACH_LINE = ["hostname", "interval", "timestamp"]
BUSY_PERCENT = 5.0
"""A disk that was never busier is no resource worth a line."""
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,60}")


@dataclass(slots=True)
class _Sysstat:
    """Values by series and time, restarts of the machine, and whether times are of an unknown zone."""

    name: str
    values: dict[tuple[str, tuple[tuple[str, str], ...]], dict[float, float]] = field(default_factory=dict)
    cells: int = 0
    restarts: int = 0
    zoneless: bool = False

    def add(self, time_s: float, column: str, labels: Mapping[str, str], value: float) -> None:
        key = (column, tuple(sorted(labels.items())))
        self.values.setdefault(key, {})[time_s] = value
        self.cells += 1
        check_size(self.name, len(self.values), self.cells, FEWER_ACTIVITIES)


def is_json(text: str) -> bool:
    return re.match(r'\s*\{\s*"sysstat"\s*:', text.removeprefix("\ufeff")) is not None


def parse_sysstat(text: str, name: str) -> Table:
    """The series in either form. SampleError, naming the line, or the place, that is wrong."""
    sysstat = _Sysstat(name)
    (_json if is_json(text) else _lines)(text, sysstat)
    if not sysstat.values:
        raise SampleError(f"{name} has no measurements of sysstat", remedy=BY_SADF)
    series = tuple(Series.of(column, dict(labels), values) for (column, labels), values in sysstat.values.items())
    busy = tuple(
        Series("busy", metric.labels, metric.times_s, tuple(100 - value for value in metric.values))
        for metric in series
        if metric.name == "idle" and "cpu" in metric.labels
    )
    restarted = f"The machine was restarted {sysstat.restarts:,} time{'s' if sysstat.restarts > 1 else ''}."
    notes = (*((NO_ZONE,) if sysstat.zoneless else ()), *((restarted,) if sysstat.restarts else ()))
    return Table(name, (*series, *busy), _usual(series, busy), notes=notes)


def _usual(series: tuple[Series, ...], busy: tuple[Series, ...]) -> ObservedMapping:
    all_cpus = any(metric.labels["cpu"] == "all" for metric in busy)
    use = {"cpu": 'busy{cpu="all"} / 100'} if all_cpus else {}
    for metric in series:
        disk = metric.labels.get("dev", "")
        most = max((value for value in metric.values if math.isfinite(value)), default=0.0)
        if metric.name == "util" and _PLAIN.fullmatch(disk) and most >= BUSY_PERCENT:
            use[f"disk.{disk}"] = f'util{{dev="{disk}"}} / 100'
    return ObservedMapping(use=use)


def _column(name: str) -> str:
    return name.strip().lstrip("%").removesuffix("/s").removesuffix("-percent")


# --- sadf -d ---


def _lines(text: str, sysstat: _Sysstat) -> None:
    columns: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(";")]
        where = f"{sysstat.name}, line {number}"
        if line.lstrip().startswith("#"):
            columns = [_column(cell.lstrip("# ")) for cell in cells]
            if columns[:3] != OF_EACH_LINE:
                raise SampleError(f"{where} begins with {words(line, 60)!r}, not {SADF!r}", remedy=BY_SADF)
            continue
        if len(cells) > 3 and cells[3].startswith(("LINUX-RESTART", "COM ")):
            sysstat.restarts += cells[3].startswith("LINUX-RESTART")
            continue
        if columns and columns[-1].endswith("*"):  # as many cells as there are CPUs; their sum comes first
            cells = cells[: len(columns)]
        if len(cells) != len(columns):
            raise SampleError(
                f"{where} has {counted(len(cells), 'cell')} where its head names {counted(len(columns), 'column')}",
                remedy=BY_SADF,
            )
        by_column = dict(zip(columns, cells, strict=True))
        time_s = _time(by_column["timestamp"], where)
        sysstat.zoneless |= zoneless(by_column["timestamp"])
        labels = {LABELS[key.lower()]: _device(cell) for key, cell in by_column.items() if key.lower() in LABELS}
        for column, cell in by_column.items():
            value = finite(cell.replace(",", "."))  # sysstat writes a decimal comma if the locale has one
            if value is not None and column not in OF_EACH_LINE and column.lower() not in LABELS:
                sysstat.add(time_s, column, labels, value)


def _device(text: str) -> str:
    return "all" if text == "-1" else text[:200]


def _time(text: str, where: str) -> float:
    value = finite(text)
    if value is None:
        value = moment(text.removesuffix(" UTC"))
    if value is None or abs(value) >= MILLISECONDS_FROM:
        raise SampleError(f"{where}: {words(text, 60)!r} is no time", remedy=BY_SADF)
    return value


# --- sadf -j ---


def _json(text: str, sysstat: _Sysstat) -> None:
    document = read_json(text, sysstat.name, BY_SADF)
    inner = document.get("sysstat") if isinstance(document, dict) else None
    if not isinstance(inner, dict):
        raise SampleError(f"{sysstat.name} has no object `sysstat`", remedy=BY_SADF)
    for host in _list(inner, "hosts", sysstat):
        if not isinstance(host, dict):
            raise SampleError(f"{sysstat.name} has a host that is no object", remedy=BY_SADF)
        restarts = host.get("restarts")
        sysstat.restarts += len(restarts) if isinstance(restarts, list) else 0
        for number, moment_ in enumerate(_list(host, "statistics", sysstat), 1):
            where = f"{sysstat.name}, statistics {number}"
            if not isinstance(moment_, dict) or not isinstance(moment_.get("timestamp"), dict):
                if moment_ == {}:
                    continue
                raise SampleError(f"{where} has no timestamp", remedy=BY_SADF)
            stamp = moment_["timestamp"]
            sysstat.zoneless |= stamp.get("utc") != 1
            time_s = _time(f"{stamp.get('date', '')} {stamp.get('time', '')}".strip(), where)
            for column, labels, value in _within("", {**moment_, "timestamp": None}, {}):
                sysstat.add(time_s, column, labels, value)


def _within(key: str, value: Any, labels: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """With the column and the devices above each number. parse_json has bounded the depth."""
    if isinstance(value, dict):
        named = {LABELS[name]: _device(str(device)) for name, device in value.items() if name in LABELS}
        for name, below in value.items():
            if name not in LABELS:
                yield from _within(name, below, {**labels, **named})
    elif isinstance(value, list):
        for below in value:
            yield from _within(key, below, labels)
    elif is_number(value):
        yield _column(key), labels, float(value)


def _list(value: Mapping[str, Any], key: str, sysstat: _Sysstat) -> list[Any]:
    inner = value.get(key)
    if not isinstance(inner, list):
        raise SampleError(f"{sysstat.name} has no list `{key}`", remedy=BY_SADF)
    return inner


REMEDY = "Give a run folder, CSV, the JSON of a Prometheus range query, or what `sadf -j` or `sadf -d` writes."
FEWER = "Export the series that are needed alone."
NOTHING_SAID = ObservedMapping()


def import_observed(place: str, mapping: ObservedMapping = NOTHING_SAID, *, also: Sequence[str] = ()) -> Observed:
    """ "-" is standard input. mapping: which series is what, if the usual names do not say it. also: more files, whose
    series are joined by their times. SampleError, naming the line, the series or the value that is wrong."""
    return rows_of([(read_text(file, remedy=REMEDY), name_of(file)) for file in (place, *also)], mapping)


def named_series(option: str, terms: Sequence[str], remedy: str) -> dict[str, str]:
    """Terms by name, from an option's `NAME=SERIES` values. UsageError."""
    by_name: dict[str, str] = {}
    for given in terms:
        name, equals, term = (part.strip() for part in given.partition("="))
        if not equals or not name or not term or not name.isprintable() or name in by_name:
            raise UsageError(f"{option} {words(given, 100)!r} has no name, or names the same again", remedy=remedy)
        by_name[name[:100]] = term
    return by_name


def rows_of(files: Sequence[tuple[str, str]], mapping: ObservedMapping) -> Observed:
    return assemble(_joined([_table(text, name) for text, name in files]), mapping)


def _table(text: str, name: str) -> Table:
    content = text.removeprefix("\ufeff").lstrip()
    # The times in the tables of sar have no day, and their columns depend on the locale.
    if OF_SAR.match(content.partition("\n")[0]):
        raise SampleError(
            f"{name} is what sar prints, which is for people to read",
            remedy="Write the same with sadf, for example `sadf -d /var/log/sysstat/sa24 -- -u > sa24.txt`, or "
            "`sadf -j /var/log/sysstat/sa24 -- -u -d -q -n DEV > sa24.json` for more.",
        )
    if is_json(text) or content.startswith(SADF):
        return parse_sysstat(text, name)
    if content.startswith(("{", "[")):
        return parse_prometheus(text, name)
    return parse_table(text, name)


def _joined(tables: Sequence[Table]) -> Table:
    """For the usual names, earlier tables take precedence."""
    series: list[Series] = [metric for table in tables for metric in table.series]
    if len(series) > MOST_SERIES and len(tables) > 1:
        raise SampleError(f"the files have {len(series):,} series; at most {MOST_SERIES:,} are read", remedy=FEWER)
    usual = reduce(ObservedMapping.completed, (table.usual for table in tables))
    servers = {name: count for table in reversed(tables) for name, count in table.servers.items()}
    notes = tuple(note for table in tables for note in table.notes)
    return Table(tables[0].name, tuple(series), usual, servers, notes)
