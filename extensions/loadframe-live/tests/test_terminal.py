"""--live in a terminal: what is drawn, its keys, and what is said where it cannot be."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.text import Text
from textual.widgets import RichLog, Static

from loadframe.host.environment import python
from loadframe.model import Step, TargetState
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.runs.lines import Told
from loadframe_live.terminal import READY, LiveView, bars, curve
from loadframe_live.view import MOST_LINES, RunView
from waiting import await_that

from .conftest import DATA, LOADFRAME


@pytest.fixture
def run(tmp_path: Path, make_step: Callable[..., Step]) -> RunFolder:
    """A run in progress with three steps."""
    made = RunFolder.create(tmp_path, "job-queue")
    made.write_record("study.json", "study", RunFolder.open(DATA / "job-queue").study())
    made.append_line("treatments.jsonl", "treatment", Treatment("A", "as [b]given[/b]\x1b[31m", TargetState()))
    made.tell(Told("say", "a word [bold]from[/bold] \x1b]0;a stranger\x07"))
    for level in (1.0, 2.0, 4.0):
        made.append_line("steps.jsonl", "step", make_step(level, 100 * level, {"target.cpu.hottest_thread": level / 4}))
    return made


def test_what_a_run_says_is_shown_and_never_obeyed(run: RunFolder) -> None:
    async def look() -> None:
        app = LiveView(RunView(run, "0/run"), lambda: None)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            head, log = app.query_one("#head", Static), app.query_one("#log", RichLog)
            assert "as [b]given[/b]\\x1b[31m" in str(head.render())
            assert "\\x1b]0;a stranger" in log.lines[0].text
            assert "3 steps" in str(head.render())
            assert "4" in str(app.query_one("#curve", Static).render())

    asyncio.run(look())


def test_the_log_has_the_time_of_this_place(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page has it, and the clock on the wall."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()

    async def look() -> None:
        run.tell(Told("say", "noon", at="2026-11-26T06:30:00.000+00:00"))
        app = LiveView(RunView(run, "0/run"), lambda: None)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            assert app.query_one("#log", RichLog).lines[-1].text.startswith("12:00:00  noon")

    try:
        asyncio.run(look())
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_log_of_a_very_long_run_goes_on(run: RunFolder) -> None:
    async def look() -> None:
        app = LiveView(RunView(run, "0/run"), lambda: None)
        async with app.run_test(size=(100, 30)) as pilot:
            for number in range(3):
                for at in range(MOST_LINES // 2):
                    run.tell(Told("say", f"line {number}.{at}"))
                app.look()
                await pilot.pause()
                assert app.query_one("#log", RichLog).lines[-1].text.rstrip().endswith(f"line {number}.{at}")

    asyncio.run(look())


def test_q_leaves_the_view_and_ctrl_c_stops_the_run(run: RunFolder) -> None:
    stopped: list[bool] = []

    async def press() -> None:
        app = LiveView(RunView(run, "0/run"), lambda: stopped.append(True))
        async with app.run_test() as pilot:
            await pilot.press("ctrl+c")
            assert stopped == [True]
            assert app.is_running
            await pilot.press("q")
        assert not app.is_running

    asyncio.run(press())


@pytest.mark.long
def test_the_view_ends_when_what_measures_is_gone(run: RunFolder) -> None:
    ours, terminal = pty.openpty()
    (theirs, hold), (told, ready) = os.pipe(), os.pipe()
    command = python("loadframe_live.terminal", str(run.path), str(theirs), str(ready))
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, pass_fds=(theirs, ready), start_new_session=True
    ) as view:
        os.close(ready)
        assert os.read(told, 1) == READY
        os.close(hold)
        assert view.wait(20) == 0
    for descriptor in (ours, terminal, theirs, told):
        os.close(descriptor)


@pytest.mark.parametrize("size", [(30, 8), (12, 4), (3, 2), (200, 60)])
def test_a_window_of_any_size_is_drawn_in_and_can_be_resized(run: RunFolder, size: tuple[int, int]) -> None:
    async def look() -> None:
        app = LiveView(RunView(run, "0/run"), lambda: None)
        async with app.run_test(size=size) as pilot:
            for width, height in ((100, 30), size, (60, 16), (100, 30)):
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                await pilot.pause()
                place = app.query_one("#curve", Static)
                drawn = str(place.render()).splitlines()
                assert max(map(len, drawn)) <= max(place.size.width, len("The window is too small for the curve."))
            assert max("".join(drawn)) > "\u2800", "the curve is there again"
            assert app.is_running

    asyncio.run(look())


@dataclass
class Terminal:
    """A pseudo-terminal with a process in it. ours: the end that reads and types."""

    ours: int
    said: bytes = b""

    def read_until(self, *wanted: bytes) -> None:
        """Until one of these is said; AssertionError after a minute or at the end."""
        deadline = time.monotonic() + 60
        while not any(one in self.said for one in wanted):
            ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, self.said[-2000:]
            self.said += os.read(self.ours, 1 << 16)

    def rest(self) -> None:
        """What is left to be read once the process has ended."""
        with suppress(OSError):
            while select.select([self.ours], [], [], 0)[0] and (more := os.read(self.ours, 1 << 16)):
                self.said += more


ENTERED, LEFT, SHOWN = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


@contextmanager
def terminal() -> Iterator[tuple[Terminal, int]]:
    """A terminal of 100 by 30, and the end that a process is given."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    try:
        yield Terminal(ours), theirs
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def viewing(run: RunFolder, theirs: int, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """The view as a process of its own, which is there."""
    (open_end, hold), (told, ready) = os.pipe(), os.pipe()
    command = python("loadframe_live.terminal", str(run.path), str(open_end), str(ready))
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, pass_fds=(open_end, ready), start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", **more},
    ) as view:  # fmt: skip
        os.close(ready)
        assert os.read(told, 1) == READY
        try:
            yield view
        finally:
            for descriptor in (hold, open_end, told):
                os.close(descriptor)


@pytest.mark.long
def test_q_leaves_the_terminal_as_it_was(run: RunFolder) -> None:
    with terminal() as (screen, theirs):
        before = termios.tcgetattr(theirs)
        with viewing(run, theirs) as view:
            screen.read_until(b"3 steps")
            os.write(screen.ours, b"q")
            screen.read_until(LEFT)
            assert view.wait(20) == 0
        screen.rest()
        assert termios.tcgetattr(theirs) == before
        assert screen.said.rfind(LEFT) > screen.said.rfind(ENTERED)
        assert screen.said.rfind(SHOWN) > screen.said.rfind(b"\x1b[?25l"), "the cursor is shown again"


@pytest.mark.long
def test_without_colours_there_are_greys_alone(run: RunFolder) -> None:
    with terminal() as (screen, theirs):
        with viewing(run, theirs, NO_COLOR="1", COLORTERM="truecolor") as view:
            screen.read_until(b"3 steps")
            os.write(screen.ours, b"q")
            screen.read_until(LEFT)
            assert view.wait(20) == 0
        screen.rest()
        found = re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", screen.said)
        assert found
        assert [each for each in found if len(set(each)) > 1] == []


@pytest.mark.long
def test_ctrl_c_stops_the_run_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The whole command, as it is typed: the view, what measures, and the workers of its load."""
    study = DATA / "job-queue" / "study.toml"
    command = [LOADFRAME, "measure", str(study), "--runs", str(tmp_path), "--live"]
    with terminal() as (screen, theirs):
        before = termios.tcgetattr(theirs)
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0), env={**os.environ, "TERM": "xterm-256color"},
        ) as measuring:  # fmt: skip
            screen.read_until(b"Measuring at")
            os.write(screen.ours, b"\x03")
            screen.read_until(LEFT)

            def ended() -> bool:
                screen.rest()
                return measuring.poll() is not None

            await_that(ended, "the command ends")
        assert measuring.returncode == 130
        assert termios.tcgetattr(theirs) == before
        assert screen.said.rfind(LEFT) > screen.said.rfind(ENTERED)
        with pytest.raises(ProcessLookupError):
            os.killpg(measuring.pid, 0)
    (run,) = tmp_path.iterdir()
    assert RunFolder.open(run).closed() is False


def test_a_curve_is_drawn_from_its_first_level_to_its_last() -> None:
    text = curve({"A": [(1, 100), (2, 200), (4, 400)]}, 40, 10, axis="workers").plain
    rows = text.splitlines()
    assert "400" in rows[0]
    assert "workers" in rows[-1]
    assert rows[0].rstrip()[-1] > "\u2800", "the last level is the highest, at the upper right"


def test_limits_are_bars_the_fullest_first() -> None:
    uses = {"a": [0.2, "2 of 10", False], "b": [0.98, "98 of 100", True]}
    text: Text = bars(uses, {"a": {"title": "the files"}, "b": {"title": "the table cache"}}, 21, 5)
    lines = text.plain.splitlines()
    assert lines[0] == "The table cache"
    assert lines[1].count("█") == 20
    assert lines[2] == "98 of 100, reached"
    assert lines[4].count("█") == 4


@pytest.mark.long
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_without_a_terminal_it_says_what_to_do(more: list[str], tmp_path: Path) -> None:
    study = DATA / "job-queue" / "study.toml"
    done = subprocess.run(
        [LOADFRAME, "measure", str(study), "--runs", str(tmp_path), "--live", *more],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Leave out" in done.stderr
    assert list(tmp_path.iterdir()) == []
