"""How a long command tells where it is. The lab calls it; the command line draws it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about every phase and step as it happens."""

    def phase(self, words: str, steps: int) -> None:
        """A new phase begins, of about this many steps."""

    def step(self, words: str) -> None:
        """One more step of the phase is done."""

    def say(self, words: str) -> None:
        """A line worth keeping on the screen."""


class Silent:
    """Prints nothing."""

    def phase(self, words: str, steps: int) -> None:
        """Nothing."""

    def step(self, words: str) -> None:
        """Nothing."""

    def say(self, words: str) -> None:
        """Nothing."""
