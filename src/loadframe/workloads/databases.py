"""What a workload does to MariaDB and PostgreSQL alike."""

from __future__ import annotations

from loadframe.model import Endpoint
from loadframe.workloads import mariadb, postgres

KINDS = frozenset({"mariadb", "postgres"})
"""Of endpoints whose schema is made and dropped here."""


def await_drivers_gone(endpoint: Endpoint, doing: str) -> None:
    """Wait until the server has closed the connections of a driver that was killed. TargetError where it refuses."""
    if endpoint.kind == "postgres":
        with postgres.connected(endpoint, doing, patience_s=postgres.QUICK_S) as connection:
            postgres.await_drivers_gone(connection)
    else:
        with mariadb.connected(endpoint, doing, patience_s=mariadb.QUICK_S) as own:
            mariadb.await_drivers_gone(own)


def make_schema(endpoint: Endpoint) -> None:
    """Make an empty schema of the driver's own. TargetError where there is one that is not ours to drop."""
    if endpoint.kind == "postgres":
        with postgres.connected(endpoint, "to make a schema") as connection:
            postgres.make_schema(connection, endpoint)
    else:
        with mariadb.connected(endpoint, "to make a database", schema=False) as own:
            mariadb.make_schema(own, endpoint)


def drop_schema(endpoint: Endpoint, *, begun: bool = False) -> None:
    """Drop the schema that make_schema made; one that is not ours stays. begun: it is known that a run of ours has made
    it, perhaps without coming to say so in it; it is dropped where it is empty, too."""
    if endpoint.kind == "postgres":
        postgres.drop_schema(endpoint)  # there it is made and noted in one transaction
    else:
        mariadb.drop_schema(endpoint, begun=begun)


def has_schema(endpoint: Endpoint) -> bool:
    """Whether there is a schema of the driver's name."""
    return postgres.has_schema(endpoint) if endpoint.kind == "postgres" else mariadb.has_schema(endpoint)


def make_room(endpoint: Endpoint) -> None:
    """Drop a schema that a killed run of ours has left. TargetError where there is one that is not ours."""
    drop_schema(endpoint)
    if has_schema(endpoint):
        raise postgres.refusal(endpoint) if endpoint.kind == "postgres" else mariadb.refusal(endpoint)


class InOwnSchema:
    """A workload whose `install` has made the schema: how it tidies up."""

    def after_step(self, endpoint: Endpoint) -> None:
        """Wait until the driver is gone from the server."""
        await_drivers_gone(endpoint, "to tidy up after a step")

    def remove(self, endpoint: Endpoint) -> None:
        """Drop the schema."""
        drop_schema(endpoint)
