"""What the address of a fleet file means on the host that is to listen at it."""

from __future__ import annotations

import pytest

from loadframe.connections.address import resolved
from loadframe.errors import StudyError
from loadframe_fleet.looking import check_is_reached, listening_number


@pytest.mark.parametrize(
    ("name", "number", "told"),
    [
        ("web1", "127.0.1.1", "the address web1 is 127.0.1.1 on that host itself, where no other one reaches it"),
        ("web1", "::1", "is ::1 on that host itself"),
        ("web1", "0.0.0.0", "the address web1 is 0.0.0.0 on that host itself: every address of it"),
        ("web1", "::", "every address of it"),
    ],
)
def test_a_name_that_its_host_has_for_itself_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, number: str, told: str
) -> None:
    """As /etc/hosts of Debian has for the name of the machine."""
    monkeypatch.setitem(resolved, name, (number,))
    for asked in (check_is_reached, listening_number):
        with pytest.raises(StudyError) as error:
            asked(name)
        assert told in error.value.fact and "number" in error.value.remedy


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web1", "192.0.2.7"),
        ("web1", "2001:db8::7"),
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("::1", "::1"),
    ],
)
def test_a_name_of_an_address_of_its_host_is_taken_and_so_is_the_loopback_by_its_own(
    monkeypatch: pytest.MonkeyPatch, name: str, number: str
) -> None:
    monkeypatch.setitem(resolved, name, (number,))
    check_is_reached(name)
    assert listening_number(name) == number


def test_a_name_of_several_numbers_is_no_place_to_listen_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(resolved, "web1", ("192.0.2.7", "2001:db8::7"))
    check_is_reached("web1")
    with pytest.raises(StudyError, match="is 2 numbers"):
        listening_number("web1")
