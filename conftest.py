"""What all tests share: server tests are skipped where a program is missing - or fail, where CI asks for all."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from alone import LeftOut
from ending import ended_where_it_fails
from forked import commands
from loadframe.connections import address
from loadframe.host.leftovers import sweep
from loadframe.host.signals import STOPPING
from loadframe.kinds.mysql.kind import MYSQL_PACKAGE
from loadframe.model import Step
from simulated import step

pytest.register_assert_rewrite("one_truth")  # else what of a live run differed would not be told
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # how long an example takes says more about the machine than about the code

PROGRAMS = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "initdb": "postgresql",
    "sysbench": "sysbench",
    "nginx": "nginx",
    "pgbouncer": "pgbouncer",
    "redis-benchmark": "redis-tools",
    "redis-server": "redis-server",
    "squid": "squid",
    "varnishd": "varnish",
    "wrk": "wrk",
}
POSTGRESQL = sorted(str(folder) for folder in Path("/usr/lib/postgresql").glob("*/bin"))
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *POSTGRESQL])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--leave-out", type=int, metavar="MOST", help="leave out at most so many files that import a missing extension"
    )


def pytest_configure(config: pytest.Config) -> None:
    if (most := config.getoption("leave_out")) is not None:
        config.pluginmanager.register(LeftOut(most))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if missing := [name for mark in item.iter_markers("extension") for name in mark.args if not find_spec(name)]:
        if os.environ.get("LOADFRAME_REQUIRE_SERVERS") and item.config.getoption("leave_out") is None:
            pytest.fail(f"a test would be skipped; missing extensions: {', '.join(missing)}")
        pytest.skip(f"needs {', '.join(missing)}")
    if item.get_closest_marker("mysql") is not None and MYSQL_PACKAGE.program("mysqld") is None:
        pytest.skip("no mysqld of MySQL on PATH, and no package of Debian 12 has one: make mysql")
    elsewhere = "on PATH, and no package of Debian has one: scripts/"
    if item.get_closest_marker("ndb") is not None:
        nodes = pytest.importorskip("loadframe_ndb.nodes").LOADED
        if missing := [name for name in (*nodes.programs, "ndb_points") if nodes.program(name) is None]:
            pytest.skip(f"no {missing[0]} {elsewhere}build-mysql-cluster FOLDER")
    if item.get_closest_marker("sqlnode") is not None:
        package = pytest.importorskip("loadframe_ndb.sql_node").PACKAGE
        if package.program("mysqld") is None:
            pytest.skip(f"no mysqld that has NDB {elsewhere}unpack-mysql FOLDER")
    if item.get_closest_marker("server") is None:
        return
    packages = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name, path=SYSTEM_PATH)})
    if packages and os.environ.get("LOADFRAME_REQUIRE_SERVERS"):
        pytest.fail(f"a server test would be skipped; missing Debian packages: {', '.join(packages)}")
    if packages:
        pytest.skip(f"missing Debian packages: {', '.join(packages)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with ended_where_it_fails():
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _heeded_signals() -> Iterator[None]:
    """What tests start heeds Ctrl-C also where they run in the background of a shell, which has them ignore it: what is
    ignored is inherited, and Loadframe leaves it so."""
    before = {each: handler for each in STOPPING if (handler := signal.getsignal(each)) == signal.SIG_IGN}
    for each in before:
        signal.signal(each, signal.default_int_handler)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture(scope="session", autouse=True)
def _ended_with_their_block() -> Iterator[None]:
    """What a test holds by `with` is killed where it fails in that block: Popen waits for its end without a limit, and
    the time limit of pytest, where it was that which ended the test, strikes once."""
    leave = subprocess.Popen.__exit__

    def killed(self: subprocess.Popen[Any], kind: type[BaseException] | None, *more: Any) -> None:
        if kind is not None:
            self.kill()
        leave(self, kind, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__exit__", killed)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_state() -> Iterator[Path]:
    """Leases and temporary data of the tests lie apart from the user's. A server under another user must be able to
    enter, which pytest's own folders do not allow."""
    with tempfile.TemporaryDirectory(prefix="loadframe-tests-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("state", "scratch"):
            (folder / part).mkdir()
            (folder / part).chmod(0o755)
        before = {key: os.environ.get(key) for key in ("LOADFRAME_STATE", "LOADFRAME_SCRATCH")}
        os.environ["LOADFRAME_STATE"] = str(folder / "state")
        os.environ["LOADFRAME_SCRATCH"] = str(folder / "scratch")
        yield folder / "state"
        sweep()  # of a test that failed amid a killed command: its state is gone after this, and who it belonged to
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    """What commands are forked from: see forked.commands. Of a module: what others end does not end it."""
    with commands({}) as server:
        yield server


@pytest.fixture
def make_step() -> Callable[..., Step]:
    """Steps of a second, numbered from 1, at a level, with a throughput and some metrics; other fields by their
    names."""
    numbers = itertools.count(1)

    def make(level: float, throughput: float = 1.0, metrics: Mapping[str, float] | None = None, **others: Any) -> Step:
        return step(level, throughput, metrics, **{"number": next(numbers), **others})

    return make


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """names(name, answer, ...): what a name server of ours says, one answer after the other, the last one for ever. An
    answer has the addresses. No connection leaves the machine."""
    known: dict[str, list[tuple[str, ...]]] = {}
    real, connect = socket.getaddrinfo, socket.socket.connect

    def look_up(host: str, *others: Any, **options: Any) -> list[Any]:
        if host not in known:
            return real(host, *others, **options)
        answers = known[host]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [entry for number in answer for entry in real(number, None, type=socket.SOCK_STREAM)]

    def only_here(self: socket.socket, where: Any) -> None:
        assert self.type & socket.SOCK_DGRAM or str(where[0]).startswith(("127.", "/", "::1")), f"connects to {where}"
        connect(self, where)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket.socket, "connect", only_here)
    monkeypatch.setattr(address, "resolved", {})
    monkeypatch.setattr(address, "chosen", {})
    yield lambda host, *answers: known.update({host: list(answers)})
