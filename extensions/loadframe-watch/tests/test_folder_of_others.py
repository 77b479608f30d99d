"""A watch writes to a folder of its user alone, on a way that no other user can change; what is no plain file of that
user is not opened, and holds nothing up."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadframe.errors import LoadframeError, MachineError, RecordingError, RunError
from loadframe.system.files import Folder, Whose
from loadframe_watch.child import compact
from loadframe_watch.days import lines
from loadframe_watch.journal import Journal
from loadframe_watch.page import WatchView
from watch_farm import SimulatedClocks

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
STRANGER = 61_777
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="two users")
TODAY, BEFORE = "2025-11-24.jsonl", "2025-11-23.jsonl"
"""Of a simulated watch: the day in progress, and one that has ended."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of ours that others may enter."""
    folder = Path(tempfile.mkdtemp(prefix="lf-watch-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def theirs(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER)


@as_root
@pytest.mark.parametrize("made", ["theirs", "below theirs", "a link", "for everybody"])
def test_a_folder_that_another_user_can_change_is_refused_and_nothing_in_it_changes(place: Path, made: str) -> None:
    ours = place / "ours"
    ours.mkdir()
    (ours / "state.json").write_text("root's")
    (ours / "2020-01-01.jsonl").write_text("root's")
    folder = place / "w"
    folder.mkdir()
    (folder / "state.json").symlink_to(ours / "state.json")
    if made == "theirs":
        theirs(folder)
    elif made == "below theirs":
        theirs(folder)
        folder = folder / "below"
    elif made == "a link":
        folder = place / "link"
        folder.symlink_to(ours)
    else:
        folder.chmod(0o777)
    with pytest.raises(RunError, match=r"the watch folder .* is not used: "):
        Journal(folder, SimulatedClocks())
    with pytest.raises(RecordingError, match="is not used"):
        compact(folder / "2020-01-01.jsonl")
    assert (ours / "state.json").read_text() == (ours / "2020-01-01.jsonl").read_text() == "root's"
    assert sorted(path.name for path in ours.iterdir()) == ["2020-01-01.jsonl", "state.json"]


def test_the_folder_and_its_files_are_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / BEFORE).write_text("")
    journal = Journal(tmp_path, SimulatedClocks())
    assert journal.write("sample", {}) and journal.keep({})
    journal.close()
    compact(tmp_path / TODAY)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.name != BEFORE}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert modes == dict.fromkeys([f"{TODAY}.zst", "state.json", "watch.lock"], 0o600)


def test_a_folder_of_other_things_is_not_closed_to_others_but_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunError, match=r"open to other users, and 'thesis.tex' in it"):
        Journal(tmp_path, SimulatedClocks())
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def fifo(path: Path, _aside: Path) -> None:
    os.mkfifo(path)


def link(path: Path, aside: Path) -> None:
    path.symlink_to(aside)


def a_folder(path: Path, _aside: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("made", [fifo, link, a_folder])
@pytest.mark.parametrize("name", [TODAY, BEFORE, f"{BEFORE}.zst", "state.json", "watch.lock"])
def test_what_is_no_plain_file_is_refused_or_left_and_holds_nothing_up(
    tmp_path: Path, made: Callable[[Path, Path], None], name: str
) -> None:
    folder, aside = tmp_path / "w", tmp_path / "aside"
    folder.mkdir(mode=0o700)
    aside.write_text("kept")
    made(folder / name, aside)
    try:
        journal = Journal(folder, SimulatedClocks())
    except (MachineError, RunError, RecordingError) as error:
        assert name in str(error)
    else:
        journal.write("sample", {"load": 1.0})
        journal.kept()
        journal.keep({})
        journal.forget(0, 0)
        journal.close()
    assert aside.read_text() == "kept"


def reads(folder: Path) -> list[object]:
    return list(lines(folder))


def views(folder: Path) -> list[object]:
    view = WatchView(Folder(folder, Whose.NAMED), "0/w")
    view.refresh()
    assert view.error
    raise RunError(view.error, remedy="")


@pytest.mark.parametrize("read", [reads, views])
@pytest.mark.parametrize("made", [fifo, link])
@pytest.mark.parametrize("name", [TODAY, f"{BEFORE}.zst"])
def test_readers_of_a_stranger_refuse_it_too(
    tmp_path: Path, read: Callable[[Path], list[object]], made: Callable[[Path, Path], None], name: str
) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (tmp_path / "aside").write_text('{"n":1,"kind":"sample","at_s":1,"up_s":1}\n')
    made(folder / name, tmp_path / "aside")
    with pytest.raises(LoadframeError, match="not a regular file"):
        read(folder)


@as_root
def test_a_state_that_another_user_has_put_there_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"schema":"loadframe.watch/1","n":7,"model":{}}')
    theirs(tmp_path / "state.json")
    journal = Journal(tmp_path, SimulatedClocks())
    state, wrong = journal.kept()
    journal.close()
    assert state is None and f"belongs to user {STRANGER}" in wrong
    assert journal.n == 0


@pytest.mark.long
@pytest.mark.timeout(90)
def test_a_watch_beside_a_pipe_in_the_place_of_a_day_ends_in_words(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "2020-01-01.jsonl")
    command = [
        LOADFRAME,
        "watch",
        "--pid",
        str(os.getpid()),
        "--interval",
        "1s",
        "--for",
        "1s",
        "--folder",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert "2020-01-01.jsonl is a pipe, not a regular file" in done.stderr and "Traceback" not in done.stderr
