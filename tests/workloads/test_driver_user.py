"""Drivers without rights: each does its work as a user whom nothing else has, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from loadframe.bench.bench import RealBench
from loadframe.bench.driver_user import DriverUser, cannot_run, driver_user, logging_in
from loadframe.errors import CageError
from loadframe.host.leases import Lease
from loadframe.host.privilege import US, LeaseUser, NamedUser, Privilege, make_private
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds import registry as targets
from loadframe.kinds.sqlite.kind import SqliteTarget
from loadframe.model import Endpoint, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.study.reading import parse
from loadframe.workloads import registry
from loadframe.workloads.base import Workload
from waiting import await_that

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes under another user")
OF_DRIVERS = pytest.mark.extension("loadframe_drivers")
MEASURED = '[study]\nname = "x"\nquestion = "?"\n[target]\nkind = "{kind}"\n{more}'
MEASURED += '[workload]\nkind = "{workload}"\n{user}\n[load]\naxis = "{axis}"\nlevels = [1]\n'
MEASURED += '[measure]\nwindow = "300ms"\n'

HOME = pwd.getpwuid(0).pw_dir
"""Of root, which others may not enter."""


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
        pytest.param("sysbench", "threads", "farm_server", {"tables": 1, "table_size": 100}, marks=OF_DRIVERS),
        ("render-farm-burst", "jobs", "farm_server", {"threads": 2}),
        pytest.param("pgbench", "clients", "postgres_server", {"scale": 1}, marks=OF_DRIVERS),
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


@pytest.mark.long
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


@pytest.mark.long
@root
@pytest.mark.server
def test_the_bulk_loader_and_its_clients_are_one_user() -> None:
    with Lease.acquire("a test") as lease:
        assert lease.user is not None
        allowance = Allowance(LeaseUser(lease.user))
        resources = {"loader": allowance, "shard1": Resources()}
        target = targets.make_shards("bulk-loader", lease=lease, resources=resources)
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


def _study(more: str = "", workload: str = "") -> Study:
    return parse(MEASURED.format(kind="sqlite", more=more, workload="job-queue", user=workload, axis="concurrency"))


def _decided(*trials: Sequence[str], user: str = "") -> Privilege:
    with Lease.acquire("a test") as lease:
        found = driver_user(_study(workload=user), cast(Workload, _Work(["true"], *trials)), lease)
        assert found.privilege in (US, LeaseUser(lease.user or -1), NamedUser("nobody"))
    return found.privilege


@root
@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (["cat", "/etc/shadow"], "/etc/shadow: Permission denied"),
        (["/no/such/program"], "No such file"),
        (["test", "-r", "/etc/shadow"], "`test -r /etc/shadow` fails"),
    ],
)
def test_a_driver_that_its_user_cannot_run_is_refused(trial: list[str], why: str) -> None:
    """It was root's then, and printed for root what only root may read."""
    assert isinstance(_decided(["true"]), LeaseUser)
    with pytest.raises(CageError, match="who is to run the load driver, cannot") as refused:
        _decided(trial)
    assert why in refused.value.fact
    assert 'workload.user = "NAME"' in refused.value.remedy
    with pytest.raises(CageError, match="User nobody, who is to run"):
        _decided(trial, user='user = "nobody"')
    assert _decided(["test", "-r", "/no/such/file"]), "its start says so"


@root
def test_a_driver_that_its_user_cannot_reach_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where temporary data lie in root's home: SQLite could not open its file, and did not say what to do."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as closed:  # of mode 0700
        (scratch := Path(closed) / "scratch").mkdir()
        monkeypatch.setenv("LOADFRAME_SCRATCH", str(scratch))
        with pytest.raises(CageError, match=f"may not enter {closed}, where its files are") as refused:
            _decided(["true"])
        assert f"chmod o+x {closed}, set LOADFRAME_SCRATCH" in refused.value.remedy
        assert _decided(["true"], user='user = "root"') == US
        Path(closed).chmod(0o711)
        assert isinstance(_decided(["true"]), LeaseUser)


@root
def test_who_runs_it_can_be_said_by_hand() -> None:
    assert _decided(["false"], user='user = "root"') == US
    assert _decided(user='user = "nobody"') == NamedUser("nobody")
    with pytest.raises(CageError, match="There is no user 'of-no-machine'") as unknown:
        _decided(user='user = "of-no-machine"')
    assert "workload.user" in unknown.value.remedy


@root
def test_where_no_user_can_be_had_it_is_not_root_for_that() -> None:
    lease = cast(Lease, SimpleNamespace(user=None))
    with pytest.raises(CageError, match="The load driver would run as root: this user namespace") as refused:
        driver_user(_study(), cast(Workload, _Work()), lease)
    assert 'workload.user = "NAME"' in refused.value.remedy
    by_hand = driver_user(_study(workload='user = "root"'), cast(Workload, _Work()), lease)
    assert (by_hand.privilege, by_hand.stays_root) == (US, True)


@root
@pytest.mark.parametrize(
    ("address", "options", "why"),
    [
        ("/run/mysqld/mysqld.sock", {"password": "x"}, ""),
        ("127.0.0.1:3306", {"password": "x"}, ""),
        ("/run/mysqld/mysqld.sock", {"user": "ann"}, "ann has no password here"),
        ("db.example", {"password": "x", "sslkey": "/etc/own/key"}, "a key that only this user may read, /etc/own/key"),
        ("db.example", {"password": "x", "socket": f"{HOME}/pg/.s.PGSQL.5432"}, f"another user may not enter {HOME}"),
    ],
)
def test_the_driver_of_a_running_server_is_root_where_another_could_not_log_in_alone(
    address: str, options: dict[str, str], why: str
) -> None:
    """PostgreSQL's peer and MariaDB's unix_socket know an account by the user of the process."""
    of_lease = DriverUser(LeaseUser(61184), "it has no rights")
    endpoint = Endpoint("mariadb", address, options, attached=True)
    found = logging_in(of_lease, _study(), endpoint)
    assert (found.stays_root, why in found.why) == (bool(why), True)
    by_hand = DriverUser(NamedUser("nobody"), "said")
    assert logging_in(by_hand, _study(workload='user = "nobody"'), endpoint) == by_hand
    a_command = _study(workload='command = ["./load"]')
    if why:
        with pytest.raises(CageError, match=r"workload\.command would run as root"):
            logging_in(of_lease, a_command, endpoint)
    else:
        assert logging_in(of_lease, a_command, endpoint) == of_lease


def test_without_root_it_is_who_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    lease, work = cast(Lease, SimpleNamespace(user=None)), cast(Workload, _Work(["false"]))
    found = driver_user(_study(), work, lease)
    assert (found.privilege, found.stays_root) == (US, False)
    assert str(found).startswith("12345: only root")
    with pytest.raises(CageError, match="only root starts a load driver as another user"):
        driver_user(_study(workload='user = "root"'), work, lease)


@pytest.mark.long
@root
@pytest.mark.server
def test_a_named_user_works_on_a_private_server(tmp_path: Path) -> None:
    """It comes to the server's socket, which is in the lease's folder."""
    text = MEASURED.format(kind="mariadb", more="", workload="oltp", user='user = "nobody"', axis="concurrency")
    study = parse(text, ["workload.options.rows=100", "measure.profile=off"])
    with RealBench(study, RunFolder.create(tmp_path, study.study.name)) as bench:
        assert str(bench.driver_user) == "user nobody: workload.user = 'nobody'"
        bench.declare("A", "as given", bench.start_state)
        bench.use("A")
        assert bench.take_step(StepRequest("A", 1)).requests > 0
