"""Targets for tests: leases in folders that a server's own user can enter, and nothing left behind afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Target
from loadframe.kinds.mysql.target import MysqlTarget
from loadframe.kinds.nginx.target import NginxTarget
from loadframe.kinds.postgres.target import PostgresTarget

from .declaring import declared_of


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """pytest's own tmp_path is closed to other users, so the data go beside it."""
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


@pytest.fixture
def mysql(lease: Lease) -> Iterator[MysqlTarget]:
    """A MySQL, created and not started."""
    target = MysqlTarget(lease=lease, resources=Resources())
    target.create()
    yield target
    target.destroy()


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


SHARDS = 2


def forms() -> list[str]:
    """The targets that there are of each registered kind, by the words that a workload has in its target_kinds. A kind
    with something before its shards is never in one piece; one that is known by its address is not ours to start."""
    started = [(kind, row) for kind, row in registry.KINDS.own.items() if row.by_address is None]
    whole = [kind for kind, row in started if not row.before]
    return [*whole, *(f"sharded {kind}" for kind, row in started if row.make_shards is not None)]


def marks(form: str) -> tuple[pytest.MarkDecorator, ...]:
    row = registry.KINDS.own[form.removeprefix("sharded ")]
    if row.kind == "ndb-sql":
        return (pytest.mark.ndb, pytest.mark.sqlnode)
    if row.kind in ("mysql", "ndb"):
        return (getattr(pytest.mark, row.kind),)
    return () if row.embedded else (pytest.mark.server,)


@pytest.fixture(scope="module", params=[pytest.param(form, marks=marks(form)) for form in forms()])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kind(form: str) -> str:
    return form.removeprefix("sharded ")


@pytest.fixture(scope="module")
def components(form: str, kind: str) -> tuple[str, ...]:
    """What the target is made of."""
    return registry.components(kind, SHARDS if form != kind else None)


@pytest.fixture(scope="session")
def pristine() -> Iterator[PostgresTarget]:
    """A PostgreSQL that never runs: its data are copied, because initdb takes seconds."""
    with leased("tests of PostgreSQL") as lease:
        lease.folder.chmod(0o711)  # its data are copied by the server's user, who is in the group of another lease
        target = PostgresTarget(lease=lease, resources=Resources())
        target.create()
        yield target


@pytest.fixture
def uncreated(form: str, kind: str, components: tuple[str, ...], lease: Lease) -> Iterator[Target]:
    target = _made(form, kind, components, lease)
    yield target
    target.destroy()


@pytest.fixture
def target(
    form: str, kind: str, components: tuple[str, ...], lease: Lease, request: pytest.FixtureRequest
) -> Iterator[Target]:
    """Created, not started."""
    target = _made(form, kind, components, lease)
    _create(target, request)
    yield target
    target.destroy()


@pytest.fixture(scope="module")
def unstarted(form: str, kind: str, components: tuple[str, ...], request: pytest.FixtureRequest) -> Iterator[Target]:
    """The same for all tests of a form that leave it so."""
    with leased("tests without a start") as lease:
        target = _made(form, kind, components, lease)
        _create(target, request)
        yield target
        target.destroy()


@pytest.fixture(scope="module")
def shared(form: str, kind: str, components: tuple[str, ...], request: pytest.FixtureRequest) -> Iterator[Target]:
    """The same for all tests of a form that do with it what its users do; created, and started by the first of them."""
    with leased("tests of a target") as lease:
        target = _made(form, kind, components, lease)
        _create(target, request)
        yield target
        target.destroy()


def _made(form: str, kind: str, components: Sequence[str], lease: Lease) -> Target:
    if form == kind:
        return declared_of(kind).make(lease, Resources().run_by(lease.runs_as))
    return registry.make_shards(
        kind, lease=lease, resources={name: Resources().run_by(lease.runs_as) for name in components}
    )


def _create(target: Target, request: pytest.FixtureRequest) -> None:
    if isinstance(target, PostgresTarget):
        target.create_like(request.getfixturevalue("pristine"))
    else:
        target.create()


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
def nginx(lease: Lease) -> Iterator[NginxTarget]:
    """An nginx, created and not started."""
    target = NginxTarget(lease=lease, resources=Resources())
    target.create()
    yield target
    target.destroy()


@pytest.fixture
def postgres(lease: Lease, request: pytest.FixtureRequest) -> Iterator[Target]:
    """A PostgreSQL, created and not started."""
    target = registry.kind_named("postgres").make(lease, Resources())
    _create(target, request)
    yield target
    target.destroy()
