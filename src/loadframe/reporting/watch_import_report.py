"""The first answer of a watch, from what was imported: as text, and as loadframe.watch-import/1."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from loadframe.analysis.saturation_of_rows import BENT
from loadframe.formats.said import words
from loadframe.model import LoadInterval
from loadframe.model.watch import ImportedWatch
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import terminal
from loadframe.reporting.rounding import plain
from loadframe.reporting.words import load, load_interval

SCHEMA = "loadframe.watch-import/1"
_LONGER = f"{BENT:g} times as long as at the lowest third of the loads"


def import_json(found: ImportedWatch) -> dict[str, Any]:
    """JSON-ready. `model` as a line `model` of a day file; times are wall clock."""
    fields = asdict(found)
    del fields["has_response"], fields["titles"]
    return {"schema": SCHEMA, **fields}


def render_import(found: ImportedWatch, *, width: int = terminal.WIDTH) -> str:
    """The same in words."""
    unit = words(found.load, 100)
    highest = "no load" if found.highest_load is None else f"{unit} up to {plain(found.highest_load)}"
    span = f"{_moment(found.from_s)} to {_moment(found.to_s)}"
    answer = [f"{words(found.name, 100)}: {counted(found.rows, 'row')} from {span}, {highest}"]
    if found.bend is not None:
        answer.append(f"From {load_interval(found.bend, unit)} on the response takes {_LONGER}")
    elif found.has_response:
        answer.append(f"No load is seen from which on the response takes {_LONGER}")
    full = {limit["id"]: limit for limit in found.model["limits"]}
    limits = [
        f"{_title(found, name)}: full at {_range(limit['at_load'], unit)}{_when(found, limit)}"
        for name, limit in full.items()
    ]
    others = sorted(found.highest_use.keys() - full.keys())
    limits += [f"{_title(found, name)}: nothing shows at which load it would be full" for name in others]
    on = f"{words(found.folder, 400)}. `loadframe watch ... --folder` with this folder goes on from here."
    sections = (
        doc.listed("Limits", limits),
        doc.listed("Mind", (words(note, 400) for note in found.notes)),
        doc.listed("Day files", (on,) if found.folder else ()),
    )
    return terminal.render(doc.Document("Watch", tuple(answer), sections), width)


def _title(found: ImportedWatch, name: str) -> str:
    return f"{words(found.titles.get(name, name), 100)}, {found.highest_use.get(name, 0):.0%} at the most"


def _range(at: Mapping[str, float], unit: str) -> str:
    if at["low"] == at["high"]:  # it was full at the lowest load already
        return f"{load(at['load'], unit)} or less"
    return load_interval(LoadInterval(at["load"], at["low"], at["high"]), unit)


def _when(found: ImportedWatch, limit: Mapping[str, Any]) -> str:
    at_s = limit["at_s"]
    if at_s is not None:
        value, low, high = (_moment(at_s.get(name)) for name in ("value", "low", "high"))
        return f"; the load gets there at about {value} ({low} to {high})"
    if found.highest_load is not None and found.highest_load >= limit["at_load"]["load"]:
        return "; the load was there already"
    return "; no proof that the load is on its way there"


def _moment(at_s: float | None) -> str:
    if at_s is None or at_s > 4e9:
        return "much later"
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at_s))
