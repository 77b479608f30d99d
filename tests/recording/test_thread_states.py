"""What threads wait for, from recorded procfs texts and from this very process."""

from __future__ import annotations

import os
import platform
import threading
import time
from pathlib import Path

import pytest

from loadframe.recording.profiles.threads import FUTEX, RUNNING, ThreadSampler, futex_kind, look, parse_stack
from waiting import await_that

STACK = """[<0>] futex_do_wait+0x46/0x90
[<0>] __futex_wait+0x8a/0x100
[<0>] futex_wait+0x67/0x120
[<0>] do_futex+0xc5/0x190
[<0>] __x64_sys_futex+0x127/0x1e0
[<0>] do_syscall_64+0x71/0x280
[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e
"""
MUTEX = "202 0x55730142a5c0 0x80 0x2 0x0 0x0 0x0 0x7f5e682a7ab8 0x7f5e69b0af16\n"
CONDITION = "202 0x561ba89b1e50 0x189 0x0 0x0 0x0 0xffffffff 0x7f4786664950 0x7f4786ca3f16\n"


def task(root: Path, thread: int, state: str, **files: str) -> None:
    folder = root / f"proc/10/task/{thread}"
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{thread} (odd (name) x) {state} " + "1 " * 49)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_every_thread_is_seen_with_what_it_sleeps_in(tmp_path: Path) -> None:
    task(tmp_path, 10, "R", stack=STACK, wchan="0")
    task(tmp_path, 11, "S", stack=STACK, syscall=MUTEX)
    task(tmp_path, 12, "S", stack=STACK, syscall=CONDITION)
    task(tmp_path, 13, "D", wchan="jbd2_log_wait_commit")
    task(tmp_path, 14, "S", wchan="0")
    task(tmp_path, 15, "Z")
    (tmp_path / "proc/10/task/16").mkdir()
    seen = {sample.thread: sample.frames for sample in look(tmp_path, 10, 1.0, futex=202)}
    assert seen[10] == ("odd (name) x", RUNNING)
    assert seen[11][:3] == ("odd (name) x", "[sleeping]", "entry_SYSCALL_64_after_hwframe_[k]")
    assert seen[11][-2:] == ("futex_do_wait_[k]", "[futex: lock]")
    assert seen[12][-1] == "[futex: condition]"
    assert seen[13] == ("odd (name) x", "[uninterruptible]", "jbd2_log_wait_commit_[k]")
    assert seen[14] == ("odd (name) x", "[sleeping]")
    assert seen.keys() == {10, 11, 12, 13, 14}


def test_a_process_that_is_gone_has_no_threads(tmp_path: Path) -> None:
    assert look(tmp_path, 99, 1.0) == []


@pytest.mark.parametrize("text", ["", "running\n", "-1 0x0\n", "7 0x1 0x80 0x0\n", "202 zzz\n", "202 0x1 no\n"])
def test_where_the_kernel_does_not_say_the_futex_stays_unnamed(text: str) -> None:
    assert futex_kind(text.encode(), 202) == "[futex]"


def test_a_stack_that_is_none_is_empty() -> None:
    assert parse_stack(b"") == ()
    assert parse_stack(b"Operation not permitted\n") == ()
    assert parse_stack(b"[<ffffffff81234567>] schedule_timeout.isra.0+0x1/0x2\n") == ("schedule_timeout_[k]",)


@pytest.mark.skipif(platform.machine() not in FUTEX, reason="the number of futex(2) is not known here")
def test_a_waiting_thread_of_this_process_is_seen_waiting() -> None:
    """Needs no permission: a process may look at itself."""
    ready, release = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        release.wait()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    sampler = ThreadSampler(lambda: (os.getpid(),))
    started = time.monotonic()
    try:
        ready.wait()
        sampler.start()
        await_that(lambda: sampler.between(started, time.monotonic())[1] >= 5, "five looks")
    finally:
        sampler.stop()
        release.set()
        waiting.join()
    samples, looks = sampler.between(started, time.monotonic())
    mine = [sample.frames for sample in samples if sample.thread == waiting.native_id]
    assert looks >= 5
    assert len(mine) == looks
    assert any(RUNNING not in frames for frames in mine)
    assert sampler.between(started - 2, started - 1) == ([], 0)
    sampler.stop()
