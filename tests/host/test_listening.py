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


BELOW_0 = "0: 0100007F:-1E308 00000000:0000 0A 00000000:00000000 00:00000000 00000000 33 0 31337"
"""The fuzzer's: a port of -123656."""


@pytest.mark.parametrize(
    "line", ["", "x", "0: 0:0 0:0 0A 0 0 0 0 0 0", "0: 7F:1F90 0:0 0A 0 0 0 33 0 1", "0: " * 12, BELOW_0]
)
def test_a_line_that_is_none_is_passed_over(line: str) -> None:
    assert listening.parse(line.split(), socket.AF_INET) is None


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


def test_peers_are_those_to_whom_a_process_has_connected(tmp_path: Path) -> None:
    """Not who has connected to a port at which it listens, not what other processes have, not what is closed."""
    row = "{}: {} {} {} 0:0 0:0 0 0 0 {} 1\n"
    local, database, client = "0100007F:1F90", "0100007F:1538", "0100007F:D431"
    rows = [
        row.format(0, local, "00000000:0000", "0A", 1),
        row.format(1, local, client, "01", 2),
        row.format(2, "0100007F:C001", database, "01", 3),
        row.format(3, "0100007F:C002", database, "01", 4),
        row.format(4, "0100007F:C003", database, "06", 5),
        row.format(5, "0100007F:C004", database, "01", 99),
    ]
    mapped = "0000000000000000FFFF00000100007F"
    over = row.format(0, f"{mapped}:C005", f"{mapped}:1538", "01", 6)
    for pid, inodes in ((7, (1, 2, 3)), (8, (4, 5, 6))):
        (tmp_path / f"{pid}/fd").mkdir(parents=True)
        for inode in inodes:
            (tmp_path / f"{pid}/fd/{inode}").symlink_to(f"socket:[{inode}]")
    (tmp_path / "7/net").mkdir()
    (tmp_path / "7/net/tcp").write_text(f"head\n{''.join(rows)}")
    (tmp_path / "7/net/tcp6").write_text(f"head\n{over}")
    assert listening.peers([7, 8], tmp_path) == (listening.Peer("127.0.0.1", 5432, 3, here=True),)
    assert listening.peers([7], tmp_path) == (listening.Peer("127.0.0.1", 5432, 1, here=True),)
    assert listening.peers([], tmp_path) == ()
