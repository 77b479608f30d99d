"""The recorder as a process of its own: what it records is true, its end leaves a readable file, and it stays light."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loadframe.errors import RecordingError
from loadframe.host import identity
from loadframe.host.environment import python
from loadframe.host.leases import Lease
from loadframe.host.processes import MARK
from loadframe.model import CounterSpec
from loadframe.recording import control
from loadframe.recording.control import Recorder
from loadframe.recording.frames import UNRECORDED, Tick
from loadframe.recording.metrics import window_metrics
from loadframe.recording.readers import RecordingReader
from loadframe.recording.recorder import RecorderProcess
from waiting import await_that

BURN = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
held = [open("/dev/null") for _ in range(40)]
print("ready", flush=True)
input()
while time.thread_time() < 0.6: pass
time.sleep(0.4)
"""
INTERVAL_S = 0.05


def launch(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ticks_of(path: Path) -> list[Tick]:
    with RecordingReader(path) as reader:
        return reader.all_ticks()


def recorded_until(recorder: Recorder, holds: Callable[[list[Tick]], bool], what: str) -> list[Tick]:
    """Flush until that holds of the recording."""

    def seen() -> list[Tick]:
        recorder.flush()
        ticks = ticks_of(recorder.path)
        return ticks if holds(ticks) else []

    return await_that(seen, what)


def wait_until_recorded(recorder: Recorder, source: str, count: int = 0) -> list[Tick]:
    """Flush until a source appears in the recording, and that has so many ticks."""
    return recorded_until(
        recorder, lambda ticks: len(ticks) >= count and any(source in tick.entries for tick in ticks), source
    )


@pytest.mark.long
def test_the_cpu_of_a_process_is_what_the_kernel_says_at_its_end(tmp_path: Path) -> None:
    child = launch(BURN)
    assert child.stdin is not None and child.stdout is not None
    with child.stdout, child.stdin, Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:
        child.stdout.readline()
        recorder.follow("target", [child.pid])
        wait_until_recorded(recorder, f"target:{child.pid}:tasks")
        start_s = time.monotonic()
        recorder.note("service", json.dumps({"done": 0}), at_s=start_s)
        child.stdin.write(b"go\n")
        child.stdin.flush()
        # Left unreaped, so that the recorder sees its last numbers.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        end_s = time.monotonic()
        recorder.note("service", json.dumps({"done": 50}), at_s=end_s)
        wait_until_recorded(recorder, "note:service")
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wait_until_recorded(recorder, f"target:{child.pid}:gone")
    counters = [CounterSpec("done", "mariadb.questions", cumulative=True)]
    with RecordingReader(tmp_path / "a.lfrec") as reader:
        metrics = window_metrics(reader.ticks_between(start_s, end_s), start_s, end_s, service=counters)
    used_s = usage.ru_utime + usage.ru_stime
    assert child.returncode == 0
    assert 0.5 * used_s < metrics["target.cpu.cores"] * (end_s - start_s) < 1.5 * used_s
    assert 0.4 < metrics["target.cpu.hottest_thread"] * (end_s - start_s) < 1.5 * used_s
    assert metrics["target.threads.count"] == 2
    assert metrics["target.threads.polling"] >= 0.5
    assert metrics["target.open_files"] >= 43
    assert metrics["target.open_files.limit"] > 43
    assert metrics["target.memory.rss"] > 1e6
    assert metrics["mariadb.questions"] == pytest.approx(50 / (end_s - start_s))
    assert 0 < metrics["system.cpu.utilization"] <= 1
    assert 0 <= metrics["recorder.cpu.cores"] < 1


def test_threads_that_appear_are_followed_and_processes_that_vanish_do_no_harm(tmp_path: Path) -> None:
    child = launch(
        "import threading, time\ninput()\nthreading.Thread(target=time.sleep, args=(60,)).start()\ntime.sleep(60)"
    )
    assert child.stdin is not None and child.stdout is not None
    with child.stdout, child.stdin, Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:
        recorder.follow("driver", [child.pid, 2**22 + 1])
        tasks = f"driver:{child.pid}:tasks"
        alone = len(wait_until_recorded(recorder, tasks)[-1].entries[tasks])
        child.stdin.write(b"go\n")
        child.stdin.flush()
        recorded_until(recorder, lambda ticks: len(ticks[-1].entries.get(tasks, b"")) >= 1.5 * alone, "two threads")
        child.kill()
        child.wait()
        wait_until_recorded(recorder, f"driver:{child.pid}:gone")
        recorder.flush()
        cost = recorder.stop()
    ticks = ticks_of(recorder.path)
    assert any(f"driver:{2**22 + 1}:gone" in tick.entries for tick in ticks)
    assert sum(f"driver:{child.pid}:gone" in tick.entries for tick in ticks) == 1
    assert cost.ticks == sum(tick.sample for tick in ticks)
    assert 1e6 < cost.rss_bytes <= 25 * 2**20
    assert cost.cpu_s > 0
    assert cost.elapsed_s > 0


def warnings_of(ticks: list[Tick]) -> set[str]:
    return {tick.entries[UNRECORDED].decode() for tick in ticks if UNRECORDED in tick.entries}


def test_what_cannot_be_opened_for_want_of_descriptors_is_told_and_not_taken_for_gone(tmp_path: Path) -> None:
    own = os.getpid()
    with Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:
        recorded_until(recorder, lambda ticks: len(ticks) > 0, "a first tick: its own files are open")
        looks = [len(list(Path(f"/proc/{recorder.pid}/fd").iterdir())) for _ in range(20)]
        opened = min(looks)  # some are open for a moment
        resource.prlimit(recorder.pid, resource.RLIMIT_NOFILE, (opened, opened))
        recorder.follow("target", [own])
        recorder.follow_cgroup("target", [Path("/sys/fs/cgroup")])
        recorded_until(recorder, lambda ticks: len(warnings_of(ticks)) > 1, "two warnings")
    ticks = ticks_of(recorder.path)
    assert warnings_of(ticks) == {
        f"The process {own} of the target could not be recorded: Too many open files.",
        "The control group of the target could not be recorded: Too many open files.",
    }
    assert not any(f"target:{own}:gone" in tick.entries for tick in ticks)


def test_flush_means_that_notes_and_marks_can_be_read(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.lfrec") as recorder:
        recorder.mark("step-start", level=8)
        recorder.note("mariadb.status", "Threads 3", at_s=12.5)
        recorder.flush()
        events = [tick for tick in ticks_of(recorder.path) if not tick.sample]
    note, mark = events  # in the order of their times
    assert json.loads(mark.entries["mark:step-start"]) == {"kind": "step-start", "level": 8}
    assert (note.monotonic_s, note.entries) == (12.5, {"note:mariadb.status": b"Threads 3"})


@pytest.mark.parametrize("ended", [False, True])
def test_within_a_step_sockets_are_looked_at_as_often_as_its_windows_need(tmp_path: Path, ended: bool) -> None:
    """The marks of a step lead the schedule, whatever a look costs here; when it looks is for test_look_schedule.py."""
    process = RecorderProcess(tmp_path / "a.lfrec", INTERVAL_S, tmp_path)
    process.obey({"do": "mark", "kind": "step-start", "at_s": 100.0, "level": 8.0, "warmup_s": 0.15, "window_s": 0.3})
    if ended:
        process.obey({"do": "mark", "kind": "step-end", "at_s": 100.1})
    process.close()
    due = [at_s for at_s in (100.0, 100.15, 100.3, 100.45) if process.sockets.schedule.is_due(at_s)]
    assert due == ([100.0, 100.15, 100.3, 100.45] if ended else [100.3, 100.45])


def test_processes_not_named_again_are_no_longer_followed(tmp_path: Path) -> None:
    own = os.getpid()
    with Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:
        recorder.follow("target", [own])
        wait_until_recorded(recorder, f"target:{own}:fd")
        recorder.follow("target", [])
        recorder.mark("unfollowed")
        before = len(wait_until_recorded(recorder, "mark:unfollowed"))
        ticks = wait_until_recorded(recorder, "mark:unfollowed", before + 3)
    assert not [name for name in ticks[-1].entries if name.startswith("target:")]


def test_the_cgroup_of_a_component_is_followed_until_it_is_gone(tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "cpu.stat").write_text("usage_usec 5\n")
    (group / "memory.max").write_text("max\n")
    with Recorder(tmp_path / "a.lfr", interval_s=INTERVAL_S) as recorder:
        recorder.follow_cgroup("target", [group])
        entries = wait_until_recorded(recorder, f"target:cgroup:{group}/cpu.stat")[-1].entries
        recorder.follow_cgroup("target", [])
        recorder.mark("unfollowed")
        before = len(wait_until_recorded(recorder, "mark:unfollowed"))
        ticks = wait_until_recorded(recorder, "mark:unfollowed", before + 3)
    assert entries[f"target:cgroup:{group}/cpu.stat"] == b"usage_usec 5\n"
    assert not [name for name in ticks[-1].entries if name.startswith("target:")]


def test_the_limits_of_a_cgroup_are_read_again_as_a_step_begins(tmp_path: Path) -> None:
    """Seen: the quota of the state before stood beside the use of the state after, "404 % of what its cage allows"."""
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").write_text("1\n")
    name = f"target:cgroup:{group}/memory.max"
    with Recorder(tmp_path / "a.lfr", interval_s=INTERVAL_S) as recorder:
        recorder.follow_cgroup("target", [group])
        wait_until_recorded(recorder, name)
        (group / "memory.max").write_text("2\n")
        recorder.mark("step-start", warmup_s=0.5, window_s=1.0)
        before = len(wait_until_recorded(recorder, "mark:step-start"))
        ticks = wait_until_recorded(recorder, "mark:step-start", before + 2)
    marked = next(number for number, tick in enumerate(ticks) if "mark:step-start" in tick.entries)
    first = next(tick for tick in ticks[marked:] if tick.sample)
    assert first.entries[name] == b"2\n"


@pytest.mark.parametrize("asked", ["flush", "stop"])
def test_the_answer_to_a_question_that_was_interrupted_is_not_taken_for_that_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """As where Ctrl-C comes while its answer is awaited."""
    with Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:

        def interrupted() -> select.poll:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(control.select, "poll", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(recorder, asked)()
        if asked == "flush":
            recorder.mark("later")
            recorder.flush()
            assert any("mark:later" in tick.entries for tick in ticks_of(recorder.path))
        cost = recorder.stop()
    assert recorder.stop() == cost
    assert cost.ticks == sum(tick.sample for tick in ticks_of(recorder.path))


def test_a_command_that_was_interrupted_half_sent_is_sent_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:

        def interrupted() -> select.poll:
            monkeypatch.undo()
            os.kill(recorder.pid, signal.SIGCONT)
            raise KeyboardInterrupt

        os.kill(recorder.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, recorder.pid, os.WSTOPPED | os.WNOWAIT)
        monkeypatch.setattr(control.select, "poll", interrupted)
        with pytest.raises(KeyboardInterrupt):
            recorder.note("service", "x" * 200_000)
        recorder.flush()
    notes = [tick.entries["note:service"] for tick in ticks_of(recorder.path) if "note:service" in tick.entries]
    assert [len(note) for note in notes] == [200_000]


def test_kill_9_leaves_what_was_written_and_the_next_call_says_so(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S)
    recorder.start()
    flushed = wait_until_recorded(recorder, "system:/proc/stat")
    os.kill(recorder.pid, signal.SIGKILL)
    with pytest.raises(RecordingError, match="signal 9"):
        recorder.flush()
    with pytest.raises(RecordingError, match="signal 9"):
        recorder.follow("target", [1])
    recorder.kill()
    assert ticks_of(recorder.path)[: len(flushed)] == flushed


def test_a_recorder_that_cannot_write_says_why_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.lfrec").write_bytes(b"somebody's")
    with pytest.raises(RecordingError, match="File exists"):
        Recorder(tmp_path / "a.lfrec").start()
    with pytest.raises(RecordingError, match="No such file"):
        Recorder(tmp_path / "absent" / "a.lfrec").start()
    assert (tmp_path / "a.lfrec").read_bytes() == b"somebody's"


def test_it_ends_in_order_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = launch(
        "import pathlib, sys, time\n"
        "from loadframe.recording.control import Recorder\n"
        f"recorder = Recorder(pathlib.Path({str(tmp_path / 'a.lfrec')!r}))\n"
        "recorder.start()\nprint(recorder.pid, flush=True)\ntime.sleep(60)"
    )
    assert parent.stdin is not None and parent.stdout is not None
    with parent.stdin, parent.stdout:
        recorder = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            parent.wait()
            # The end of a process that is not our child: its pidfd becomes readable.
            ended = select.poll()
            ended.register(recorder, select.POLLIN)
            assert ended.poll(30_000)
        finally:
            os.close(recorder)
    last = ticks_of(tmp_path / "a.lfrec")[-1]
    assert "ticks" in json.loads(last.entries["recorder:cost"])


def test_it_has_the_mark_of_its_lease_so_that_a_sweep_ends_it_where_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(tmp_path / "scratch"))
    with Lease.acquire("a study") as lease, Recorder(tmp_path / "a.lfrec") as recorder:
        assert recorder.pid in [each.pid for each in identity.marked(f"{MARK}={lease.id}")]


def test_an_error_in_the_block_is_not_hidden_and_the_recorder_ends(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.lfrec")
    with pytest.raises(KeyError), recorder:
        pid = recorder.pid
        os.kill(pid, signal.SIGKILL)
        raise KeyError("ours")
    with pytest.raises(RecordingError):
        recorder.flush()


def test_the_process_imports_nothing_heavy() -> None:
    code = "import sys, loadframe.recording.recorder; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("loadframe.")}
    assert ours == {
        "loadframe.errors",
        "loadframe.formats",
        "loadframe.formats.json_text",
        "loadframe.masking",
        "loadframe.version",
        "loadframe.recording",
        "loadframe.recording.frame_writer",
        "loadframe.recording.frames",
        "loadframe.recording.held_files",
        "loadframe.recording.jvm_sampling",
        "loadframe.recording.recorder",
        "loadframe.recording.sampling",
        "loadframe.recording.socket_rows",
        "loadframe.recording.socket_sampling",
        "loadframe.recording.thread_sampling",
        "loadframe.recording.wait_classes",
    }
    assert not {"numpy", "pydantic", "scipy", "polars", "asyncio"} & set(loaded)


def test_it_reads_a_tree_laid_out_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_bytes(b"cpu of another machine\n")
    path = tmp_path / "a.lfrec"
    command = python("loadframe.recording.recorder", str(path), "--root", str(tmp_path))
    subprocess.run(command, input=b'{"do": "mark", "kind": "x", "at_s": 1}\n{"do": "stop", "number": 1}\n', check=True)
    entries = [tick.entries for tick in ticks_of(path)]
    assert all(
        each.get("system:/proc/stat", b"cpu of another machine\n") == b"cpu of another machine\n" for each in entries
    )
    assert "recorder:cost" in entries[-1]


def test_the_end_of_its_input_alone_ends_it_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    command = python("loadframe.recording.recorder", str(path))
    subprocess.run(command, input=b'{"do": "mark", "kind": "x", "at_s": 1}\n', check=True, timeout=60)
    ticks = ticks_of(path)
    assert "mark:x" in ticks[0].entries or "mark:x" in ticks[1].entries
    assert "recorder:cost" in ticks[-1].entries


def test_a_recorder_that_is_stopped_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:
        recorder.note("service", "{}")
        recorder.flush()
        pid = recorder.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        monkeypatch.setattr(control, "ANSWER_TIMEOUT_S", 0.2)
        with pytest.raises(RecordingError, match=f"process {pid} is stopped") as first:
            for _ in range(10_000):  # a pipe takes 64 KiB that nobody reads
                recorder.note("service", "x" * 100)
        for again in (recorder.flush, recorder.stop):
            with pytest.raises(RecordingError, match=f"process {pid} is stopped"):
                again()
        recorder.kill()
    assert first.value.remedy
    assert any("note:service" in tick.entries for tick in ticks_of(recorder.path))


def test_a_recorder_that_did_not_answer_a_stop_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recorder(tmp_path / "a.lfrec", interval_s=INTERVAL_S) as recorder:
        os.kill(recorder.pid, signal.SIGSTOP)
        monkeypatch.setattr(control, "ANSWER_TIMEOUT_S", 0.2)
        for _ in range(2):
            with pytest.raises(RecordingError, match="did not answer 'stop'"):
                recorder.stop()
        recorder.kill()
