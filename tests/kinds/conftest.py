"""Targets for tests: leases in folders that a server's own user can enter, and nothing left behind afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds import registry
from loadframe.kinds.base import Target
from loadframe.kinds.nginx.target import NginxTarget
from loadframe.kinds.postgres.target import PostgresTarget


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


SHARDS = 2


def forms() -> list[str]:
    """The targets that there are of each registered kind, by the words that a workload has in its target_kinds. A kind
    with something before its shards is never in one piece; one that is known by its address is not ours to start."""
    started = [(kind, row) for kind, row in registry.KINDS.own.items() if row.by_address is None]
    whole = [kind for kind, row in started if not row.before]
    return [*whole, *(f"sharded {kind}" for kind, row in started if row.make_shards is not None)]


def marks(form: str) -> tuple[pytest.MarkDecorator, ...]:
    row = registry.KINDS.own[form.removeprefix("sharded ")]
    return () if row.embedded else (pytest.mark.server,)


@pytest.fixture(params=[pytest.param(form, marks=marks(form)) for form in forms()])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(form: str) -> str:
    return form.removeprefix("sharded ")


@pytest.fixture
def components(form: str, kind: str) -> tuple[str, ...]:
    """What the target is made of."""
    return registry.components(kind, SHARDS if form != kind else None)


@pytest.fixture(scope="session")
def pristine() -> Iterator[PostgresTarget]:
    """A PostgreSQL that never runs: its data are copied, because initdb takes seconds."""
    with tempfile.TemporaryDirectory(prefix="lf-", dir="/var/tmp") as name, pytest.MonkeyPatch.context() as patch:
        Path(name).chmod(0o755)
        patch.setenv("LOADFRAME_STATE", f"{name}/state")
        with Lease.acquire("tests of PostgreSQL", scratch=Path(name)) as lease:
            patch.undo()
            target = PostgresTarget(lease=lease, allowance=Allowance())
            target.create()
            yield target


@pytest.fixture
def target(
    form: str, kind: str, components: tuple[str, ...], lease: Lease, request: pytest.FixtureRequest
) -> Iterator[Target]:
    """Created, not started."""
    if form == kind:
        target = registry.make(kind, lease=lease, allowance=Allowance())
    else:
        target = registry.make_shards(kind, lease=lease, allowances={name: Allowance() for name in components})
    _create(target, request)
    yield target
    target.destroy()


def _create(target: Target, request: pytest.FixtureRequest) -> None:
    if isinstance(target, PostgresTarget):
        target.create_like(request.getfixturevalue("pristine"))
    else:
        target.create()


@pytest.fixture
def mariadb(lease: Lease) -> Iterator[Target]:
    """A MariaDB, created and not started."""
    target = registry.make("mariadb", lease=lease, allowance=Allowance())
    target.create()
    yield target
    target.destroy()


@pytest.fixture
def nginx(lease: Lease) -> Iterator[NginxTarget]:
    """An nginx, created and not started."""
    target = NginxTarget(lease=lease, allowance=Allowance())
    target.create()
    yield target
    target.destroy()


@pytest.fixture
def postgres(lease: Lease, request: pytest.FixtureRequest) -> Iterator[Target]:
    """A PostgreSQL, created and not started."""
    target = registry.make("postgres", lease=lease, allowance=Allowance())
    _create(target, request)
    yield target
    target.destroy()
