"""Connections at a port are counted by the kernel, in the tables of the families that listen there."""

from __future__ import annotations

import socket

import pytest

from loadframe.errors import RecordingError
from loadframe.recording.socket_rows import FAMILIES, Asking, established, families_of


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]
)
def test_a_connection_has_the_family_of_the_socket_that_accepts_it(family: int, address: str) -> None:
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert families_of(port) == (family,)
        assert established(port, (family,)) == 0
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        accepted = [listener.accept()[0] for _ in clients]
        others = tuple(each for each in FAMILIES if each != family)
        assert (established(port), established(port, (family,)), established(port, others)) == (3, 3, 0)
        for one in (*clients, *accepted):
            one.close()


def test_all_families_are_looked_through_where_nothing_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert families_of(bound.getsockname()[1]) == FAMILIES


def test_one_socket_answers_again_and_again() -> None:
    """Also after a question that the kernel refuses, and with more connections than one answer has room for."""
    asking = Asking()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(400)
        port = listener.getsockname()[1]
        assert families_of(port, asking=asking) == (socket.AF_INET,)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        accepted = [listener.accept()[0] for _ in clients]
        assert established(port, asking=asking) == 300
        with pytest.raises(RecordingError, match="refuses"):
            asking.bodies(b"")
        for one in (*clients[100:], *accepted[100:]):
            one.close()
        assert established(port, asking=asking) == 100
        for one in (*clients[:100], *accepted[:100]):
            one.close()
    asking.close()
    assert families_of(port, asking=asking) == FAMILIES
    asking.close()
