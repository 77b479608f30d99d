"""Comma-separated text from a file or standard input, as other tools and people write it: rows that know their line."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import SampleError
from loadframe.formats.named_files import read_up_to
from loadframe.formats.plain_numbers import finite
from loadframe.progress import counted

STDIN = "-"
LARGEST_BYTES = 50_000_000
"""A million values and more; whatever is larger was given by mistake."""

PACKED = {b"\x1f\x8b": "zcat", b"\x28\xb5\x2f\xfd": "zstdcat", b"\xfd7zXZ": "xzcat", b"BZh": "bzcat"}
"""How a compressed file begins, and what unpacks it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its cells without spaces around them, and where it stands ("points.csv, line 3")."""

    cells: tuple[str, ...]
    where: str


def name_of(place: str) -> str:
    """What messages call a place; "-" is standard input."""
    return "standard input" if place == STDIN else place


def read_text(place: str, *, remedy: str) -> str:
    """The text of a file, or of standard input for "-". SampleError where it cannot be read; remedy: what to give
    instead of a file that is not there."""
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
    """The lines of CSV text that are not empty. SampleError names the line that is no CSV."""
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
    """The names in the first line, in lower case; none where there is no line."""
    return [cell.lower() for cell in lines[0].cells] if lines else []


def check_commas(names: list[str], name: str) -> None:
    """SampleError for a header that has no comma but what spreadsheets write where the comma is a decimal sign."""
    between = next((one for one in ";\t" if len(names) == 1 and one in names[0]), "")
    if between:
        raise SampleError(
            f"{name}, line 1 has {between!r} between its columns, and no comma",
            remedy="Separate columns by commas, and write numbers as 1234.5.",
        )


def check_once(names: list[str], name: str) -> None:
    """SampleError for a header that names a column twice."""
    twice = next((column for column in names if column and names.count(column) > 1), None)
    if twice is not None:
        raise SampleError(f"{name}, line 1 names the column {twice[:100]!r} twice", remedy="Remove one of them.")


def check_cells(names: list[str], body: list[Row], remedy: str = "Give every row a cell for each column.") -> None:
    """SampleError for a row that has more or fewer cells than the header."""
    for row in body:
        if len(row.cells) != len(names):
            raise SampleError(
                f"{row.where} has {counted(len(row.cells), 'cell')} where the first line names "
                f"{counted(len(names), 'column')}",
                remedy=remedy,
            )


def beginning(names: list[str]) -> str:
    """The first names of a header, as a message quotes them."""
    return repr((", ".join(names[:8]) or "nothing")[:100])


def number(text: str, where: str) -> float:
    """A cell as a number. SampleError for text, and for what is not finite."""
    value = finite(text)
    if value is None:
        raise SampleError(
            f"{where}: {text[:100]!r} is not a finite number",
            remedy="Write numbers as 1234.5, and leave out what was not measured.",
        )
    return value


def measured(column: str, cell: str, row: Row, right: Callable[[float], bool], remedy: str) -> float:
    """A cell's number. SampleError where it is none, or not a right one."""
    value = number(cell, f"{row.where}: {column}")
    if not right(value):
        raise SampleError(f"{row.where}: {column} is {cell[:100]}", remedy=remedy)
    return value
