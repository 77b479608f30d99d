"""pgbench: its log as requests, its schedule as what was offered; scripts, protocols and failures on a real server."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from loadframe.errors import StudyError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import postgres, registry
from loadframe.workloads.request_log import Requests
from loadframe_drivers.pgbench import FAILED, LATE, PgbenchDriver, lag_now_s, offered, read
from waiting import await_that

LOG = """\
0 199 2241 0 1000 500000 1020
1 10 1000 0 1000 600000 0
0 200 serialization 0 1000 700000 0
0 201 skipped 0 1000 800000 0
1 11 300 0 1000 9"""
"""The last line is torn: pgbench was killed."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").write_text(LOG)
    return tmp_path / "log"


def test_the_log_is_read_as_requests(log: Path) -> None:
    requests = read([log, log.with_name("missing")], monotonic_s=-900, latency_limit_ms=50)
    assert requests.end_s.tolist() == pytest.approx([100.5, 100.6, 100.7, 100.8])
    assert requests.outcome.tolist() == [0, 0, FAILED, LATE]
    # Of the failed one nothing is told but when client 0 ended the one before, 200 ms earlier.
    assert requests.latency_ms.tolist() == pytest.approx([2.241, 1.0, 200, 50], rel=1e-4)


def test_what_was_scheduled_is_offered_and_what_nobody_had_time_for_too(log: Path) -> None:
    def of(start_s: float, end_s: float, rate: float = 5) -> int:
        return offered(log, start_s, end_s, rate, monotonic_s=-900, latency_limit_ms=50)

    for begun_s in (100.497759, 100.599, 100.7, 100.75):
        assert of(begun_s - 1e-4, begun_s + 1e-4) == 1
    assert of(0, 100.4) == of(100.76, 200) == 0
    assert of(100.5, 100.72) == 2
    # 50 ms late at 5/s: nobody else had come meanwhile. At 100/s, 25 more came until 101.0.
    assert of(100.5, 101.0) == 3
    assert of(100.5, 101.001, rate=100) == 3 + 25


def test_how_late_it_is_now_is_at_the_end_of_the_log(log: Path) -> None:
    assert lag_now_s(log.with_name("missing")) == 0
    assert lag_now_s(log) == 0
    log.write_text("0 1 5 0 1 1 700\n" * 500 + "0 1 5 0 1 1 2000000\n0 2 skipped 0 1 1 0\n0 1 5 0 1 1 3")
    assert lag_now_s(log) == 2


def test_one_script_is_enough_and_a_file_must_be_there(tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    with pytest.raises(StudyError, match=r"own\.sql.*No such file"):
        registry.make("pgbench", {"file": str(script)}, Allowance(US))
    with pytest.raises(StudyError, match=r"~0.*home directory"):
        registry.make("pgbench", {"file": "~0"}, Allowance(US))
    script.write_text("SELECT 1;")
    registry.make("pgbench", {"file": str(script)}, Allowance(US))
    with pytest.raises(StudyError, match=r"own\.sql.*select-only.*one of them"):
        registry.make("pgbench", {"file": str(script), "script": "select-only"}, Allowance(US))


@pytest.mark.parametrize("line", [r"\shell touch /tmp/x", r"  \setshell n echo 1", r"\SHELL id"])
def test_a_script_that_runs_programs_is_refused(tmp_path: Path, line: str) -> None:
    script = tmp_path / "mine.sql"
    script.write_text(f"SELECT 1;\n{line}\nSELECT 2;\n")
    with pytest.raises(StudyError, match="runs a program"):
        registry.make("pgbench", {"file": str(script)}, Allowance(US))


def drive(
    endpoint: Endpoint,
    folder: Path,
    level: float,
    seconds: float = 1.5,
    *,
    axis: str = "clients",
    **options: SettingValue,
) -> tuple[PgbenchDriver, Requests]:
    workload = registry.make("pgbench", {"scale": 1, **options}, Allowance(US), axis=axis)
    workload.install(endpoint)
    workload.set_level(endpoint, level)
    driver = workload.start(endpoint, level, folder, seconds)
    assert isinstance(driver, PgbenchDriver)
    try:
        assert driver.wait(60)
        return driver, driver.requests()
    finally:
        driver.kill()
        workload.after_step(endpoint)


def counted(endpoint: Endpoint, question: str) -> int:
    with postgres.connected(endpoint, "to count") as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_every_transaction_of_every_script_is_in_the_log_once(
    postgres_server: Endpoint, tmp_path: Path, script: str, protocol: str
) -> None:
    driver, requests = drive(postgres_server, tmp_path, 3, script=script, protocol=protocol, jobs=2)
    assert len(requests)
    assert not requests.outcome.any()
    assert driver.offered(0, time.monotonic()) is None
    if script != "select-only":
        assert counted(postgres_server, "SELECT count(*) FROM pgbench_history") == len(requests)


@pytest.mark.long
@pytest.mark.server
def test_each_step_begins_with_an_empty_history(postgres_server: Endpoint, tmp_path: Path) -> None:
    drive(postgres_server, tmp_path, 1)
    workload = registry.make("pgbench", {"scale": 1}, Allowance(US))
    workload.set_level(postgres_server, 1)
    assert counted(postgres_server, "SELECT count(*) FROM pgbench_history") == 0


@pytest.mark.long
@pytest.mark.server
def test_a_script_of_the_users_and_the_transactions_that_fail(postgres_server: Endpoint, tmp_path: Path) -> None:
    """Everybody changes the same row, at an isolation that lets only one of two do that."""
    script = tmp_path / "own.sql"
    script.write_text(
        "BEGIN ISOLATION LEVEL REPEATABLE READ;\n"
        "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\nCOMMIT;\n"
    )
    _, requests = drive(postgres_server, tmp_path, 4, file=str(script))
    done, failed = (requests.outcome == 0).sum(), (requests.outcome == FAILED).sum()
    assert failed > 10
    assert done + failed == len(requests)
    assert counted(postgres_server, "SELECT bbalance FROM pgbench_branches WHERE bid = 1") == done
    assert (requests.latency_ms[requests.outcome == FAILED] < 1000).all()


@pytest.mark.long
@pytest.mark.server
def test_at_a_rate_that_it_keeps_nothing_is_lost(postgres_server: Endpoint, tmp_path: Path) -> None:
    driver, requests = drive(
        postgres_server, tmp_path, 200, 2, axis="rate", script="select-only", connections=8, jobs=2
    )
    begun = requests.end_s - requests.latency_ms / 1000
    start_s, end_s = begun[0] + 0.3, begun[0] + 1.9
    offered = driver.offered(start_s, end_s)
    served = int(((requests.end_s > start_s) & (requests.end_s <= end_s)).sum())
    assert offered is not None and abs(offered - served) <= 0.1 * offered, "but for what is under way at the ends"
    assert offered == pytest.approx(200 * 1.6, rel=0.3)  # five deviations of a Poisson count
    # Of exponential gaps the deviation is the mean; of even ones it is 0.
    gaps = np.diff(np.sort(begun))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.4)


@pytest.mark.long
@pytest.mark.server
def test_what_comes_too_late_is_skipped_and_an_error(postgres_server: Endpoint, tmp_path: Path) -> None:
    """One connection for far more than it can serve."""
    driver, requests = drive(
        postgres_server, tmp_path, 50_000, 1, axis="rate", script="simple-update", connections=1, latency_limit_ms=100
    )
    late = requests.outcome == LATE
    assert late.mean() > 0.5
    assert set(requests.latency_ms[late].tolist()) == {100.0}
    begun = float((requests.end_s - requests.latency_ms / 1000).min())
    assert driver.offered(begun, begun + 0.8) == pytest.approx(50_000 * 0.8, rel=0.1)


@pytest.mark.long
@pytest.mark.server
def test_a_server_that_falls_behind_is_seen_while_it_does_and_what_was_done_is_kept(
    postgres_server: Endpoint, tmp_path: Path
) -> None:
    workload = registry.make("pgbench", {"scale": 1, "connections": 1}, Allowance(US), axis="rate")
    workload.install(postgres_server)
    workload.set_level(postgres_server, 50_000)
    driver = workload.start(postgres_server, 50_000, tmp_path, 30)
    try:
        await_that(lambda: driver.wait(0.1) or driver.waiting() >= 10_000, "10,000 wait")
        assert driver.waiting() >= 10_000
    finally:
        driver.kill()
    requests = driver.requests()
    workload.after_step(postgres_server)
    done = counted(postgres_server, "SELECT count(*) FROM pgbench_history")
    assert 0 <= done - len(requests) <= 1, "none is lost in a buffer; the last may have ended with pgbench"
    assert requests.latency_ms[-1] > 100


@pytest.mark.server
def test_no_password_is_in_a_command_line_or_a_file(postgres_server: Endpoint, tmp_path: Path) -> None:
    workload = registry.make("pgbench", {"scale": 1}, Allowance(US))
    workload.install(postgres_server)
    workload.set_level(postgres_server, 1)
    driver = workload.start(postgres_server, 1, tmp_path, 30)
    try:
        (pid,) = driver.pids()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    finally:
        driver.kill()
    secret = postgres_server.options["password"].encode()
    assert b"pgbench" in command and secret not in command
    assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.server
def test_more_clients_than_connections_is_told_in_the_servers_words(postgres_server: Endpoint, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError) as caught:
        drive(postgres_server, tmp_path, 200, script="select-only")
    assert "too many clients" in caught.value.details or "remaining connection slots" in caught.value.details
