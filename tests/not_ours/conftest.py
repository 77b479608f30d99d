"""Servers that are not ours, what their owners have there, and poolers in front of them."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import foreign
from forked import Result, forked
from loadframe.connections.postgres_connection import program
from loadframe.host import identity
from loadframe.host.privilege import US, ids_of
from waiting import await_that

PGBOUNCER = """\
[databases]
* = host={host} port=5432 user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 20
ignore_startup_parameters = {ignored}
"""


@pytest.fixture
def loadframe(
    forking: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Result]:
    """Run `loadframe ARGUMENTS` in a folder of the test's own."""
    said = tmp_path_factory.mktemp("said")
    return lambda *arguments, **environment: forked(
        forking, arguments, folder=str(tmp_path), said=str(said), environment=environment
    )


@pytest.fixture(scope="session")
def postgres_of_others() -> Iterator[foreign.Server]:
    """A PostgreSQL of somebody else's, with tables of the names that pgbench and sysbench give theirs."""
    with foreign.running("postgres") as server:
        for name in ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history", "sbtest1"):
            server.ask(f"CREATE TABLE public.{name} AS SELECT 'precious' AS mine FROM generate_series(1, 7)")
        yield server


@pytest.fixture
def dump(postgres_of_others: foreign.Server) -> Callable[[], bytes]:
    """Everything in the server, byte for byte."""
    server = postgres_of_others

    def everything() -> bytes:
        account = server.target.control_account
        given = {**os.environ, "PGPASSWORD": account.password}
        command = [str(program("pg_dumpall")), "--host", str(server.target.socket_folder)]
        done = subprocess.run([*command, "--username", account.user], capture_output=True, check=True, env=given)
        # Newer versions guard what they print with a word that is drawn for each dump.
        return b"\n".join(
            line for line in done.stdout.splitlines() if not line.startswith((b"\\restrict", b"\\unrestrict"))
        )

    return everything


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pgbouncer(postgres_of_others: foreign.Server, tmp_path: Path) -> Callable[..., object]:
    """pgbouncer(mode, ignored): the port of one in front of that server, while the context lasts."""

    @contextmanager
    def running(mode: str, ignored: str) -> Iterator[int]:
        private = postgres_of_others.target
        account, port = private.control_account, free_port()
        user = None if private.user == US else ids_of(private.user).uid
        configuration = postgres_of_others.folder / f"pgbouncer-{port}.ini"
        configuration.write_text(
            PGBOUNCER.format(
                host=private.socket_folder,
                user=account.user,
                password=account.password,
                port=port,
                mode=mode,
                ignored=ignored,
            )
        )
        with (tmp_path / "pgbouncer.log").open("wb") as log:
            process = subprocess.Popen(
                ["/usr/sbin/pgbouncer", str(configuration)],
                stdout=log,
                stderr=log,
                cwd="/",
                user=user,
                extra_groups=[private._lease.user] if user is not None else None,  # else it cannot reach the socket
            )
        own = identity.identify(process.pid)
        try:
            await_that(lambda: listens(port), "a PgBouncer that listens", of=process)
            yield port
        finally:
            if own is not None:
                identity.end_all([own], 5.0)
            process.wait(10)

    return running
