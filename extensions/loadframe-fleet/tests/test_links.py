"""A link is measured by those who have its certificate; a stranger gets nothing."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import pytest

from loadframe_fleet.check import made_identity
from loadframe_fleet.links import Identity, Listener, measure
from waiting import await_that


@pytest.fixture(scope="module")
def identity() -> Identity:
    return made_identity()


@pytest.fixture
def listener(identity: Identity) -> Iterator[Listener]:
    made = Listener("127.0.0.1", identity, 60.0)
    yield made
    made.close()


@pytest.mark.long
def test_a_link_is_measured_in_both_directions(identity: Identity, listener: Listener) -> None:
    found = measure("127.0.0.1", listener.port, identity)
    assert 0 < found["round_trip_s"] <= found["median_s"] <= found["p99_s"]
    assert found["there_bytes_per_s"] > 1e6 and found["back_bytes_per_s"] > 1e6
    assert found["there_cpu"] > 0 and found["back_cpu"] > 0


def test_the_certificate_of_another_link_is_worth_nothing(listener: Listener) -> None:
    with pytest.raises(OSError):
        measure("127.0.0.1", listener.port, made_identity())


def test_who_has_no_certificate_gets_nothing(listener: Listener) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", listener.port), timeout=5)
    with pytest.raises(OSError), plain, context.wrap_socket(plain) as link:
        link.sendall(b"P\0\0\0\0")
        if not link.recv(1):
            raise ConnectionError("closed")


@pytest.mark.long
def test_who_speaks_no_tls_gets_nothing(identity: Identity, listener: Listener) -> None:
    with socket.create_connection(("127.0.0.1", listener.port), timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
        try:
            received = plain.recv(100)
        except ConnectionResetError:
            received = b""
    assert received == b"" or received[0] == 21  # a TLS alert, RFC 8446 5.1
    assert measure("127.0.0.1", listener.port, identity)["pings"]


def test_it_listens_on_the_address_that_it_was_given(identity: Identity, listener: Listener) -> None:
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", listener.port), timeout=2).close()
    with pytest.raises(OSError):
        Listener("192.0.2.1", identity, 1.0)


def test_it_listens_no_longer_than_it_was_given(identity: Identity) -> None:
    listener = Listener("127.0.0.1", identity, 0.2)

    def refused() -> bool:
        try:
            socket.create_connection(("127.0.0.1", listener.port), timeout=2).close()
        except OSError:
            return True
        return False

    await_that(refused, "it listens no longer")


def test_what_is_no_identity_is_refused() -> None:
    with pytest.raises(ValueError, match="no identity"):
        Identity("x", "y").context(server=True)
