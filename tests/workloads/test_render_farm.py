"""The render farm on a real server: what it keeps open, what it leaves behind, and what it does not tell everybody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadframe.errors import TargetError, WorkloadError
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.mysql.kind import MariadbTarget
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.workloads import render_farm
from loadframe.workloads.base import Driver, Workload
from loadframe.workloads.mariadb import ENGINES
from loadframe.workloads.registry import make
from loadframe.workloads.request_log import Requests
from waiting import await_that

pytestmark = pytest.mark.server
Ask = Callable[[str], list[tuple[Any, ...]]]

ONLY: dict[str, SettingValue] = {"dispatch": 0, "report": 0, "submit": 0, "complete": 0, "list": 0}


def prepared(kind: str, endpoint: Endpoint, level: float, options: dict[str, SettingValue]) -> Workload:
    workload = make(kind, options, Allowance(US))
    workload.install(endpoint)
    workload.set_level(endpoint, level)
    return workload


def run(workload: Workload, endpoint: Endpoint, level: float, folder: Path, seconds: float = 0.6) -> Requests:
    driver = workload.start(endpoint, level, folder, seconds)
    try:
        assert driver.wait(60)
        return driver.requests()
    finally:
        driver.kill()


def tables(ask: Ask) -> set[str]:
    return {name for (name,) in ask("SHOW TABLES")} - {"template", "archive"}


def tables_of(job: int, tables_per_job: int) -> list[str]:
    return [f"{kind}_{job}" for kind in render_farm.TABLE_KINDS[:tables_per_job]]


def test_the_pool_grows_to_the_level_and_never_shrinks(farm_server: Endpoint, ask: Ask) -> None:
    workload = prepared("render-farm", farm_server, 3, {"tables_per_job": 6, "rows_per_table": 2, "payload_bytes": 7})
    assert tables(ask) == {name for job in (1, 2, 3) for name in tables_of(job, 6)}
    workload.set_level(farm_server, 1)
    assert len(tables(ask)) == 18
    workload.set_level(farm_server, 5)
    assert len(tables(ask)) == 30
    assert ask("SELECT id, state, LENGTH(payload) FROM data_5") == [(1, 0, 7), (2, 0, 7)]


def test_a_job_that_was_left_half_made_is_made_anew(farm_server: Endpoint, ask: Ask) -> None:
    workload = prepared("render-farm", farm_server, 2, {"tables_per_job": 3})
    ask("DROP TABLE subjob_2")
    workload.set_level(farm_server, 2)
    assert len(tables(ask)) == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_the_tables_are_of_the_engine_asked_for(farm_server: Endpoint, ask: Ask, engine: str, tmp_path: Path) -> None:
    workload = prepared("render-farm", farm_server, 2, {"engine": engine, "tables_per_job": 2, "threads": 2})
    found = ask("SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = DATABASE()")
    assert found == [(engine,)]
    assert len(run(workload, farm_server, 2, tmp_path)) > 10


def test_a_table_is_open_once_however_many_threads_there_are(farm_server: Endpoint, ask: Ask, tmp_path: Path) -> None:
    """What makes T / k the level at which a cache of T tables is full."""
    workload = prepared("render-farm", farm_server, 8, ONLY | {"dispatch": 1, "report": 1, "threads": 4})
    ask("FLUSH TABLES")
    run(workload, farm_server, 8, tmp_path)
    ((_, opened),) = ask("SHOW GLOBAL STATUS LIKE 'Open_tables'")
    assert 8 * 5 <= int(opened) <= 8 * 5 + 12


@pytest.mark.long
def test_every_job_is_walked_through_also_with_fewer_jobs_than_threads(
    farm_server: Endpoint, ask: Ask, tmp_path: Path
) -> None:
    for jobs, threads, order in ((7, 3, "turn"), (2, 5, "turn"), (7, 3, "random")):
        options = ONLY | {"report": 1, "threads": threads, "tables_per_job": 2, "order": order}
        workload = prepared("render-farm", farm_server, jobs, options)
        requests = run(workload, farm_server, jobs, tmp_path)
        states = [ask(f"SELECT state FROM work_{job} WHERE id = 1")[0][0] for job in range(1, jobs + 1)]
        assert min(states) > 0
        assert sum(states) == (requests.outcome == 0).sum()


@pytest.mark.long
def test_a_completed_job_is_archived_and_replaced_at_once(farm_server: Endpoint, ask: Ask, tmp_path: Path) -> None:
    for weights in ({"submit": 1}, {"complete": 1}, {"submit": 3, "complete": 1, "dispatch": 5, "list": 1}):
        workload = prepared("render-farm", farm_server, 6, ONLY | weights | {"threads": 3, "tables_per_job": 2})
        requests = run(workload, farm_server, 6, tmp_path)
        submitted, completed = (
            (requests.operation == workload.operations.index(n)).sum() for n in ("submit", "complete")
        )
        assert completed > 0
        assert 0 <= completed - submitted <= 3, "each thread has at most one job that it has not replaced yet"
        assert len(tables(ask)) == 2 * (6 - (completed - submitted))
        assert ask("SELECT COUNT(*) FROM archive") == [(4 * completed,)]
        assert not requests.outcome.any()
        workload.set_level(farm_server, 6)
        assert len(tables(ask)) == 2 * 6
        assert ask("SELECT COUNT(*) FROM archive") == [(0,)]


def test_jobs_that_threads_share_are_not_completed(farm_server: Endpoint, tmp_path: Path) -> None:
    options = ONLY | {"dispatch": 1, "complete": 5, "threads": 4, "tables_per_job": 2}
    workload = prepared("render-farm", farm_server, 2, options)
    requests = run(workload, farm_server, 2, tmp_path)
    assert set(requests.operation) == {workload.operations.index("dispatch")}


def test_a_list_reads_every_row_of_every_active_job(farm_server: Endpoint, ask: Ask, tmp_path: Path) -> None:
    options = ONLY | {"list": 1, "threads": 1, "rows_per_table": 50}
    workload = prepared("render-farm", farm_server, 6, options)
    ask("FLUSH TABLES")
    before = read_rows(ask)
    requests = run(workload, farm_server, 4, tmp_path)
    ((_, opened),) = ask("SHOW GLOBAL STATUS LIKE 'Open_tables'")
    assert read_rows(ask) - before >= len(requests) * 4 * 5 * 50
    assert int(opened) < 6 * 5 + 12


def read_rows(ask: Ask) -> int:
    ((_, rows),) = ask("SHOW GLOBAL STATUS LIKE 'Handler_read_rnd_next'")
    return int(rows)


def test_the_password_is_in_no_command_line_and_in_no_file(farm_server: Endpoint, tmp_path: Path) -> None:
    assert farm_server.options["password"]
    workload = prepared("render-farm", farm_server, 1, {})
    driver = workload.start(farm_server, 1, tmp_path, 30.0)
    try:
        (pid,) = driver.pids()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    finally:
        driver.kill()
    assert "render_farm.lua" in command
    assert farm_server.options["password"] not in command
    written = list(tmp_path.iterdir())
    assert written
    assert not [path for path in written if farm_server.options["password"] in path.read_text("latin-1")]


@pytest.mark.parametrize("kind", ["render-farm", "render-farm-burst"])
def test_a_lost_connection_ends_the_driver_with_the_servers_words(
    farm_server: Endpoint, ask: Ask, tmp_path: Path, kind: str
) -> None:
    burst = kind == "render-farm-burst"
    # In a chain of jobs that submit one job each, all workers but one wait for the others.
    workload = make(kind, {"threads": 3, "tables_per_job": 1} | ({"fan_out": 1} if burst else {}), Allowance(US))
    level = 3000 if burst else 40
    workload.install(farm_server)
    workload.set_level(farm_server, level)
    driver = workload.start(farm_server, level, tmp_path, 60.0)
    try:
        kill_one_connection(ask, driver)
        assert driver.wait(60), "the other threads go on without it"
        with pytest.raises(WorkloadError) as caught:
            driver.requests()
    finally:
        driver.kill()
    assert "FATAL" in caught.value.details


def kill_one_connection(ask: Ask, driver: Driver) -> None:
    statement = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()"

    def three() -> list[tuple[Any, ...]]:
        assert driver.running()
        return found if len(found := ask(statement)) == 3 else []

    ask(f"KILL CONNECTION {await_that(three, 'the driver has three connections')[0][0]}")


def test_a_level_that_the_server_refuses_is_reported_with_its_words(farm_server: Endpoint, ask: Ask) -> None:
    workload = prepared("render-farm", farm_server, 1, {})
    ask("DROP TABLE template")
    with pytest.raises(TargetError, match="template") as caught:
        workload.set_level(farm_server, 2)
    assert "2 active jobs" in caught.value.fact
    assert caught.value.remedy


@pytest.mark.long
def test_the_burst_submits_every_job_recursively_and_lists_only_then(
    farm_server: Endpoint, ask: Ask, tmp_path: Path
) -> None:
    jobs, fan_out, listing = 40, 3, 5
    options: dict[str, SettingValue] = {"fan_out": fan_out, "listing_jobs": listing, "threads": 4, "tables_per_job": 3}
    options["reads"] = jobs + 1  # twice, then
    workload = prepared("render-farm-burst", farm_server, jobs, options)
    assert tables(ask) == set(tables_of(1, 3)), "a burst begins with an empty farm and its first job"
    requests = run(workload, farm_server, jobs, tmp_path)
    submits, reads, lists = (requests.operation == operation for operation in range(3))
    assert (submits.sum(), reads.sum(), lists.sum()) == (jobs - 1, 2 * listing * jobs, 2 * listing)
    begins_s = requests.end_s - requests.latency_ms / 1e3
    assert begins_s[lists].min() >= requests.end_s[submits].max() - 1e-3
    assert len(tables(ask)) == 3 * jobs
    children = {
        job: [child for (child,) in ask(f"SELECT state FROM subjob_{job} WHERE id > 4")] for job in range(1, 41)
    }
    assert sorted(child for each in children.values() for child in each) == list(range(2, jobs + 1))
    assert max(map(len, children.values())) == fan_out
    workload.set_level(farm_server, jobs)
    assert tables(ask) == set(tables_of(1, 3))


def test_a_chain_of_jobs_with_more_listings_than_workers_comes_to_its_end(
    farm_server: Endpoint, tmp_path: Path
) -> None:
    """Each job submits one: a worker that waited in a listing would keep the next one from being submitted."""
    options: dict[str, SettingValue] = {"fan_out": 1, "listing_jobs": 12, "threads": 3, "tables_per_job": 1, "reads": 1}
    workload = prepared("render-farm-burst", farm_server, 24, options)
    requests = run(workload, farm_server, 24, tmp_path)
    assert [(requests.operation == operation).sum() for operation in range(3)] == [23, 12 * 24, 12]


@pytest.mark.parametrize("kind", ["render-farm", "render-farm-burst"])
def test_the_script_and_the_log_agree_on_the_order_of_operations(kind: str) -> None:
    script = Path(render_farm.__file__).with_name(kind.replace("-", "_") + ".lua").read_text()
    operations = make(kind, {}).operations
    numbers = ", ".join(str(number) for number in range(len(operations)))
    assert f"local {', '.join(name.upper() for name in operations)} = {numbers}" in script


@pytest.mark.long
def test_refused_connections_are_failed_requests_not_the_end_of_the_driver(tmp_path: Path) -> None:
    with Lease.acquire("a test of a server with few connections") as lease:
        target = MariadbTarget(lease=lease, resources=Resources())
        try:
            target.create()
            target.start(TargetState({"max_connections": 10}))
            workload = prepared("render-farm", target.endpoint(), 32, ONLY | {"dispatch": 1, "threads": 32})
            requests = run(workload, target.endpoint(), 32, tmp_path)
            refused = target.counters()["Connection_errors_max_connections"]
        finally:
            target.destroy()
    assert (requests.outcome == 0).any()
    assert (requests.outcome != 0).any()
    assert refused > 0
