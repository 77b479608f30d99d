"""What other monitoring has recorded, as the beginning of a watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadframe.model.curve import LoadInterval


@dataclass(frozen=True, slots=True)
class ImportedWatch:
    """folder: the watch folder; name: of the file; load: the metric that the watch takes as the load; from_s, to_s:
    wall clock of the first and the last row. model: as a line `model` of a day file (docs/watching.md), at the time of
    the last row; titles: of its limits, by id. has_response: whether a response was
    imported that can show a bend; bend: of it. highest_use: shares, by limit; highest_load: None where no row has a
    load."""

    folder: str
    name: str
    load: str
    rows: int
    from_s: float
    to_s: float
    model: Mapping[str, Any]
    has_response: bool
    bend: LoadInterval | None
    highest_load: float | None
    highest_use: Mapping[str, float]
    titles: Mapping[str, str]
    notes: tuple[str, ...] = ()
