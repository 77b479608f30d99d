"""Which settings a search may vary, and how far: the part of each catalogue that decides how fast a target is.

What a target takes (catalogue.py) reaches further than what is sensible: ranges here go from a small machine's value to
a large one's. The rows are those of each kind (`TUNABLES` in `kinds/NAME/settings.py`).
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from loadframe.kinds.catalogue import sized
from loadframe.model import SettingValue

MB = 1 << 20
Per = Literal["server", "connection"]


@dataclass(frozen=True, slots=True)
class Tunable:
    """How far a setting may be varied: over these values, or from low to high in equal ratios.

    high: None is half of the memory that there is. relaxed: values that give durability up; they belong to the space
    only where the study allows that. unit_bytes: memory that each unit of the value takes, for the server or for each
    connection; 0 where it takes none to speak of. without_effect: given with one of these settings,
    it has none.
    """

    name: str
    values: tuple[SettingValue, ...] = ()
    low: float = 0
    high: float | None = 0
    relaxed: tuple[SettingValue, ...] = ()
    unit_bytes: float = 0
    per: Per = "server"
    without_effect: tuple[str, ...] = ()


def tunables_in(file: Path) -> tuple[Tunable, ...]:
    """The [tune] of a TOML file of ours; a size may be written as 32M, and the largest as "half of memory"."""
    rows = tomllib.loads(file.read_text(encoding="utf-8", errors="strict"))["tune"].items()
    return tuple(Tunable(name, **{column: _value(value) for column, value in row.items()}) for name, row in rows)


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return None if value == "half of memory" else sized(value)
