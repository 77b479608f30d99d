"""A name becomes numbers once: the address that was checked is the one that is used."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from loadframe.connections import address
from loadframe.errors import StudyError

ELSEWHERE = "203.0.113.7"
"""RFC 5737: of documentation."""

Resolver = Callable[..., None]


def test_a_name_that_a_name_server_moves_after_the_check_stays_where_it_was_checked(names: Resolver) -> None:
    names("site.example", ("127.0.0.1",), (ELSEWHERE,))
    assert address.is_here("site.example", afresh=True)
    assert address.decide("site.example", 80) == address.Place("site.example", "127.0.0.1", 80, here=True)
    assert not address.is_here("site.example", afresh=True), "whoever checks again sees the move"
    assert address.decide("site.example", 80).number == ELSEWHERE


def test_a_name_is_here_only_where_all_its_addresses_are(names: Resolver) -> None:
    names("both.example", ("127.0.0.1", ELSEWHERE))
    assert not address.is_here("both.example")
    names("localhost", (ELSEWHERE,))
    assert not address.is_here("localhost"), "whatever it is called"


def test_of_several_addresses_the_one_that_accepts_is_kept(names: Resolver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        names("many.example", ("127.9.9.9", "127.0.0.1"))
        assert address.decide("many.example", port).number == "127.0.0.1"
    assert address.decide("many.example", port).number == "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "number"),
    [
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("::1", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_this_machine_by_other_ways_of_writing_it(host: str, number: str) -> None:
    assert address.look_up(host) == (number,) and address.is_here(host)


@pytest.mark.parametrize("host", [f"::ffff:{ELSEWHERE}", "8.8", "0x08080808", "134744072", "fe80::1%lo", "64:ff9b::1"])
def test_other_machines_by_other_ways_of_writing_them(host: str) -> None:
    assert not address.is_here(host)


@pytest.mark.parametrize(
    "host", ["a..b", "a" * 64 + ".example", "127.0.0.1,8.8.8.8", "a b", "a\nb", "ä", "", "a/b", "a@b"]
)
def test_what_is_no_name_of_one_host_is_refused(host: str) -> None:
    with pytest.raises(StudyError, match=r"has no address|not the name of one host"):
        address.look_up(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0"])
def test_every_address_is_none(host: str) -> None:
    with pytest.raises(StudyError, match="every address"):
        address.look_up(host)
