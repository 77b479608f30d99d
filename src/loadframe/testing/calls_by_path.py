"""Calls by a path of which another user may change a part: as root, Loadframe makes none. All calls are looked at, so
that no race has to be won to show one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_stack

from loadframe.system.kernel import process_status
from loadframe.system.trust import weak_point

PATHS = {
    "open": (0,), "os.chmod": (0,), "os.chown": (0,), "os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,),
    "os.rename": (0, 1), "os.link": (0, 1), "os.symlink": (1,), "os.truncate": (0,), "os.utime": (0,),
    "os.listdir": (0,), "os.scandir": (0,), "os.removexattr": (0,), "sqlite3.connect": (0,), "socket.connect": (1,),
}  # fmt: skip
"""Which arguments of an event are paths (Python documentation, Audit events table)."""
FOLLOWS_DESCRIPTOR = {"os.chmod": 2, "os.chown": 3, "os.mkdir": 2, "os.remove": 1, "os.rmdir": 1, "os.rename": 2}
"""Which argument is the descriptor of a folder below which the name is; -1 for none."""
HERE = Path(__file__)


@dataclass
class Audit:
    """Of calls by a path below a folder. faults: those by root of which another user may change a part."""

    folder: Path
    looked_at: int = 0
    faults: list[str] = field(default_factory=list)

    def look(self, event: str, arguments: tuple[object, ...]) -> None:
        if event not in PATHS or arguments[FOLLOWS_DESCRIPTOR.get(event, 0)] not in (-1, *arguments[:1]):
            return
        for at in PATHS[event]:
            name = arguments[at]
            path = Path(os.fsdecode(name)) if isinstance(name, str | bytes | os.PathLike) else Path()
            if not (path.is_absolute() and path.is_relative_to(self.folder)):
                continue
            self.looked_at += 1
            root = process_status("thread-self", "Uid")[3] == "0"  # of this thread, for files
            if root and (why := weak_point(path.parent / "x")) is not None:
                files = ((Path(frame.f_code.co_filename), frame.f_code.co_name) for frame, _ in walk_stack(None))
                place = next(f"{file.name}:{name}" for file, name in files if "loadframe" in str(file) and file != HERE)
                self.faults.append(f"{event} {path.relative_to(self.folder)} by {place}: {why}")


_audits: list[Audit] = []
_added: list[bool] = []


@contextmanager
def audited(folder: Path) -> Iterator[Audit]:
    """The hook of the interpreter stays until the process ends."""
    if not _added:
        sys.addaudithook(_look)
        _added.append(True)
    audit = Audit(folder)
    _audits[:] = [audit]
    try:
        yield audit
    finally:
        _audits.clear()


def _look(event: str, arguments: tuple[object, ...]) -> None:
    if not _audits:
        return
    audit = _audits.pop()  # what is looked up here is no call of theirs
    try:
        audit.look(event, arguments)
    finally:
        _audits.append(audit)
