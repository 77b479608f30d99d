"""Targets for tests: leases in folders that a server's own user can enter, and nothing left behind afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Target
from loadframe.kinds.mysql.kind import MysqlTarget
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.testing.leases import lease as lease
from loadframe.testing.leases import leased
from loadframe.testing.leases import scratch as scratch


@pytest.fixture
def mysql(lease: Lease) -> Iterator[MysqlTarget]:
    """A MySQL, created and not started."""
    target = MysqlTarget(lease=lease, resources=Resources())
    target.create()
    yield target
    target.destroy()


@pytest.fixture(scope="session")
def pristine() -> Iterator[PostgresTarget]:
    """A PostgreSQL that never runs: its data are copied, because initdb takes seconds."""
    with leased("tests of PostgreSQL") as lease:
        lease.folder.chmod(0o711)  # its data are copied by the server's user, who is in the group of another lease
        target = PostgresTarget(lease=lease, resources=Resources())
        target.create()
        yield target


@pytest.fixture(scope="module")
def created_mariadb() -> Iterator[tuple[Target, Lease]]:
    """A MariaDB whose data are made once for a module: it takes seconds."""
    with leased("tests of MariaDB") as lease:
        target = registry.kind_named("mariadb").make(lease, Resources())
        target.create()
        yield target, lease
        target.destroy()


@pytest.fixture
def mariadb(created_mariadb: tuple[Target, Lease]) -> Iterator[Target]:
    """A MariaDB, created and not started; a test leaves its data as they were."""
    target, _ = created_mariadb
    yield target
    target.stop()


@pytest.fixture
def folder_of_mariadb(created_mariadb: tuple[Target, Lease]) -> Path:
    """Of its lease."""
    return created_mariadb[1].folder


@pytest.fixture
def postgres(lease: Lease, request: pytest.FixtureRequest) -> Iterator[Target]:
    """A PostgreSQL, created and not started."""
    target = PostgresTarget(lease=lease, resources=Resources())
    target.create(request.getfixturevalue("pristine"))
    yield target
    target.destroy()
