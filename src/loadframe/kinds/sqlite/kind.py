"""SQLite as a kind of target."""

import sqlite3

from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.sqlite.settings import CATALOGUE, TUNABLES
from loadframe.kinds.sqlite.target import SqliteTarget
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    return [Requirement("sqlite", "SQLite", sqlite3.sqlite_version, "part of Python")]


KINDS = (
    KindOfTarget(
        SqliteTarget.kind,
        SqliteTarget,
        CATALOGUE,
        CATALOGUE.check,
        requirements,
        embedded=SqliteTarget.embedded,
        tunables=TUNABLES,
        file=SettingsFile("tuned.sql", "PRAGMA {name} = {value};"),
    ),
)
