"""What a workload does alike to MariaDB, MySQL and PostgreSQL. On a server that Loadframe did not start, our schema is
marked by a table whose name is written into the journal first: a schema without it is not ours."""

import secrets
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from loadframe.errors import TargetError, WorkloadError
from loadframe.model import Endpoint
from loadframe.workloads import mariadb, postgres

KINDS = frozenset({"mariadb", "mysql", "postgres"})
REMOVABLE = KINDS | {"ndb-sql"}
"""Kinds of endpoint whose schema is made and dropped here, also after a killed run."""
DRIVERS_GONE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.01
QUICK_S = 60.0
MARK = "mark"


def engine_of(endpoint: Endpoint) -> Any:
    """The module for an endpoint's kind of database; all of them define these names.

    anywhere: a connection whether the schema is there or not. SYSBENCH: its driver's name there. PACKAGE: of Python,
    and the extra that brings it. NAME: of a schema in a statement. DROP, CREATE: the schema of this NAME. dropping:
    statements that drop it and nothing of others'. TRANSACTIONAL: schemas and tables are made in transactions. EXISTS,
    TABLES: statements, given the schema's name. HERE: 1 where names are looked up in it. DRIVERS: counts load drivers'
    connections."""
    return postgres if endpoint.kind == "postgres" else mariadb


def new_mark() -> str:
    return f"loadframe_run_{secrets.token_hex(8)}"


def marked(endpoint: Endpoint, mark: str) -> Endpoint:
    return replace(endpoint, options={**endpoint.options, MARK: mark})


def mark_of(endpoint: Endpoint) -> str:
    """The table that marks the schema as ours; "" if the whole server is ours."""
    return endpoint.options[MARK] if endpoint.attached else ""


def await_drivers_gone(endpoint: Endpoint, doing: str) -> None:
    """Wait until each server has closed the connections of a killed driver. TargetError if one refuses."""
    for front in endpoint.fronts or (endpoint,):
        with engine_of(front).connected(front, doing, patience_s=QUICK_S) as connection:
            await_gone(connection, front)


def await_gone(connection: Any, endpoint: Endpoint) -> None:
    """As await_drivers_gone, over an open connection. A killed driver's last statement may still run in the server."""
    until, engine = time.monotonic() + DRIVERS_GONE_WITHIN_S, engine_of(endpoint)
    drivers = engine.DRIVERS.format(engine.schema_of(endpoint))
    while time.monotonic() < until and engine.ask(connection, drivers) != [(0,)]:
        time.sleep(LOOK_EVERY_S)


def make_schema(endpoint: Endpoint) -> None:
    """TargetError if there is one that is not ours to drop."""
    with engine_of(endpoint).anywhere(endpoint, "to make a schema") as connection:
        make_schema_over(connection, endpoint)


def make_schema_over(connection: Any, endpoint: Endpoint) -> None:
    engine, name, mark = engine_of(endpoint), name_of(endpoint), mark_of(endpoint)
    with connection.transaction() if engine.TRANSACTIONAL else nullcontext():
        if not mark or _is_ours(connection, endpoint):
            engine.execute(connection, engine.dropping(connection, endpoint))
        elif _asked(connection, endpoint, "EXISTS"):
            raise _refusal(endpoint)
        stored = endpoint.options.get("storage_engine")
        marked = f"CREATE TABLE {name}.{mark} (id INT PRIMARY KEY){f' ENGINE = {stored}' if stored else ''}"
        # One round trip: the server completes it even if we are killed.
        engine.execute(connection, [engine.CREATE.format(name), *([marked] if mark else [])])


def drop_schema(endpoint: Endpoint) -> None:
    """One that is not ours stays."""
    engine = engine_of(endpoint)
    with (
        engine.anywhere(endpoint, "to drop the driver's schema") as connection,
        connection.transaction() if engine.TRANSACTIONAL else nullcontext(),
    ):
        if not endpoint.attached or _is_ours(connection, endpoint):
            engine.execute(connection, engine.dropping(connection, endpoint))


def has_own_schema(endpoint: Endpoint) -> bool:
    """TargetError for an empty one, which a killed run may have begun."""
    engine = engine_of(endpoint)
    with engine.anywhere(endpoint, "to look for the driver's schema", patience_s=QUICK_S) as connection:
        if _is_ours(connection, endpoint):
            return True
        there = not engine.TRANSACTIONAL and _asked(connection, endpoint, "EXISTS")
        if there and not tables(connection, endpoint):
            drop = engine.DROP.format(name_of(endpoint))
            raise TargetError(
                f"The server at {engine.where(endpoint)} has an empty schema {engine.schema_of(endpoint)!r}, which "
                "the killed run may have begun, or its owner",
                remedy=f"If it is not needed: {drop}; if it is: `loadframe changes forget`.",
            )
    return False


def make_room(endpoint: Endpoint) -> None:
    """TargetError if there is a schema of the driver's name that is not ours."""
    drop_schema(endpoint)
    with engine_of(endpoint).anywhere(endpoint, "to look for schemas", patience_s=QUICK_S) as connection:
        if _asked(connection, endpoint, "EXISTS"):
            raise _refusal(endpoint)


def tables(connection: Any, endpoint: Endpoint) -> set[str]:
    """Names, without our mark."""
    return {str(name) for (name,) in _asked(connection, endpoint, "TABLES")} - {endpoint.options.get(MARK)}


def proof(endpoint: Endpoint) -> str:
    """An expression that is 1 if names without a schema are looked up in ours alone; else 0, or an error."""
    engine = engine_of(endpoint)
    here = engine.HERE.format(engine.schema_of(endpoint))
    return f"{here} + (SELECT count(*) FROM {mark_of(endpoint)})"


def elsewhere(endpoint: Endpoint, program: str, said: str) -> WorkloadError:
    """The error where it is not proved that a driver that names no schema would find only our tables."""
    engine = engine_of(endpoint)
    return WorkloadError(
        f"{program}, connected to {engine.where(endpoint)} as for the load, did not find the schema "
        f"{engine.schema_of(endpoint)} that this run has made, and is not started",
        remedy="If the server answers: name the server itself and not a proxy, and see what changes the default schema "
        "of this account there (search_path, init_connect).",
        details=said,
    )


def name_of(endpoint: Endpoint) -> str:
    """As statements name it."""
    engine = engine_of(endpoint)
    return str(engine.NAME.format(engine.schema_of(endpoint)))


def _is_ours(connection: Any, endpoint: Endpoint) -> bool:
    return (mark_of(endpoint),) in _asked(connection, endpoint, "TABLES")


def _asked(connection: Any, endpoint: Endpoint, what: str) -> list[tuple[Any, ...]]:
    engine = engine_of(endpoint)
    rows: list[tuple[Any, ...]] = engine.ask(connection, getattr(engine, what), [engine.schema_of(endpoint)])
    return [tuple(map(str, row)) for row in rows]


def _refusal(endpoint: Endpoint) -> TargetError:
    engine = engine_of(endpoint)
    drop = engine.DROP.format(name_of(endpoint))
    return TargetError(
        f"The server at {engine.where(endpoint)} has a schema {engine.schema_of(endpoint)!r} already that this run has "
        "not made, and Loadframe makes its own.",
        remedy="It is left as it is. See `loadframe changes list`: where a killed run has left it, `loadframe changes "
        f"revert` drops it. Else rename it, or if it is not needed: {drop};",
    )


class InOwnSchema:
    def after_step(self, endpoint: Endpoint) -> None:
        await_drivers_gone(endpoint, "to tidy up after a step")

    def remove(self, endpoint: Endpoint) -> None:
        drop_schema(endpoint)
