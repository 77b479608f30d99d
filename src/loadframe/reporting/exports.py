"""Formats of other tools, and tables as bytes."""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Generic, TypeVar

import polars

from loadframe.errors import RunError, UsageError
from loadframe.formats.said import words
from loadframe.panics import ROOM_BYTES, in_words

Source = TypeVar("Source")
FORMULA, NUMBER = r"^[=+\-@\t\r]", r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""What a spreadsheet may evaluate (OWASP, "CSV Injection"), except numbers."""


@dataclass(frozen=True, slots=True)
class ExportFormat(Generic[Source]):
    """suffix: of its files. what: its content. read_by: the program that reads it."""

    name: str
    suffix: str
    what: str
    read_by: str
    make: Callable[[Source], bytes]
    binary: bool = False


@dataclass(frozen=True, slots=True)
class OfFolders:
    """The formats of folders that are no runs, for the group `loadframe.exports`. is_one: whether a path is such a
    folder. of: ends the message "... is not a format"."""

    is_one: Callable[[Path], bool]
    formats: tuple[ExportFormat[Path], ...]
    of: str


def both(
    name: str, what: str, make: Callable[[Source], Iterable[polars.DataFrame]]
) -> tuple[ExportFormat[Source], ExportFormat[Source]]:
    return (
        ExportFormat(f"{name}.csv", ".csv", what, "spreadsheets", lambda source: csv_bytes([*make(source)])),
        ExportFormat(
            f"{name}.parquet", ".parquet", what, "data frames", lambda source: parquet_bytes([*make(source)]),
            binary=True,
        ),
    )  # fmt: skip


def exported(formats: Iterable[ExportFormat[Source]], source: Source, path: Path, name: str, of: str = "") -> bytes:
    """of: as in OfFolders. UsageError, RunError."""
    known = {export_format.name: export_format for export_format in formats}
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"--format {words(name)!r} is not a format{of}", remedy=f"{hint}One of {', '.join(known)}.")
    with in_words(f"{path} cannot be exported", RunError, polars.exceptions.PolarsError, room_bytes=ROOM_BYTES):
        return known[name].make(source)


def csv_bytes(tables: Sequence[polars.DataFrame]) -> bytes:
    """UTF-8 text (RFC 4180) with one header; the tables have equal columns. Unknown values are empty cells; what a
    spreadsheet would take for a formula gets a leading apostrophe."""
    data = io.BytesIO()
    text = polars.col(polars.String)
    formula = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    plain = polars.when(formula).then("'" + text).otherwise(text).name.keep()
    for number, table in enumerate(tables):
        named = table.fill_nan(None).rename(lambda name: f"'{name}" if re.match(FORMULA, name) else name)
        named.with_columns(plain).write_csv(data, include_header=number == 0)
    return data.getvalue()


def parquet_bytes(tables: Sequence[polars.DataFrame]) -> bytes:
    data = io.BytesIO()
    polars.concat(tables).write_parquet(data)
    return data.getvalue()
