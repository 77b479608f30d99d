"""What a study changes of processes that run already goes back, on all their threads, and never to another process."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.bench import places
from loadframe.changes import lists
from loadframe.changes.durable import DurableJournal
from loadframe.changes.process import CPUS, FILES, NICE, Gone, ServerProcess
from loadframe.errors import ChangeError
from loadframe.host.identity import Identity, identify
from loadframe.host.processes import threads
from loadframe.model import SettingValue

ALLOWED = sorted(os.sched_getaffinity(0))
SERVER = """
import os, sys, threading, time
wait = threading.Event().wait
for _ in range(3):
    threading.Thread(target=wait, daemon=True).start()
child = os.fork()
if child == 0:
    threading.Thread(target=wait, daemon=True).start()
    print(flush=True)
    wait()
print(child, flush=True)
for line in sys.stdin:
    threading.Thread(target=wait, daemon=True).start()
    print(flush=True)
"""
"""Four threads, and a process with two more; each line makes another thread."""

several_cpus = pytest.mark.skipif(len(ALLOWED) < 2, reason="there is one CPU: nothing can be bound to fewer")
CHANGES: list[tuple[str, SettingValue]] = [
    pytest.param(CPUS, str(ALLOWED[0]), marks=several_cpus),  # type: ignore[list-item]
    (FILES, 200),
]


class Server:
    """A server of somebody's."""

    def __init__(self) -> None:
        self.popen = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.child = int(self._said() + self._said())
        process = identify(self.popen.pid)
        assert process is not None
        self.process = process
        self.place = ServerProcess(process, "mariadb", "somebody's server")

    def _said(self) -> bytes:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().strip()

    def another_thread(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(b"\n")
        self.popen.stdin.flush()
        self._said()

    def tasks(self) -> set[int]:
        return threads(self.popen.pid) | threads(self.child)

    def values(self, name: str) -> set[SettingValue]:
        """Of every thread, as the kernel has them."""
        if name == CPUS:
            return {",".join(map(str, sorted(os.sched_getaffinity(task)))) for task in self.tasks()}
        if name == NICE:
            return {os.getpriority(os.PRIO_PROCESS, task) for task in self.tasks()}
        return {resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] for pid in (self.popen.pid, self.child)}

    def end(self) -> None:
        for pid in (self.child, self.popen.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.popen.communicate()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    made = Server()
    yield made
    made.end()


def killed(server: Server, code: str) -> None:
    """A command that changes what `code` says of the server, and is killed."""
    frame = (
        "import os, signal; from pathlib import Path; from loadframe.changes.durable import DurableJournal\n"
        "from loadframe.changes import process\n"
        f"place = process.ServerProcess.at({dict(server.place.address)!r})\n"
        "journal = DurableJournal('a study', Path('run'))\n"
        "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", f"{frame}{code}\ndie()"], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_all_threads_of_all_its_processes_are_changed_and_put_back(
    server: Server, name: str, value: SettingValue, tmp_path: Path
) -> None:
    (before,) = server.values(name)
    journal = DurableJournal("a study", tmp_path)
    server.place.check(name, value)
    assert server.values(name) == {before}, "it was only looked at"
    assert journal.set(server.place, name, value) == value
    server.another_thread()
    assert server.values(name) == {value}
    assert [outcome.status for outcome in journal.back(server.place)] == ["reverted"]
    assert server.values(name) == {before}
    assert lists.read() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may go back to a lower nice value")
def test_a_nice_value_goes_up_and_back(server: Server, tmp_path: Path) -> None:
    (before,) = server.values(NICE)
    journal = DurableJournal("a study", tmp_path)
    journal.set(server.place, NICE, int(before) + 3)
    server.another_thread()
    assert server.values(NICE) == {int(before) + 3}
    journal.back(server.place)
    assert server.values(NICE) == {before}


def test_after_a_kill_the_next_one_puts_back(server: Server) -> None:
    (before,) = server.values(FILES)
    killed(server, f"journal.set(place, {FILES!r}, 200)")
    assert server.values(FILES) == {200}
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert server.values(FILES) == {before}
    assert (lists.read(), places.revert()) == ([], [])


def test_killed_between_two_processes_both_go_back(server: Server) -> None:
    (before,) = server.values(FILES)
    killed(
        server,
        "import resource; real = resource.prlimit\n"
        f"resource.prlimit = lambda task, *other: die() if task == {server.child} else real(task, *other)\n"
        f"journal.set(place, {FILES!r}, 200)",
    )
    assert server.values(FILES) == {before, 200}
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert server.values(FILES) == {before}


def test_what_has_ended_needs_nothing(server: Server) -> None:
    killed(server, f"journal.set(place, {FILES!r}, 200)")
    server.end()
    (outcome,) = places.revert()
    assert outcome.status == "reverted"
    assert "has ended" in str(outcome)
    assert lists.read() == []


def test_a_pid_that_is_used_again_is_never_touched(server: Server) -> None:
    """What has this pid now began at another time."""
    before = server.values(FILES)
    other = ServerProcess(
        Identity(server.process.pid, server.process.started_ticks - 1), "mariadb", "a server that has ended"
    )
    for use in (lambda: other.read(FILES), lambda: other.write(FILES, 200), lambda: other.check(FILES, 200)):
        with pytest.raises(Gone):
            use()
    assert server.values(FILES) == before


def test_what_its_owner_changes_meanwhile_is_left_and_said(server: Server, tmp_path: Path) -> None:
    journal = DurableJournal("a study", tmp_path)
    journal.set(server.place, FILES, 200)
    hard = resource.prlimit(server.child, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.child, resource.RLIMIT_NOFILE, (300, hard))
    (outcome,) = journal.back(server.place)
    assert (outcome.status, outcome.read_back) == ("left", "200 and 300")


def test_threads_that_differ_are_not_made_alike(server: Server) -> None:
    hard = resource.prlimit(server.child, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.child, resource.RLIMIT_NOFILE, (300, hard))
    with pytest.raises(ChangeError, match="300") as caught:
        server.place.check(FILES, 200)
    assert "Omit it" in caught.value.remedy


def test_more_files_than_the_hard_limit_are_refused(server: Server) -> None:
    hard = resource.prlimit(server.popen.pid, resource.RLIMIT_NOFILE)[1]
    with pytest.raises(ChangeError, match=f"at most {hard} files"):
        server.place.check(FILES, hard + 1)


def test_cpus_that_the_kernel_does_not_give_are_refused(server: Server, tmp_path: Path) -> None:
    before, missing = server.values(CPUS), max(ALLOWED) + 1
    journal = DurableJournal("a study", tmp_path)
    with pytest.raises(ChangeError, match="lets it have only CPU"):
        journal.set(server.place, CPUS, f"{ALLOWED[0]},{missing}")
    journal.back(server.place)
    assert server.values(CPUS) == before


AS_NOBODY = """
import os, sys
import loadframe.recording.procfs  # as long as we may read it
from loadframe.host.identity import Identity
from loadframe.changes.process import ServerProcess
from loadframe.errors import ChangeError
place = ServerProcess(Identity(int(sys.argv[1]), int(sys.argv[2])), "mariadb", "somebody's server")
os.setgid(65534); os.setuid(65534)
for name, value in (("cage.cpus", sys.argv[3]), ("RLIMIT_NOFILE", 200), ("nice", 5)):
    try:
        place.check(name, value)
    except ChangeError as error:
        assert "as root" in error.remedy, error
        print(name)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_who_may_not_change_it_is_told_before_anything_is_changed(server: Server) -> None:
    who = [str(server.process.pid), str(server.process.started_ticks), str(ALLOWED[0])]
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, *who], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [CPUS, FILES, NICE]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may go back to a lower nice value")
def test_a_nice_value_that_could_not_go_back_is_refused(server: Server) -> None:
    with pytest.raises(ChangeError, match="and back"):
        server.place.check(NICE, 19)
