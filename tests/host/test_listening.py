"""Who listens at a port: read from a recorded table, and held against sockets of our own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadframe.host import listening

DATA = Path(__file__).parents[1] / "data/proc"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    (tmp_path / "self/net").mkdir(parents=True)
    for name in ("tcp", "tcp6"):
        (tmp_path / "self/net" / name).write_bytes((DATA / f"net-{name}").read_bytes())
    return tmp_path


def test_only_what_takes_connections_is_read(recorded: Path) -> None:
    found = {(one.number, one.port): (one.inode, one.user) for one in listening.sockets(recorded)}
    assert found == {
        ("127.0.0.1", 8080): (31337, 33),
        ("0.0.0.0", 22): (20011, 0),
        ("::1", 8080): (41234, 1000),
        ("::", 80): (41235, 0),
        ("::ffff:127.0.0.1", 81): (41236, 0),
    }


@pytest.mark.parametrize(
    ("port", "number", "inodes"),
    [
        (8080, "", [31337, 41234]),
        (8080, "127.0.0.1", [31337]),
        (8080, "::1", [41234]),
        (22, "127.0.0.1", [20011]),
        (80, "127.0.0.1", [41235]),
        (81, "127.0.0.1", [41236]),
        (8080, "192.0.2.1", []),
        (9, "", []),
    ],
)
def test_an_address_is_one_of_its_own_or_of_all(recorded: Path, port: int, number: str, inodes: list[int]) -> None:
    assert [one.inode for one in listening.at(port, number, recorded)] == inodes


@pytest.mark.parametrize("line", ["", "x", "0: 0:0 0:0 0A 0 0 0 0 0 0", "0: 7F:1F90 0:0 0A 0 0 0 33 0 1", "0: " * 12])
def test_a_line_that_is_none_is_passed_over(line: str) -> None:
    assert listening.parse(line, socket.AF_INET) is None


def test_the_process_that_began_is_told_from_those_that_inherited_its_socket() -> None:
    code = (
        "import os, socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
        "child = os.fork(); (print(s.getsockname()[1], child, flush=True) if child else None); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port, child = map(int, process.stdout.readline().split())
        found = listening.at(port, "127.0.0.1")
        holders = listening.holders([one.inode for one in found])
        assert set(holders) == {process.pid, child}
        assert listening.first_of(holders) == (process.pid,)
        assert listening.ports_of([child]) == (port,)
        assert {one.user for one in found} == {os.geteuid()}
        process.communicate()
