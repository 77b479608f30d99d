"""Leases for tests, in folders that a server's own user can enter, and nothing left behind afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the test's leases. pytest's own tmp_path is closed to other users, so it lies next to it."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(folder))
    yield folder
    sweep()  # of a test that failed amid an owner that it began: that was killed, and its server may have shared memory
    identity.end_all(identity.naming(folder.name), 0.5)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lease(scratch: Path) -> Iterator[Lease]:
    with Lease.acquire("a test") as lease:
        yield lease


@contextmanager
def leased(what: str) -> Iterator[Lease]:
    """In folders of its own, for fixtures that outlive a test."""
    with tempfile.TemporaryDirectory(prefix="lf-", dir="/var/tmp") as name, pytest.MonkeyPatch.context() as patch:
        Path(name).chmod(0o755)
        patch.setenv("LOADFRAME_STATE", f"{name}/state")
        patch.setenv("LOADFRAME_SCRATCH", name)
        with Lease.acquire(what) as lease:
            patch.undo()
            yield lease
