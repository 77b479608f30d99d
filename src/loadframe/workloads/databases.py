"""What a workload does to MariaDB, MySQL and PostgreSQL alike: a schema of its own, and a wait for other drivers."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from loadframe.errors import TargetError
from loadframe.model import Endpoint
from loadframe.workloads import mariadb, ownership, postgres

KINDS = frozenset({"mariadb", "mysql", "postgres"})
"""Of endpoints that the workloads for databases load."""
REMOVABLE = KINDS | {"ndb-sql"}
"""Of endpoints whose schema is made and dropped here, also after a killed run."""
DRIVERS_GONE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.01
QUICK_S = 60.0
"""How long a server may say nothing to a question."""


def engine_of(endpoint: Endpoint) -> Any:
    """The module that knows an endpoint's kind of database; in all of them the same names mean the same.

    anywhere: a connection whether the schema is there or not. SYSBENCH: its driver's name there. PACKAGE: of Python,
    and the extra that brings it. NAME: of a schema in a statement. DROP, CREATE: of the schema of this NAME.
    NOTED_AT_ONCE: it is made and noted in one transaction. EXISTS, TABLES: statements, given the schema's name: whether
    it is there, and the tables in it. DRIVERS: the statement that counts load drivers' connections.
    """
    return postgres if endpoint.kind == "postgres" else mariadb


def await_drivers_gone(endpoint: Endpoint, doing: str) -> None:
    """Wait until each server has closed the connections of a driver that was killed. TargetError where one refuses."""
    for front in endpoint.fronts or (endpoint,):
        with engine_of(front).connected(front, doing, patience_s=QUICK_S) as connection:
            await_gone(connection, front)


def await_gone(connection: Any, endpoint: Endpoint) -> None:
    """The same over a connection that is there. A killed driver's last statement may still run in the server."""
    until, engine = time.monotonic() + DRIVERS_GONE_WITHIN_S, engine_of(endpoint)
    while time.monotonic() < until and engine.ask(connection, engine.DRIVERS) != [(0,)]:
        time.sleep(LOOK_EVERY_S)


def make_schema(endpoint: Endpoint) -> None:
    """Make an empty schema of the driver's own. TargetError where there is one that is not ours to drop."""
    with engine_of(endpoint).anywhere(endpoint, "to make a schema") as connection:
        make_schema_over(connection, endpoint)


def make_schema_over(connection: Any, endpoint: Endpoint) -> None:
    """The same over a connection that is there, which uses it from then on."""
    engine, name = engine_of(endpoint), _name(endpoint)
    with connection.transaction() if engine.NOTED_AT_ONCE else nullcontext():
        there = endpoint.attached and _asked(connection, endpoint, "EXISTS")
        if there and not ownership.may_drop(_note(connection, endpoint)):
            raise _refusal(endpoint)
        engine.execute(connection, [statement.format(name) for statement in (engine.DROP, *engine.CREATE)])
        if endpoint.attached:
            engine.execute(connection, ownership.noting())


def drop_schema(endpoint: Endpoint, *, begun: bool = False) -> None:
    """Drop the schema that make_schema made; one that is not ours stays. begun: it is known that a run of ours has made
    it, perhaps without coming to say so in it; it is dropped where it is empty, too."""
    engine = engine_of(endpoint)
    with engine.anywhere(endpoint, "to drop the driver's schema") as connection:
        note, others = _note(connection, endpoint), tables(connection, endpoint) - {ownership.TABLE}
        unsaid = begun and not engine.NOTED_AT_ONCE and note is None and not others
        if not endpoint.attached or unsaid or ownership.may_drop(note):
            engine.execute(connection, [engine.DROP.format(_name(endpoint))])


def has_schema(endpoint: Endpoint) -> bool:
    """Whether there is a schema of the driver's name."""
    with engine_of(endpoint).anywhere(endpoint, "to look for the driver's schema", patience_s=QUICK_S) as connection:
        return bool(_asked(connection, endpoint, "EXISTS"))


def make_room(endpoint: Endpoint) -> None:
    """Drop a schema that a killed run of ours has left. TargetError where there is one that is not ours."""
    drop_schema(endpoint)
    if has_schema(endpoint):
        raise _refusal(endpoint)


def tables(connection: Any, endpoint: Endpoint) -> set[str]:
    """Those in the schema."""
    return {str(name) for (name,) in _asked(connection, endpoint, "TABLES")}


def _asked(connection: Any, endpoint: Endpoint, what: str) -> list[tuple[Any, ...]]:
    engine = engine_of(endpoint)
    rows: list[tuple[Any, ...]] = engine.ask(connection, getattr(engine, what), [engine.schema_of(endpoint)])
    return rows


def _note(connection: Any, endpoint: Endpoint) -> ownership.Note | None:
    """Who made the schema; None where it does not say."""
    if ownership.TABLE not in tables(connection, endpoint):
        return None
    noted = f"SELECT boot, pid, started_ticks FROM {_name(endpoint)}.{ownership.TABLE}"
    rows: list[ownership.Note] = engine_of(endpoint).ask(connection, noted)
    return rows[0] if rows else None


def _name(endpoint: Endpoint) -> str:
    engine = engine_of(endpoint)
    return str(engine.NAME.format(engine.schema_of(endpoint)))


def _refusal(endpoint: Endpoint) -> TargetError:
    """That there is one, and it is not ours."""
    engine = engine_of(endpoint)
    return ownership.refusal(engine.where(endpoint), engine.schema_of(endpoint), engine.DROP.format(_name(endpoint)))


class InOwnSchema:
    """A workload whose `install` has made the schema: how it tidies up."""

    def after_step(self, endpoint: Endpoint) -> None:
        """Wait until the driver is gone from the server."""
        await_drivers_gone(endpoint, "to tidy up after a step")

    def remove(self, endpoint: Endpoint) -> None:
        """Drop the schema."""
        drop_schema(endpoint)
