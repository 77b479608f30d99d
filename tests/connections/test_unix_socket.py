"""A server's socket is reached by what stands at its path, not by a link that another user has put there."""

import os
import socket
from pathlib import Path

import pytest

from loadframe.connections.unix_socket import listening, open_socket

STRANGER = 61999


@pytest.fixture
def served(tmp_path: Path) -> tuple[Path, socket.socket]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "own.sock"))
    listener.listen()
    return tmp_path / "own.sock", listener


def test_a_socket_is_connected_to(served: tuple[Path, socket.socket]) -> None:
    path, listener = served
    with listener, open_socket(str(path)):
        assert listening(str(path)) == os.getpid()
    with pytest.raises(ConnectionRefusedError):
        open_socket(str(path))
    with pytest.raises(FileNotFoundError):
        open_socket(f"{path}.gone")


def test_a_link_of_ours_is_followed_and_one_of_a_stranger_is_not(served: tuple[Path, socket.socket]) -> None:
    path, listener = served
    link = path.with_name("link.sock")
    link.symlink_to(path)
    with listener:
        open_socket(str(link)).close()
        if os.geteuid() == 0:
            os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
            with pytest.raises(OSError, match="is a link of user 61999"):
                open_socket(str(link))
            assert listening(str(link)) is None
