"""JSON from others is a value that the rest of the program can carry, or refused in words."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.formats.json_text import DEEPEST, JsonError, parse_json, write_json, write_numbers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs", "Cc"])), inner),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_what_we_write_is_read_back(value: object) -> None:
    assert parse_json(write_json(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        (b"\xff\xfe", "decode"),
        ("[" * 3000 + "]" * 3000, "nested deeper"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * (DEEPEST + 1) + "0" + "}" * (DEEPEST + 1), "nested deeper"),
        ("9" * 5000, "5,000 digits"),
        ("[1e400]", "beyond"),
        ('{"a": NaN}', "NaN"),
        ("-Infinity", "Infinity"),
        ('["\\u0000"]', "U+0000"),
        ('{"\\ud800": 1}', "U+D800"),
        (b'"\\udfff"', "U+DFFF"),
    ],
)
def test_what_cannot_be_carried_is_refused_in_words(text: str | bytes, words: str) -> None:
    with pytest.raises(JsonError, match=words.replace("+", r"\+")):
        parse_json(text)


def test_the_deepest_that_is_allowed_is_read() -> None:
    assert parse_json("[" * DEEPEST + "]" * DEEPEST)


def test_what_json_has_no_word_for_is_null_a_path_its_text_and_the_rest_refused() -> None:
    written = write_json({"use": [1.5, float("inf"), float("nan")], "run": Path("runs/1"), "none": None})
    assert parse_json(written) == {"use": [1.5, None, None], "run": "runs/1", "none": None}
    with pytest.raises(TypeError, match="nothing for"):
        write_json({"set": {1, 2}})


@pytest.mark.parametrize("value", [0.0, 1.0, -17.0, 3, 1e6, 123456789.0, 2.5e-7, -0.1234567, 1e300, 5e-324])
def test_numbers_are_written_with_six_digits_and_read_as_floats(value: float) -> None:
    (found,) = parse_json(write_numbers({"a": value})).values()
    assert isinstance(found, float) and found == float(f"{value:.6g}")


def test_names_of_numbers_are_escaped_and_what_is_no_number_is_null() -> None:
    names = ['service.hits{path="/a \\"b\\"\\n"}', "a\u2028b", "n"]
    values = [math.nan, math.inf, -math.inf]
    for _ in range(2):
        assert parse_json(write_numbers(dict(zip(names, values, strict=True)))) == dict.fromkeys(names)
    assert write_numbers({}) == "{}"
    many = {f"name {number}": float(number % 1000) for number in range(25_000)}
    assert parse_json(write_numbers(many)) == parse_json(write_numbers(many)) == many
