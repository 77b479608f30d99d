"""progress.jsonl: whoever watches a run reads what it does now, and whether its command is still at work."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from loadframe.host.privilege import free_user
from loadframe.runs.folder import RunFolder
from loadframe.runs.lines import PROGRESS, ProgressLog, Told

WRITER = """
import sys, time
from pathlib import Path
from loadframe.runs.folder import RunFolder
run = RunFolder.create(Path(sys.argv[1]), "killed")
print(run.path, flush=True)
time.sleep(60)
"""


def told(run: RunFolder) -> list[Told]:
    return run.records(PROGRESS, "progress", Told)


def test_what_a_run_tells_can_be_read_by_another(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "told")
    run.tell(Told("phase", "measuring 3 levels: as given", 6))
    run.tell(Told("step", treatment="A", level=4.0, seconds=1.2, purpose="curve"))
    seen = told(RunFolder.open(run.path))
    assert [line.event for line in seen] == ["phase", "step"]
    assert (seen[0].words, seen[0].steps, seen[1].level) == ("measuring 3 levels: as given", 6, 4.0)


def test_only_the_command_that_made_a_run_tells_it(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "told")
    RunFolder.open(run.path).tell(Told("say", "not mine"))
    assert told(run) == []


def test_a_run_is_in_progress_until_its_command_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        run = RunFolder.open(Path(writer.stdout.readline().strip()))
        assert run.in_progress()
        assert run.in_progress(), "asking does not take the lock away"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert not run.in_progress()
    assert not run.closed()


@pytest.mark.skipif(os.geteuid() != 0, reason="root, and a second user")
def test_another_user_who_may_read_it_cannot_make_a_run_look_as_if_it_were_in_progress() -> None:
    uid = free_user()
    assert uid is not None
    with tempfile.TemporaryDirectory(prefix="loadframe-locked-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        run = RunFolder.create(Path(place), "killed")
        assert run._progress is not None and stat.S_IMODE((run.path / PROGRESS).stat().st_mode) & 0o444
        run._progress.close()
        (run.path / PROGRESS).chmod(0o644)
        command = ["flock", "--close", str(run.path / PROGRESS), "sh", "-c", "echo locked; exec cat"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=uid, group=uid, extra_groups=[], cwd="/"
        ) as holder:
            assert holder.stdin is not None and holder.stdout is not None
            assert holder.stdout.readline() == b"locked\n"
            assert not run.in_progress()
            holder.stdin.close()


def test_a_run_of_before_there_was_a_log_is_not_in_progress(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "old")
    (run.path / PROGRESS).unlink()
    assert not run.in_progress()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_costs_a_line_and_not_the_run() -> None:
    log = ProgressLog(os.open("/dev/full", os.O_WRONLY))
    log.tell(Told("say", "lost"))
    log.close()
    assert log.lost == 1
