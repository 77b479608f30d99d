"""loadframe init where several processes belong to one service, or hold one port: it names what it found, takes the
parent of a group, and asks where that does not decide."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from forked import Result
from loadframe.cages import groups
from loadframe.host import identity, listening
from loadframe.kinds.service.discovery import find
from loadframe.study.declaration import TargetTable

Command = Callable[..., Result]
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))

LISTENS = r"""
import os, socket, sys
def listen(port=0):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", port))
    made.listen()
    return made
def waits():
    os.write(1, b"ready\n")
    while sys.stdin.read(1):
        pass
"""
FORKS = LISTENS + "made = listen()\nfor _ in range(2):\n    if not os.fork():\n        break\nwaits()\n"
"""As gunicorn does: the workers inherit the socket of their parent."""
EACH_ITS_OWN = LISTENS + "port = int(sys.argv[1])\nmade = (os.fork() and os.fork()) or listen(port)\nwaits()\n"
"""The parent holds none; each worker has a socket of its own at the same port."""
SHARES = LISTENS + "made = listen(int(sys.argv[1]))\nwaits()\n"
TWO_PORTS = LISTENS + "made = listen(), listen()\nwaits()\n"
HELPS = (
    LISTENS + "import subprocess\nhelper = subprocess.Popen(['sleep', '60'])\nmade = listen()\nwaits()\nhelper.kill()\n"
)


@contextmanager
def running(code: str, *arguments: object, ready: int = 1) -> Iterator[int]:
    """A service's first process, until its input ends. ready: how many of its processes say so."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            for _ in range(ready):
                assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.stdin.close()


def ports(pid: int) -> list[int]:
    return list(listening.ports_of([one.pid for one in identity.family(pid)]))


def target(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "x.toml").read_text())["target"]
    (folder / "x.toml").unlink()
    return found


@pytest.mark.long
def test_workers_that_share_the_socket_of_their_parent_are_told_and_the_parent_is_taken(
    loadframe: Command, tmp_path: Path
) -> None:
    with running(FORKS, ready=3) as parent:
        (port,), workers = ports(parent), identity.children(parent)
        for named, where in (
            (("--port", port), {"listen": port}),
            (("--pid", parent), {"pid": parent}),
            (("--pid", workers[0]), {"pid": parent}),
            (("--pid", workers[1], "--port", port), {"pid": parent, "listen": port}),
        ):
            done = loadframe("init", *map(str, named), "--no-check", "--output", "x.toml", "--json")
            assert done.code == 0, done.err
            told = " ".join(done.json["found"])
            assert f"pid {parent}, run by" in told
            pids = " and ".join(map(str, workers))
            assert f"Port {port} is held by pid {parent} and what that has started (pids {pids})" in told
            assert (f"Process {named[1]} belongs to the service that process {parent}" in told) == (
                named[1] in workers
            ), "what was not taken as it was named is told"
            assert target(tmp_path) == {"kind": "service", **where}


@pytest.mark.long
def test_the_parent_of_workers_with_a_socket_each_is_taken_though_it_holds_none(
    loadframe: Command, tmp_path: Path
) -> None:
    with running(FORKS, ready=3) as other:
        (free,) = ports(other)
    with running(EACH_ITS_OWN, free, ready=3) as parent:
        assert listening.ports_of([parent]) == ()
        worker = identity.children(parent)[0]
        for named, where in ((("--port", free), {"listen": free}), (("--pid", worker), {"pid": parent})):
            done = loadframe("init", *map(str, named), "--no-check", "--output", "x.toml", "--json")
            assert done.code == 0, done.err
            assert f"pid {parent}, run by" in done.json["found"][0]
            assert target(tmp_path) == {"kind": "service", **where}
            assert find(TargetTable.model_validate({"kind": "service", **where})).pids()[0] == parent


@pytest.mark.long
def test_of_services_that_share_a_port_and_do_not_belong_together_none_is_guessed(
    loadframe: Command, tmp_path: Path
) -> None:
    with running(TWO_PORTS) as other:
        free = ports(other)[0]
    with running(SHARES, free) as one, running(SHARES + "# another\n", free) as two:
        done = loadframe("init", "--port", str(free), "--no-check")
        assert done.code == 1
        assert f"2 services that do not belong together listen on port {free}" in done.err
        assert f"pid {one}" in done.err and f"pid {two}" in done.err and f"--port {free} --pid {one}" in done.err
        assert not list(tmp_path.glob("*.toml"))
        done = loadframe("init", "--port", str(free), "--pid", str(two), "--no-check", "--output", "x.toml", "--json")
        assert done.code == 0, done.err
        assert target(tmp_path) == {"kind": "service", "pid": two, "listen": free}
        assert f"Others hold port {free}, too, and may get part of its requests" in " ".join(done.json["found"])


@pytest.mark.long
def test_processes_of_one_command_line_that_share_a_port_are_one_service(loadframe: Command, tmp_path: Path) -> None:
    with running(TWO_PORTS) as other:
        free = ports(other)[0]
    with ExitStack() as stack:
        pids = sorted(stack.enter_context(running(SHARES, free)) for _ in range(2))
        done = loadframe("init", "--port", str(free), "--no-check", "--output", "x.toml", "--json")
        assert done.code == 0, done.err
        assert f"pids {pids[0]} and {pids[1]}, share port {free}" in " ".join(done.json["found"])
        assert find(TargetTable.model_validate(target(tmp_path))).pids() == tuple(pids)


@pytest.mark.long
def test_one_that_listens_on_several_ports_or_on_none_needs_one_said(loadframe: Command, tmp_path: Path) -> None:
    with running(TWO_PORTS) as pid:
        first, second = ports(pid)
        done = loadframe("init", "--pid", str(pid), "--no-check")
        assert done.code == 1
        assert "listen on 2 ports" in done.err and f"--pid {pid} --port {first}" in done.err
        done = loadframe("init", "--pid", str(pid), "--port", str(second), "--no-check", "--output", "x.toml")
        assert done.code == 0, done.err
        assert target(tmp_path) == {"kind": "service", "pid": pid, "listen": second}
    with running(LISTENS + "waits()\n") as pid:
        done = loadframe("init", "--pid", str(pid), "--no-check")
        assert done.code == 1
        assert f"process {pid}" in done.err and "listens on no port" in done.err and "--port" in done.err


@pytest.mark.long
def test_a_port_of_another_program_is_told(loadframe: Command, tmp_path: Path) -> None:
    """Such as a proxy in front of it."""
    with running(LISTENS + "waits()\n") as behind, running(FORKS, ready=3) as front:
        (port,) = ports(front)
        done = loadframe(
            "init", "--pid", str(behind), "--port", str(port), "--no-check", "--output", "x.toml", "--json"
        )
        assert done.code == 0, done.err
        assert target(tmp_path) == {"kind": "service", "pid": behind, "listen": port}
        told = " ".join(done.json["found"])
        assert f"Port {port} is not its own" in told and f"pid {front}" in told


@pytest.mark.long
def test_an_address_that_is_not_loopback_is_in_the_study(loadframe: Command, tmp_path: Path) -> None:
    with running(SHARES, 0, "127.0.0.3") as pid:
        (port,) = ports(pid)
        assert loadframe("init", "--port", str(port), "--no-check", "--output", "x.toml").code == 0
    assert target(tmp_path) == {"kind": "service", "listen": f"127.0.0.3:{port}"}


@pytest.mark.long
def test_helpers_and_what_else_its_unit_has_are_told(loadframe: Command, tmp_path: Path) -> None:
    """A group made by hand stands in for the one that systemd makes."""
    place = next((each for each in groups.hierarchies() if os.access(each.own, os.W_OK)), None)
    if place is None:
        pytest.skip("no control group can be made here")
    with running(HELPS) as pid, running(LISTENS + "waits()\n") as beside:
        members = (beside, *(one.pid for one in identity.family(pid)))
        folder = place.top / "loadframe-group.service"
        try:
            folder.mkdir()
            for each in members:
                (folder / "cgroup.procs").write_text(str(each), encoding="utf-8")
        except OSError as error:
            folder.rmdir() if folder.is_dir() else None
            pytest.skip(f"no control group can be made here: {error}")
        try:
            done = loadframe("init", "--pid", str(pid), "--no-check", "--output", "x.toml", "--json")
        finally:
            for each in members:
                (place.own / "cgroup.procs").write_text(str(each), encoding="utf-8")
            folder.rmdir()
    assert done.code == 0, done.err
    told = " ".join(done.json["found"])
    assert "Of its processes 1 has another name: sleep (pid " in told
    assert "Its unit is loadframe-group.service." in told
    assert re.search(rf"has 1 further process that it did not start: \S+ \(pid {beside}\)", told), told
    assert 'add unit = "loadframe-group.service"' in told


def test_where_none_is_named_those_that_listen_are_listed(loadframe: Command, tmp_path: Path) -> None:
    with running(FORKS, ready=3) as pid:
        (port,) = ports(pid)
        done = loadframe("init")
    assert done.code == 2
    assert "--command, --port or --pid" in done.err
    assert f"port {port}:" in done.err or "more" in done.err, "of a machine with many, the first"
    assert not list(tmp_path.glob("*.toml"))


def asked(folder: Path, *arguments: str, types: list[tuple[str, str]]) -> str:
    """What a person is shown at a terminal, who types each answer once its question is there."""
    ours, terminal = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen(
        [LOADFRAME, "init", *arguments], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment
    ) as process:
        os.close(terminal)
        text = ""
        waiting = list(types)
        while True:
            try:
                text += os.read(ours, 4096).decode()
            except OSError:  # it has ended
                break
            if waiting and waiting[0][0] in text:
                os.write(ours, f"{waiting.pop(0)[1]}\n".encode())
    os.close(ours)
    assert process.returncode == 0, text
    return text


@pytest.mark.long
def test_at_a_terminal_a_person_is_asked_which_one_is_meant(tmp_path: Path) -> None:
    with running(TWO_PORTS) as other:
        free = ports(other)[0]
    more = ("--no-check", "--output", "x.toml")
    with running(SHARES, free) as one, running(SHARES + "# another\n", free) as two:
        questions = [("on which it listens", str(free)), ("Which one is yours", "3"), ("from 1 to 2", "2")]
        text = asked(tmp_path, *more, types=questions)
        assert f"pid {one}" in text and f"pid {two}" in text
        assert target(tmp_path) == {"kind": "service", "pid": two, "listen": free}
    with running(TWO_PORTS) as pid:
        ports_of_it = ports(pid)
        asked(tmp_path, "--pid", str(pid), *more, types=[("Which one is yours", "2")])
        assert target(tmp_path) == {"kind": "service", "pid": pid, "listen": ports_of_it[1]}
