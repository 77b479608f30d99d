"""What `compare` leaves for systems of continuous integration: --github and --junit."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.cli.terminal import answer, say
from loadframe.errors import OutputError
from loadframe.formats.named_files import append_to, write_whole
from loadframe.model import Comparison
from loadframe.reporting import comparison_report

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable in which GitHub Actions names the file of a step's summary."""


@dataclass(frozen=True, slots=True)
class Continuous:
    """What is asked for. summary: the file to which a job summary is appended; junit: that of the XML."""

    summary: Path | None
    junit: Path | None

    def tell(self, text: str, run: str) -> None:
        """The answer for people. GitHub's runner obeys lines of it, but not between these two."""
        if self.summary is None:
            answer(text, run=run)
            return
        token = secrets.token_hex(16)
        answer(f"::stop-commands::{token}\n{text}\n::{token}::", run=run)

    def leave(self, found: Sequence[Comparison]) -> None:
        """Write what was asked for. OutputError where it cannot be written."""
        if self.junit is not None:
            try:
                write_whole(self.junit, comparison_report.junit_xml(found))
            except OSError as error:
                raise _unwritten(self.junit, error) from error
        if self.summary is not None:
            for line in comparison_report.github_annotations(found):
                say(line)
            try:
                append_to(self.summary, comparison_report.github_summary(found).encode())
            except OSError as error:
                raise _unwritten(self.summary, error) from error


def asked(github: bool, junit: Path | None) -> Continuous:
    """OutputError where one cannot be left, before anything is measured."""
    named = os.environ.get(SUMMARY, "")
    if github and not named:
        raise OutputError(
            f"--github writes to the file that {SUMMARY} names, and that is not set",
            remedy=f"GitHub Actions sets it. Elsewhere omit --github, or set {SUMMARY} to a file.",
        )
    if junit is not None and not junit.absolute().parent.is_dir():
        raise OutputError(f"--junit {junit}: there is no folder {junit.parent}", remedy="Make it first.")
    return Continuous(Path(named) if github else None, junit)


def _unwritten(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{path} cannot be written: {error.strerror}", remedy="The verdict above holds. Free it, or name another file."
    )
