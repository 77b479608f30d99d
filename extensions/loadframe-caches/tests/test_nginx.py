"""What is nginx's own: its words, what it really uses, its counters, what ends with it."""

from __future__ import annotations

import os
import re
import signal
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.model import TargetState
from loadframe_caches.nginx.kind import Looks, NginxTarget
from loadframe_caches.nginx.server import (
    CACHE_CATALOGUE,
    CATALOGUE,
    DIRECTIVES,
    OWN_CONNECTIONS,
    Server,
    names_of,
    parse,
    read_back,
    written,
)
from waiting import await_that

SOON_S = 10.0
OTHERS = {"integer": 7, "number": 7, "bytes": 4096, "duration": 7}
"""A value of each kind that is no default; of the switches the other one."""

server = pytest.mark.server


def running(nginx: NginxTarget, limits: dict[str, int] | None = None, **settings: str | int | bool) -> NginxTarget:
    nginx.start(TargetState(settings, limits or {}))
    return nginx


def get(nginx: NginxTarget, path: str = "/") -> bytes:
    with urllib.request.urlopen(f"http://{nginx.endpoint().address}{path}", timeout=SOON_S) as answer:
        return bytes(answer.read())


@pytest.fixture
def clients(nginx: NginxTarget) -> Iterator[ExitStack]:
    """Connections that are closed at the end."""
    with ExitStack() as stack:
        yield stack


def connect(nginx: NginxTarget, clients: ExitStack, count: int) -> list[socket.socket]:
    """Clients that have asked half of a request: nginx may not close their connections to have room for others."""
    host, _, port = nginx.endpoint().address.partition(":")
    made = []
    for _ in range(count):
        one = clients.enter_context(closing(socket.create_connection((host, int(port)), SOON_S)))
        with suppress(ConnectionError):  # closed already, for want of room
            one.sendall(b"GET / HTTP/1.1\r\n")
        made.append(one)
    return made


# --- settings ---


def test_every_setting_stands_in_one_directive() -> None:
    placed = [name for forms in DIRECTIVES.values() for form in forms for name in names_of(form)]
    assert sorted(placed) == sorted({*CACHE_CATALOGUE.names()} - {"access_log"}), "access_log is written with its path"


def test_what_is_written_is_read_back() -> None:
    settings = {spec.name: OTHERS.get(spec.kind, "threads" if spec.choices else not spec.default)
                for spec in CATALOGUE.specs if spec.name != "access_log"}  # fmt: skip
    text = "".join(f"  {line};\n" for context in ("main", "events", "http") for line in written(context, settings))
    text += f"  listen 127.0.0.1:80 {' '.join(written('listen', settings))};\n"
    assert read_back(text).keys() == settings.keys()
    assert read_back(text)["keepalive_timeout"] == "7s" and read_back(text)["open_file_cache_max"] == "7"
    assert read_back("") == {}


@pytest.mark.long
@server
def test_every_setting_of_the_catalogue_is_taken_by_the_installed_nginx(nginx: NginxTarget) -> None:
    for spec in CATALOGUE.specs:
        value = {"worker_rlimit_nofile": 100, "worker_connections": 7}.get(
            spec.name, OTHERS.get(spec.kind, "threads" if spec.choices else not spec.default)
        )
        together = {"open_file_cache_max": 10} if spec.name == "open_file_cache_inactive" else {}
        (nginx.apply if nginx.pids() else nginx.start)(TargetState({**together, spec.name: value}))
        assert nginx.effective()[spec.name] == value
    defaults = {spec.name: spec.default for spec in CATALOGUE.specs if spec.default is not None}
    nginx.apply(TargetState())
    assert defaults.items() <= nginx.effective().items()


@server
def test_settings_that_would_not_start_are_refused_in_its_own_words(nginx: NginxTarget) -> None:
    with pytest.raises(TargetError, match="would not start with worker_connections = 2") as caught:
        nginx.start(TargetState({"worker_connections": 2}))
    assert "2 worker_connections are not enough for 2 listening sockets" in caught.value.details
    assert nginx.pids() == ()
    running(nginx, worker_connections=64)
    before, pids = nginx.effective(), nginx.pids()
    with pytest.raises(TargetError):
        nginx.apply(TargetState({"worker_connections": 2}))
    assert (nginx.effective(), nginx.pids()) == (before, pids), "and a refused change changes nothing"


@server
def test_descriptors_that_it_did_not_get_are_seen(nginx: NginxTarget) -> None:
    """A worker without privileges may not raise what it was given; nginx says so in its log only."""
    running(nginx, {"RLIMIT_NOFILE": 200}, worker_rlimit_nofile=4000)
    assert nginx.effective()["worker_rlimit_nofile"] == nginx.effective()["RLIMIT_NOFILE"] == 200
    nginx.apply(TargetState({"worker_rlimit_nofile": 100}, {"RLIMIT_NOFILE": 200}))
    assert nginx.effective()["worker_rlimit_nofile"] == 100
    assert nginx.effective()["RLIMIT_NOFILE"] == 200


@server
def test_workers_are_as_many_as_asked_for_after_a_start_and_after_a_reload(nginx: NginxTarget) -> None:
    for count in (3, 1, 2):
        (nginx.apply if nginx.pids() else nginx.start)(TargetState({"worker_processes": count}))
        assert len(nginx.pids()) == 1 + count
        assert nginx.effective()["worker_processes"] == nginx.counters()["workers"] == count


def test_unknown_settings_do_not_start_anything(nginx: NginxTarget) -> None:
    with pytest.raises(StudyError, match="no such setting"):
        nginx.start(TargetState({"root": "/etc"}))


# --- counters ---


def test_a_status_page_is_read() -> None:
    page = "Active connections: 3 \nserver accepts handled requests\n 12 11 40 \nReading: 1 Writing: 2 Waiting: 0 \n"
    assert parse(page) == {
        "connections": 3, "accepts": 12, "handled": 11, "requests": 40, "reading": 1, "writing": 2, "waiting": 0,
    }  # fmt: skip
    assert parse("<html>not found</html>") == {}


def test_what_workers_do_is_added_up(tmp_path: Path) -> None:
    def worker(pid: int, state: str, user: int) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        stat = f"{pid} (nginx: (odd) worker) {state} 1 1 1 0 -1 0 0 0 0 0 {user} 50 0 0 20 0 1 0 100 0 0 0 0"
        (tmp_path / str(pid) / "stat").write_text(stat)
        (tmp_path / str(pid) / "fd").mkdir(exist_ok=True)
        for number in range(pid):
            (tmp_path / str(pid) / "fd" / str(number)).touch()

    now = iter([10.0, 11.0, 13.0])
    looks = Looks(tmp_path, lambda: next(now))
    worker(1, "D", 50)
    worker(2, "S", 150)
    assert looks.read([1, 2]) == {"worker_cpu": 1.5, "worker_blocked": 0.0, "worker_open_files": 2}, "at 100 Hz"
    assert looks.read([1, 2])["worker_blocked"] == 0.5
    worker(2, "D", 150)
    assert looks.read([1, 2, 3])["worker_blocked"] == 2.5, "one that has ended is left out"
    assert looks.read([]) == {}


@server
def test_requests_and_connections_are_counted(nginx: NginxTarget, clients: ExitStack) -> None:
    running(nginx)
    Path(nginx.endpoint().options["files"], "a").write_bytes(b"x" * 100)
    before = nginx.counters()
    for _ in range(5):
        assert get(nginx, "/a") == b"x" * 100
    connect(nginx, clients, 4)
    await_that(lambda: nginx.counters()["connections"] == before["connections"] + 4, "four clients are seen")
    after = nginx.counters()
    assert after["requests"] >= before["requests"] + 5
    assert after["accepts"] == before["accepts"] + 9
    assert after["connections_refused"] == 0


@server
def test_the_connections_that_clients_can_have_are_as_many_as_it_says(nginx: NginxTarget, clients: ExitStack) -> None:
    running(nginx, worker_connections=20)
    allowed = nginx.counters()["connections_allowed"]
    assert allowed == 20 - OWN_CONNECTIONS - 1
    connect(nginx, clients, int(allowed) - 1)  # our own look is the last one
    await_that(lambda: nginx.counters()["connections"] == allowed, "all that it says it has room for")
    assert nginx.counters()["connections_reused"] == 0
    more = connect(nginx, clients, 20)
    await_that(lambda: any(map(closed, more)), "others are closed at once")
    clients.close()
    counters = nginx.counters()
    assert counters["connections_refused"] + counters["connections_reused"] >= 1, "and that is counted"


def closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@server
def test_while_all_connections_are_taken_the_other_counters_are_there(nginx: NginxTarget, clients: ExitStack) -> None:
    running(nginx, worker_connections=20)

    def full() -> bool:
        connect(nginx, clients, 5)
        return "requests" not in nginx.counters()

    await_that(full, "there is no room for our own look")
    counters = nginx.counters()
    assert {"workers", "worker_cpu"} <= counters.keys()
    assert counters["connections"] == 20 - OWN_CONNECTIONS > counters["connections_allowed"]
    assert counters["connections_refused"] > 0


@server
def test_a_want_of_descriptors_is_counted(nginx: NginxTarget, clients: ExitStack) -> None:
    running(nginx, {"RLIMIT_NOFILE": 40}, worker_connections=200)
    connect(nginx, clients, 60)
    await_that(lambda: nginx.counters()["descriptors_refused"] > 0, "accept4() fails for want of descriptors")


# --- processes ---


@server
def test_a_worker_that_dies_is_replaced_and_known(nginx: NginxTarget) -> None:
    running(nginx, worker_processes=2)
    master, first, second = nginx.pids()
    os.kill(first, signal.SIGKILL)
    await_that(lambda: len(set(nginx.pids()) - {master, first, second}) == 1, "another one has its place")
    assert len(nginx.pids()) == 3


@server
def test_a_worker_whose_successor_is_not_there_yet_is_looked_for_again(
    nginx: NginxTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(nginx, worker_processes=2)
    master, first, second = nginx.pids()
    os.kill(first, signal.SIGKILL)
    with monkeypatch.context() as between:
        between.setattr(Server, "workers", lambda _: (second,))
        await_that(lambda: nginx.pids() == (master, second), "one has ended, and no other is there yet")
    await_that(lambda: len(nginx.pids()) == 3, "another one has its place")


@server
def test_nothing_is_left_when_the_master_is_killed_and_the_target_destroyed(nginx: NginxTarget) -> None:
    running(nginx, worker_processes=3)
    master, *workers = nginx.pids()
    os.kill(master, signal.SIGKILL)
    await_that(lambda: not nginx.healthy(), "it is not well")
    with pytest.raises(TargetError, match="SIGKILL"):
        nginx.counters()
    nginx.destroy()
    await_that(lambda: not any(alive(pid) for pid in workers), "its workers have ended")


def alive(pid: int) -> bool:
    try:
        return not re.search(r"\) [ZX] ", Path(f"/proc/{pid}/stat").read_text())
    except FileNotFoundError:
        return False


@server
def test_a_reload_ends_the_workers_before(nginx: NginxTarget) -> None:
    running(nginx)
    _, *before = nginx.pids()
    nginx.apply(TargetState({"keepalive_timeout": 5}))
    assert not any(alive(pid) for pid in before)


@server
def test_another_port_that_is_taken_is_refused(lease: Lease) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        target = NginxTarget(lease=lease, resources=Resources(), port=taken.getsockname()[1])
        target.create()
        with pytest.raises(TargetError, match="cannot be used"):
            target.start(TargetState())
        target.destroy()


@server
def test_workers_without_memory_for_their_connections_are_no_start(nginx: NginxTarget) -> None:
    """Its master would go on without them."""
    state = TargetState({"worker_connections": 10_000_000}, {"RLIMIT_AS": 1 << 30})
    for begin in (nginx.check, nginx.start):
        with pytest.raises(TargetError, match="would not start") as caught:
            begin(state)
        assert "Cannot allocate memory" in caught.value.details
        assert nginx.pids() == ()
    assert nginx.healthy() is False
    assert running(nginx).healthy()
