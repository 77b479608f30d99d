"""A watch by root keeps of its privileges what it needs once it has begun, and leaves no password in a core dump."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadframe.formats.json_text import write_json
from loadframe.host.environment import python
from loadframe.host.privilege import free_user
from loadframe_watch.days import lines
from loadframe_watch.find import how_to_find
from loadframe_watch.records import WatchPlan

as_root = pytest.mark.skipif(os.geteuid() != 0 or free_user() is None, reason="root, and a second user")
READ = 1 << 2 | 1 << 19
"""CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE (linux/capability.h)."""
STARTS = 1 << 5 | 1 << 6 | 1 << 7
"""CAP_KILL, CAP_SETGID, CAP_SETUID."""
DUMPABLE = """
import ctypes, sys
from loadframe_watch.daemon import give_up
from loadframe_watch.records import WatchPlan
before = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
give_up(WatchPlan("", "", server={"address": "x"} if sys.argv[1] == "server" else {}, webhook=sys.argv[2]))
print(before, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@contextmanager
def watching(folder: Path, pid: int, **more: Any) -> Iterator[dict[str, int]]:
    """What the kernel says of a watch of this process once it has begun, and the watch until the block ends."""
    plan = WatchPlan("a service", str(folder), interval_s=1.0, every_s=1.0, find=how_to_find(pid), **more)
    descriptor = os.memfd_create("plan", 0)
    os.write(descriptor, write_json(plan.as_record()).encode())
    command = python("loadframe_watch.daemon", str(descriptor))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, pass_fds=[descriptor]) as process:
        os.close(descriptor)
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Watching ")
            text = Path(f"/proc/{process.pid}/status").read_text()
            yield {
                name: int(value, 16)
                for name, value in re.findall(r"^(CapPrm|CapEff|CapInh|CapAmb|NoNewPrivs):\t(\w+)", text, re.M)
            }
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 130
        finally:
            process.kill()


@contextmanager
def service() -> Iterator[tuple[int, int]]:
    """A process of another user, and that user."""
    uid = free_user()
    with subprocess.Popen(["sleep", "120"], user=uid, group=uid, extra_groups=[], cwd="/") as process:
        try:
            assert uid is not None
            yield process.pid, uid
        finally:
            process.kill()


@as_root
@pytest.mark.timeout(90)
def test_a_watch_that_only_reads_keeps_what_reads(tmp_path: Path) -> None:
    with service() as (pid, _), watching(tmp_path, pid) as status:
        assert status == {"CapInh": 0, "CapPrm": READ, "CapEff": READ, "CapAmb": 0, "NoNewPrivs": 1}
    samples = [line.data["values"] for line in lines(tmp_path, kinds=("sample",))]
    assert samples and samples[-1]["target.open_files"] >= 3, "of another user's process"


@pytest.mark.long
@as_root
@pytest.mark.timeout(90)
def test_with_a_unit_of_work_it_keeps_what_starts_it_as_another_user_and_ends_it(tmp_path: Path) -> None:
    source = {"form": "command", "command": ["sh", "-c", "echo uid $(id -u)"], "select": [], "counters": []}
    unit = {"form": "command", "command": ["sh", "-c", "test $(id -u) -ne 0; exit $?"]}
    with service() as (pid, uid), watching(tmp_path, pid, unit=unit, sources=(source,), for_s=3.0) as status:
        assert status["CapEff"] == status["CapPrm"] == READ | STARTS and status["NoNewPrivs"] == 1
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
    samples = [line.data["values"] for line in lines(tmp_path, kinds=("sample",))]
    assert {one["service.uid"] for one in samples if "service.uid" in one} == {float(uid)}
    assert {line.data["error"] for line in lines(tmp_path, kinds=("unit",))} <= {""}


@as_root
@pytest.mark.timeout(90)
def test_a_program_that_root_gave_for_alarms_is_a_whole_roots(tmp_path: Path) -> None:
    """It may be one that sends mail, which is set-group-ID."""
    with service() as (pid, _), watching(tmp_path, pid, command=("/bin/true",)) as status:
        assert status["CapEff"] == READ and status["NoNewPrivs"] == 0


@pytest.mark.parametrize(
    ("server", "webhook", "after"), [("server", "", 0), ("", "http://127.0.0.1:1/", 0), ("", "", 1)]
)
def test_where_it_has_a_password_or_a_token_its_memory_is_in_no_core_dump(
    server: str, webhook: str, after: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DUMPABLE, server, webhook], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["1", str(after)]
