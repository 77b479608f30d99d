"""CSV samples are read as they were meant, or refused with the line and the value."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import SampleError
from loadframe.formats import csv_tables
from loadframe.formats.csv_tables import LEAST_VALUE, MOST_VALUE, parse_sample, read_sample


@given(st.lists(st.just(0.0) | st.floats(LEAST_VALUE, MOST_VALUE), min_size=1, max_size=50))
def test_what_was_written_is_read_back(values: list[float]) -> None:
    text = "value\n" + "".join(f"{value!r}\n" for value in values)
    assert parse_sample(text, "x").values == tuple(values)


@pytest.mark.parametrize(
    "text",
    [
        "value\n1\n2.5\n",
        "value\r\n1\r\n2.5\r\n",
        "\ufeffvalue\n1\n\n2.5",
        " Value , note\n1,a\n 2.5 ,b\n",
        'note,value\n"a, b",1\nc,2.5\n',
    ],
)
def test_spellings_of_the_same_sample(text: str) -> None:
    sample = parse_sample(text, "x")
    assert (sample.values, sample.blocks) == ((1.0, 2.5), None)


def test_blocks_are_kept_with_all_their_values() -> None:
    sample = parse_sample("block,value\n2,10\n1,3\n1,5\n1,100\n", "x")
    assert sample.blocks == ("2", "1", "1", "1")
    assert sample.by(sample.blocks) == {"2": (10,), "1": (3, 5, 100)}


def test_values_with_times_are_put_in_order() -> None:
    sample = parse_sample("time,value\n3,30\n1,10\n2.5,25\n", "x")
    assert (sample.values, sample.times) == ((10, 25, 30), (1, 2.5, 3))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["x", "`value`", "nothing"]),
        ("1\n2\n3\n", ["`value`", "1"]),
        ("throughput\n1\n", ["`value`", "throughput"]),
        ("value,value\n1,2\n", ["one column"]),
        ("value\n", ["no values"]),
        ("value\n1\ntwo\n", ["line 3", "'two'"]),
        ("value\n1\n\nnan\n", ["line 4", "nan"]),
        ("value\n-1\n", ["line 2", "-1"]),
        ("value\ninf\n", ["line 2", "inf"]),
        ("block,value\n1,5\n,6\n", ["line 3", "block"]),
        ("a,value\n1\n", ["line 2", "''"]),
        ('value\n"1\n', ["line"]),
    ],
)
def test_bad_samples_are_refused(text: str, words: list[str]) -> None:
    with pytest.raises(SampleError) as caught:
        parse_sample(text, "x")
    for word in words:
        assert word in str(caught.value)
    assert caught.value.remedy


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert parse_sample(text, "x").values
    except SampleError as error:
        assert error.remedy


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for place, word in [
        (tmp_path / "none.csv", "no file"),
        (tmp_path, "cannot be read"),
        (tmp_path / "binary.csv", "UTF"),
    ]:
        with pytest.raises(SampleError, match=word):
            read_sample(str(place))
    monkeypatch.setattr(csv_tables, "LARGEST_BYTES", 3)
    (tmp_path / "long.csv").write_text("value\n1\n")
    with pytest.raises(SampleError, match="larger than"):
        read_sample(str(tmp_path / "long.csv"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"value\n7\n")

    monkeypatch.setattr("sys.stdin", Stdin())
    sample = read_sample("-")
    assert (sample.name, sample.values) == ("standard input", (7.0,))
