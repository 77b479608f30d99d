"""Signals from the first moment to the last, and those that whoever started the command has it ignore."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]
PATIENCE_S = 60
LONG = ["--set", "measure.window=500ms", "--set", "measure.blocks={min=100,max=100}", "--set", "measure.budget=10m"]


def program(body: str) -> subprocess.Popen[str]:
    """A process whose command line does this; it says "there" and is then sent signals."""
    text = f"from loadframe.cli import entry, main\nimport os, signal, sys, time\n{body}\nentry.main()"
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_at_the_very_end_changes_nothing() -> None:
    """The interpreter takes its handlers away when it ends: it must not be there any more."""
    late = "import atexit; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))"
    process = program(f"{late}\nmain.run = lambda _: print('there') or 3")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (3, "there\n", "")


def test_ctrl_c_that_a_library_swallows_comes_again() -> None:
    """An exception in a callback of C is lost; without a second one the command could not be stopped any more."""
    body = """
import ctypes
def run(_):
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
    time.sleep(600)
main.run = run"""
    process = program(body)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "Stopped.\n")


def test_ctrl_c_that_a_library_makes_an_error_of_its_own_is_no_fault_of_ours() -> None:
    """pydantic does, where it comes while a model is built: with each command that begins."""
    body = """
def run(_):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as stopped:
        raise RuntimeError("cannot build the validator") from stopped
main.run = run"""
    process = program(body)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "Stopped.\n")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_ignored_from_outside_stays_ignored(number: signal.Signals) -> None:
    """nohup, and a shell's &."""
    text = "from loadframe.cli import entry; import signal; entry.take_signals(); "
    text += f"signal.raise_signal({int(number)}); print('goes on')"
    before = signal.signal(number, signal.SIG_IGN)
    try:
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    finally:
        signal.signal(number, before)
    assert (done.returncode, done.stdout) == (0, "goes on\n"), done.stderr


@pytest.mark.long
def test_a_block_that_a_signal_ends_is_left_in_full() -> None:
    """Whether the signal comes in the block or while it is entered or left: else a command goes on with the rights that
    it took for a moment."""
    text = """
import os, random, signal, time
from contextlib import contextmanager
from loadframe.cli import entry
from loadframe.host.signals import whole
@contextmanager
@whole
def taken():
    try:
        held.append(1)
        yield
    finally:
        held.clear()
held, left, (sender, ask) = [], 0, os.pipe()
if os.fork() == 0:
    os.close(ask)
    while os.read(sender, 1):
        until = time.perf_counter() + random.uniform(0, 0.001)
        while time.perf_counter() < until:
            pass
        os.kill(os.getppid(), signal.SIGTERM)
    os._exit(0)
for _ in range(300):
    signal.signal(signal.SIGTERM, entry._stop)
    try:
        os.write(ask, b"1")
        while True:
            with taken():
                for _ in range(100):
                    pass
    except KeyboardInterrupt as stopped:
        left += bool(held)
        held.clear()
print(left, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.stdout == "0\n", done.stderr


def test_a_signal_comes_at_the_end_of_the_first_of_many_blocks_that_hold_it_back() -> None:
    """Not a moment later, when the next one has begun: a command that is busy with such blocks would never end."""
    body = """
from loadframe.host.signals import undisturbed
def run(_):
    for block in range(100):
        with undisturbed():
            if block == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            if block > 2:
                print(block, flush=True)
            time.sleep(0.05)
main.run = run"""
    process = program(body)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "Stopped.\n")


@pytest.mark.long
def test_no_library_has_a_handler_of_its_own() -> None:
    """polars has one for Ctrl-C, which raises KeyboardInterrupt in its calls also where it is ignored."""
    body = """
import polars
def sent(column):
    os.kill(os.getpid(), signal.SIGINT)
    return column
def run(_):
    column = polars.col("a").map_batches(sent, return_dtype=polars.Int64)
    print(len(polars.LazyFrame({"a": [1]}).select(column).collect()))
    return 3
main.run = run"""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = program(body)
    finally:
        signal.signal(signal.SIGINT, before)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (3, "1\n", "")


@pytest.mark.long
def test_nohup_outlives_a_hang_up(start: Start, study: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = start("measure", str(study), *LONG)
    finally:
        signal.signal(signal.SIGHUP, before)
    done = running.finished()
    running.process.send_signal(signal.SIGHUP)
    running.wait_for(done + 2, "steps.jsonl")
    _, err = running.end(signal.SIGINT)
    assert running.process.returncode == 130, err
    assert running.leases() == []


def test_what_is_started_behaves_alike_whoever_started_us(tmp_path: Path) -> None:
    """PostgreSQL's initdb is ended by SIGQUIT, which a shell's & has us ignore, too."""
    text = """
import subprocess, sys
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
command = ["grep", "SigIgn", "/proc/self/status"]
spawn(command, Allowance(US), stdout=sys.stdout.fileno(), stderr=subprocess.DEVNULL).wait()
"""
    ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    of_the_c_library = 1 << 31 | 1 << 32  # signals 32 and 33, which glibc lets no program set (nptl(7))
    assert int(done.stdout.split()[1], 16) & ~of_the_c_library == 0


@pytest.mark.parametrize(("mask", "mode"), [(0, 0o755), (0o777, 0o700), (0o002, 0o755), (0o077, 0o700)])
def test_what_is_made_is_ours_whatever_the_umask(mask: int, mode: int, tmp_path: Path) -> None:
    body = f"os.umask({mask})\nmain.run = lambda _: os.mkdir({str(tmp_path / 'made')!r}, 0o777) or 0"
    process = program(body)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, (tmp_path / "made").stat().st_mode & 0o777) == (0, mode), err
