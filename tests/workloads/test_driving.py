"""The driver's process: ended when overdue, with what it logged kept; failing drivers are quoted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadframe.errors import WorkloadError
from loadframe.host import identity
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import UNFINISHED
from loadframe.workloads import driving, forking
from loadframe.workloads.driving import GRACE_S, ProcessDriver
from loadframe.workloads.request_log import RECORD, Requests
from waiting import await_that


def driver_of(script: str, folder: Path, end_s: float | None = None) -> ProcessDriver:
    printed = folder / "printed.txt"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", script], stdout=output, stderr=output, start_new_session=True
        )
    return ProcessDriver("dummy", [process], logs=[folder / "log"], printed=[printed], end_s=end_s)


def test_an_overdue_driver_is_ended_and_what_it_logged_counts(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(RECORD.pack(1.0, 2.0, 0.5, 3, 0) + b"torn")
    driver = driver_of("import time; time.sleep(100)", tmp_path, end_s=time.monotonic() - GRACE_S)
    assert driver.wait(60)
    requests = driver.requests()
    assert len(requests) == 1
    assert (requests.end_s[0], requests.latency_ms[0], requests.waiting_ms[0]) == (1.0, 2.0, 0.5)


def killed(folder: Path, *, logged: list[list[tuple[float, float]]], **more: Any) -> Requests:
    """Of a driver that is ended now; logged: begin and end of the requests of each of its users."""
    logs = [folder / f"requests-{number}.log" for number in range(len(logged))]
    for log, times in zip(logs, logged, strict=True):
        log.write_bytes(b"".join(RECORD.pack(end, 1e3 * (end - begin), 0.0, 0, 0) for begin, end in times))
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
    driver = ProcessDriver("dummy", [process], logs=logs, printed=[], end_s=None, **more)
    driver.kill()
    return driver.requests()


def test_what_was_in_flight_as_a_driver_was_ended_is_counted_with_its_age(tmp_path: Path) -> None:
    """Users without a pause from `at` on: one was at work until the load's end, one hangs, one never was served."""
    at = time.monotonic() - 10
    logged = [[(at, at + 0.5), (at + 0.5, at + 2.1)], [(at, at + 0.25)], []]
    found = killed(tmp_path, logged=logged, duration_s=2.0, one_each=True)
    left = found.outcome == UNFINISHED
    assert sorted((found.end_s - found.latency_ms / 1000)[left]) == pytest.approx([at, at + 0.25], abs=1e-3)
    assert found.end_s[left].min() > at + 10
    assert (found.outcome == 0).sum() == 3
    assert (killed(tmp_path, logged=logged, duration_s=2.0).outcome == 0).all(), "who pauses may have none in flight"


def test_in_an_open_loop_what_has_not_been_answered_counts_from_when_it_was_due(tmp_path: Path) -> None:
    at = time.monotonic() - 1
    due = at + np.array([0.0, 0.1, 0.2, 0.3, 3600.0])
    found = killed(tmp_path, logged=[[(at, at + 0.4)], [(at + 0.2, at + 0.5)]], arrivals=due, duration_s=2.0)
    left = found.outcome == UNFINISHED
    assert (found.end_s - found.latency_ms / 1000)[left] == pytest.approx(at + np.array([0.1, 0.3]), abs=1e-3)


def test_a_closed_loop_is_waited_for_as_long_as_its_load_took(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    over_s = time.monotonic() - 2 * GRACE_S
    driver = ProcessDriver("dummy", [process], logs=[], printed=[], end_s=over_s, duration_s=1000.0)
    assert driver.running()
    driver.duration_s, driver.one_each, driver.logs = 1.0, True, [tmp_path / "log"]
    assert driver.running(), "not one of its requests has ended"
    driver.arrivals = np.array([over_s])
    assert not driver.running(), "an open loop has as many in flight as it fell behind"


def stopped(script: str) -> subprocess.Popen[bytes]:
    """A process that has said "here" and was stopped then."""
    process = subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    return process


def test_what_a_stopped_driver_logged_is_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(RECORD.pack(1.0, 2.0, 0.5, 3, 0))
    process = stopped("import time; print('here', flush=True); time.sleep(100)")
    over = time.monotonic() - GRACE_S
    driver = ProcessDriver("dummy", [process], logs=[tmp_path / "log"], printed=[], end_s=over)
    assert driver.wait(60)
    with pytest.raises(WorkloadError, match=f"process {process.pid} is stopped by a signal") as caught:
        driver.requests()
    assert caught.value.remedy


@pytest.mark.long
def test_a_program_that_prepares_may_take_its_time_but_not_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "LOOK_EVERY_S", 0.01)
    assert (
        driving.run_to_end([sys.executable, "-c", "import time; time.sleep(0.1)"], dict(os.environ), Allowance(US))
        is None
    )
    itself = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    with pytest.raises(WorkloadError, match=r"makes no progress: process [0-9]+ is stopped"):
        driving.run_to_end([sys.executable, "-c", itself], dict(os.environ), Allowance(US))


def test_kill_ends_the_children_too(tmp_path: Path) -> None:
    script = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid, flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    driver = ProcessDriver("dummy", [process], logs=[], printed=[], end_s=None)
    assert driver.running()
    driver.kill()
    # A killed orphan may wait for init to collect it; what matters is that it runs no more.
    await_that(lambda: not _alive(child), "the child has ended")


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def test_a_failed_driver_is_quoted_once_however_often_it_says_so(tmp_path: Path) -> None:
    driver = driver_of("print('FATAL: no\\n' * 500); raise SystemExit(3)", tmp_path)
    assert driver.wait(60)
    with pytest.raises(WorkloadError, match="ended with 3") as caught:
        driver.requests()
    assert caught.value.details.count("FATAL: no") == 1


def test_a_driver_that_did_nothing_is_an_error(tmp_path: Path) -> None:
    driver = driver_of("print('nothing to say')", tmp_path)
    assert driver.wait(60)
    with pytest.raises(WorkloadError, match="successful request") as caught:
        driver.requests()
    assert "nothing to say" in caught.value.details


def test_a_running_driver_has_no_result_yet(tmp_path: Path) -> None:
    driver = driver_of("import time; time.sleep(100)", tmp_path)
    with pytest.raises(WorkloadError, match="still running"):
        driver.requests()
    driver.kill()


def module_of(text: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> forking.Worker:
    """A worker that runs this module."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return forking.Worker(name, [], log=folder / "log", printed=folder / "printed")


@pytest.fixture(autouse=True)
def _none_kept() -> Iterator[None]:
    yield
    forking.end_fork_servers(Allowance(US))


WORKS = "import os, sys\ndef main(arguments):\n    print('ready', flush=True); sys.stdin.readline(); "


def test_the_next_workers_are_forked_from_the_same_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker has changed in itself is gone, and `end_fork_servers` ends what they come from."""
    logs = f"{WORKS}file = os.open({str(tmp_path / 'log')!r}, os.O_WRONLY | os.O_CREAT); os.write(file, bytes(40))"
    says_who = f"; os.write(os.open({str(tmp_path / 'parents')!r}, 0o2101, 0o600), b'%d ' % os.getppid())"
    worker = module_of(logs + says_who, "logs", tmp_path, monkeypatch)
    for _ in range(2):
        driver = driving.start_together("dummy", [worker, worker], Allowance(US), None)
        assert driver.wait(60)
        driver.requests()
    parents = [int(word) for word in (tmp_path / "parents").read_text().split()]
    parent = parents[0]
    assert parents == 4 * [parent] and identity.identify(parent)
    forking.end_fork_servers(Allowance(US))
    assert identity.identify(parent) is None


@pytest.mark.parametrize(("end", "how"), [("sys.exit(3)", "ended with 3"), ("os.abort()", "ended by SIGABRT")])
def test_how_a_worker_failed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, how: str) -> None:
    worker = module_of(f"{WORKS}print('no', file=sys.stderr); {end}", f"fails_{how[-1]}", tmp_path, monkeypatch)
    driver = driving.start_together("dummy", [worker], Allowance(US), 1.0)
    assert driver.wait(60)
    with pytest.raises(WorkloadError, match=how):
        driver.requests()


def test_a_module_that_cannot_be_imported_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = module_of("import no_such_module", "imports", tmp_path, monkeypatch)
    with pytest.raises(WorkloadError, match="could not start") as caught:
        driving.start_together("dummy", [worker], Allowance(US), 1.0)
    assert "no_such_module" in caught.value.details


def test_workers_end_with_what_they_are_forked_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = module_of(f"{WORKS}sys.stdin.close(); __import__('time').sleep(100)", "sleeps", tmp_path, monkeypatch)
    driver = driving.start_together("dummy", [worker, worker], Allowance(US), 1.0)
    parent = identity.parent_of(driver.pids()[0])
    assert parent is not None
    os.kill(parent, signal.SIGKILL)
    assert driver.wait(60)
    with pytest.raises(WorkloadError, match="ended by SIGKILL"):
        driver.requests()


def test_a_driver_is_ended_also_where_a_signal_has_stopped_what_forks_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = module_of(f"{WORKS}__import__('time').sleep(100)", "stays", tmp_path, monkeypatch)
    driver = driving.start_together("dummy", [worker, worker], Allowance(US), 1.0)
    parent = identity.parent_of(driver.pids()[0])
    assert parent is not None
    os.kill(parent, signal.SIGSTOP)
    driver.kill()
    assert not driver.running()


@pytest.mark.long
def test_a_worker_that_is_stopped_before_it_is_ready_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "LOOK_EVERY_S", 0.01)
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    for where, text in (("import", stop), ("main", f"def main(arguments): {stop}")):
        worker = module_of(text, f"stopped_at_{where}", tmp_path, monkeypatch)
        with pytest.raises(WorkloadError, match=r"A worker of dummy does not begin: process [0-9]+ is stopped"):
            driving.start_together("dummy", [worker], Allowance(US), 1.0)
        forking.end_fork_servers(Allowance(US))
