"""TOML from others is tables that a study can have, or refused in words, soon."""

from __future__ import annotations

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from loadframe.formats.toml_text import DEEPEST, LONGEST_KEY, TomlError, parse_toml

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_what_we_write_is_read_back(tables: dict[str, object]) -> None:
    assert parse_toml(tomli_w.dumps(tables)) == tables


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("a = ", "", "Invalid value"),
        ("a = " + "9" * 5000, "", "thousands of digits"),
        ("a = " + "[" * 3000 + "]" * 3000, "", "nested deeper"),
        ("a = " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "", "nested deeper"),
        ("a" + ".b" * 50_000 + " = 1", "", f"more than {LONGEST_KEY} parts"),
        ("[a" + " . 'b'" * 10_000 + "]", "", f"more than {LONGEST_KEY} parts"),
        ("[a]\nb = [1, 1e400]", "a.b", "not a finite number"),
        ("a.b = nan", "a.b", "not a finite number"),
        ("a = 0x" + "f" * 17, "a", "64 bits"),
        ("a = 9223372036854775808", "a", "64 bits"),
        ('a = "\\u0000"', "a", "U+0000"),
        ('a = "\\u001b[2J"', "a", "U+001B"),
        ('a = "\\u009b2J"', "a", "U+009B"),
        ('"\\u0000" = 1', "", "U+0000"),
    ],
)
def test_what_no_study_has_is_refused_in_words(text: str, key: str, words: str) -> None:
    with pytest.raises(TomlError, match=words.replace("+", r"\+")) as caught:
        parse_toml(text)
    assert caught.value.key == key


def test_dates_tabs_and_lines_are_texts_of_toml() -> None:
    assert parse_toml('a = """one\n\ttwo\u2028"""\nb = 2020-01-01')["a"] == "one\n\ttwo\u2028"


@pytest.mark.parametrize(
    "text", ["a" * 100_000, '"' * 100_000, "'\"" * 50_000, "a " * 50_000, "a." * 31 + " " * 99_000]
)
def test_long_texts_without_a_long_key_are_looked_through_once(text: str) -> None:
    with pytest.raises(TomlError):  # within pytest's own patience
        parse_toml(text)
