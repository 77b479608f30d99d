"""The state directory: what Loadframe keeps must outlive a killed command, and a power failure.

It is $LOADFRAME_STATE, else $XDG_STATE_HOME/loadframe, else ~/.local/state/loadframe.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadframe.errors import CageError

TORN = ".tmp"
WRITING = "writing.lock"


def state_directory() -> Path:
    """Where Loadframe keeps what must outlive a killed command; made if need be. CageError if it cannot be written."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    path = Path(os.environ.get("LOADFRAME_STATE") or Path(base) / "loadframe")
    return writable(path, "keep its state", "LOADFRAME_STATE")


def writable(path: Path, purpose: str, variable: str) -> Path:
    """The folder, made if need be. purpose: what it is for; variable: what names another. CageError."""
    remedy = f"Set {variable} to a folder that can be written."
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CageError(f"Loadframe cannot {purpose} in {path}: {error.strerror}", remedy=remedy) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise CageError(f"Loadframe cannot {purpose} in {path}: not writable", remedy=remedy)
    return path


def write_durably(file: Path, text: str) -> None:
    """Whole or not at all, also when the power fails: write aside, fsync, rename, fsync the folder. What a writer that
    was killed has left aside is removed by `remove_torn`."""
    aside = file.with_suffix(TORN)
    with locked(file.parent / WRITING):
        with aside.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(file)
    descriptor = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_torn(folder: Path) -> None:
    """Remove what writers that were killed have left half written; does nothing without such a file or folder."""
    if any(folder.glob(f"*{TORN}")):
        with locked(folder / WRITING):  # so none of these is being written now
            for file in folder.glob(f"*{TORN}"):
                file.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time, by a file that is there for this alone."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
