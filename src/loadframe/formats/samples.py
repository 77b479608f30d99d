"""CSV samples, as other tools and people write them: a column `value` in time order, and perhaps a column `block`, or
`time` on a clock that both samples share."""

from __future__ import annotations

from dataclasses import dataclass

from loadframe.errors import SampleError
from loadframe.formats.csv_text import Row, beginning, header, name_of, number, read_text, rows

SMALLEST, LARGEST = 1e-100, 1e100
"""Beyond these, squares and ratios leave what a double can hold."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Values (0 or more) in time order; the block of each, and its time, or None where the file has no such column."""

    name: str
    values: tuple[float, ...]
    blocks: tuple[str, ...] | None
    times: tuple[float, ...] | None = None

    def by_block(self) -> dict[str, tuple[float, ...]]:
        """The values of each block, in the order in which the blocks appear."""
        found: dict[str, list[float]] = {}
        for block, value in zip(self.blocks or (), self.values, strict=True):
            found.setdefault(block, []).append(value)
        return {block: tuple(values) for block, values in found.items()}


def read_sample(place: str) -> Sample:
    """The sample in a file, or on standard input for "-". SampleError names the line and the value that is wrong."""
    return parse_sample(read_text(place, remedy="Give two runs, two CSV files, or one study."), name_of(place))


def parse_sample(text: str, name: str) -> Sample:
    """The sample in CSV text; columns other than `value`, `block` and `time`, and empty lines, are passed over."""
    lines = rows(text, name)
    names = header(lines)
    if names.count("value") != 1 or names.count("block") > 1 or names.count("time") > 1:
        raise SampleError(
            f"{name} has no first line that names one column `value`; it begins with {beginning(names)}",
            remedy="Write `value` (and `block`, if there are blocks) above the numbers.",
        )
    at, block_at = names.index("value"), names.index("block") if "block" in names else None
    body = lines[1:]
    if not body:
        raise SampleError(f"{name} has no values below its first line", remedy="Measure something first.")
    values = tuple(_value(row, at) for row in body)
    blocks = tuple(_cell(row, block_at) for row in body) if block_at is not None else None
    if blocks is not None and "" in blocks:
        raise SampleError(f"{body[blocks.index('')].where} has no block", remedy="Give every value its block, or none.")
    if "time" not in names:
        return Sample(name, values, blocks)
    when = names.index("time")
    times = tuple(number(_cell(row, when), row.where) for row in body)
    order = sorted(range(len(times)), key=lambda row: times[row])
    return Sample(
        name,
        tuple(values[row] for row in order),
        tuple(blocks[row] for row in order) if blocks is not None else None,
        tuple(times[row] for row in order),
    )


def _cell(row: Row, at: int) -> str:
    return row.cells[at] if at < len(row.cells) else ""


def _value(row: Row, at: int) -> float:
    value = number(_cell(row, at), row.where)
    if not (value == 0 or SMALLEST <= value <= LARGEST):
        raise SampleError(
            f"{row.where}: {_cell(row, at)[:100]} cannot be compared as a ratio",
            remedy=f"Values are 0, or from {SMALLEST:g} to {LARGEST:g}: rates, times, sizes. Choose a unit that fits.",
        )
    return value
