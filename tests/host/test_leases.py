"""Whatever a killed command left is ended and removed by the next one; what is in use is never touched."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from loadframe.errors import CageError
from loadframe.host import identity, leases, shared_memory
from loadframe.host.leases import Lease, filesystem
from loadframe.host.leftovers import sweep
from loadframe.host.privilege import US, LeaseUser, NamedUser

KILLED_OWNER = """
import os, signal, subprocess, sys
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
lease = Lease.acquire("a study", run=None)
(lease.folder / "data").write_text("x")
registered = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, start_new_session=True)
lease.add_process(registered.pid)
stubborn = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.sigwait([10])"
detaching = "import os; os.fork() and os._exit(0); os.setsid(); print(os.getpid(), flush=True); " + stubborn
detached = spawn([sys.executable, "-I", "-S", "-c", detaching], Allowance(US), stdout=subprocess.PIPE, stderr=None)
pid = int(detached.stdout.readline())
detached.stdout.readline()
print(lease.folder, registered.pid, pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(tmp_path / "scratch"))
    return tmp_path


def lease_files(places: Path) -> list[Path]:
    return list((places / "state" / "leases").glob("*.json"))


def test_release_removes_folder_and_lease_and_can_be_repeated(places: Path) -> None:
    lease = Lease.acquire("a study")
    (lease.folder / "deep").mkdir()
    assert lease.folder.parent == places / "scratch"
    assert lease_files(places)
    lease.release()
    lease.release()
    assert not lease.folder.exists()
    assert not lease_files(places)


def test_where_the_disk_of_the_state_has_gone_all_else_is_released(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = Lease.acquire("a test")
    unlink = Path.unlink

    def gone(path: Path, missing_ok: bool = False) -> None:
        if path.is_relative_to(places / "state"):
            raise OSError(errno.EIO, "Input/output error")
        unlink(path, missing_ok)

    with monkeypatch.context() as disk:
        disk.setattr(Path, "unlink", gone)
        lease.release()
    assert not lease.folder.exists()
    lease.release()
    assert not list((places / "state").rglob("*.json"))


@pytest.mark.parametrize("umask", [0, 0o077])
def test_only_processes_of_the_lease_may_enter_its_folder_whatever_the_umask(umask: int) -> None:
    before = os.umask(umask)
    try:
        with Lease.acquire("a study") as lease:
            status = lease.folder.stat()
            assert status.st_uid == os.geteuid()
            if lease.user is None:
                assert status.st_mode & 0o777 == 0o700
            else:
                assert (status.st_mode & 0o777, status.st_gid) == (0o710, lease.user)
    finally:
        os.umask(before)


def test_release_ends_what_was_started() -> None:
    with Lease.acquire("a study") as lease:
        process = subprocess.Popen(["sleep", "1000"])
        lease.add_process(process.pid)
    assert process.wait(timeout=30) != 0


def test_a_forked_child_does_not_release_what_its_parent_uses() -> None:
    with Lease.acquire("a study") as lease:
        child = multiprocessing.get_context("fork").Process(target=lease.release)
        child.start()
        child.join()
        assert lease.folder.exists()


def test_the_lease_is_on_disk_before_the_folder_is_made(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    make = Path.mkdir

    def watched(path: Path, *arguments: object, **options: object) -> None:
        if path.name.startswith("loadframe-"):
            seen.append(len(lease_files(places)))
        make(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", watched)
    with Lease.acquire("a study"):
        assert seen == [1]


def test_living_owners_are_left_alone() -> None:
    with Lease.acquire("a study") as lease:
        assert sweep() == []
        assert lease.folder.exists()


@pytest.mark.long
def test_after_kill_9_the_next_sweep_ends_all_and_removes_all(places: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", KILLED_OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout
    folder, registered, detached = owner.stdout.readline().decode().split()
    watched = [os.pidfd_open(int(pid)) for pid in (registered, detached)]
    owner.kill()
    owner.communicate()
    try:
        (swept,) = sweep()
        assert swept.what == "a study"
        assert f"ended process {registered}" in swept.actions
        assert f"removed {folder}" in swept.actions
        assert not Path(folder).exists()
        assert not lease_files(places)
        poll = select.poll()
        for descriptor in watched:
            poll.register(descriptor, select.POLLIN)
        assert len(poll.poll(0)) == 2, "both have ended when sweep returns"
        assert sweep() == []
    finally:
        for descriptor in watched:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)


def rewritten(lease: Lease, places: Path, **changes: object) -> Path:
    """The lease, with these changes, as if its owner had been killed."""
    file = places / "state" / "leases" / f"{lease.id}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    lease._life.forget()
    return file


def test_shared_memory_of_a_server_that_was_killed_with_its_owner_is_removed_by_the_next_sweep(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = places / "shm"
    shared.mkdir()
    monkeypatch.setattr(shared_memory, "FOLDER", shared)
    lease = Lease.acquire("a study")
    name = lease.shared_name
    for file in (f"{name}-metadata", f"sem.{name}-of-python", f"{name}0-of-another", "of-a-stranger"):
        (shared / file).touch()
    rewritten(lease, places)
    (swept,) = sweep()
    assert "removed 2 pieces of shared memory" in swept.actions
    assert {path.name for path in shared.iterdir()} == {f"{name}0-of-another", "of-a-stranger"}


def test_a_pid_used_again_by_a_stranger_is_not_ended(places: Path) -> None:
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        lease = Lease.acquire("a study")
        rewritten(lease, places, processes=[{"pid": stranger.pid, "started_ticks": 1}])
        (swept,) = sweep()
        assert stranger.poll() is None
        assert not lease.folder.exists()
        assert not any("ended" in action for action in swept.actions)
    finally:
        stranger.kill()
        stranger.wait()


def test_after_a_reboot_only_the_data_are_removed(places: Path) -> None:
    innocent = subprocess.Popen(["sleep", "1000"])
    try:
        lease = Lease.acquire("a study")
        lease.add_process(innocent.pid)
        rewritten(lease, places, boot="another boot")
        assert len(sweep()) == 1
        assert innocent.poll() is None
        assert not lease.folder.exists()
    finally:
        innocent.kill()
        innocent.wait()


def test_leases_of_another_machine_are_not_ours_to_sweep(places: Path) -> None:
    with Lease.acquire("a study") as lease:
        rewritten(lease, places, host="elsewhere", machine="elsewhere", boot="elsewhere")
        assert sweep() == []
        assert lease.folder.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", "torn", '{"schema": "loadframe.lease/99"}'])
def test_a_lease_that_cannot_be_read_is_reported_and_kept(places: Path, text: str) -> None:
    Lease.acquire("first").release()
    file = places / "state" / "leases" / "odd.json"
    file.write_text(text)
    (swept,) = sweep()
    assert str(file) in str(swept)
    assert file.exists()


def test_a_sweep_never_removes_a_folder_that_is_not_the_leases_own(places: Path) -> None:
    precious = places / "precious"
    precious.mkdir()
    with Lease.acquire("a study") as lease:
        rewritten(lease, places, folder=str(precious))
        sweep()
        assert precious.exists()


def test_two_sweeps_at_once_share_the_work_and_do_not_fail(places: Path) -> None:
    for number in range(5):
        rewritten(Lease.acquire(f"study {number}"), places)
    code = "import sys; from loadframe.host.leftovers import sweep; sys.stdin.readline(); print(len(sweep()))"
    sweepers = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]
    for sweeper in sweepers:
        assert sweeper.stdin is not None
        sweeper.stdin.write(b"now\n")
        sweeper.stdin.flush()
    told = [int(sweeper.communicate(timeout=60)[0]) for sweeper in sweepers]
    assert sum(told) == 5
    assert not lease_files(places)


def test_what_a_killed_writer_has_left_half_written_is_removed(places: Path) -> None:
    code = (
        "import os, signal; from loadframe.host.leases import Lease\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL); Lease.acquire('a study')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    (torn,) = (places / "state" / "leases").glob(".*.part")
    assert sweep() == []
    assert not torn.exists()


def test_what_is_being_written_is_not_removed(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeper: list[threading.Thread] = []
    to_disk = os.fsync

    def swept_meanwhile(descriptor: int) -> None:
        if not sweeper:
            sweeper.append(threading.Thread(target=sweep, daemon=True))
            sweeper[0].start()
            sweeper[0].join(0.2)
        to_disk(descriptor)

    monkeypatch.setattr(os, "fsync", swept_meanwhile)
    with Lease.acquire("a study"):
        sweeper[0].join()
        assert len(lease_files(places)) == 1


@pytest.mark.parametrize("variable", ["LOADFRAME_STATE", "LOADFRAME_SCRATCH"])
def test_a_place_that_cannot_be_written_is_named_with_the_variable_to_set(
    places: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (places / "file").write_text("")
    monkeypatch.setenv(variable, str(places / "file" / "below"))
    with pytest.raises(CageError, match=str(places / "file")) as caught:
        Lease.acquire("a study")
    assert variable in caught.value.remedy


def test_a_full_disk_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CageError, match="No space left on device"):
        Lease.acquire("a study")


def test_a_process_is_known_by_pid_and_start_even_with_an_odd_name(tmp_path: Path) -> None:
    odd = tmp_path / "a ) b ("
    odd.symlink_to("/bin/sleep")
    process = subprocess.Popen([odd, "1000"])
    try:
        known = identity.identify(process.pid)
        assert known is not None
        assert identity.alive(known)
    finally:
        process.kill()
    assert identity.end_all([known], 1.0)[known]
    process.wait()
    assert identity.identify(process.pid) is None


def test_the_file_system_is_told() -> None:
    assert filesystem(Path("/proc/self")) == "proc"


CREATING = """
import itertools, sys
from pathlib import Path
print(flush=True)
for number in itertools.count():
    (Path(sys.argv[1]) / str(number)).touch()
"""


WAITING = """
import os, signal, sys
def leave(*_):
    os.write(int(sys.argv[1]), b"x")
    os.read(int(sys.argv[2]), 1)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print(flush=True)
while True: signal.pause()
"""
"""Ends in order once the other one was asked to end, too."""


def test_all_are_asked_to_end_at_once_and_what_is_stopped_sees_it() -> None:
    """One after the other, a server of 15 processes took half a minute; one that is stopped never ends in order."""
    first, second = os.pipe(), os.pipe()
    ways = [(first[1], second[0]), (second[1], first[0])]
    started = []
    try:
        for way in ways:
            command = [sys.executable, "-I", "-S", "-c", WAITING, *map(str, way)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=way)
            started.append(process)
            assert process.stdout is not None
            process.stdout.readline()
        os.kill(started[0].pid, signal.SIGSTOP)
        os.waitid(os.P_PID, started[0].pid, os.WSTOPPED | os.WNOWAIT)
        known = [found for process in started if (found := identity.identify(process.pid)) is not None]
        assert identity.end_all(known, 30.0) == dict.fromkeys(known, True)
        assert [process.wait(10) for process in started] == [0, 0], "each saw the other asked"
    finally:
        for process in started:
            process.kill()
            process.communicate()
        for descriptor in (*first, *second):
            os.close(descriptor)


def test_a_child_that_nobody_knows_of_is_ended_before_its_folder_goes(places: Path) -> None:
    """As a driver that was just started when Ctrl-C came: it writes as fast as the folder is emptied."""
    lease = Lease.acquire("a study")
    with subprocess.Popen([sys.executable, "-c", CREATING, str(lease.folder)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            lease.release()
            assert child.wait(10) == -signal.SIGTERM
        finally:
            child.kill()
    assert not lease.folder.exists()
    assert lease_files(places) == []


def test_who_looks_into_the_folder_of_a_dead_owner_is_not_ended(places: Path) -> None:
    """An editor, or `tail -f`, of the same user: it names a file of the folder, and has it open."""
    lease = Lease.acquire("a study")
    (lease.folder / "error.log").write_text("")
    rewritten(lease, places)
    with subprocess.Popen(["tail", "-f", lease.folder / "error.log"], cwd=lease.folder) as looking:
        try:
            (swept,) = sweep()
            assert looking.poll() is None
            assert f"removed {lease.folder}" in swept.actions
        finally:
            looking.kill()


STARTS_A_WORKER = """
import os, sys
sys.stdin.readline()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_what_a_server_has_started_is_ended_though_it_has_no_mark(places: Path) -> None:
    """A server that writes its title over its environment, and whose first process has ended."""
    lease = Lease.acquire("a study")
    command = [sys.executable, "-I", "-c", STARTS_A_WORKER]
    with subprocess.Popen(
        command, cwd=lease.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as leader:
        assert leader.stdin is not None and leader.stdout is not None
        lease.add_process(leader.pid)
        leader.stdin.write(b"now\n")
        leader.stdin.flush()
        worker = int(leader.stdout.readline())
        leader.wait(30)
        rewritten(lease, places)
        (swept,) = sweep()
        assert f"ended process {worker}" in swept.actions


def test_shared_memory_of_another_user_is_not_removed(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "FOLDER", places)
    theirs, link = places / "loadframe7-theirs", places / "loadframe7-link"
    theirs.touch()
    link.symlink_to(theirs)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert shared_memory.remove("loadframe7") == []
    assert theirs.exists() and link.is_symlink()


def test_whoever_else_looks_into_the_folder_is_left_alone(places: Path) -> None:
    lease = Lease.acquire("a study")
    looks = [sys.executable, "-c", "import os, sys; os.fork() and os._exit(0); print(os.getpid(), flush=True); input()"]
    with subprocess.Popen([*looks, str(lease.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()
        lease.release()
        assert identity.identify(pid) is not None
    assert lease_files(places) == []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_waits_until_a_lease_is_released(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, remove = Lease.acquire("a study"), leases.remove_tree

    def interrupted(folder: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(folder)

    monkeypatch.setattr(leases, "remove_tree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lease.release()
    assert not lease.folder.exists()
    assert lease_files(places) == []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_a_lease_is_made_leaves_none(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "make_private", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        Lease.acquire("a study")
    assert lease_files(places) == []
    assert list((places / "scratch").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes under another user")
def test_servers_of_root_run_as_the_first_account_that_exists_and_never_as_nobody_for_want_of_one() -> None:
    with Lease.acquire("a test") as lease:
        assert lease.account("no-such-user", "daemon") == NamedUser("daemon")
        user = lease.account("no-such-user")
        assert isinstance(user, LeaseUser) and user == lease.runs_services_as != lease.runs_as


def test_without_root_servers_run_as_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lease.acquire("a test") as lease:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert lease.account("mysql") == US
        monkeypatch.undo()
