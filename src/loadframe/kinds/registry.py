"""All kinds of target by name. To add one, write its file and add one row to KINDS (docs/writing-a-target.md)."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.base import Target
from loadframe.kinds.bulk_loader import target as bulk_loader
from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.kinds.mariadb import server as mariadb_server
from loadframe.kinds.mariadb import target as mariadb
from loadframe.kinds.mariadb.settings import CATALOGUE as MARIADB
from loadframe.kinds.nginx import cache as nginx_cache
from loadframe.kinds.nginx import server as nginx_server
from loadframe.kinds.nginx import target as nginx
from loadframe.kinds.nginx.settings import CACHE_CATALOGUE as NGINX_CACHE
from loadframe.kinds.nginx.settings import CATALOGUE as NGINX
from loadframe.kinds.postgres import server as postgres_server
from loadframe.kinds.postgres import shards as postgres_shards
from loadframe.kinds.postgres import target as postgres
from loadframe.kinds.postgres.settings import CATALOGUE as POSTGRES
from loadframe.kinds.sqlite import settings as sqlite_settings
from loadframe.kinds.sqlite import target as sqlite
from loadframe.kinds.squid import server as squid_server
from loadframe.kinds.squid import target as squid
from loadframe.kinds.squid.settings import CATALOGUE as SQUID
from loadframe.kinds.url import target as url
from loadframe.kinds.varnish import counters as varnish_counters
from loadframe.kinds.varnish import server as varnish_server
from loadframe.kinds.varnish import target as varnish
from loadframe.kinds.varnish.settings import CATALOGUE as VARNISH
from loadframe.model import Requirement, SettingValue
from loadframe.postgres_programs import program


@dataclass(frozen=True, slots=True)
class KindOfTarget:
    """One row of the registry. make_shards: for kinds that are made of shards, or of which there may be several side by
    side; given what each component is allowed. before: the components in front of the shards. cache: whether it is a
    base.Cache."""

    make: Callable[[Lease, Allowance], Target]
    catalogue: Catalogue
    check_settings: Callable[[Mapping[str, SettingValue]], dict[str, SettingValue]]
    requirements: Callable[[], list[Requirement]]
    embedded: bool
    make_shards: Callable[[Lease, Mapping[str, Allowance]], Target] | None = None
    before: tuple[str, ...] = ()
    cache: bool = False


def _mariadb_requirements() -> list[Requirement]:
    programs = [
        Requirement("mariadb", name, mariadb_server.program(name), mariadb_server.INSTALL)
        for name in ("mariadbd", "mariadb-install-db")
    ]
    package = "importable" if importlib.util.find_spec("pymysql") else None
    return [*programs, Requirement("mariadb", "Python package pymysql", package, "pip install 'loadframe[mariadb]'")]


def _nginx_requirements() -> list[Requirement]:
    return [Requirement("nginx", "nginx", nginx_server.program(), nginx_server.INSTALL)]


def _postgres_requirements() -> list[Requirement]:
    programs = [
        Requirement("postgres", name, program(name), postgres_server.INSTALL) for name in ("postgres", "initdb")
    ]
    package = "importable" if importlib.util.find_spec("psycopg") else None
    return [*programs, Requirement("postgres", "Python package psycopg", package, "pip install 'loadframe[postgres]'")]


def _varnish_requirements() -> list[Requirement]:
    """An origin, too, and a compiler, with which it makes its configuration."""
    programs = [
        Requirement("varnish", name, varnish_server.program(name), varnish_counters.INSTALL)
        for name in ("varnishd", "varnishadm", "cc")
    ]
    counters = Requirement("varnish", "libvarnishapi", varnish_counters.library(), varnish_counters.INSTALL)
    return [*programs, counters, *_nginx_requirements()]


def _squid_requirements() -> list[Requirement]:
    """An origin, too."""
    return [Requirement("squid", "squid", squid_server.program(), squid_server.INSTALL), *_nginx_requirements()]


def _sqlite_requirements() -> list[Requirement]:
    return [Requirement("sqlite", "SQLite", sqlite3.sqlite_version, "part of Python")]


def _never_alone(lease: Lease, allowance: Allowance) -> Target:
    raise StudyError(
        "a bulk-loader loads into shards, and the study gives it none",
        remedy="Add target.shards, for example shards = 4.",
    )


KINDS: Mapping[str, KindOfTarget] = {
    "bulk-loader": KindOfTarget(
        _never_alone,
        bulk_loader.CATALOGUE,
        bulk_loader.check_settings,
        _postgres_requirements,
        embedded=bulk_loader.BulkLoaderTarget.embedded,
        make_shards=lambda lease, allowances: bulk_loader.BulkLoaderTarget(lease=lease, allowances=allowances),
        before=(bulk_loader.LOADER,),
    ),
    "mariadb": KindOfTarget(
        lambda lease, allowance: mariadb.MariadbTarget(lease=lease, allowance=allowance),
        MARIADB,
        mariadb.check_settings,
        _mariadb_requirements,
        embedded=mariadb.MariadbTarget.embedded,
    ),
    "nginx": KindOfTarget(
        lambda lease, allowance: nginx.NginxTarget(lease=lease, allowance=allowance),
        NGINX,
        nginx.check_settings,
        _nginx_requirements,
        embedded=nginx.NginxTarget.embedded,
    ),
    "nginx-cache": KindOfTarget(
        lambda lease, allowance: nginx_cache.NginxCacheTarget(lease=lease, allowance=allowance),
        NGINX_CACHE,
        nginx_cache.check_settings,
        _nginx_requirements,
        embedded=nginx_cache.NginxCacheTarget.embedded,
        cache=True,
    ),
    "postgres": KindOfTarget(
        lambda lease, allowance: postgres.PostgresTarget(lease=lease, allowance=allowance),
        POSTGRES,
        postgres.check_settings,
        _postgres_requirements,
        embedded=postgres.PostgresTarget.embedded,
        make_shards=lambda lease, allowances: postgres_shards.PostgresShards(
            lease=lease, allowances=list(allowances.values())
        ),
    ),
    "sqlite": KindOfTarget(
        lambda lease, allowance: sqlite.SqliteTarget(lease=lease, allowance=allowance),
        sqlite_settings.CATALOGUE,
        sqlite_settings.CATALOGUE.check,
        _sqlite_requirements,
        embedded=sqlite.SqliteTarget.embedded,
    ),
    "squid": KindOfTarget(
        lambda lease, allowance: squid.SquidTarget(lease=lease, allowance=allowance),
        SQUID,
        squid.check_settings,
        _squid_requirements,
        embedded=squid.SquidTarget.embedded,
        cache=True,
    ),
    "url": KindOfTarget(
        lambda lease, allowance: url.UrlTarget(),
        url.CATALOGUE,
        url.check_settings,
        list,
        embedded=url.UrlTarget.embedded,
    ),
    "varnish": KindOfTarget(
        lambda lease, allowance: varnish.VarnishTarget(lease=lease, allowance=allowance),
        VARNISH,
        varnish.check_settings,
        _varnish_requirements,
        embedded=varnish.VarnishTarget.embedded,
        cache=True,
    ),
}


def make(kind: str, *, lease: Lease, allowance: Allowance) -> Target:
    """A target of this kind that keeps its data in the lease's folder. StudyError for an unknown kind."""
    return kind_named(kind).make(lease, allowance)


def make_shards(kind: str, *, lease: Lease, allowances: Mapping[str, Allowance]) -> Target:
    """A target of this kind in several pieces, with what each of its `components` is allowed. StudyError for an unknown
    kind, or one of which there is only one."""
    made = kind_named(kind).make_shards
    if made is None:
        sharded = sorted(name for name, one in KINDS.items() if one.make_shards is not None)
        raise StudyError(
            f"target.shards: there is only one {kind}",
            remedy=f"Omit it; of these there may be several: {', '.join(sharded)}.",
        )
    return made(lease, allowances)


def components(kind: str, shards: int | None) -> tuple[str, ...]:
    """What a target is made of: "target" alone, or its pieces. StudyError for an unknown kind."""
    if shards is None:
        return ("target",)
    return (*kind_named(kind).before, *(postgres_shards.shard_name(number) for number in range(1, shards + 1)))


def check_settings(kind: str, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The settings in the form in which `effective` answers, so that the two can be compared. StudyError."""
    return kind_named(kind).check_settings(settings)


def setting(kind: str, name: str) -> SettingSpec | None:
    """What the catalogue knows of a setting, None for one that is only passed through."""
    return kind_named(kind).catalogue.get(name)


def gives_up(kind: str, settings: Mapping[str, SettingValue]) -> str | None:
    """The durability that these settings give up, in words; None where they give up none. StudyError."""
    said = []
    for name, value in check_settings(kind, settings).items():
        spec = setting(kind, name)
        if spec is not None and spec.weakens(value):
            said.append(f"{name} = {value}; {spec.gives_up}")
    return "; ".join(said) or None


def check() -> list[Requirement]:
    """What every kind needs and whether it is here; what several kinds need, once."""
    return list(dict.fromkeys(requirement for kind in KINDS.values() for requirement in kind.requirements()))


def kind_named(kind: str) -> KindOfTarget:
    """What is known of a kind. StudyError for one that is not."""
    if kind == "ndb":
        raise StudyError(
            "target.kind = 'ndb': Loadframe starts no MySQL Cluster",
            remedy="`loadframe ndb CONFIG` checks its config.ini (docs/ndb.md).",
        )
    if kind not in KINDS:
        raise StudyError(f"target.kind = {kind!r} is not known", remedy=f"Known kinds: {', '.join(sorted(KINDS))}.")
    return KINDS[kind]
