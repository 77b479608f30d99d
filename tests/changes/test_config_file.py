"""A configuration file of ours is there only between two restarts, whenever the command is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from loadframe.bench import places
from loadframe.changes import lists
from loadframe.changes.durable import DurableJournal
from loadframe.cli import entry
from loadframe.errors import ChangeError, TargetError
from loadframe.kinds import config_file
from loadframe.kinds.config_file import NAME, ConfigFile
from waiting import await_that

SERVER = {"kind": "mariadb", "address": "/run/theirs.sock", "option_file": "", "user": ""}
RESTART = 'cat "$1" >> "$2" 2>/dev/null; echo restarted >> "$2"'
"""A server that writes down what it finds in its configuration when it starts."""
VALUE = "innodb_log_buffer_size = 33554432; thread_handling = pool-of-threads"


class Theirs:
    def __init__(self, folder: Path) -> None:
        self.file, self.log = folder / "zz-loadframe.cnf", folder / "log"
        self.place = ConfigFile(self.file, ["sh", "-c", RESTART, "sh", str(self.file), str(self.log)], SERVER, "theirs")

    def starts(self) -> list[str]:
        """What it found at each of its starts."""
        return self.log.read_text().split("restarted\n")[:-1] if self.log.exists() else []

    def killed(self, code: str) -> None:
        """A command that does what `code` says, and is killed."""
        frame = (
            "import os, signal; from pathlib import Path; from loadframe.kinds import config_file\n"
            "from loadframe.system import files\n"
            "from loadframe.changes.durable import DurableJournal\n"
            "config_file.registry.again = lambda address: open(os.devnull)\n"
            f"place = config_file.ConfigFile.at({dict(self.place.address)!r})\n"
            "journal = DurableJournal('a study', Path('run'))\n"
            "def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", f"{frame}{code}\ndie()"], check=False)
        assert done.returncode == -signal.SIGKILL


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(config_file.registry, "again", lambda address: Mock())
    (tmp_path / "conf.d").mkdir()
    return Theirs(tmp_path / "conf.d")


WHOLE = "[mysqld]\ninnodb_log_buffer_size = 33554432\nthread_handling = pool-of-threads\n"
HALF_WRITTEN = "files.os.write = lambda to, data: die() if bytes(data).startswith(b'[mysqld]') else write(to, data)"
SET = f"journal.set(place, config_file.NAME, {VALUE!r})"


def test_the_server_finds_it_at_one_start_and_not_at_the_next(theirs: Theirs, tmp_path: Path) -> None:
    theirs.place.make_room()
    journal = DurableJournal("a study", tmp_path)
    assert journal.set(theirs.place, NAME, VALUE) == VALUE
    assert [outcome.status for outcome in journal.back(theirs.place)] == ["reverted"]
    assert theirs.starts() == [WHOLE, ""]
    assert [path.name for path in theirs.file.parent.iterdir()] == ["log"]
    assert lists.read() == []


@pytest.mark.parametrize(
    ("code", "starts"),
    [
        (SET, [WHOLE, ""]),
        (f"write = files.os.write; {HALF_WRITTEN}; {SET}", []),
        (f"config_file.to_its_end.run = die; {SET}", [""]),
        (f"{SET}; config_file.to_its_end.run = die; journal.back(place)", [WHOLE, ""]),
        (f"{SET}; config_file.Folder.remove = die; journal.back(place)", [WHOLE, "", ""]),
    ],
    ids=[
        "while it is there",
        "half written",
        "before the first restart",
        "before the last restart",
        "after the last restart",
    ],
)
def test_after_a_kill_the_next_one_takes_it_away_and_restarts(theirs: Theirs, code: str, starts: list[str]) -> None:
    theirs.killed(code)
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert theirs.starts() == starts
    assert [path.name for path in theirs.file.parent.iterdir()] == ["log"] * bool(starts)
    assert (lists.read(), places.revert()) == ([], [])


UNDERWAY = 'echo begins >> "$1/log"; mkdir "$1/first" 2>/dev/null && until test -e "$1/go"; do sleep 0.01; done; '
UNDERWAY += 'echo ends >> "$1/log"'


def test_a_restart_that_a_killed_command_has_begun_is_over_before_the_next(
    theirs: Theirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, restart = tmp_path / "log", ["sh", "-c", UNDERWAY, "sh", str(tmp_path)]
    place = ConfigFile(theirs.file, restart, SERVER, "theirs")
    naming = config_file.identity.naming

    def looked_for(word: str) -> object:
        found = naming(word)
        (tmp_path / "go").touch()
        return found

    monkeypatch.setattr(config_file.identity, "naming", looked_for)
    starting = iter(["it starts"])

    def again(address: object) -> Mock:
        if why := next(starting, None):
            raise TargetError(why)
        return Mock()

    monkeypatch.setattr(config_file.registry, "again", again)
    with subprocess.Popen(restart) as underway:
        await_that(log.exists, "the restart has begun", of=underway)
        try:
            ConfigFile.at(place.address).write(NAME, "")
        finally:
            (tmp_path / "go").touch()
    assert log.read_text().split() == ["begins", "ends"] * 2
    assert next(starting, None) is None, "it was asked whether it has started"


def test_a_file_that_is_there_already_is_not_ours(theirs: Theirs) -> None:
    for text in ("[mysqld]\nport = 1\n", ""):
        theirs.file.write_text(text)
        with pytest.raises(ChangeError, match="there already"):
            theirs.place.make_room()


def test_a_restart_that_fails_is_told_with_its_words_and_tried_again(theirs: Theirs, tmp_path: Path) -> None:
    place = ConfigFile(theirs.file, ["sh", "-c", f"echo no >&2; test -e {tmp_path}/ok"], SERVER, "theirs")
    journal = DurableJournal("a study", tmp_path)
    with pytest.raises(TargetError, match="ended with 1") as caught:
        journal.set(place, NAME, VALUE)
    assert caught.value.details == "no"
    assert [outcome.status for outcome in journal.back(place)] == ["failed"]
    (tmp_path / "ok").touch()
    assert [outcome.status for outcome in journal.back(place)] == ["reverted"]
    assert not list(theirs.file.parent.iterdir())


def test_signals_that_wait_for_us_do_not_wait_for_the_server(theirs: Theirs, tmp_path: Path) -> None:
    """Nor are those ignored that come after the first one."""
    said = tmp_path / "said"
    place = ConfigFile(theirs.file, ["sh", "-c", f"grep -E 'Sig(Blk|Ign)' /proc/self/status >> {said}"], SERVER, "them")
    journal = DurableJournal("a study", tmp_path)
    before = {number: signal.getsignal(number) for number in entry.STOPPING}
    try:
        with pytest.raises(KeyboardInterrupt):
            entry._stop(signal.SIGINT, None)
        journal.set(place, NAME, VALUE)
        journal.back(place)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    masks = [int(line.split()[1], 16) for line in said.read_text().splitlines()]
    stopping = sum(1 << number - 1 for number in entry.STOPPING)
    assert len(masks) == 4 and not any(mask & stopping for mask in masks)


def test_a_folder_that_is_not_there_is_named(theirs: Theirs, tmp_path: Path) -> None:
    place = ConfigFile(tmp_path / "none" / "x.cnf", ["true"], SERVER, "theirs")
    with pytest.raises(ChangeError, match=r"there is no folder .*none"):
        place.write(NAME, VALUE)


def test_a_link_of_the_servers_user_in_its_place_is_not_followed(theirs: Theirs, tmp_path: Path) -> None:
    """The folder may be the server's, as PostgreSQL's conf.d among its data is."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    precious.chmod(0o600)
    theirs.file.with_name(f"{theirs.file.name}.aside").symlink_to(precious)
    theirs.place.write(NAME, VALUE)
    assert precious.read_text() == "precious"
    assert precious.stat().st_mode & 0o777 == 0o600
    assert theirs.starts() == [WHOLE]


def a_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def a_second_name(path: Path, precious: Path) -> None:
    path.hardlink_to(precious)


def a_pipe(path: Path, _precious: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("suffix", ["", ".aside"])
@pytest.mark.parametrize("plant", [a_link, a_second_name, a_pipe])
def test_what_the_servers_user_puts_in_its_place_is_not_read(
    theirs: Theirs, tmp_path: Path, plant: Callable[[Path, Path], None], suffix: str
) -> None:
    """It was put back as what had been there, readable for all."""
    theirs.place.make_room()
    precious = tmp_path / "precious"
    precious.write_text("root:secret")
    precious.chmod(0o600)
    plant(theirs.file.with_name(f"{theirs.file.name}{suffix}"), precious)
    journal = DurableJournal("a study", tmp_path)
    with pytest.raises(ChangeError, match="not a file that Loadframe has written"):
        journal.set(theirs.place, NAME, VALUE)
    assert journal.back(theirs.place) == []
    assert precious.read_text() == "root:secret" and not theirs.log.exists()
