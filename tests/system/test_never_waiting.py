"""A pipe without a writer where a file is read that another process named: nothing waits for one."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from loadframe.errors import MachineError
from loadframe.experiments.beginning import suggested
from loadframe.kinds.service.discovery import interpreter_of, is_go
from loadframe.system.files import regular_file
from loadframe_drivers import access_log
from loadframe_index.recorded import Recorded
from loadframe_pipelines.stage_tail import Tail

pytestmark = pytest.mark.timeout(20)
NO_FILE = "not a regular file"


@pytest.fixture(params=["pipe", "device", "socket", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What is no regular file, where one is looked for."""
    path = tmp_path / "place.json"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "device":
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        case _:
            path.mkdir()
    return path


def of_a_stage_log(path: Path) -> tuple[str, ...]:
    tail = Tail()
    with tail.watching([], [path]):
        pass
    return tail.missing()


READERS: dict[str, tuple[Callable[[Path], object], object]] = {
    "a script's first line": (interpreter_of, ""),
    "a Go program": (is_go, False),
    "a file among the words of a command": (lambda path: suggested(["x", path.name], {}, path.parent).name, "pool"),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_as_one_that_says_nothing(place: Path, reader: str) -> None:
    read, nothing = READERS[reader]
    assert read(place) == nothing


def test_what_is_no_regular_file_is_no_log_of_stages(place: Path) -> None:
    (said,) = of_a_stage_log(place)
    assert NO_FILE in said.replace("such device or address", NO_FILE)


def test_what_is_no_regular_file_is_said_to_be_none(place: Path) -> None:
    with pytest.raises(OSError, match=f"{NO_FILE}|No such device"):
        regular_file(place)
    with pytest.raises(OSError, match=f"{NO_FILE}|No such device"):
        next(access_log.lines(place))
    with pytest.raises(MachineError, match=f"cannot be read: .*({NO_FILE}|No such device)"):
        Recorded(place)


def test_a_link_is_followed_only_where_the_user_may_have_meant_it(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "script"
    file.write_text("#!/bin/sh\n")
    link.symlink_to(file)
    assert interpreter_of(link) == "/bin/sh"
    with pytest.raises(MachineError, match="cannot be read"):
        Recorded(link)
