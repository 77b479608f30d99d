"""A MySQL Cluster passes the suite that every target passes, without and with a SQL node."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pymysql
import pytest

from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.model import Endpoint
from loadframe.testing.targets import *  # noqa: F403
from loadframe.testing.targets import Data, Example, State

SMALL: State = {
    "NoOfReplicas": 2,
    "DataMemory": "80M",
    "NoOfFragmentLogFiles": 4,
    "FragmentLogFileSize": "4M",
    "SharedGlobalMemory": "32M",
    "LongMessageBuffer": "8M",
    "TimeBetweenGlobalCheckpoints": 200,
}
"""A cluster whose data nodes take little memory and restart soon."""

EXAMPLES = {
    "ndb": Example(
        start=SMALL,
        dynamic={name.lower(): value for name, value in SMALL.items()},
        restart={**SMALL, "MaxNoOfConcurrentScans": 300, "api_BatchSize": 64},
        misspelt=("DataMemmory", "DataMemory"),
        wrong={"NoOfReplicas": 7},
        impossible={"MaxNoOfConcurrentTransactions": 40000, "MaxNoOfConcurrentOperations": 32},
    ),
    "ndb-sql": Example(
        start={**SMALL, "NoOfReplicas": 1, "sql_ndb_cluster_connection_pool": 2},
        dynamic={
            **SMALL,
            "NoOfReplicas": 1,
            "sql_ndb_cluster_connection_pool": 2,
            "sql_ndb_force_send": False,
            "sql_sort_buffer_size": "1M",
            "sql_cpus": "0",
        },
        restart={**SMALL, "NoOfReplicas": 1, "sql-ndb-cluster-connection-pool": 3, "MaxNoOfConcurrentScans": 300},
        misspelt=("sql_ndb_force_sent", "sql_ndb_force_send"),
        wrong={"sql_ndb_cluster_connection_pool": 64},
        impossible={"MaxNoOfConcurrentTransactions": 40000, "MaxNoOfConcurrentOperations": 32},
    ),
}
NDB = pytest.mark.ndb
FORMS = [pytest.param("sharded ndb", marks=NDB), pytest.param("sharded ndb-sql", marks=(NDB, pytest.mark.sqlnode))]


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def example(kind: str) -> Example:
    return EXAMPLES[kind]


def points(endpoint: Endpoint, what: str) -> int:
    """The exit status of a program of the NDB API (data/points.cpp)."""
    environment = {**os.environ, "LOADFRAME_ADDRESS": endpoint.address}
    return subprocess.run(["ndb_points", what], env=environment, check=False).returncode


class OfCluster:
    """What a program of the NDB API writes."""

    def store(self, endpoint: Endpoint) -> None:
        assert points(endpoint, "1") == 0

    def stored(self, endpoint: Endpoint) -> bool:
        return points(endpoint, "check") == 0

    def forget(self, endpoint: Endpoint) -> None:
        assert points(endpoint, "drop") == 0


class OfSqlNode:
    """A table."""

    def store(self, endpoint: Endpoint) -> None:
        self._ask(endpoint, "CREATE TABLE jobs (id INTEGER PRIMARY KEY)")
        self._ask(endpoint, "INSERT INTO jobs VALUES (1)")

    def stored(self, endpoint: Endpoint) -> bool:
        return self._ask(endpoint, "SELECT id FROM jobs") == [(1,)]

    def forget(self, endpoint: Endpoint) -> None:
        self._ask(endpoint, "DROP TABLE IF EXISTS jobs")

    def _ask(self, endpoint: Endpoint, statement: str) -> list[Any]:
        given = {name: endpoint.options[name] for name in ("user", "password")}
        database = pymysql.connect(
            unix_socket=endpoint.address, database=endpoint.options["schema"], autocommit=True, **given
        )
        try:
            with database.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            database.close()


@pytest.fixture(scope="module")
def data(kind: str) -> Data:
    return OfCluster() if kind == "ndb" else OfSqlNode()


def test_a_cluster_says_how_many_data_nodes_it_has(lease: Lease) -> None:
    with pytest.raises(StudyError, match="does not say how many") as caught:
        registry.kind_named("ndb").make(lease, Resources())
    assert "target.shards" in caught.value.remedy
