"""Where PostgreSQL's programs are, for whoever starts one: the server, or a load driver."""

import shutil
from pathlib import Path

from loadframe.host.environment import located

PACKAGED = Path("/usr/lib/postgresql")
"""Debian keeps each version's programs in a folder of its own, outside the usual PATH."""


def program(name: str) -> str | None:
    """Where a program of the newest version here is."""
    versions = [folder for folder in PACKAGED.glob("*/bin") if folder.parent.name.isdigit()]
    for folder in sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True):
        if (found := shutil.which(name, path=str(folder))) is not None:
            return found
    return located(name)
