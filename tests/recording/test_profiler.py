"""Sampling for real: where perf may sample, it does; where it may not, it is said how to get it, and threads are still
looked at. Never skipped: the machine decides which half holds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadframe.model import ProfileSource
from loadframe.recording.profiles import perf
from loadframe.recording.profiles.perf import Permission, frequency_hz, permission
from loadframe.recording.profiles.profiler import Profiler, components_of, parse_stacks
from waiting import await_that

BUSY = "import time\nuntil = time.monotonic() + 60\nwhile time.monotonic() < until:\n    sum(range(1000))\n"

Sources = dict[tuple[str, str], ProfileSource]


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that computes until it is ended."""
    with subprocess.Popen([sys.executable, "-c", BUSY]) as process:
        yield process.pid
        process.kill()


def keeping(folder: Path) -> Callable[[str, str], None]:
    """Keeps files in a folder."""

    def keep(name: str, text: str) -> None:
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    return keep


def sampled_for(seconds: float, busy: int, allowed: Permission, folder: Path) -> tuple[Profiler, Sources]:
    """The profiler, and what it has written to folder/run after it has looked at a process for so long."""
    profiler = Profiler(allowed, folder / "scratch")
    (folder / "scratch").mkdir(parents=True)
    started = time.monotonic()
    profiler.prepare()
    profiler.start(components_of([busy], [os.getpid()]))
    try:
        time.sleep(seconds)  # what is sampled, not a synchronisation
    finally:
        profiler.stop()
    written = profiler.write(started, time.monotonic(), "01", keeping(folder / "run"))
    return profiler, {(source.kind, source.component): source for source in written}


@pytest.mark.long
def test_a_busy_process_is_found_busy(busy: int, tmp_path: Path) -> None:
    allowed = permission()
    for seconds in (1.0, 4.0, 16.0):  # perf has to have started by then: on a machine with much to do that takes long
        folder = tmp_path / f"{seconds}"
        profiler, sources = sampled_for(seconds, busy, allowed, folder)
        if allowed.scope is None or ("cpu", "target") in sources:
            break
    looked = sources["threads", "target"]
    states = parse_stacks((folder / "run" / looked.file).read_text()).stacks
    assert sum(stack.count for stack in states) == looked.samples
    assert states[0].frames[-1] == "[running or runnable]"
    if allowed.scope is None:
        assert [one.how_to_get_it for one in profiler.missing]
        assert ("cpu", "target") not in sources
    else:
        sampled = sources["cpu", "target"]
        assert sampled.samples > 0
        stacks = parse_stacks((folder / "run" / sampled.file).read_text()).stacks
        frames = {frame for stack in stacks for frame in stack.frames}
        assert any("Py" in frame or "python" in frame for frame in frames)
        assert not any(frame.endswith("_[k]") for frame in frames) or allowed.scope != "processes in user space"


def test_where_there_is_no_perf_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    allowed = permission()
    assert allowed.scope is None
    (lacking,) = allowed.missing
    assert "linux-perf" in lacking.how_to_get_it
    profiler = Profiler(allowed, tmp_path)
    profiler.prepare()
    profiler.start({os.getpid(): "target"})
    profiler.stop()
    assert profiler.missing == [lacking]


def fake_perf(folder: Path, script: str) -> None:
    path = folder / "perf"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_where_perf_is_forbidden_it_is_said_what_would_permit_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_perf(tmp_path, 'echo "Error:" >&2; echo "No permission to enable cpu-clock event." >&2; exit 255')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "paranoid").write_text("3\n")
    monkeypatch.setattr(perf, "PARANOID", tmp_path / "paranoid")
    allowed = permission()
    assert allowed.scope is None
    (lacking,) = allowed.missing
    assert "kernel.perf_event_paranoid=1 (it is 3)" in lacking.how_to_get_it
    assert "No permission to enable cpu-clock" in lacking.how_to_get_it


def test_without_the_kernel_s_functions_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_perf(tmp_path, 'case "$*" in *--all-cpus*|*cpu-clock:k*) exit 255;; esac')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    allowed = permission()
    assert allowed.scope == "processes in user space"
    assert "functions of the kernel" in {one.what for one in allowed.missing}


def test_a_perf_that_fails_in_the_middle_leaves_the_thread_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_perf(tmp_path, 'echo "failed to mmap" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    profiler = Profiler(Permission("machine", ()), tmp_path)
    started = time.monotonic()
    profiler.prepare()
    profiler.start({os.getpid(): "target"})
    assert profiler._perf is not None
    assert profiler._perf._process.wait() == 1
    await_that(lambda: profiler._threads.between(started, time.monotonic())[1], "a look at the threads")
    profiler.stop()
    profiler.stop()
    assert "failed to mmap" in profiler.missing[-1].how_to_get_it
    kinds = {source.kind for source in profiler.write(started, time.monotonic(), "01", keeping(tmp_path / "run"))}
    assert kinds == {"threads"}


def test_a_target_within_the_driver_is_the_target() -> None:
    assert components_of([], [5, 6]) == {5: "target", 6: "target"}
    assert components_of([4], [5]) == {4: "target", 5: "driver"}


@pytest.mark.parametrize("cpus", [1, 2, 3, 8, 64, 512])
def test_samples_stay_few_on_many_cpus_and_out_of_step(cpus: int) -> None:
    hz = frequency_hz(cpus)
    assert hz % 2 == 1
    assert hz * cpus <= 2 * perf.SAMPLES_PER_S or hz == perf.LEAST_HZ
    assert hz >= perf.LEAST_HZ


def test_only_the_window_counts_and_a_late_start_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf begins half a second into the window: the CPU time is to be divided by the rest of it."""
    printed = "".join(
        f"{command} {pid}/{pid} {time_s}: \n\t 100 work (/usr/bin/x)\n\tffffffff81000000 sys (k)\n\n"
        for command, pid, time_s in (
            ("server", 7, "10.500000"),
            ("server", 7, "11.000000"),
            ("swapper", 0, "11.200000"),
            ("mine", 9, "11.500000"),
            ("load", 8, "12.000000"),
            ("server", 7, "12.500001"),
        )
    )
    (tmp_path / "printed").write_text(printed)
    (tmp_path / "perf.data").write_text("recorded")
    fake_perf(tmp_path, f"case $1 in script) cat {tmp_path}/printed;; esac")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    profiler = Profiler(Permission("machine", ()), tmp_path)
    profiler.prepare()
    profiler.start({7: "target", 8: "driver"})
    profiler.stop()
    written = profiler.write(10.0, 12.5, "01", keeping(tmp_path / "run"))
    sources = {one.component: one for one in written if one.kind == "cpu"}
    assert {name: one.samples for name, one in sources.items()} == {"target": 2, "driver": 1, "rest": 1}
    assert {one.seconds for one in sources.values()} == {2.0}
    strangers = parse_stacks((tmp_path / "run" / sources["rest"].file).read_text()).stacks
    assert [stack.frames for stack in strangers] == [("mine", "sys_[k]")], "of strangers only what the kernel did"
