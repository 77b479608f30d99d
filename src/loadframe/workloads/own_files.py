"""Files that a study names in an option of its workload: scripts for the user's own driver."""

from __future__ import annotations

import os
from pathlib import Path

from loadframe.errors import StudyError


def named_file(key: str, name: str, what: str) -> Path:
    """The absolute path of a file that we can read. StudyError, with the option's key, for any other."""
    try:
        path = Path(name).expanduser().absolute()
        readable = path.is_file() and os.access(path, os.R_OK)
    except (OSError, RuntimeError, ValueError):  # a ~name that no user has, a NUL
        readable = False
    if not readable:
        raise StudyError(
            f"{key} = {name!r}: there is no such file that can be read.",
            remedy=f"Give the path of {what}. A relative one begins where Loadframe is called.",
        )
    return path
