"""Targets for tests: leases in folders that a server's own user can enter, and nothing left behind afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.cage import identity
from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance
from loadframe.targets import registry
from loadframe.targets.base import Target


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """pytest's own tmp_path is closed to other users, so the data go beside it."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(folder))
    yield folder
    for process in identity.naming(folder.name):
        identity.end(process, 0.5)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lease(scratch: Path) -> Iterator[Lease]:
    with Lease.acquire("a test") as lease:
        yield lease


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.server)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(kind: str, lease: Lease) -> Iterator[Target]:
    """Created, not started."""
    target = registry.make(kind, lease=lease, allowance=Allowance())
    target.create()
    yield target
    target.destroy()


@pytest.fixture
def mariadb(lease: Lease) -> Iterator[Target]:
    """A MariaDB, created and not started."""
    target = registry.make("mariadb", lease=lease, allowance=Allowance())
    target.create()
    yield target
    target.destroy()
