"""Progress of a long command, which the command line draws."""

from pathlib import Path
from typing import Protocol, runtime_checkable


class Progress(Protocol):
    def phase(self, words: str, steps: int) -> None:
        """A new phase begins, of about this many steps."""

    def step(self, words: str) -> None:
        """One more step of the phase is done."""

    def say(self, words: str) -> None:
        """A line worth keeping on the screen."""


@runtime_checkable
class FollowsRun(Protocol):
    def follow(self, run: Path) -> None:
        """The run folder is there, and nothing is measured yet. Returns once it may be measured."""


class Silent:
    def phase(self, words: str, steps: int) -> None: ...

    def step(self, words: str) -> None: ...

    def say(self, words: str) -> None: ...


def counted(count: int, what: str) -> str:
    """ "1 level"; "7 levels"; "2 processes"."""
    return f"{count:,} {what}{'' if count == 1 else 'es' if what.endswith('s') else 's'}"
