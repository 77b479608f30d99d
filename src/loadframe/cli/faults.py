"""Unforeseen errors, in words: exhausted resources, a fault of ours, or of another distribution's."""

import errno
import os
import signal
import traceback
from datetime import UTC, datetime
from pathlib import Path

from loadframe.entry_points import took_part
from loadframe.errors import Fault, MachineError, OutsideFault, UserError
from loadframe.host.signals import STOPPING, ignore
from loadframe.host.state import state_directory
from loadframe.masking import masked
from loadframe.system.files import Folder, Whose

ELSEWHERE = "another folder with --runs, LOADFRAME_STATE or LOADFRAME_SCRATCH."
LACKS = {
    errno.ENOMEM: "Give Loadframe more memory: a higher `ulimit -v`, a larger container.",
    errno.EMFILE: "Raise the limit on open files: `ulimit -n 1024`.",
    errno.ENFILE: "Raise the kernel's limit on open files (fs.file-max), or stop the processes that hold them.",
    errno.EAGAIN: "Raise the limit on processes (`ulimit -u`, pids.max of the container), or stop some.",
    errno.ENOSPC: f"Free some disk space, or name {ELSEWHERE}",
    errno.EDQUOT: f"Free some disk space, or name {ELSEWHERE}",
    errno.EROFS: f"Name {ELSEWHERE}",
    errno.EACCES: "Run as a user who is allowed to, or name another folder.",
    errno.EPERM: "Run as a user who is allowed to.",
    errno.EIO: "Check the disk: the kernel log says what is wrong.",
}
NO_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread")
"""Messages of a failed import and a failed thread (dlerror(3), CPython)."""


def is_of_stop(error: BaseException) -> bool:
    """Whether a signal has stopped the command, and a library made that its error: pydantic does, by its text."""
    stopped = any(signal.getsignal(number) == ignore for number in STOPPING)
    return stopped and (KeyboardInterrupt.__name__ in str(error) or isinstance(error.__cause__, KeyboardInterrupt))


def in_words(error: Exception) -> UserError:
    """Itself if a UserError; a MachineError for exhausted resources; else a stored fault."""
    if isinstance(error, UserError):
        return error
    notes = "\n".join(getattr(error, "__notes__", ()))
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or any(words in str(error).lower() for words in NO_MEMORY):
        return MachineError("No memory is left", remedy=LACKS[errno.ENOMEM], details=notes)
    if number == errno.ENOENT:
        try:
            os.getcwd()  # noqa: PTH109 - Path.cwd() is the same
        except OSError:
            remedy = "Change to an existing folder, and start Loadframe there."
            return MachineError("The working directory no longer exists", remedy=remedy, details=notes)
    if number in LACKS:
        return MachineError(f"The system refused: {error}", remedy=LACKS[number], details=notes)
    kept, report = _kept(error), "Please report it with the command you ran"
    outside = took_part(error)
    if outside is not None and outside.raised:
        return OutsideFault(
            f"The {outside.what} {outside.name!r} of {outside.distribution} raised {_summary(error, outside.package)}",
            remedy=f"{kept} {report}, to the authors of {outside.distribution}.",
            details=notes,
        )
    also = "" if outside is None else f" {outside.distribution} took part in it: report it to its authors too."
    return Fault(
        f"Loadframe has a bug: {_summary(error, 'loadframe')}", remedy=f"{kept} {report}.{also}", details=notes
    )


def _summary(error: Exception, package: str) -> str:
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if package in frame.filename]
    place = f" ({Path(ours[-1].filename).name}, line {ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}: {error}{place}"


def _kept(error: Exception) -> str:
    """Returns where the traceback is stored, or itself where that fails."""
    text = masked("".join(traceback.format_exception(error)))
    try:
        state = state_directory()
        folder = Folder(state, Whose.OURS)
        folder.make_folder("faults", 0o700)
        name = f"faults/{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}.txt"
        folder.replace(name, text.encode(errors="backslashreplace"), mode=0o600)
    except (OSError, UserError):
        return text
    return f"The traceback is in {state / name}."
