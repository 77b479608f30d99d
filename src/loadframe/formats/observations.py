"""CSV curves: rows of load and throughput, perhaps with latency and utilisations, measured by any tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loadframe.errors import SampleError
from loadframe.formats.csv_text import (
    Row,
    beginning,
    check_cells,
    check_commas,
    check_once,
    header,
    measured,
    name_of,
    read_text,
    rows,
)
from loadframe.formats.plain_numbers import LARGEST, SMALLEST, plausible
from loadframe.model import Observation, Observations

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
"""By the first word of a column: what its numbers are, and in words."""

MOST_LOADS = 1000
"""Of a curve: its breaks are looked for in a few seconds."""
MOST_COLUMNS = 1000


def read_observations(place: str) -> Observations:
    """The curve in a file, or on standard input for "-". SampleError names the line and the value that is wrong."""
    return parse_observations(read_text(place, remedy="Give a run folder or a CSV file."), name_of(place))


def parse_observations(text: str, name: str) -> Observations:
    """The curve in CSV text; several rows of one load are blocks. SampleError for what is no curve."""
    lines = rows(text, name)
    names = header(lines)
    _check_columns(names, name)
    body = lines[1:]
    check_cells(names, body)
    found = tuple(_observation(dict(zip(names, row.cells, strict=True)), row) for row in body)
    _check_loads(found, body, name)
    return Observations(name, found, servers=_servers(names, body))


def _check_columns(names: list[str], name: str) -> None:
    """Which columns there are: the two that must be there, none twice, none unknown."""
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


def _check_loads(found: tuple[Observation, ...], body: list[Row], name: str) -> None:
    loads = {row.load for row in found}
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
    """The servers of each resource, which must be the same in every row."""
    found: dict[str, float] = {}
    for at, column in enumerate(names):
        for row in body if column.startswith("servers.") else ():
            count = _checked(column, row.cells[at], row)
            if found.setdefault(_resource(column), count) != count:
                raise SampleError(
                    f"{row.where}: {column} is {count:g}, and {found[_resource(column)]:g} above",
                    remedy="A curve is measured with the same servers throughout; split the file where they change.",
                )
    return found


def _resource(column: str) -> str:
    return column.partition(".")[2]


def _checked(column: str, cell: str, row: Row) -> float:
    return measured(column, cell, row, *RIGHT[column.partition(".")[0]])
