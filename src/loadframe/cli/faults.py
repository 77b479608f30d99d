"""What nobody foresaw, in words: something that the machine has no more of, or a fault of Loadframe's own."""

from __future__ import annotations

import errno
import os
import traceback
from datetime import UTC, datetime
from pathlib import Path

from loadframe.errors import Fault, MachineError, UserError
from loadframe.host.state import state_directory

LACKS = {
    errno.ENOMEM: "Give Loadframe more memory: a higher `ulimit -v`, a larger container.",
    errno.EMFILE: "Raise the limit of open files: `ulimit -n 1024`.",
    errno.ENFILE: "Raise the kernel's limit of open files (fs.file-max), or end what holds them.",
    errno.EAGAIN: "Raise the limit of processes (`ulimit -u`, pids.max of the container), or end some.",
    errno.ENOSPC: "Make room, or name another folder with --runs, LOADFRAME_STATE or LOADFRAME_SCRATCH.",
    errno.EDQUOT: "Make room, or name another folder with --runs, LOADFRAME_STATE or LOADFRAME_SCRATCH.",
    errno.EROFS: "Name another folder with --runs, LOADFRAME_STATE or LOADFRAME_SCRATCH.",
    errno.EACCES: "Run as a user who may do that, or name another folder.",
    errno.EPERM: "Run as a user who may do that.",
    errno.EIO: "Look at the disk: the kernel's log says what is wrong with it.",
}
"""What the machine may refuse at any moment, and what to do then."""
NO_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread")
"""How it is told of an import and of a thread (dlerror(3), CPython)."""


def in_words(error: Exception) -> UserError:
    """The error itself where it says what to do; a MachineError where the machine has no more of something; else a
    Fault, whose traceback is kept."""
    if isinstance(error, UserError):
        return error
    notes = "\n".join(getattr(error, "__notes__", ()))
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or any(words in str(error).lower() for words in NO_MEMORY):
        return MachineError("There is no memory left", remedy=LACKS[errno.ENOMEM], details=notes)
    if number == errno.ENOENT and not _has_working_folder():
        remedy = "Go to a folder that is there, and start Loadframe from it."
        return MachineError("The folder in which Loadframe was started is gone", remedy=remedy, details=notes)
    if number in LACKS:
        return MachineError(f"The system refuses: {error}", remedy=LACKS[number], details=notes)
    return Fault(
        f"This is a fault of Loadframe: {_summary(error)}",
        remedy=f"{_kept(error)} Report it with the command that you ran.",
        details=notes,
    )


def _summary(error: Exception) -> str:
    """The exception, and where in our code it was raised."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "loadframe" in frame.filename]
    place = f" ({Path(ours[-1].filename).name}, line {ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}: {error}{place}"


def _kept(error: Exception) -> str:
    """Keep the traceback in the state folder; in words, where. The traceback itself where that takes none."""
    text = "".join(traceback.format_exception(error))
    try:
        folder = state_directory() / "faults"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}.txt"
        file.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, UserError):
        return text
    return f"Its traceback is kept in {file}."


def _has_working_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - Path.cwd() is the same
    except OSError:
        return False
    return True
