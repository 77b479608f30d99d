"""A pooler in front of a PostgreSQL may send a statement to any connection, and drop what a connection begins with. It
is recognised, and refused in words before anything is made."""

import socket
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

import foreign
from loadframe.errors import TargetError
from loadframe.kinds.postgres import attached
from loadframe.kinds.registry import attach
from relaying import Handler, exactly, relay

pytestmark = pytest.mark.server

STUDY = """
[study]
name = "pooled"
question = "How many transactions a second?"
[target]
kind = "postgres"
attach = "127.0.0.1:{port}"
option_file = "{option_file}"
[workload]
kind = "{workload}"
[workload.options]
{options}
[load]
axis = "{axis}"
levels = [1, 2]
[measure]
warmup = "150ms"
window = "300ms"
budget = "8s"
profile = "off"
"""
WORKLOADS = {
    "pgbench": ("clients", 'script = "select-only"\nscale = 1'),
    "sysbench": ("threads", "tables = 1\ntable_size = 10"),
    "oltp": ("concurrency", "tables = 1\nrows = 10"),
    "metadata-index": ("scan_threads", ""),
}
Loadframe = Callable[..., Any]
Pooler = Callable[[str, str], AbstractContextManager[int]]


@pytest.mark.long
@pytest.mark.parametrize("ignored", ["extra_float_digits,options", "extra_float_digits"])
@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_pgbouncer_is_refused_before_anything_is_made(
    mode: str,
    ignored: str,
    pgbouncer: Pooler,
    postgres_of_others: foreign.Server,
    dump: Callable[[], bytes],
    loadframe: Loadframe,
    tmp_path: Path,
) -> None:
    before = dump()
    with pgbouncer(mode, ignored) as port:
        for workload, (axis, options) in WORKLOADS.items():
            study = STUDY.format(
                port=port, option_file=postgres_of_others.option_file, workload=workload, axis=axis, options=options
            )
            (tmp_path / "pooled.toml").write_text(study)
            done = loadframe("measure", "pooled.toml")
            assert (done.code, "connection pooler" in done.err) == (1, True), done.err
            assert "Name the server itself, by its socket or its own port (5432)" in done.err
            assert dump() == before, workload


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_connections_that_share_their_processes_are_known_by_that_alone(
    mode: str, pgbouncer: Pooler, postgres_of_others: foreign.Server
) -> None:
    """Also of a pooler that passes on the parameters of a connection and says which process it has."""
    with pgbouncer(mode, "extra_float_digits,options") as port:
        where = {"host": "127.0.0.1", "port": str(port), "user": "any", "dbname": "postgres"}
        with closing(attached._Marked(where)) as first, closing(attached._Marked(where)) as second:
            if mode == "statement":
                with pytest.raises(TargetError, match="transaction blocks not allowed"):
                    attached._shared(first, second)
            else:
                assert "share or change their processes" in attached._shared(first, second)


class Dropping(Handler):
    """Drops the start-up parameter `options`: an Odyssey by its behaviour."""

    def begin(self, behind: socket.socket) -> None:
        asked = self.request
        while (begun := struct.unpack("!ii", exactly(asked, 8)))[1] != 196608:  # TLS or GSSAPI is asked for first
            assert begun in ((8, 80877103), (8, 80877104))
            asked.sendall(b"N")
        words = exactly(asked, begun[0] - 8).split(b"\0")
        pairs = zip(words[::2], words[1::2], strict=False)
        kept = b"".join(name + b"\0" + value + b"\0" for name, value in pairs if name not in (b"", b"options")) + b"\0"
        behind.sendall(struct.pack("!ii", len(kept) + 8, 196608) + kept)


def test_what_drops_the_parameters_of_a_connection_is_refused(
    postgres_of_others: foreign.Server, dump: Callable[[], bytes]
) -> None:
    before = dump()
    with (
        relay(Dropping, str(postgres_of_others.target.socket)) as port,
        pytest.raises(TargetError, match=r"connection pooler .* options does not arrive"),
    ):
        attach(f"postgres:127.0.0.1:{port}", option_file=postgres_of_others.option_file)
    assert dump() == before


class Other(attached._Marked):
    """A connection that a balancer has led to another server."""

    def process(self) -> tuple[int, str]:
        pid, _ = super().process()
        return pid, "2026-01-01 00:00:00+00"


def test_connections_that_reach_two_servers_are_known_by_their_starts(postgres_of_others: foreign.Server) -> None:
    account = postgres_of_others.target.control_account
    where = {
        "host": str(postgres_of_others.target.socket_folder),
        "user": account.user,
        "password": account.password,
        "dbname": "postgres",
    }
    with closing(attached._Marked(where)) as first, closing(attached._Marked(where)) as second:
        assert attached._shared(first, second) == ""
    with closing(attached._Marked(where)) as first, closing(Other(where)) as second:
        assert "two servers" in attached._shared(first, second)


def test_the_server_itself_is_none(postgres_of_others: foreign.Server) -> None:
    postgres_of_others.attached().close()
