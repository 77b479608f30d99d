"""The bulk loader passes the suite that every target passes."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from loadframe.model import Endpoint
from loadframe.testing.targets import *  # noqa: F403
from loadframe.testing.targets import Data, Example
from loadframe_bulk.target import shards_of

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["sharded bulk-loader"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def example() -> Example:
    return Example(
        start={"pool": 2, "shard_synchronous_commit": "off"},
        dynamic={"pool": 2, "shard_checkpoint_timeout": "2min", "shard_work_mem": "1MB"},
        restart={"batch_bytes": "64kB", "shard_shared_buffers": "24MB", "shard_wal_buffers": "1MB"},
        misspelt=("batch_byte", "batch_bytes"),
        wrong={"pool": -1},
        impossible={"shard_wal_level": "minimal"},
    )


class OnEachShard:
    """A table."""

    def store(self, endpoint: Endpoint) -> None:
        self._ask(endpoint, "CREATE TABLE jobs (id INTEGER PRIMARY KEY)")
        self._ask(endpoint, "INSERT INTO jobs VALUES (1)")

    def stored(self, endpoint: Endpoint) -> bool:
        return all(rows == [(1,)] for rows in self._ask(endpoint, "SELECT id FROM jobs"))

    def forget(self, endpoint: Endpoint) -> None:
        self._ask(endpoint, "DROP TABLE IF EXISTS jobs")

    def _ask(self, endpoint: Endpoint, statement: str) -> list[list[Any]]:
        answers = []
        for shard in shards_of(endpoint):
            with psycopg.connect(shard) as connection:
                cursor = connection.execute(statement.encode())
                answers.append(cursor.fetchall() if cursor.description else [])
        return answers


@pytest.fixture(scope="module")
def data() -> Data:
    return OnEachShard()
