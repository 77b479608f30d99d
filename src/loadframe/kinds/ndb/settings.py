"""The settings of MySQL Cluster, by the kind of section of config.ini that has them: the rows of settings.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from loadframe.kinds.ndb.setting import UNITS, Setting, Type

MANUAL = "MySQL 8.4 Reference Manual, "
MOST = 4294967039
"""0xFFFFFEFF, the largest value of most numbers."""
RESTARTS = {
    "N": "the nodes, in turn",
    "S": "the whole cluster",
    "IN": "the nodes, in turn, each with --initial",
    "IS": "the whole cluster, its data restored from a backup",
    "": "not said",
}
"""What has to be restarted for a new value (manual, table 25.15)."""

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8", errors="strict"))
MEMORY: Mapping[str, int] = _FILE["memory"]
"""Bytes of memory that one of each takes in a data node."""
PER_PART = "RedoBuffer"
"""Bytes for each part of the redo log (ndbd.cpp)."""

TAKES: Mapping[str, str] = {
    **{name: "this much memory" for name, size in MEMORY.items() if size == 1},
    **{name: f"{size:,} bytes of memory each" for name, size in MEMORY.items() if size > 1},
    **_FILE["takes"],
}
GIVES_UP: Mapping[str, str] = {**_FILE["gives_up"], **_FILE["larger_gives_up"]}
FIRST: Mapping[str, str] = _FILE["first"]


def _table(section: str, source: str, rows: str) -> Mapping[str, Setting]:
    settings = (_row(section, source, *(cell.strip() for cell in row.split("|"))) for row in rows.splitlines())
    return {setting.name.lower(): setting for setting in settings}


def _row(section: str, source: str, name: str, values: str, default: str, restart: str) -> Setting:
    type_, low, high, choices, unit = _VALUES.fullmatch(values).groups()  # type: ignore[union-attr]
    plain = name.rstrip("*")
    of_data_node = section == "ndbd"
    setting = Setting(
        section,
        plain,
        cast(Type, type_),
        _bound(low),
        _bound(high),
        tuple((choices or "").split()),
        unit or "",
        None,
        restart,
        name != plain,
        source,
        TAKES.get(plain, "") if of_data_node else "",
        GIVES_UP.get(plain) if of_data_node else None,
        first=FIRST.get(plain, "") if of_data_node else "",
    )
    setting = replace(setting, default=setting.read(default)) if default else setting
    if plain not in _FILE["larger_gives_up"] or setting.low is None:
        return setting
    return replace(setting, safe=range(setting.low, int(setting.default or 0) + 1))


_VALUES = re.compile(r"(\w+)(?: (\w+)\.\.(\w+))?(?: {(.*)})?(?: (\w+))?")


def _bound(word: str | None) -> int | None:
    if word is None:
        return None
    return MOST if word == "MOST" else int(word.rstrip("KMG")) * UNITS[word.lstrip("0123456789")]


SETTINGS = {section: _table(section, **table) for section, table in _FILE["section"].items()}
"""By kind of section and name in small letters."""

POOL, POOL_MOST = "ndb_cluster_connection_pool", 63
"""A MySQL server's own option, 1 by default: its connections to the cluster, each a node (manual, 25.4.3.9.1)."""
