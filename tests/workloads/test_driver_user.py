"""Drivers without rights: each does its work as a user whom nothing else has, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from loadframe.bench.driver_user import DriverUser, cannot_run, driver_user
from loadframe.host.leases import Lease
from loadframe.host.own_user import make_private
from loadframe.host.privilege import US, LeaseUser
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.bulk_loader.target import BulkLoaderTarget
from loadframe.kinds.sqlite.target import SqliteTarget
from loadframe.model import Endpoint, TargetState
from loadframe.study.reading import parse
from loadframe.workloads import registry
from loadframe.workloads.base import Workload
from waiting import await_that

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes under another user")
MEASURED = '[study]\nname = "x"\nquestion = "?"\n[target]\nkind = "{kind}"\n{more}[workload]\nkind = "{workload}"\n'
MEASURED += '[load]\naxis = "{axis}"\nlevels = [1]\n[measure]\nwindow = "300ms"\n'


def _drive(workload: Workload, endpoint: Endpoint, user: int, folder: Path, level: float = 2) -> None:
    """A step in a folder of the driver's, whose processes are its user's alone."""
    workload.install(endpoint)
    workload.set_level(endpoint, level)
    make_private(folder, LeaseUser(user))
    driver = workload.start(endpoint, level, folder, 0.4)
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in driver.pids()}
    await_that(lambda: driver.wait(1.0), "the driver ends")
    assert (driver.requests().outcome == 0).any()
    assert owners == {user}
    assert all(file.stat().st_mode & 0o077 == 0 or file.stat().st_uid == user for file in folder.iterdir())
    workload.after_step(endpoint)


@root
@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "axis", "server", "options"),
    [
        ("oltp", "concurrency", "farm_server", {"rows": 100}),
        ("oltp", "rate", "postgres_server", {"rows": 100, "threads": 2}),
        ("sysbench", "threads", "farm_server", {"tables": 1, "table_size": 100}),
        ("render-farm-burst", "jobs", "farm_server", {"threads": 2}),
        ("pgbench", "clients", "postgres_server", {"scale": 1}),
        ("http", "concurrency", "web_server", {"objects": 10}),
        ("http", "rate", "web_server", {"objects": 10, "connections": 2}),
    ],
)
def test_a_driver_works_as_a_user_of_its_own(
    kind: str, axis: str, server: str, options: dict[str, object], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    endpoint: Endpoint = request.getfixturevalue(server)
    place = Path(endpoint.options.get("socket") or endpoint.options["files"])
    lease = next(folder for folder in place.parents if folder.name.startswith("loadframe-") and folder.stat().st_gid)
    user = lease.stat().st_gid
    workload = registry.make(kind, options, Allowance(LeaseUser(user)), axis=axis)  # type: ignore[arg-type]
    if kind == "pgbench":  # a script that only its owner may read
        script = tmp_path / "script.sql"
        script.write_text("SELECT count(*) FROM pgbench_branches;\n")
        script.chmod(0o600)
        workload = registry.make(kind, {**options, "file": str(script)}, Allowance(LeaseUser(user)), axis=axis)  # type: ignore[dict-item]
    assert cannot_run(workload.trials(), LeaseUser(user)) is None
    _drive(workload, endpoint, user, lease / f"step-{tmp_path.name}", level=20 if axis == "rate" else 2)


@root
@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
def test_the_workers_on_an_sqlite_file_own_it(journal_mode: str) -> None:
    with Lease.acquire("a test") as lease:
        assert lease.user is not None
        allowance = Allowance(LeaseUser(lease.user))
        target = SqliteTarget(lease=lease, resources=allowance)
        target.create()
        target.start(TargetState({"journal_mode": journal_mode}))
        workload = registry.make("job-queue", {"backlog": 10}, allowance)
        assert cannot_run(workload.trials(), LeaseUser(lease.user)) is None
        for step in ("step-1", "step-2"):
            _drive(workload, target.endpoint(), lease.user, lease.folder / step)
            target.reset()
        files = list((lease.folder / "sqlite").iterdir())
        assert {file.stat().st_uid for file in files} == {lease.user}
        assert (lease.folder / "sqlite").stat().st_mode & 0o777 == 0o700
        target.destroy()


@root
@pytest.mark.server
def test_the_bulk_loader_and_its_clients_are_one_user() -> None:
    with Lease.acquire("a test") as lease:
        assert lease.user is not None
        allowance = Allowance(LeaseUser(lease.user))
        target = BulkLoaderTarget(lease=lease, resources={"loader": allowance, "shard1": Resources()})
        try:
            target.create()
            target.start(TargetState({"shard_shared_buffers": 32 << 20}))
            workload = registry.make("bulk-ingest", {"file_size_kb": 64}, allowance)
            assert cannot_run(workload.trials(), LeaseUser(lease.user)) is None
            loader = target.processes()["loader"]
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in loader} == {lease.user}
            _drive(workload, target.endpoint(), lease.user, lease.folder / "step-1")
        finally:
            target.destroy()


class _Work:
    """A workload of which only the trials matter."""

    def __init__(self, *trials: Sequence[str]) -> None:
        self._trials = trials

    def trials(self) -> Sequence[Sequence[str]]:
        return self._trials


def _decided(workload: _Work, kind: str = "sqlite", more: str = "") -> DriverUser:
    names = {"sqlite": ("job-queue", "concurrency"), "mariadb": ("oltp", "concurrency")}[kind]
    study = parse(MEASURED.format(kind=kind, more=more, workload=names[0], axis=names[1]))
    with Lease.acquire("a test") as lease:
        found = driver_user(study, workload, lease)  # type: ignore[arg-type]
        assert found.privilege in (US, lease.runs_as)
    return found


@root
def test_a_driver_that_the_user_cannot_run_stays_and_says_why() -> None:
    assert _decided(_Work(["true"])).privilege != US
    for trial, why in (
        (["cat", "/etc/shadow"], "/etc/shadow: Permission denied"),
        (["/no/such/program"], "No such file"),
        (["false"], "false"),
    ):
        found = _decided(_Work(["true"], trial))
        assert found.privilege == US
        assert found.stays_root
        assert why in str(found)


@root
def test_a_driver_that_logs_in_to_a_strangers_server_stays() -> None:
    """PostgreSQL's peer and MariaDB's unix_socket know an account by the user of the process."""
    found = _decided(_Work(["true"]), "mariadb", 'attach = "/run/mysqld/mysqld.sock"\n')
    assert found.privilege == US
    assert "the server may know it by who it is" in str(found)


def test_without_root_it_is_who_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    study = parse(MEASURED.format(kind="sqlite", more="", workload="job-queue", axis="concurrency"))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    lease = cast(Lease, SimpleNamespace(user=None))
    found = driver_user(study, cast(Workload, _Work(["false"])), lease)
    assert (found.privilege, found.stays_root) == (US, False)
    assert str(found).startswith("12345: only root")
