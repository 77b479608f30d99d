"""What all private servers have in common, on programs that are none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadframe.errors import CageError
from loadframe.host import identity, to_its_end
from loadframe.host.identity import naming
from loadframe.host.leases import Lease, mark_of
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.kinds.own_counts import LogCounts
from loadframe.kinds.private_server import TAIL_BYTES, PrivateServer
from waiting import await_that

INSTALLER = "sleep 1000 {folder} & echo started; wait"
"""It has another program do the work, as installers do."""


class Server(PrivateServer):
    name = "Server"


@pytest.fixture
def lease() -> Iterator[Lease]:
    with Lease.acquire("a test") as lease:
        yield lease


@pytest.fixture
def server(lease: Lease) -> Server:
    server = Server(lease, "server", US, None)
    server.make_folders()
    return server


def once(server: Server, command: list[str]) -> None:
    server.run_once(command, "install.log")


def checked(server: Server, command: list[str]) -> None:
    server.said_to_its_end(command, Allowance(US))


@pytest.mark.parametrize("run", [once, checked])
def test_ctrl_c_while_a_program_runs_ends_all_that_it_has_started(
    server: Server, lease: Lease, monkeypatch: pytest.MonkeyPatch, run: Callable[[Server, list[str]], None]
) -> None:
    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        monkeypatch.undo()
        logs = server.folder.glob
        await_that(lambda: "started" in "".join(log.read_text() for log in logs("*.log")), "it has started", of=process)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(server, ["sh", "-c", INSTALLER.format(folder=lease.folder.name)])
    assert naming(lease.folder.name) == ()


@pytest.mark.parametrize("run", [once, checked])
def test_one_that_the_lease_cannot_note_is_ended(
    server: Server, lease: Lease, monkeypatch: pytest.MonkeyPatch, run: Callable[[Server, list[str]], None]
) -> None:
    def full(pid: int) -> None:
        raise CageError("the disk of the state directory is full", remedy="Free some of it.")

    monkeypatch.setattr(lease, "add_process", full)
    with pytest.raises(CageError, match="is full"):
        run(server, ["sleep", "1000"])
    assert identity.marked(mark_of(lease.id)) == ()


@pytest.mark.parametrize("printed", [1, to_its_end.MOST_PRINTED_BYTES + 1])
def test_one_that_does_not_end_or_prints_without_an_end_is_ended_with_all_that_it_has_started(
    server: Server, lease: Lease, printed: int
) -> None:
    command = ["sh", "-c", f"head -c {printed} /dev/zero; sleep 20 & wait", lease.folder.name]
    status, _ = server.said_to_its_end(command, Allowance(US), within_s=0.3 if printed == 1 else 60.0)
    assert status != 0
    assert identity.marked(mark_of(lease.id)) == ()


def test_a_child_that_holds_the_output_of_a_program_open_is_not_waited_for_and_is_the_leases(
    server: Server, lease: Lease
) -> None:
    status, said = server.said_to_its_end(["sh", "-c", "sleep 20 & echo $!"], Allowance(US), within_s=10.0)
    assert status == 0
    assert [each.pid for each in identity.marked(mark_of(lease.id))] == [int(said)]


def test_a_group_of_which_all_have_ended_does_not_run_though_nobody_has_waited_for_them() -> None:
    """Ctrl-C while a server is installed waited 10 s for orphans of its installer where PID 1 reaps none."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    assert identity.runs(process.pid)
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    os.killpg(process.pid, 0)  # to the kernel it is still there
    assert not identity.runs(process.pid)
    process.wait()


def test_a_server_that_is_stopped_by_a_signal_is_ended_all_the_same(server: Server, tmp_path: Path) -> None:
    """What ends it is only read once it goes on."""
    server.kill_signal = server.stop_signal
    ready, ended = tmp_path / "ready", tmp_path / "ended"
    script = f"trap 'touch {ended}; exit' TERM; touch {ready}; kill -STOP $$; while :; do sleep 0.01; done"
    server.launch(["sh", "-c", script], Allowance(US), lambda: ready.exists() and stopped(server.pid))
    server.kill()
    assert ended.exists() and server.pid is None


def stopped(pid: int | None) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def test_of_a_log_without_an_end_only_its_end_is_read(server: Server) -> None:
    with server.log.open("wb") as log:
        log.truncate(8 << 30)  # takes no room on the disk
        log.seek(0, os.SEEK_END)
        log.write(b"\nthe last words\n")
    assert server.log_tail(1) == "the last words"
    assert len(server.log_tail()) <= TAIL_BYTES


def test_lines_of_a_log_are_counted_in_parts_whatever_they_are(server: Server) -> None:
    counts = LogCounts(server.log, (b"no room",))
    assert counts.read() == {b"no room": 0}
    server.log.write_bytes(b"no room\n" * 200_000 + b"x" * (3 << 20) + b"\nno room\nno ro")
    assert counts.read() == {b"no room": 200_001}
    with server.log.open("ab") as log:
        log.write(b"om\n")
    assert counts.read() == {b"no room": 200_002}
