"""Tables in comma-separated text, as other tools and people write them: samples for `compare`, and curves."""

import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import SampleError
from loadframe.formats.named_files import read_up_to
from loadframe.formats.plain_numbers import LARGEST, SMALLEST, finite, plausible
from loadframe.model import Observation, Observations
from loadframe.progress import counted

STDIN = "-"
LARGEST_BYTES = 50_000_000

PACKED = {b"\x1f\x8b": "zcat", b"\x28\xb5\x2f\xfd": "zstdcat", b"\xfd7zXZ": "xzcat", b"BZh": "bzcat"}
OF_SAMPLES = ("value", "block", "time", "session")
LEAST_VALUE, MOST_VALUE = 1e-100, 1e100
"""Beyond these, squares and ratios leave the range of a double."""
COLUMNS = "load,throughput[,latency_p95_ms][,util.NAME...][,servers.NAME...]"
REMEDY = f"The first line names the columns: {COLUMNS}."
PLAUSIBLE = f"0, or from {SMALLEST:g} to {LARGEST:g}."
RIGHT: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "load": (lambda value: SMALLEST <= value <= LARGEST, "A load is above zero: clients, jobs, requests per second."),
    "throughput": (plausible, f"Requests per second: {PLAUSIBLE}"),
    "latency_p95_ms": (plausible, f"Milliseconds: {PLAUSIBLE}"),
    "util": (lambda value: 0 <= value <= 1, "A share from 0 to 1: 0.85 for 85 %."),
    "servers": (lambda value: 1 <= value <= LARGEST, "A count, 1 or more."),
}
MOST_LOADS = 1000
"""Loads of a curve: its breakpoints are then found in a few seconds."""
MOST_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """Stripped cells, and their place ("points.csv, line 3")."""

    cells: tuple[str, ...]
    where: str


def name_of(place: str) -> str:
    return "standard input" if place == STDIN else place


def read_text(place: str, *, remedy: str) -> str:
    """place: a path, "-" for standard input. remedy: for a missing file. SampleError."""
    name = name_of(place)
    try:
        data = sys.stdin.buffer.read(LARGEST_BYTES + 1) if place == STDIN else read_up_to(Path(place), LARGEST_BYTES)
        if len(data) > LARGEST_BYTES:
            raise SampleError(f"{name} is larger than {LARGEST_BYTES:,} bytes", remedy="Thin it out first.")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise SampleError(f"there is no file or run folder {place}", remedy=remedy) from None
    except UnicodeDecodeError as error:
        packed = next((how for begins, how in PACKED.items() if data.startswith(begins)), "")
        raise SampleError(
            f"{name} is compressed" if packed else f"{name} cannot be read: {error}",
            remedy=f"Unpack it: `{packed} FILE | loadframe ... -`." if packed else "It must be a text file in UTF-8.",
        ) from error
    except OSError as error:
        raise SampleError(f"{name} cannot be read: {error}", remedy="It must be a text file in UTF-8.") from error


def rows(text: str, name: str) -> list[Row]:
    """The non-empty lines. SampleError, naming the line that is not CSV."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        return [
            Row(tuple(cell.strip() for cell in row), f"{name}, line {reader.line_num}")
            for row in reader
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise SampleError(f"{name}, line {reader.line_num}: {error}", remedy="Give a comma-separated file.") from error


def header(lines: list[Row]) -> list[str]:
    """In lower case; none without a line."""
    return [cell.lower() for cell in lines[0].cells] if lines else []


def check_commas(names: list[str], name: str) -> None:
    """SampleError for semicolons or tabs, as spreadsheets write where the comma is a decimal sign."""
    between = next((sign for sign in ";\t" if len(names) == 1 and sign in names[0]), "")
    if between:
        raise SampleError(
            f"{name}, line 1 has {between!r} between its columns, and no comma",
            remedy="Separate columns by commas, and write numbers as 1234.5.",
        )


def check_once(names: list[str], name: str) -> None:
    """SampleError for a column that is named twice."""
    twice = next((column for column in names if column and names.count(column) > 1), None)
    if twice is not None:
        raise SampleError(f"{name}, line 1 names the column {twice[:100]!r} twice", remedy="Remove one of them.")


def check_cells(names: list[str], body: list[Row], remedy: str = "Give every row a cell for each column.") -> None:
    """SampleError for more or fewer cells than the header has."""
    for row in body:
        if len(row.cells) != len(names):
            raise SampleError(
                f"{row.where} has {counted(len(row.cells), 'cell')} where the first line names "
                f"{counted(len(names), 'column')}",
                remedy=remedy,
            )


def beginning(names: list[str]) -> str:
    return repr((", ".join(names[:8]) or "nothing")[:100])


def number(text: str, where: str) -> float:
    """A finite number; else SampleError."""
    value = finite(text)
    if value is None:
        raise SampleError(
            f"{where}: {text[:100]!r} is not a finite number",
            remedy="Write numbers as 1234.5, and leave out what was not measured.",
        )
    return value


TIMES = ("time", "time_s", "timestamp", "timestamp_s", "ts", "date", "datetime", "time_ms", "timestamp_ms")
SADF, SAR = "# hostname;interval;timestamp", "Linux "
"""How text of sysstat begins."""


def is_in_time_order(text: str) -> bool:
    """Whether it is production data, as monitoring writes them: JSON, sysstat's text, or CSV with times."""
    text = text.removeprefix("\ufeff").lstrip()
    names = (cell.strip().strip('"').lower() for cell in text.partition("\n")[0].split(","))
    return any(name in TIMES for name in names) or text.startswith(("{", "[", SADF, SAR))


@dataclass(frozen=True, slots=True)
class Sample:
    """Values (0 or more) in time order, with the block, time and session of each; None without such a column."""

    name: str
    values: tuple[float, ...]
    blocks: tuple[str, ...] | None
    times: tuple[float, ...] | None = None
    sessions: tuple[str, ...] | None = None

    def by(self, labels: tuple[str, ...] | None) -> dict[str, tuple[float, ...]]:
        """The values of each block or session, in the order in which these appear; without labels all under ""."""
        by_label: dict[str, list[float]] = {}
        for label, value in zip(labels or [""] * len(self.values), self.values, strict=True):
            by_label.setdefault(label, []).append(value)
        return {label: tuple(values) for label, values in by_label.items()}


def read_sample(place: str) -> Sample:
    """As `parse_sample`, from a file, or standard input ("-")."""
    return parse_sample(read_text(place, remedy="Give two runs, two CSV files, or one study."), name_of(place))


def parse_sample(text: str, name: str) -> Sample:
    """Columns not in OF_SAMPLES, and empty lines, are ignored. SampleError, naming the wrong line and value."""
    lines = rows(text, name)
    names = header(lines)
    if names.count("value") != 1 or any(names.count(column) > 1 for column in OF_SAMPLES):
        raise SampleError(
            f"{name} has no first line that names one column `value`; it begins with {beginning(names)}",
            remedy="Write `value` (and `block`, if there are blocks) above the numbers.",
        )
    body = lines[1:]
    if not body:
        raise SampleError(f"{name} has no values below its first line", remedy="Measure something first.")
    check_cells(names, [row for row in body if any(row.cells[len(names) :])], "Write numbers as 1234.5.")
    if "time" in names:
        when = names.index("time")
        body = sorted(body, key=lambda row: number(_cell(row, when), row.where))
    return Sample(
        name,
        tuple(_value(row, names.index("value")) for row in body),
        _labels(body, names, "block"),
        tuple(number(_cell(row, when), row.where) for row in body) if "time" in names else None,
        _labels(body, names, "session"),
    )


def _labels(body: Sequence[Row], names: Sequence[str], column: str) -> tuple[str, ...] | None:
    if column not in names:
        return None
    labels = tuple(_cell(row, names.index(column)) for row in body)
    if "" in labels:
        where = body[labels.index("")].where
        raise SampleError(f"{where} has no {column}", remedy=f"Give every value its {column}, or none.")
    return labels


def _cell(row: Row, at: int) -> str:
    return row.cells[at] if at < len(row.cells) else ""


def _value(row: Row, at: int) -> float:
    value = number(_cell(row, at), row.where)
    if not (value == 0 or LEAST_VALUE <= value <= MOST_VALUE):
        raise SampleError(
            f"{row.where}: {_cell(row, at)[:100]} cannot be compared as a ratio",
            remedy=f"Values are 0, or from {LEAST_VALUE:g} to {MOST_VALUE:g}: rates, times, sizes. "
            "Choose a unit that fits.",
        )
    return value


def read_observations(place: str) -> Observations:
    """As `parse_observations`, from a file, or standard input ("-")."""
    return parse_observations(read_text(place, remedy="Give a run folder or a CSV file."), name_of(place))


def parse_observations(text: str, name: str) -> Observations:
    """Several rows of one load are blocks. SampleError, naming the wrong line and value."""
    lines = rows(text, name)
    names = header(lines)
    _check_columns(names, name)
    body = lines[1:]
    check_cells(names, body)
    observations = tuple(_observation(dict(zip(names, row.cells, strict=True)), row) for row in body)
    _check_loads(observations, body, name)
    return Observations(name, observations, servers=_servers(names, body))


def _check_columns(names: list[str], name: str) -> None:
    if not names:
        raise SampleError(f"{name} is empty", remedy=REMEDY)
    check_commas(names, name)
    missing = [column for column in ("load", "throughput") if column not in names]
    if missing:
        raise SampleError(
            f"{name}, line 1 has no column `{missing[0]}`; it begins with {beginning(names)}", remedy=REMEDY
        )
    if len(names) > MOST_COLUMNS:
        raise SampleError(
            f"{name}, line 1 names {len(names):,} columns; a curve has at most {MOST_COLUMNS}",
            remedy="Leave out resources that are never busy.",
        )
    check_once(names, name)
    resources = {_resource(column) for column in names if column.startswith("util.")}
    for column in names:
        kind, dot, resource = column.partition(".")
        if column in ("load", "throughput", "latency_p95_ms"):
            continue
        if kind not in ("util", "servers") or not dot or not resource:
            raise SampleError(f"{name}, line 1 has an unknown column {column[:100]!r}", remedy=REMEDY)
        if kind == "servers" and resource not in resources:
            raise SampleError(
                f"{name}, line 1 has servers.{resource[:100]} without util.{resource[:100]}",
                remedy="Servers belong to a resource whose utilisation is given.",
            )


def _check_loads(observations: tuple[Observation, ...], body: list[Row], name: str) -> None:
    loads = {row.load for row in observations}
    if len(loads) < 2:
        where = f"{body[-1].where} ends the data with" if body else f"{name} has"
        raise SampleError(
            f"{where} {len(loads)} load{'' if len(loads) == 1 else 's'}; a curve needs at least 2",
            remedy="Measure more levels.",
        )
    if len(loads) > MOST_LOADS:
        raise SampleError(
            f"{name} has {len(loads):,} different loads; a curve has at most {MOST_LOADS:,} levels",
            remedy="Round the loads to levels, and give the rows of a level as its blocks; or, if the rows are in time "
            "order, add a column `time`.",
        )


def _observation(cells: Mapping[str, str], row: Row) -> Observation:
    throughput, latency = _checked("throughput", cells["throughput"], row), cells.get("latency_p95_ms")
    if latency == "" and throughput == 0:  # nothing was answered, so nothing has a latency
        latency = None
    return Observation(
        load=_checked("load", cells["load"], row),
        throughput=throughput,
        latency_p95_ms=None if latency is None else _checked("latency_p95_ms", latency, row),
        utilizations={
            _resource(column): _checked(column, cell, row)
            for column, cell in cells.items()
            if column.startswith("util.")
        },
    )


def _servers(names: list[str], body: list[Row]) -> dict[str, float]:
    servers: dict[str, float] = {}
    for at, column in enumerate(names):
        for row in body if column.startswith("servers.") else ():
            count = _checked(column, row.cells[at], row)
            if servers.setdefault(_resource(column), count) != count:
                raise SampleError(
                    f"{row.where}: {column} is {count:g}, and {servers[_resource(column)]:g} above",
                    remedy="A curve is measured with the same servers throughout; split the file where they change.",
                )
    return servers


def _resource(column: str) -> str:
    return column.partition(".")[2]


def _checked(column: str, cell: str, row: Row) -> float:
    value, (right, remedy) = number(cell, f"{row.where}: {column}"), RIGHT[column.partition(".")[0]]
    if not right(value):
        raise SampleError(f"{row.where}: {column} is {cell[:100]}", remedy=remedy)
    return value
