"""A command of the reader's own ends or is ended; what it prints is bounded, and what it leaves behind is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

from loadframe.host import identity, to_its_end

PRINTS = "import sys, time; sys.stdout.write('x' * {size}); sys.stdout.flush(); time.sleep({then_s})"


@pytest.fixture
def mark() -> str:
    """A word by which the processes of a command are found."""
    return uuid.uuid4().hex


def test_its_status_and_its_words_are_told_also_those_of_errors() -> None:
    done = to_its_end.run(["sh", "-c", "echo out; echo wrong >&2; exit 3"], 60.0)
    assert done == to_its_end.Ended(3, "out\nwrong\n")


def test_a_child_that_holds_its_output_open_is_not_waited_for_and_not_ended() -> None:
    """A restart leaves one: the service. A pipe would end when that does."""
    done = to_its_end.run(["sh", "-c", "sleep 20 & echo $!"], 10.0)
    os.kill(int(done.said), signal.SIGKILL)  # which raises where it is gone


def test_of_much_that_is_printed_the_end_is_told() -> None:
    done = to_its_end.run(["sh", "-c", f"head -c {3 * to_its_end.MOST_BYTES} /dev/zero; echo the last"], 60.0)
    assert len(done.said) == to_its_end.MOST_BYTES
    assert done.said.endswith("the last\n")


def test_one_that_prints_more_than_a_disk_is_to_hold_is_ended(mark: str) -> None:
    """It would end well if it were waited for."""
    code = PRINTS.format(size=to_its_end.MOST_PRINTED_BYTES + 1, then_s=20)
    with pytest.raises(subprocess.TimeoutExpired):
        to_its_end.run([sys.executable, "-I", "-S", "-c", code, mark], 60.0)
    assert identity.naming(mark) == ()


def test_one_that_does_not_end_in_time_is_ended(mark: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        to_its_end.run([sys.executable, "-I", "-S", "-c", PRINTS.format(size=1, then_s=20), mark], 0.3)
    assert identity.naming(mark) == ()


def test_the_end_of_a_child_is_awaited_without_looking_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleeps(_: float) -> None:
        raise AssertionError("an end is noticed late")

    child = to_its_end.Process(["sleep", "0.1"])
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.0)
    monkeypatch.setattr(time, "sleep", sleeps)
    assert child.wait(60) == child.wait(0.0) == child.returncode == 0


def test_where_the_kernel_gives_no_descriptor_of_a_process_its_end_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forbidden(pid: int) -> int:
        raise PermissionError(f"pidfd_open of {pid}")

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    child = to_its_end.Process(["sleep", "0.1"])
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.0)
    assert child.wait(60) == 0
