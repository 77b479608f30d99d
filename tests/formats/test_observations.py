"""CSV curves are read as they were meant, or refused with the line and the value."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import SampleError
from loadframe.formats.csv_tables import is_in_time_order, parse_observations, read_observations

RATES = st.just(0.0) | st.floats(1e-9, 1e12)
TWO = "load,throughput\n1,10\n"


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e12), RATES, st.floats(0, 1)), min_size=2, max_size=20).filter(
        lambda rows: len({row[0] for row in rows}) > 1
    )
)
def test_what_was_written_is_read_back(rows: list[tuple[float, float, float]]) -> None:
    text = "load,throughput,util.cpu\n" + "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in rows)
    found = parse_observations(text, "x")
    assert [(row.load, row.throughput, row.utilizations["cpu"]) for row in found.rows] == rows
    assert found.loads == tuple(sorted({row[0] for row in rows}))


@pytest.mark.parametrize(
    "text",
    [
        "load,throughput\n1,10\n2,20\n",
        "throughput,load\r\n10,1\r\n20,2\r\n",
        "\ufeffLoad, Throughput\n1,10\n\n 2 , 2e1 \n",
    ],
)
def test_spellings_of_the_same_curve(text: str) -> None:
    found = parse_observations(text, "x")
    assert [(row.load, row.throughput, row.latency_p95_ms) for row in found.rows] == [(1, 10, None), (2, 20, None)]
    assert (found.name, found.resources) == ("x", ())


def test_resources_servers_latency_and_blocks() -> None:
    found = parse_observations(
        "load,throughput,latency_p95_ms,util.cpu,util.Disk 1,servers.cpu\n"
        "1,10,5,0.1,0.2,4\n1,11,6,0.1,0.2,4\n2,0,,0,0,4\n",
        "x",
    )
    assert found.resources == ("cpu", "disk 1")
    assert found.servers == {"cpu": 4}
    assert [row.latency_p95_ms for row in found.rows] == [5, 6, None]
    assert found.loads == (1, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["x is empty"]),
        ("\n\n", ["x is empty"]),
        ("1,10\n2,20\n", ["line 1", "`load`", "1, 10"]),
        ("load\n1\n2\n", ["line 1", "`throughput`"]),
        ("load,throughput\n", ["x has 0 loads"]),
        (TWO, ["line 2", "1 load"]),
        (TWO + "1,11\n", ["line 3", "1 load"]),
        ("load,throughput,load\n1,10,1\n", ["'load' twice"]),
        ("load,throughput,cpu\n1,10,1\n", ["unknown", "'cpu'"]),
        ("load,throughput,util.\n1,10,1\n", ["unknown", "'util.'"]),
        ("load,throughput,servers.cpu\n1,10,1\n", ["servers.cpu without util.cpu"]),
        (TWO + "-2,20\n", ["line 3", "load", "-2"]),
        (TWO + "0,20\n", ["line 3", "load", "0"]),
        (TWO + "nan,20\n", ["line 3", "nan"]),
        (TWO + "2,inf\n", ["line 3", "inf"]),
        (TWO + "2,-20\n", ["line 3", "throughput", "-20"]),
        (TWO + "1e30,20\n", ["line 3", "1e30"]),
        (TWO + "two,20\n", ["line 3", "'two'"]),
        (TWO + "\n3,,\n", ["line 4", "3 cells", "2 columns"]),
        (TWO + "2\n", ["line 3", "1 cell "]),
        (TWO + "2,\n", ["line 3", "''"]),
        (TWO + "2,20,5\n", ["line 3", "3 cells"]),
        ("load,throughput,util.cpu\n1,10,0.5\n2,20,85\n", ["line 3", "util.cpu", "85", "0.85"]),
        ("load,throughput,util.cpu\n1,10,-0.5\n", ["line 2", "util.cpu"]),
        ("load,throughput,util.c,servers.c\n1,10,0,0\n2,20,0,0\n", ["line 2", "servers.c", "1 or more"]),
        ("load,throughput,util.c,servers.c\n1,10,0,2\n2,20,0,4\n", ["line 3", "is 4, and 2 above"]),
        ("load,throughput,latency_p95_ms\n1,10,5\n2,20,\n", ["line 3", "''"]),
        ("load,throughput,latency_p95_ms\n1,10,-5\n", ["line 2", "latency_p95_ms"]),
        ('load,throughput\n"1,10\n', ["line"]),
        ("load,throughput\n" + "".join(f"{n},1\n" for n in range(1, 1500)), ["1,499", "levels", "1,000"]),
    ],
)
def test_nonsense_is_refused(text: str, words: list[str]) -> None:
    with pytest.raises(SampleError) as caught:
        parse_observations(text, "x")
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert caught.value.remedy


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_read_or_refused(text: str, named: bool) -> None:
    try:
        assert len(parse_observations("load,throughput\n" + text if named else text, "x").loads) > 1
    except SampleError as error:
        assert error.remedy


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"load,throughput\n1,7\n2,9\n")

    monkeypatch.setattr("sys.stdin", Stdin())
    found = read_observations("-")
    assert (found.name, len(found.rows)) == ("standard input", 2)
    with pytest.raises(SampleError, match="no file"):
        read_observations("nowhere.csv")


def test_without_times_a_file_is_a_curve_however_many_its_loads() -> None:
    levels = "load,throughput\n" + "1,10\n2,20\n" * 40
    many = "load,throughput\n" + "".join(f"{1 + at * 37 % 97},{at}\n" for at in range(97))
    rising = "load,throughput\n" + "".join(f"{1 + at},{at}\n" for at in range(97))
    assert not any(map(is_in_time_order, (levels, many, rising)))
    assert [len(parse_observations(text, "x").loads) for text in (levels, many, rising)] == [2, 97, 97]
