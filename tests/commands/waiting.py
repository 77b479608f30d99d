"""The waits of tests: each has a deadline, and where that has passed it says what was waited for and what was seen."""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

WITHIN_S = 60.0
PAUSE_S = 0.01
Seen = TypeVar("Seen")


def await_that(
    look: Callable[[], Seen],
    what: str,
    within_s: float = WITHIN_S,
    *,
    of: subprocess.Popen[str] | subprocess.Popen[bytes] | None = None,
    pause_s: float = PAUSE_S,
) -> Seen:
    """What a look sees as soon as that is true. AssertionError at the deadline, or where the process of which it is
    waited for has ended before."""
    until = time.monotonic() + within_s
    while not (seen := look()):
        assert of is None or of.poll() is None, f"it ended with {of and of.returncode} before: {what}; seen: {seen!r}"
        assert time.monotonic() < until, f"not within {within_s:g} s: {what}; seen: {seen!r}"
        time.sleep(pause_s)
    return seen
