"""CSV samples, as other tools and people write them: a column `value` in time order, and perhaps a column `block`, or
`time` on a clock that both samples share, or `session`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.errors import SampleError
from loadframe.formats.csv_text import Row, beginning, header, name_of, number, read_text, rows

OF_SAMPLES = ("value", "block", "time", "session")

LEAST_VALUE, MOST_VALUE = 1e-100, 1e100
"""Beyond these, squares and ratios leave what a double can hold."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Values (0 or more) in time order; the block, the time and the session of each, or None where the file has no such
    column."""

    name: str
    values: tuple[float, ...]
    blocks: tuple[str, ...] | None
    times: tuple[float, ...] | None = None
    sessions: tuple[str, ...] | None = None

    def by(self, labels: tuple[str, ...] | None) -> dict[str, tuple[float, ...]]:
        """The values of each block or session, in the order in which these appear; without labels those of all."""
        found: dict[str, list[float]] = {}
        for label, value in zip(labels or [""] * len(self.values), self.values, strict=True):
            found.setdefault(label, []).append(value)
        return {label: tuple(values) for label, values in found.items()}


def read_sample(place: str) -> Sample:
    """The sample in a file, or on standard input for "-". SampleError names the line and the value that is wrong."""
    return parse_sample(read_text(place, remedy="Give two runs, two CSV files, or one study."), name_of(place))


def parse_sample(text: str, name: str) -> Sample:
    """The sample in CSV text; other columns than those of OF_SAMPLES, and empty lines, are passed over."""
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
            remedy=f"Values are 0, or from {LEAST_VALUE:g} to {MOST_VALUE:g}: rates, times, sizes. Choose a unit that fits.",
        )
    return value
