"""Export a watch in the formats of other tools. Its folder is only read."""

from array import array
from collections.abc import Callable, Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any

import numpy
import polars

from loadframe.errors import RunError
from loadframe.formats.plain_numbers import LARGEST, is_number
from loadframe.reporting.exports import ExportFormat, OfFolders, both
from loadframe_watch.days import DAY, WatchLine, days, lines, table_in, tables_in
from loadframe_watch.openmetrics import of_watch

MOST_ROWS = 2_000_000
"""230 days of one sample every ten seconds."""
MOST_COLUMNS = 2_000
CELLS, CELLS_PER_BYTE = 1_000_000, 4
"""Cells of a table of samples, and more for each byte of the folder: a compacted day has 0.7 per byte."""
SAMPLE: Mapping[str, Any] = {
    "n": polars.Int64,
    "kind": polars.String,
    **dict.fromkeys(("at_s", "up_s", "load", "throughput", "response_s", "late_s"), polars.Float64),
    "error": polars.String,
}
"""One column for each use.LIMIT and one for each metric follow."""
ALARM: Mapping[str, Any] = {
    "n": polars.Int64,
    "at_s": polars.Float64,
    **dict.fromkeys(("alarm", "about", "title", "evidence", "try"), polars.String),
    **{f"{name}{end}": polars.Float64 for name in ("at_load", "ends_s") for end in ("", "_low", "_high")},
}
GAP: Mapping[str, Any] = {
    "n": polars.Int64,
    **dict.fromkeys(("from_s", "to_s", "seconds"), polars.Float64),
    **dict.fromkeys(("reason", "words"), polars.String),
}


def is_watch_folder(path: Path) -> bool:
    try:
        return not (path / "run.json").exists() and any(DAY.fullmatch(entry.name) for entry in path.iterdir())
    except OSError:  # opening it as a run reports the error
        return False


def _samples(folder: Path) -> Iterator[polars.DataFrame]:
    """In columns of eight bytes a cell: a year as rows of Python objects would not fit into memory."""
    texts: dict[str, list[Any]] = {name: [] for name, kind in SAMPLE.items() if kind != polars.Float64}
    measured = {name: array("d") for name, kind in SAMPLE.items() if kind == polars.Float64}
    most = CELLS + CELLS_PER_BYTE * sum(day.bytes_on_disk for day in days(folder))
    for count, line in enumerate(_bounded(folder, ("sample", "unit"))):
        row = _sample(line)
        measured |= {name: array("d", [nan]) * count for name in row.keys() - measured.keys() - texts.keys()}
        if len(measured) > MOST_COLUMNS or len(measured) * (count + 1) > most:
            raise RunError(
                f"{folder} has {len(measured):,} metrics, most of them in few samples: a table of them is "
                "far larger than the folder",
                remedy="Read its day files.",
            )
        for name, values in texts.items():
            values.append(row.get(name))
        for name, column in measured.items():
            column.append(row.get(name, nan))
    order = [*SAMPLE, *sorted(measured.keys() - SAMPLE.keys())]
    yield polars.DataFrame(
        [
            polars.Series(name, texts[name], dtype=SAMPLE[name])
            if name in texts
            else polars.Series(name, numpy.frombuffer(measured[name])).fill_nan(None)
            for name in order
        ]
    )


def _sample(line: WatchLine) -> dict[str, Any]:
    data = line.data
    shares = {f"use.{key}": value for key, value in table_in(data.get("use")).items()}
    fields = {"load": "load", "throughput": "throughput", "response_s": "response_s", "late_s": "late"}
    own = {name: data[field] for name, field in fields.items() if field in data}
    numbers = {str(key): _number(value) for key, value in {**shares, **table_in(data.get("values")), **own}.items()}
    common = {"n": line.n, "kind": line.kind, "at_s": line.at_s, "up_s": line.up_s, "error": _text(data.get("error"))}
    return {**{key: value for key, value in numbers.items() if value is not None}, **common}


def _alarm(data: Mapping[str, Any]) -> dict[str, Any]:
    load, ends = table_in(data.get("at_load")), table_in(data.get("ends_s"))
    advice = data.get("try")
    return {
        "evidence": ". ".join(str(evidence.get("text", "")) for evidence in tables_in(data.get("evidence"))),
        "try": " ".join(map(str, advice if isinstance(advice, list) else ())),
        "at_load": load.get("load"),
        **{f"at_load_{end}": load.get(end) for end in ("low", "high")},
        "ends_s": ends.get("value"),
        **{f"ends_s_{end}": ends.get(end) for end in ("low", "high")},
    }


def _table_of(
    kind: str, columns: Mapping[str, Any], more: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
) -> Callable[[Path], Iterator[polars.DataFrame]]:
    """more: cells from the fields of a line; what is no value of its column's type is left out."""
    read: dict[Any, Callable[[Any], Any]] = {polars.Float64: _number, polars.String: _text, polars.Int64: int}

    def tables(folder: Path) -> Iterator[polars.DataFrame]:
        lines_of_kind = _bounded(folder, (kind,))
        rows = ({**line.data, "n": line.n, "at_s": line.at_s, **more(line.data)} for line in lines_of_kind)
        data = [[read[type_](cells.get(name)) for name, type_ in columns.items()] for cells in rows]
        yield polars.DataFrame(data, schema=dict(columns), orient="row")

    return tables


def _bounded(folder: Path, kinds: tuple[str, ...]) -> Iterator[WatchLine]:
    for count, line in enumerate(lines(folder, kinds=kinds)):
        if count >= MOST_ROWS:
            raise RunError(f"{folder} has more than {MOST_ROWS:,} such lines", remedy="Move older days elsewhere.")
        yield line


def _number(value: object) -> float | None:
    return float(value) if is_number(value) and abs(value) <= LARGEST else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


WATCH_FORMATS: tuple[ExportFormat[Path], ...] = (
    ExportFormat(
        "openmetrics",
        ".prom",
        "the last line of each kind, and the alarms",
        "Prometheus",
        lambda folder: of_watch(lines(folder), folder.resolve().name).encode(),
    ),
    *both("samples", "every sample and unit of work", _samples),
    *both("alarms", "every alarm with its evidence", _table_of("alarm", ALARM, _alarm)),
    *both("gaps", "every gap with its reason", _table_of("gap", GAP)),
)
OF_WATCHES = OfFolders(is_watch_folder, WATCH_FORMATS, " of a watch")
