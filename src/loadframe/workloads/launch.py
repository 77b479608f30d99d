"""How a load driver's process is started: in its own session, and gone when Loadframe is gone."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO


def launch(
    command: Sequence[str], *, stdout: IO[bytes] | int, stderr: IO[bytes] | int, cwd: Path, stdin: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a driver's process. stdin None: it reads nothing."""
    return subprocess.Popen(
        command,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        start_new_session=True,
    )
