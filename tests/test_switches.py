"""One reading of the words for on and off: a study's, a server's answer, and their comparison."""

from __future__ import annotations

import pytest

from loadframe.ledger.reading import clamped
from loadframe.reporting.facts import same_value
from loadframe.switches import spelled, switch


@pytest.mark.parametrize(
    ("text", "on"),
    [("on", True), (" ON ", True), ("Yes", True), (True, True), (1, True), ("off", False), ("no", False), (0, False)],
)
def test_words_for_on_and_off(text: object, on: bool) -> None:
    assert switch(text) is on
    assert spelled(text) == str(int(on))


@pytest.mark.parametrize("text", ["", "2", "maybe", "1.0", None])
def test_other_words_are_no_switch(text: object) -> None:
    assert switch(text) is None
    assert spelled(text) == str(text).lower()


def test_a_switch_that_is_read_back_in_another_word_was_not_cut() -> None:
    assert same_value(True, "ON") and same_value("off", False) and not same_value("on", "off")
    assert clamped({"a": "on", "b": True}, {"a": 1, "b": "ON"}) == ()
    assert clamped({"a": "on"}, {"a": "off"}) != ()
