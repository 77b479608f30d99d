"""As root, Loadframe does nothing by a path of which a server's user may change a part: all calls of a target's whole
life are looked at, so that no race has to be won to show one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.kinds.base import Cache, Target
from loadframe.model import TargetState
from loadframe.system.trust import weak_point

from .test_target_contract import EXAMPLES

PATHS = {
    "open": (0,), "os.chmod": (0,), "os.chown": (0,), "os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,),
    "os.rename": (0, 1), "os.link": (0, 1), "os.symlink": (1,), "os.truncate": (0,), "os.utime": (0,),
    "os.listdir": (0,), "os.scandir": (0,), "os.removexattr": (0,), "sqlite3.connect": (0,), "socket.connect": (1,),
}  # fmt: skip
"""Which arguments of an event are paths (Python documentation, Audit events table)."""
FOLLOWS_DESCRIPTOR = {"os.chmod": 2, "os.chown": 3, "os.mkdir": 2, "os.remove": 1, "os.rmdir": 1, "os.rename": 2}
"""Which argument is the descriptor of a folder below which the name is; -1 for none."""
OWN = (Path("/proc"), Path("/sys"), Path("/dev"))
_faults: list[str] = []
_looked_at = [0]
_below: list[Path] = []


def _as_root() -> bool:
    """Whether files are opened with root's rights by this thread (proc_pid_status(5), Uid)."""
    lines = Path("/proc/thread-self/status").read_text().splitlines()
    return next(int(line.split()[4]) for line in lines if line.startswith("Uid:")) == 0


def _look(event: str, arguments: tuple[object, ...]) -> None:
    if not _below or event not in PATHS:
        return
    if arguments[FOLLOWS_DESCRIPTOR.get(event, 0)] not in (-1, *arguments[:1]):
        return
    for at in PATHS[event]:
        name = arguments[at]
        if not isinstance(name, str | bytes | os.PathLike):
            continue
        path = Path(os.fsdecode(name))
        if not path.is_absolute() or not any(path.is_relative_to(folder) for folder in _below):
            continue
        top, _below[:] = _below[0], []  # what is looked up here is no call of theirs
        try:
            _looked_at[0] += 1
            if _as_root() and (why := weak_point(path.parent / "x")) is not None:
                frame = sys._getframe(1)
                while "loadframe" not in frame.f_code.co_filename and frame.f_back is not None:
                    frame = frame.f_back
                place = f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"
                _faults.append(f"{event} {path.relative_to(top)} by {place}: {why}")
        finally:
            _below[:] = [top]


_added = [False]


@contextmanager
def audited(folder: Path) -> Iterator[None]:
    """All calls by a path below this folder. A hook stays until the process ends."""
    if not _added[0]:
        sys.addaudithook(_look)
        _added[0] = True
    _faults.clear()
    _looked_at[0] = 0
    _below[:] = [folder]
    try:
        yield
    finally:
        _below.clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="servers have users of their own where root starts them")
def test_nothing_is_done_by_a_path_that_a_servers_user_may_change(uncreated: Target, kind: str, scratch: Path) -> None:
    target, example = uncreated, EXAMPLES[kind]
    with audited(scratch):
        target.create()
        target.check(TargetState(example.start))
        target.start(TargetState(example.start))
        target.counters()
        target.apply(TargetState(example.dynamic))
        target.apply(TargetState(example.restart))
        target.reset()
        target.log_tail()
        target.effective()
        target.stop()
        if isinstance(target, Cache):
            target.empty()
        target.start(TargetState(example.start))
        target.destroy()
    print(f"{_looked_at[0]} calls by path looked at")
    assert _looked_at[0] > 10
    assert not _faults, "\n".join(dict.fromkeys(_faults))
