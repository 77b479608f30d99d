"""CSV samples, as other tools and people write them: a column `value` in time order, and perhaps a column `block`."""

from __future__ import annotations

import csv
import io
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from loadframe.errors import SampleError

STDIN = "-"
LARGEST_BYTES = 50_000_000
"""A million values and more; whatever is larger was given by mistake."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Values (0 or more) in time order; the block of each, or None where the file has no such column."""

    name: str
    values: tuple[float, ...]
    blocks: tuple[str, ...] | None

    def by_block(self) -> dict[str, float]:
        """The median of each block's values, in the order in which the blocks appear."""
        found: dict[str, list[float]] = {}
        for block, value in zip(self.blocks or (), self.values, strict=True):
            found.setdefault(block, []).append(value)
        return {block: median(values) for block, values in found.items()}


def read_sample(place: str) -> Sample:
    """The sample in a file, or on standard input for "-". SampleError names the line and the value that is wrong."""
    name = "standard input" if place == STDIN else place
    return parse_sample(_text(place, name), name)


def parse_sample(text: str, name: str) -> Sample:
    """The sample in CSV text; columns other than `value` and `block`, and empty lines, are passed over."""
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        lines = [(rows.line_num, row) for row in rows if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise SampleError(f"{name}, line {rows.line_num}: {error}", remedy="Give a comma-separated file.") from error
    header = [cell.strip().lower() for cell in lines[0][1]] if lines else []
    if header.count("value") != 1 or header.count("block") > 1:
        seen = ", ".join(header[:8]) or "nothing"
        raise SampleError(
            f"{name} has no first line that names one column `value`; it begins with {seen[:100]!r}",
            remedy="Write `value` (and `block`, if there are blocks) above the numbers.",
        )
    at, block_at = header.index("value"), header.index("block") if "block" in header else None
    body = lines[1:]
    if not body:
        raise SampleError(f"{name} has no values below its first line", remedy="Measure something first.")
    values = tuple(_number(row, at, f"{name}, line {line}") for line, row in body)
    blocks = tuple(_cell(row, block_at) for _, row in body) if block_at is not None else None
    if blocks is not None and "" in blocks:
        line = body[blocks.index("")][0]
        raise SampleError(f"{name}, line {line} has no block", remedy="Give every value its block, or none.")
    return Sample(name, values, blocks)


def _cell(row: list[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _number(row: list[str], at: int, where: str) -> float:
    text = _cell(row, at)
    try:
        value = float(text)
    except ValueError:
        raise SampleError(f"{where}: {text[:100]!r} is not a number", remedy="Write numbers as 1234.5.") from None
    if not math.isfinite(value) or value < 0:
        raise SampleError(
            f"{where}: {text[:100]} cannot be compared as a ratio",
            remedy="Values are finite and not negative: rates, times, sizes.",
        )
    return value


def _text(place: str, name: str) -> str:
    try:
        if place == STDIN:
            data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with Path(place).open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise SampleError(f"{name} is larger than {LARGEST_BYTES:,} bytes", remedy="Thin it out first.")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise SampleError(
            f"there is no file or run folder {place}", remedy="Give two runs, two CSV files, or one study."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SampleError(f"{name} cannot be read: {error}", remedy="It must be a text file in UTF-8.") from error
