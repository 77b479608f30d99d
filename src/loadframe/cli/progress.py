"""Progress on stderr: bars on a terminal, a line per phase elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from loadframe.cli.terminal import plain, say
from loadframe.progress import Progress


class _Lines:
    """Where stderr is no terminal."""

    def phase(self, words: str, steps: int) -> None:
        say(f"{words} ({steps} step{'' if steps == 1 else 's'})")

    def step(self, words: str) -> None:
        """Single steps would be noise in a log."""

    def say(self, words: str) -> None:
        say(words)


class _Drawn:
    """A bar for the current phase; finished phases stay on the screen."""

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
    """A Progress that draws on stderr. quiet: plain lines even on a terminal, as on one that cannot draw."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        yield _Lines()
        return
    with bars_on(console) as bars:
        yield _Drawn(bars)


def bars_on(console: Console) -> Bars:
    """What is drawn. Nothing of it is markup: words come from studies and servers, too."""
    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}", style="dim", markup=False),
        console=console,
    )
