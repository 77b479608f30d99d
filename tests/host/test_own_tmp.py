"""A process of another user has a /tmp and a /var/tmp of its own; what it was told to use there, it finds."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.host import processes
from loadframe.host.leases import Lease
from loadframe.host.privilege import US, LeaseUser
from loadframe.host.processes import Allowance, may_have_mounts, spawn

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not may_have_mounts(), reason="only root starts processes under another user with mounts"
)


@pytest.fixture
def common() -> Iterator[Path]:
    """A file of the machine's /tmp, that everybody may read."""
    path = Path(f"/tmp/lf-own-tmp-{secrets.token_hex(4)}")
    path.write_text("the machine's")
    path.chmod(0o666)
    yield path
    path.unlink()


def _said(words: list[str], lease: Lease, *, env: dict[str, str] | None = None, cwd: Path = Path("/")) -> str:
    assert lease.user is not None
    process = spawn(
        words,
        lease.admitted(Allowance(LeaseUser(lease.user))),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )
    printed, _ = process.communicate(timeout=60)
    return printed.decode()


def test_what_others_have_put_there_is_not_seen_and_what_it_puts_there_stays_its_own(common: Path) -> None:
    with Lease.acquire("a test") as lease:
        seen = _said(["sh", "-c", "cd /tm?; ls; echo mine > mine; cat mine; ls /va?/tm?; echo $TMPDIR"], lease)
        scratch = lease.folder.relative_to("/var/tmp").parts[0]
        assert seen.splitlines() == ["mine", scratch, f"{lease.folder}/tmp-{lease.user}"]
        assert not Path("/tmp/mine").exists()
        made = _said(["sh", "-c", 'mktemp && stat -c %U:%a "$TMPDIR"'], lease)
        assert made.startswith(f"{lease.folder}/tmp-{lease.user}/tmp."), made
        assert made.endswith("UNKNOWN:700\n"), made


def test_what_it_puts_there_is_bounded() -> None:
    """It is in memory."""
    with Lease.acquire("a test") as lease:
        sizes = _said(["sh", "-c", "stat -f -c '%b %S %c' /tm? /va?/tm?"], lease).splitlines()
        assert [int(blocks) * int(size) for blocks, size, _ in map(str.split, sizes)] == [512 << 20] * 2
        assert [line.split()[2] for line in sizes] == ["65536"] * 2


def test_a_program_there_finds_what_lies_next_to_it() -> None:
    folder = Path(f"/var/tmp/lf-own-tmp-{secrets.token_hex(4)}")
    (folder / "bin").mkdir(parents=True)
    (folder / "words").write_text("next to it")
    (folder / "bin/program").write_text(f"cat {folder}/w?rds\n")
    folder.chmod(0o755)
    linked = Path(f"{folder}-linked")
    linked.symlink_to(folder)
    with Lease.acquire("a test") as lease:
        said = _said(["sh", str(folder / "bin/program")], lease)
        by_link = _said(["sh", str(linked / "bin/program")], lease)
    for path in (folder / "bin/program", folder / "words"):
        path.unlink()
    (folder / "bin").rmdir()
    folder.rmdir()
    linked.unlink()
    assert said == by_link == "next to it"


@pytest.mark.parametrize("how", ["word", "part of a word", "environment", "our environment", "study", "its folder"])
def test_what_it_was_told_to_use_there_it_finds(common: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, env, told = ["sh", "-c", "cat /tm?/lf-own-tmp-*"], {}, ""
    if how == "word":
        command.append(str(common))
    elif how == "part of a word":
        command.append(f"--file={common},x")
    elif how == "environment":
        env["DATA"] = str(common)
    elif how == "our environment":
        monkeypatch.setenv("DATA", str(common))
    elif how == "its folder":
        told = 'attach = "/tmp"'
    else:
        told = f'tree = "{common}"'
    with Lease.acquire("a test", visible=told) as lease:
        assert _said(command, lease, env=env) == "the machine's"


def test_its_working_folder_is_the_one_that_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(tmp_path))
    with Lease.acquire("a test") as lease:
        for above in (tmp_path, *tmp_path.parents[:-2]):
            above.chmod(above.stat().st_mode | 0o005)
        (tmp_path / "here").touch()
        assert _said(["sh", "-c", "pwd; ls"], lease, cwd=tmp_path).splitlines()[:2] == [str(tmp_path), "here"]


def test_what_is_to_be_made_there_for_others_is_made_in_the_machines(common: Path) -> None:
    """A socket that another program is to find, for example."""
    made = common.with_name(f"{common.name}-made")
    with Lease.acquire("a test") as lease:
        assert _said(["touch", str(made)], lease) == ""
        assert made.exists()
        made.unlink()


def test_a_folder_that_is_closed_to_it_is_not_opened_by_being_named(common: Path) -> None:
    closed = common.with_name(f"{common.name}-closed")
    closed.mkdir(mode=0o700)
    (closed / "file").write_text("of root's")
    (closed / "file").chmod(0o644)
    try:
        with Lease.acquire("a test") as lease:
            assert "of root's" not in _said(["cat", str(closed / "file")], lease)
    finally:
        (closed / "file").unlink()
        closed.rmdir()


def test_where_no_mounts_are_allowed_it_has_the_machines(common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "holds", lambda _: False)
    with Lease.acquire("a test") as lease:
        assert "the machine's" in _said(["sh", "-c", "cat /tm?/lf-own-tmp-*"], lease)
        assert lease.admitted(Allowance(US)) == Allowance(US)
