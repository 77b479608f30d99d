"""All kinds of target by name. To add one, write its file and add one row to KINDS (docs/writing-a-target.md)."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance
from loadframe.errors import StudyError
from loadframe.model import Requirement, SettingValue
from loadframe.targets import mariadb, mariadb_server, sqlite, sqlite_settings
from loadframe.targets.base import Target
from loadframe.targets.catalogue import Catalogue, SettingSpec
from loadframe.targets.mariadb_settings import CATALOGUE as MARIADB


@dataclass(frozen=True, slots=True)
class KindOfTarget:
    """One row of the registry."""

    make: Callable[[Lease, Allowance], Target]
    catalogue: Catalogue
    check_settings: Callable[[Mapping[str, SettingValue]], dict[str, SettingValue]]
    requirements: Callable[[], list[Requirement]]
    embedded: bool


def _mariadb_requirements() -> list[Requirement]:
    programs = [
        Requirement("mariadb", name, mariadb_server.program(name), mariadb_server.INSTALL)
        for name in ("mariadbd", "mariadb-install-db")
    ]
    package = "importable" if importlib.util.find_spec("pymysql") else None
    return [*programs, Requirement("mariadb", "Python package pymysql", package, "pip install 'loadframe[mariadb]'")]


def _sqlite_requirements() -> list[Requirement]:
    return [Requirement("sqlite", "SQLite", sqlite3.sqlite_version, "part of Python")]


KINDS: Mapping[str, KindOfTarget] = {
    "mariadb": KindOfTarget(
        lambda lease, allowance: mariadb.MariadbTarget(lease=lease, allowance=allowance),
        MARIADB,
        mariadb.check_settings,
        _mariadb_requirements,
        embedded=mariadb.MariadbTarget.embedded,
    ),
    "sqlite": KindOfTarget(
        lambda lease, allowance: sqlite.SqliteTarget(lease=lease, allowance=allowance),
        sqlite_settings.CATALOGUE,
        sqlite_settings.CATALOGUE.check,
        _sqlite_requirements,
        embedded=sqlite.SqliteTarget.embedded,
    ),
}


def make(kind: str, *, lease: Lease, allowance: Allowance) -> Target:
    """A target of this kind that keeps its data in the lease's folder. StudyError for an unknown kind."""
    return _kind(kind).make(lease, allowance)


def check_settings(kind: str, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The settings in the form in which `effective` answers, so that the two can be compared. StudyError."""
    return _kind(kind).check_settings(settings)


def setting(kind: str, name: str) -> SettingSpec | None:
    """What the catalogue knows of a setting, None for one that is only passed through."""
    return _kind(kind).catalogue.get(name)


def check() -> list[Requirement]:
    """What every kind needs and whether it is here."""
    return [requirement for kind in KINDS.values() for requirement in kind.requirements()]


def _kind(kind: str) -> KindOfTarget:
    if kind not in KINDS:
        raise StudyError(f"target.kind = {kind!r} is not known", remedy=f"Known kinds: {', '.join(sorted(KINDS))}.")
    return KINDS[kind]
