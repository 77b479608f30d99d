"""A second user plants links and pipes under the names that a command of root's writes in a folder for everybody: what
the links lead to stays as it was, and nothing hangs."""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loadframe.cli.comparing import Continuous
from loadframe.errors import UserError
from loadframe.formats.named_files import append_to, write_whole
from loadframe.host.privilege import free_user
from loadframe.reporting import reports
from loadframe.runs.folder import RunFolder
from loadframe_drivers import access_log

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root, and a second user")
PRECIOUS = b"only root may change this\n"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for everybody: sticky, as /tmp is."""
    made = Path(tempfile.mkdtemp(prefix="loadframe-planted-", dir="/var/tmp"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_bytes(PRECIOUS)
    return path


def planted(path: Path, to: Path) -> Path:
    """A link of the second user's."""
    path.symlink_to(to)
    uid = free_user()
    assert uid is not None
    os.lchown(path, uid, uid)
    return path


def writes(path: Path) -> None:
    with contextlib.suppress(OSError):
        write_whole(path, b"new")


def appends(path: Path) -> None:
    with contextlib.suppress(OSError):
        append_to(path, b"new")


@pytest.mark.parametrize("write", [writes, appends])
def test_a_link_under_the_name_of_an_output_is_not_followed(
    place: Path, precious: Path, write: Callable[[Path], None]
) -> None:
    write(planted(place / "out", precious))
    assert precious.read_bytes() == PRECIOUS
    write(planted(place / "other", place / "nowhere"))
    assert not (place / "nowhere").exists()


def test_a_link_under_a_temporary_name_is_not_followed(place: Path, precious: Path) -> None:
    planted(place / "config.ini.part", precious)
    writes(place / "config.ini")
    assert precious.read_bytes() == PRECIOUS and (place / "config.ini").read_text() == "new"


def test_a_page_is_not_written_through_a_link(place: Path, precious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "render_page", lambda _: "new")
    found: Any = type("Investigation", (), {"run": "run"})
    with contextlib.suppress(UserError):
        reports.write_page(found, planted(place / "report.html", precious))
    reports.write_page(found, place / "own.html")
    assert precious.read_bytes() == PRECIOUS and (place / "own.html").read_text() == "new"


def test_a_summary_is_not_appended_through_a_link(place: Path, precious: Path) -> None:
    with pytest.raises(UserError, match="summary"):
        Continuous(planted(place / "summary", precious), None).leave([])
    assert precious.read_bytes() == PRECIOUS


def test_folders_on_the_way_are_not_links_of_others(place: Path, tmp_path: Path) -> None:
    planted(place / "figures", tmp_path)
    for write in (writes, appends):
        write(place / "figures" / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_figures_is_not_made_behind_a_link_of_another_user(place: Path, tmp_path: Path) -> None:
    found: Any = SimpleNamespace(run="a run")
    planted(place / "out", tmp_path)
    with pytest.raises(UserError, match="link of"):
        reports.write_figures(found, place / "out" / "new" / "figures")
    assert list(tmp_path.iterdir()) == []


def test_requests_of_a_log_are_not_read_through_a_link_of_another_user(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("only root may read this\n")
    with pytest.raises(OSError, match="link of"):
        list(access_log.lines(planted(place / "access.log", log)))
    assert list(access_log.lines(log)) == ["only root may read this\n"]


@pytest.mark.parametrize("below", ["", "new"])
def test_a_run_is_neither_made_nor_read_through_a_link_of_another_user(place: Path, tmp_path: Path, below: str) -> None:
    runs = planted(place / "runs", tmp_path)
    with pytest.raises(UserError, match="link of"):
        RunFolder.create(runs / below, "study")
    assert list(tmp_path.iterdir()) == []
    run = RunFolder.create(tmp_path / below, "study").path
    with pytest.raises(UserError, match="link of"):
        RunFolder.open(runs / run.relative_to(tmp_path))
    RunFolder.open(run)


def test_links_of_ours_behind_a_link_of_another_user_are_not_followed(
    place: Path, tmp_path: Path, precious: Path
) -> None:
    (tmp_path / "latest").symlink_to(precious)
    planted(place / "reports", tmp_path)
    for write in (writes, appends):
        write(place / "reports" / "latest")
    assert precious.read_bytes() == PRECIOUS


@pytest.mark.parametrize("way", ["out", "folder/pipe"])
def test_a_link_of_another_user_to_a_pipe_of_ours_is_not_followed(place: Path, tmp_path: Path, way: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        planted(place / "out", tmp_path / "pipe")
        planted(place / "folder", tmp_path)
        with pytest.raises(OSError, match="link of"):
            write_whole(place / way, b"new")
        assert os.read(reading, 10) == b""
    finally:
        os.close(reading)


def test_a_link_of_another_user_to_a_device_is_not_followed(place: Path) -> None:
    with pytest.raises(OSError, match="link of"):
        write_whole(planted(place / "out", Path("/dev/full")), b"new")


def test_another_name_of_a_pipe_of_ours_is_not_used(place: Path) -> None:
    os.mkfifo(place / "pipe")
    (place / "out").hardlink_to(place / "pipe")
    with pytest.raises(OSError, match="another name"):
        write_whole(place / "out", b"new")


def test_a_pipe_of_another_user_is_not_waited_for(place: Path) -> None:
    os.mkfifo(place / "out", 0o666)
    uid = free_user()
    assert uid is not None
    os.chown(place / "out", uid, uid)
    with pytest.raises(OSError, match="belongs to"):
        write_whole(place / "out", b"new")
    with pytest.raises(OSError, match="pipe"):
        append_to(place / "out", b"new")


def test_a_file_of_another_user_gives_its_mode_to_nothing_of_ours(place: Path) -> None:
    (place / "out").write_bytes(b"old")
    (place / "out").chmod(0o6777)
    uid = free_user()
    assert uid is not None
    os.chown(place / "out", uid, uid)
    (place / "out").chmod(0o666)
    write_whole(place / "out", b"new")
    found = (place / "out").stat()
    assert found.st_uid == 0 and stat.S_IMODE(found.st_mode) & 0o022 == 0 and (place / "out").read_bytes() == b"new"


def test_a_link_of_ours_stays_one(place: Path, tmp_path: Path) -> None:
    (place / "out").symlink_to(tmp_path / "real")
    write_whole(place / "out", b"new")
    append_to(place / "out", b"er")
    assert (place / "out").is_symlink() and (tmp_path / "real").read_bytes() == b"newer"
