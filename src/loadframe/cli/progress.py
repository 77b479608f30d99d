"""Progress on stderr: bars on a terminal, lines elsewhere; with --live drawn by a process of an extension."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from loadframe.cli.terminal import plain, say
from loadframe.entry_points import VIEWS_GROUP, not_installed, registered
from loadframe.errors import UsageError
from loadframe.host.environment import NO_FOLDER, own_environment, python
from loadframe.progress import Progress

BEGINS_WITHIN_S, ENDS_WITHIN_S = 10.0, 5.0
TERMINAL = "terminal"
BROWSER = "`loadframe serve` shows it in a browser."


class _Lines:
    def phase(self, words: str, steps: int) -> None:
        say(f"{words} ({steps} step{'' if steps == 1 else 's'})")

    def step(self, words: str) -> None:
        """Single steps would be noise in a log."""

    def say(self, words: str) -> None:
        say(words)


class _Drawn:
    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task = None if not bars.tasks else bars.tasks[-1].id

    def phase(self, words: str, steps: int) -> None:
        if self._task is not None:
            self._bars.update(self._task, total=self._bars.tasks[-1].completed, last="")
        self._task = self._bars.add_task(plain(words), total=steps, last="")

    def step(self, words: str) -> None:
        if self._task is not None:
            task = self._bars.tasks[-1]
            self._bars.update(self._task, total=max(task.total or 0, task.completed + 1), last=plain(words))
            self._bars.advance(self._task)

    def say(self, words: str) -> None:
        self._bars.console.print(plain(words), markup=False, highlight=False, emoji=False, soft_wrap=True)


@contextmanager
def shown(*, quiet: bool = False) -> Iterator[Progress]:
    console = Console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        yield _Lines()
        return
    with bars_on(console) as bars:
        yield _Drawn(bars)


def bars_on(console: Console) -> Bars:
    """Without markup: words may come from studies and servers."""
    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}", style="dim", markup=False),
        console=console,
    )


def check(as_json: bool) -> None:
    """UsageError where nothing can be drawn, MissingTool without a view."""
    if as_json:
        raise UsageError("--live draws in the terminal, and --json prints one object", remedy="Leave out one of them.")
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise UsageError("--live needs a terminal, and a stream is redirected", remedy=f"Leave out --live. {BROWSER}")
    if registered(VIEWS_GROUP, TERMINAL) is None:
        error = not_installed(VIEWS_GROUP, TERMINAL, "--live")
        error.remedy += " Or leave out --live."
        raise error


class Drawing:
    """Starts the view when the run folder is there. Once it was left, lines are printed as without it."""

    def __init__(self, plain: Progress) -> None:
        self._plain = plain
        self._process: subprocess.Popen[bytes] | None = None
        self._hold = -1

    def follow(self, run: Path) -> None:
        """Returns once the view is there, so that its start does not disturb the first step."""
        theirs, self._hold = os.pipe()
        reading_end, ready = os.pipe()
        try:
            self._process = subprocess.Popen(
                python(registered(VIEWS_GROUP, TERMINAL).__module__, str(run.absolute()), str(theirs), str(ready)),
                pass_fds=(theirs, ready),
                cwd=NO_FOLDER,
                env=own_environment(),
            )
        finally:
            os.close(theirs)
            os.close(ready)
        try:
            select.select([reading_end], [], [], BEGINS_WITHIN_S)
        finally:
            os.close(reading_end)

    def _left(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def phase(self, words: str, steps: int) -> None:
        if self._left():
            self._plain.phase(words, steps)

    def step(self, words: str) -> None:
        if self._left():
            self._plain.step(words)

    def say(self, words: str) -> None:
        if self._left():
            self._plain.say(words)

    def close(self) -> None:
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        if self._process is not None:
            try:
                self._process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextmanager
def drawn() -> Iterator[Progress]:
    with shown(quiet=True) as plain:
        drawing = Drawing(plain)
        try:
            yield drawing
        finally:
            drawing.close()
