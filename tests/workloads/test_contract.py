"""What must hold for every workload, whatever it drives."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from loadframe.entry_points import EXTENSIONS, WORKLOADS_GROUP
from loadframe.errors import StudyError, TargetError, WorkloadError
from loadframe.host.identity import identify
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, SettingValue
from loadframe.workloads import registry
from loadframe.workloads.base import Driver, Workload
from waiting import await_that

SOON_S = 60.0
HEEDED_S = 5.0
DRIVERS = Path(__file__).parents[1] / "data/drivers"


@dataclass(frozen=True)
class Specimen:
    """A workload with a target that suits it, and the levels the suite goes to."""

    workload: Workload
    endpoint: Endpoint
    small: float
    large: float
    options: dict[str, SettingValue]
    declared: Declared
    data: Path
    """The file or socket without which nothing works."""


LOADS = Path(__file__).parents[1] / "data/loads"
LOG, SESSION = str(LOADS / "access.log"), str(LOADS / "shop.har")

SPECIMENS: dict[str, tuple[dict[str, SettingValue], str, float, float]] = {
    "access-log": ({"file": LOG, "connections": 4}, "foreign_site", 1, 5),
    "access-log/service": ({"file": LOG, "connections": 4}, "foreign_service", 1, 5),
    "har": ({"file": SESSION, "think": "none"}, "foreign_site", 1, 5),
    "har/service": ({"file": SESSION, "think": "none"}, "foreign_service", 1, 5),
    "har at rate": ({"file": SESSION, "connections": 6}, "foreign_site", 100, 300),
    "bulk-ingest": ({"file_size_kb": 256}, "loader_server", 1, 3),
    "bulk-ingest at files_per_gib": ({"pipelines": 2}, "loader_server", 1024, 4096),
    "command": ({"loop": "closed"}, "web_server", 1, 5),
    "command at users": ({"loop": "closed"}, "web_server", 1, 5),
    "command/nginx-cache": ({"loop": "closed"}, "nginx_cache", 1, 5),
    "command/service": ({"loop": "closed"}, "own_service", 1, 5),
    "command/url": ({"loop": "closed"}, "foreign_site", 1, 5),
    "command/varnish": ({"loop": "closed"}, "varnish_cache", 1, 5),
    "http": ({"objects": 20, "smallest_bytes": 100, "largest_bytes": 5000}, "web_server", 1, 5),
    "http at rate": ({"objects": 20, "popularity": "zipf", "connections": 6}, "web_server", 100, 300),
    "http at working_set": ({"smallest_bytes": 20_000, "connections": 3}, "web_server", 1, 3),
    "http/nginx-cache": ({"objects": 20, "smallest_bytes": 5000}, "nginx_cache", 1, 5),
    "http/url": ({}, "foreign_site", 1, 5),
    "http/service": ({"paths": "/one /two", "checked": "length"}, "foreign_service", 1, 5),
    "http/varnish": ({"objects": 20, "smallest_bytes": 5000}, "varnish_cache", 1, 5),
    "jmeter": ({"file": str(DRIVERS / "plan.jmx")}, "foreign_site", 1, 3),
    "job-queue": ({"backlog": 50}, "queue_endpoint", 1, 3),
    "k6": ({"file": str(DRIVERS / "k6script.js")}, "foreign_site", 1, 5),
    "locust": ({"file": str(DRIVERS / "locustfile.py")}, "web_server", 1, 5),
    "locust at size": ({"file": str(DRIVERS / "shapefile.py")}, "foreign_site", 1, 3),
    "metadata-index": ({"entries": 2000, "batch": 100}, "farm_server", 1, 4),
    "metadata-index/postgres": ({"entries": 2000, "start": "indexed"}, "postgres_server", 1, 4),
    "metadata-index/sqlite": ({"entries": 2000, "rewrite": True}, "queue_endpoint", 1, 4),
    "metadata-index/attached mariadb": ({"entries": 2000, "indexes": "all"}, "farm_attached", 1, 4),
    "metadata-index/attached postgres": ({"entries": 2000, "indexes": "none"}, "postgres_attached", 1, 4),
    "metadata-index at scanners": ({"entries": 2000, "depth": 1}, "postgres_server", 1, 3),
    "metadata-index at batch": ({"entries": 2000}, "queue_endpoint", 1, 50),
    "metadata-index at change_rate": ({"entries": 2000, "batch": 50}, "queue_endpoint", 200, 2000),
    "metadata-index at entries": ({"scanners": 2, "batch": 100}, "queue_endpoint", 300, 20_000),
    "oltp": ({"rows": 500, "tables": 2}, "farm_server", 1, 5),
    "oltp/mysql": ({"rows": 1500, "tables": 2}, "mysql_server", 1, 5),
    "oltp/postgres": ({"rows": 500, "tables": 2}, "postgres_server", 1, 5),
    "oltp at rate": ({"rows": 500, "tables": 2, "threads": 6}, "farm_server", 100, 300),
    "render-farm": ({"tables_per_job": 3, "threads": 3, "submit": 300, "complete": 300}, "farm_server", 2, 7),
    "render-farm/mysql": (
        {"tables_per_job": 3, "threads": 3, "submit": 300, "complete": 300}, "mysql_server", 2, 7,
    ),
    "oltp/attached postgres": ({"rows": 500, "tables": 2}, "postgres_attached", 1, 5),
    "pgbench": ({"scale": 1, "script": "simple-update"}, "postgres_server", 1, 5),
    "pgbench/attached postgres": ({"scale": 1, "protocol": "prepared", "jobs": 2}, "postgres_attached", 1, 5),
    "pgbench at rate": (
        {"scale": 1, "script": "select-only", "connections": 6, "jobs": 2, "latency_limit_ms": 500},
        "postgres_server", 100, 300,
    ),
    "redis": ({"keys": 1000}, "redis_server", 1, 5),
    "render-farm-burst": (
        {"tables_per_job": 2, "threads": 3, "fan_out": 3, "listing_jobs": 4}, "farm_server", 8, 30,
    ),
    "render-farm-burst/mysql": (
        {"tables_per_job": 2, "threads": 3, "fan_out": 3, "listing_jobs": 4}, "mysql_server", 8, 30,
    ),
    "render-farm-burst/attached mariadb": (
        {"tables_per_job": 2, "threads": 3, "fan_out": 3, "listing_jobs": 4}, "farm_attached", 8, 30,
    ),
    "sysbench": ({"table_size": 500, "tables": 2}, "farm_server", 1, 5),
    "sysbench/mysql": ({"table_size": 500, "tables": 2}, "mysql_server", 1, 5),
    "sysbench/postgres": ({"script": "oltp_point_select", "table_size": 500}, "postgres_server", 1, 5),
    "sysbench/attached mariadb": ({"script": "bulk_insert"}, "farm_attached", 1, 5),
    "sysbench/attached postgres": (
        {"script": "oltp_insert", "table_size": 500, "tables": 2}, "postgres_attached", 1, 5,
    ),
    "sysbench at rate": (
        {"script": "oltp_write_only", "table_size": 5000, "connections": 6}, "farm_server", 100, 300,
    ),
}  # fmt: skip


BY_ADDRESS = frozenset({"jmeter", "k6", "locust"})
"""They are told an address, as `command` is, which has all of these targets: one is enough."""
NO_PACKAGE = frozenset({"jmeter", "k6"})
"""Their programs are in no package that `make test` could install: where they are not, test_k6.py and test_jmeter.py
read what they wrote elsewhere."""
STARTED_AS = {"farm_attached": "farm_server", "postgres_attached": "postgres_server"}
"""By a server that we were only told of."""


def there(name: str) -> bool:
    """Whether the program of a specimen is, or can be installed for the tests, and its extension is installed."""
    kind = name.partition("/")[0].partition(" at ")[0]
    if kind in EXTENSIONS[WORKLOADS_GROUP] and kind not in registry.KINDS:
        return False
    return kind not in NO_PACKAGE or all(need.present for need in registry.check(kind))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.mysql if name.endswith("/mysql") else pytest.mark.server])
        if name != "job-queue"
        else name
        for name in SPECIMENS
        if there(name)
    ],
)
def specimen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Specimen]:
    """Installed once for all tests, as a study does it for all of its steps."""
    kind, _, axis = request.param.partition("/")[0].partition(" at ")
    options, fixture, small, large = SPECIMENS[request.param]
    endpoint = request.getfixturevalue(fixture)
    declared = Declared(command=driver_of_the_docs(tmp_path_factory)) if kind == "command" else Declared()
    workload = registry.make(kind, options, Allowance(US), axis=axis or None, declared=declared)
    if fixture in STARTED_AS:  # what was left on it as on one of ours is not for the workload to drop
        workload.remove(request.getfixturevalue(STARTED_AS[fixture]))
    workload.install(endpoint)
    yield Specimen(workload, endpoint, small, large, options, declared, Path(endpoint.address))
    workload.remove(endpoint)


@pytest.mark.extension("loadframe_bulk", "loadframe_caches", "loadframe_drivers", "loadframe_index")
def test_every_kind_has_a_specimen_on_every_target_that_it_loads() -> None:
    targets = {
        "loader_server": "sharded bulk-loader",
        "queue_endpoint": "sqlite",
        "farm_server": "mariadb",
        "mysql_server": "mysql",
        "postgres_server": "postgres",
        "farm_attached": "mariadb",
        "postgres_attached": "postgres",
        "web_server": "nginx",
        "nginx_cache": "nginx-cache",
        "foreign_site": "url",
        "foreign_service": "service",
        "varnish_cache": "varnish",
        "redis_server": "service",
        "own_service": "service",
    }
    shown = {
        (name.partition("/")[0].partition(" at ")[0], targets[fixture])
        for name, (_, fixture, _, _) in SPECIMENS.items()
    }
    wanted = {
        (kind, target)
        for kind in registry.KINDS
        for target in registry.make(kind, {}, Allowance(US)).target_kinds
        if kind not in BY_ADDRESS or (kind, target) in shown
    }
    assert {kind for kind, _ in shown} >= BY_ADDRESS
    assert shown == wanted
    other_axes = {f"{kind} at {axis}" for kind, made in registry.KINDS.items() for axis in made.other_axes}
    assert other_axes <= SPECIMENS.keys()


def driver_of_the_docs(factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The command of the driver in docs/driving-with-a-command.md."""
    page = (Path(__file__).parents[2] / "docs/driving-with-a-command.md").read_text()
    (driver,) = re.findall(r"```python\n(.*?)```", page, re.S)
    path = factory.mktemp("driver") / "driver.py"
    path.write_text(driver)
    return ("python3", str(path), "/one")


@pytest.fixture(scope="module")
def queue_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Endpoint:
    path = tmp_path_factory.mktemp("queue") / "queue.db"
    path.touch()
    return Endpoint("sqlite", str(path), {"pragmas": '{"synchronous": "OFF", "busy_timeout": 5000}'})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


@pytest.fixture
def driver(specimen: Specimen, folder: Path) -> Iterator[Driver]:
    """A driver in the middle of a step that would last a minute."""
    specimen.workload.set_level(specimen.endpoint, specimen.large)
    driver = specimen.workload.start(specimen.endpoint, specimen.large, folder, 60.0)
    yield driver
    driver.kill()
    specimen.workload.after_step(specimen.endpoint)


def run(specimen: Specimen, level: float, folder: Path, seconds: float = 0.5) -> Driver:
    if specimen.workload.kind == "command":
        seconds *= 3  # on a busy machine a stall of 0.1 s is a driver that ended early
    driver = specimen.workload.start(specimen.endpoint, level, folder, seconds)
    try:
        assert driver.wait(SOON_S), "the driver did not end by itself"
    finally:
        driver.kill()
    return driver


@pytest.mark.long
def test_a_step_logs_requests_of_every_known_kind_that_end_inside_the_run(specimen: Specimen, folder: Path) -> None:
    for level in (specimen.small, specimen.large):
        specimen.workload.set_level(specimen.endpoint, level)
        began_s = time.monotonic()
        requests = run(specimen, level, folder).requests()
        ended_s = time.monotonic()
        specimen.workload.after_step(specimen.endpoint)
        assert len(requests), "how many there are in a second is the machine's business"
        assert requests.operation.max() < len(specimen.workload.operations)
        assert np.all((requests.end_s > began_s) & (requests.end_s < ended_s))
        assert np.all(requests.end_s - requests.latency_ms / 1e3 > began_s - 1e-3)
        assert np.all(requests.latency_ms > 0)
        assert np.all((requests.waiting_ms >= 0) & (requests.waiting_ms <= requests.latency_ms))
        assert (requests.outcome == 0).mean() > 0.5
        if not specimen.workload.one_lock:
            assert not requests.waiting_ms.any()


def test_a_driver_that_ended_runs_no_more_and_can_be_killed_again(specimen: Specimen, folder: Path) -> None:
    specimen.workload.set_level(specimen.endpoint, specimen.small)
    driver = run(specimen, specimen.small, folder)
    driver.kill()
    driver.kill()
    assert not driver.running()
    assert driver.pids() == ()
    assert driver.wait(0)


def test_kill_leaves_no_process_and_what_was_logged_can_be_read(driver: Driver, specimen: Specimen) -> None:
    pids = driver.pids()
    assert pids
    assert driver.running() and not driver.wait(0)
    driver.kill()
    await_that(lambda: not any(map(identify, pids)), "its processes have ended")  # SIGKILL takes a moment
    assert driver.requests().operation.size >= 0
    assert driver.wait(0)


def test_it_runs_where_its_allowance_says(specimen: Specimen, folder: Path) -> None:
    """With target and driver on CPUs of their own neither takes the other's."""
    made, cpu = specimen.workload, min(os.sched_getaffinity(0))
    workload = registry.make(
        made.kind,
        specimen.options,
        Allowance(US, cpus=frozenset({cpu})),
        axis=min(made.axes),
        declared=specimen.declared,
    )
    workload.set_level(specimen.endpoint, specimen.large)
    driver = workload.start(specimen.endpoint, specimen.large, folder, 60.0)
    try:
        threads = [int(one.name) for pid in driver.pids() for one in Path(f"/proc/{pid}/task").iterdir()]
        assert threads
        assert all(os.sched_getaffinity(thread) == {cpu} for thread in threads)
    finally:
        driver.kill()
        workload.after_step(specimen.endpoint)


def test_a_step_after_a_killed_one_is_a_step_like_any_other(driver: Driver, specimen: Specimen, folder: Path) -> None:
    driver.kill()
    specimen.workload.after_step(specimen.endpoint)
    specimen.workload.set_level(specimen.endpoint, specimen.large)
    assert len(run(specimen, specimen.large, folder).requests())


def ended(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        return True
    return False


def test_a_driver_that_lost_a_process_is_ended_and_reported(driver: Driver, specimen: Specimen) -> None:
    await_that(lambda: ended(driver.pids()[-1]), "a process is there to be ended")  # a shell's may just have gone
    if not driver.wait(HEEDED_S):  # what is still being launched heeds no signal
        ended(driver.pids()[-1])
    assert driver.wait(SOON_S)
    assert driver.pids() == ()
    with pytest.raises(WorkloadError, match=r"SIGTERM|ended with 143"):  # a shell that lost its command tells 128 + 15
        driver.requests()


def test_a_driver_that_cannot_reach_its_target_is_reported_with_what_it_printed(
    specimen: Specimen, folder: Path
) -> None:
    specimen.workload.set_level(specimen.endpoint, specimen.small)
    gone = not_there(specimen)
    with pytest.raises(WorkloadError) as caught:
        run_to_requests(specimen, gone, folder)
    assert caught.value.remedy
    assert "not-there" in caught.value.details


def not_there(specimen: Specimen) -> Endpoint:
    path = str(specimen.data.with_name("not-there"))
    here = specimen.endpoint
    shards = tuple(dataclasses.replace(shard, options={**shard.options, "socket": path}) for shard in here.shards)
    return dataclasses.replace(here, address=path, options={**here.options, "socket": path}, shards=shards)


def run_to_requests(specimen: Specimen, endpoint: Endpoint, folder: Path) -> None:
    driver = specimen.workload.start(endpoint, specimen.small, folder, 0.5)
    try:
        assert driver.wait(SOON_S)
        driver.requests()
    finally:
        driver.kill()


def test_a_target_that_is_gone_is_reported_when_the_level_is_prepared(specimen: Specimen) -> None:
    gone = not_there(specimen)
    for prepare in (lambda: specimen.workload.install(gone), lambda: specimen.workload.set_level(gone, 40)):
        with pytest.raises(TargetError, match="not-there") as caught:
            prepare()
        assert caught.value.remedy


def test_an_impossible_level_is_refused_and_named(specimen: Specimen, folder: Path) -> None:
    (axis,) = specimen.workload.axes
    for level in (0, -1, 2.5, 1e18, float("nan"), float("inf")):
        for use in (
            lambda level: specimen.workload.set_level(specimen.endpoint, level),
            lambda level: specimen.workload.start(specimen.endpoint, level, folder, 1.0),
        ):
            with pytest.raises(StudyError, match=axis) as caught:
                use(level)
            assert f"{level:g}" in caught.value.fact
            assert "whole number" in caught.value.remedy


def test_setting_the_same_level_again_changes_nothing(specimen: Specimen, folder: Path) -> None:
    for _ in range(3):
        specimen.workload.set_level(specimen.endpoint, specimen.small)
    assert len(run(specimen, specimen.small, folder).requests())
    specimen.workload.after_step(specimen.endpoint)
    specimen.workload.after_step(specimen.endpoint)
