"""Programs of the tests that another user runs: a service is started as a user without privileges, and the checkout may
lie where that user may not enter."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def readable(file: Path) -> Path:
    """A copy that every user may read, until the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="loadframe-test-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    copy = folder / file.name
    shutil.copyfile(file, copy)
    copy.chmod(0o644)
    return copy
