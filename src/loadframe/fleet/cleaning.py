"""What a process of ours that was killed, or gave up, has left on this host: put back, ended and removed, by a process
of its own. The next command on this host would do the same; but there may be none for a day."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping

from loadframe.host.environment import environment, python
from loadframe.host.to_its_end import ended, told

CLEANED_WITHIN_S = 60.0
MOST_WORDS = 2000


def cleaned_up(given: Mapping[str, str] | None = None) -> str:
    """Wait until it is done; what was done, in words. given: the environment of the process that left it, ours where
    there is none. Never raises because of what is left: what cannot be put back is said."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            python("loadframe.fleet.worker", "--clean-up"), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            env=dict(given) if given is not None else environment(), start_new_session=True,
        )  # fmt: skip
        if not ended(process, said, CLEANED_WITHIN_S):
            process.kill()
            process.wait()
        words = " ".join(told(said).split())[-MOST_WORDS:]
    if process.returncode < 0:
        late = f"Not all of what it left was put back within {CLEANED_WITHIN_S:g} s; the next command there tries again"
        return f"{words} {late}".strip()
    return words
