"""Root's calls by paths and the programs that it starts, of a few verbs; of every verb: benchmarks/audit.py."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit import audited
from children_audit import Children
from file_calls import Call, Process, following, traced
from path_audit import Paths
from second_user_verbs import recorded

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("strace") is None, reason="root's calls, and strace"),
]
OTHER = 61500


@pytest.fixture
def top() -> Iterator[Path]:
    """Where root alone writes, and what every user can come to."""
    with tempfile.TemporaryDirectory(prefix="lf-audit-", dir="/var/tmp") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.mark.long
@pytest.mark.parametrize("verb", ["doctor", "compare-csv", "watch", "measure-sqlite", "measure-nginx"])
def test_root_uses_no_path_that_another_user_may_change(top: Path, verb: str) -> None:
    audit = audited(verb, top, None)
    print(f"{verb}: {audit.paths.audited} paths and {audit.children.audited} programs audited")
    assert audit.faults() == []
    assert audit.paths.audited > 1000
    assert audit.children.audited >= 1


@pytest.mark.long
def test_a_run_is_exported_by_no_path_of_anothers(top: Path) -> None:
    run = recorded(top / "recorded")
    (top / "export").mkdir()
    assert audited("export", top / "export", run).faults() == []


PLANTED = """
import contextlib, os, subprocess, sys
theirs, sticky = sys.argv[1:]
def attempt(do):
    with contextlib.suppress(OSError):
        do()
attempt(lambda: os.open(f"{theirs}/folder/file", os.O_RDONLY))
attempt(lambda: os.chmod(f"{theirs}/file", 0o644))
attempt(lambda: os.open(f"{theirs}/file", os.O_RDONLY | os.O_NOFOLLOW))
attempt(lambda: os.open(f"{theirs}/file", os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK))
attempt(lambda: os.open(f"{sticky}/missing", os.O_RDONLY))
descriptor = os.open(theirs, os.O_RDONLY)
attempt(lambda: os.open("file", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor))
attempt(lambda: os.unlink("file", dir_fd=descriptor))
attempt(lambda: os.mkdir(f"{theirs}/made"))
attempt(lambda: os.open(f"{sticky}/roots", os.O_RDONLY))
subprocess.run([sys.executable, "-c", ""], cwd=theirs, env={"LD_PRELOAD": ""})
subprocess.run(["/bin/true"], user=12345, group=12345, extra_groups=[], cwd="/")
"""


def test_the_audit_finds_what_is_planted(top: Path) -> None:
    theirs, sticky = top / "theirs", top / "sticky"
    for path, mode in ((theirs, 0o755), (theirs / "folder", 0o755), (sticky, 0o1777)):
        path.mkdir()
        path.chmod(mode)
    for path in (theirs / "file", theirs / "folder/file", sticky / "roots"):
        path.touch()
    for path in (theirs, theirs / "folder", theirs / "file"):
        os.chown(path, OTHER, OTHER)
    paths, children = Paths(), Children(frozenset(os.environ))
    command = [sys.executable, "-P", "-c", PLANTED, str(theirs), str(sticky)]
    with traced(command, cwd=Path("/"), env=os.environ, stderr=2) as (_, calls):
        for call in calls:
            paths.take(call)
            children.take(call)
    found = {(fault.call, Path(fault.path).name, fault.why.rpartition(", and ")[2]) for fault in paths.faults}
    assert {row for row in found if str(top)} == {
        ("openat", "file", "'folder' in it is on the way"),
        ("chmod", "file", "a link there is followed"),
        ("openat", "file", "a FIFO there is waited for"),
        ("openat", "file", "a second name of a file there is emptied"),
        ("openat", "missing", "a link there is followed"),
    }
    whys = {child.why for child in children.faults}
    assert "takes modules from its working folder" in whys
    assert "has LD_PRELOAD, which is not declared" in whys
    assert any(why.startswith(f"works in a folder of user {OTHER}") for why in whys)
    assert "runs as user 12345, who is not declared" in whys


def test_what_strace_prints_in_pieces_is_put_together() -> None:
    lines = iter([
        '10 openat(AT_FDCWD</tmp>, "a\\303\\251", O_RDONLY <unfinished ...>\n',
        "10 vfork( <unfinished ...>\n",
        '11 chdir("sub")  = 0\n',
        "11 setresuid(5, 5, 5)  = 0\n",
        '11 unlink("x") = -1 ENOENT (No such file or directory)\n',
        "10 <... vfork resumed>)              = 11\n",
        '10 execve("/bin/x, y", ["x, y", "b"], ["A=1, 2"]) = 0\n',
    ])  # fmt: skip
    calls = list(following(lines, Process(10, 0, "/tmp", "loadframe")))
    assert [call.name for call in calls] == ["chdir", "setresuid", "unlink", "vfork", "execve"]
    unlink = calls[2]
    assert (unlink.by.uid, unlink.by.cwd, unlink.failed) == (5, "/tmp/sub", "ENOENT")
    assert calls[4].arguments == ('"/bin/x, y"', '["x, y", "b"]', '["A=1, 2"]')
    assert isinstance(unlink, Call)
