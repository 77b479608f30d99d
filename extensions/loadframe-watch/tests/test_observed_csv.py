"""CSV in time order is read as it was meant, with what is missing, or refused with the line and the value."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import SampleError
from loadframe_watch.observed.csv_files import NO_ZONE, parse_table
from loadframe_watch.observed.reading import import_observed
from loadframe_watch.observed.records import Observed, ObservedMapping
from loadframe_watch.observed.series import Series, Table, assemble

CELLS = st.none() | st.floats(1e-9, 1e12)
NOTHING = ObservedMapping()


def observed(text: str, mapping: ObservedMapping = NOTHING) -> Observed:
    return assemble(parse_table(text, "x"), mapping)


def same(one: float, other: float | None) -> bool:
    return math.isnan(one) if other is None else one == other


@given(st.lists(st.tuples(CELLS, CELLS, st.none() | st.floats(0, 1)), min_size=1, max_size=30))
def test_what_was_written_is_read_back(rows: list[tuple[float | None, ...]]) -> None:
    text = "time,load,throughput,util.cpu\n"
    text += "".join(
        f"{at}," + ",".join("" if cell is None else repr(cell) for cell in row) + "\n" for at, row in enumerate(rows)
    )
    found = observed(text)
    assert found.time_s == tuple(range(len(rows)))
    assert found.throughput is not None
    columns = (found.load, found.throughput, found.use["cpu"])
    assert all(same(column[at], row[index]) for at, row in enumerate(rows) for index, column in enumerate(columns))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_a_remedy(text: str) -> None:
    try:
        observed(text)
    except SampleError as error:
        assert error.remedy


@pytest.mark.parametrize(
    ("name", "cells", "between_s"),
    [
        ("time", ("1700000000", "1700000060"), 60),
        ("timestamp", ("1700000000000", "1700000060000"), 60),
        ("timestamp", ("1700000000000000", "1700000060000000"), 60),
        ("timestamp", ("1700000000000000000", "1700000060000000000"), 60),
        ("time_ms", ("0", "500"), 0.5),
        ("Time", ("2026-11-25 04:30:00", "2026-11-25 04:31:00"), 60),
        ("date", ("2026-11-25T04:30:00Z", "2026-11-25T05:31:00+01:00"), 60),
    ],
)
def test_times_as_others_write_them(name: str, cells: tuple[str, str], between_s: float) -> None:
    found = observed(f"{name},load,throughput\n{cells[0]},1,1\n{cells[1]},2,2\n")
    assert found.time_s[1] - found.time_s[0] == pytest.approx(between_s)
    assert (NO_ZONE in found.notes) is (name == "Time")


def test_what_pmrep_writes() -> None:
    text = (
        'Time,"nginx.requests","kernel.all.cpu.user","kernel.all.cpu.sys"\n'
        "2026-11-25 04:30:00,,,\n2026-11-25 04:30:10,120.0,0.25,0.1\n2026-11-25 04:30:20,140.0,0.28,0.12\n"
    )
    found = observed(text, ObservedMapping(load="nginx.requests", use={"cpu": "kernel.all.cpu.user"}))
    assert found.notes == (NO_ZONE,)
    assert math.isnan(found.load[0]) and found.load[1:] == (120, 140)
    assert found.use["cpu"][1:] == (0.25, 0.28)


def test_rows_out_of_order_are_sorted_and_the_second_of_one_time_is_left_out() -> None:
    found = observed("time,load,throughput\n2,20,200\n1,10,100\n2,99,999\n")
    assert (found.time_s, found.load, found.throughput) == ((1, 2), (10, 20), (100, 200))
    assert len(found.notes) == 2


def test_rows_without_a_time_are_left_out() -> None:
    found = observed("time,load,throughput\n1,10,100\n,20,200\n3,30,300\n")
    assert found.time_s == (1, 3) and found.notes == ("1 row without a time left out.",)


def test_units_of_response_times() -> None:
    assert observed("time,load,response_ms\n0,1,250\n1,2,500\n").response_s == (0.25, 0.5)
    found = observed("time,load,latency_p95_ms\n0,1,250\n1,2,500\n")
    assert (found.response_s, found.response_is) == ((0.25, 0.5), "p95")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("time,load\n", ["no rows"]),
        ("time,load,load\n1,1,1\n", ["'load' twice"]),
        ("time,load,throughput\n1,1\n", ["line 2", "2 cells", "3 columns"]),
        ("time,load,throughput\nnoon,1,1\n", ["line 2", "'noon'"]),
        ("time,load,throughput\n1,many,1\n", ["line 2", "load", "'many'"]),
        ("time,load\n1,1\n2,2\n", ["nothing else"]),
        ("time,jobs,rate\n1,1,1\n2,2,2\n", ["the load is not known", "jobs, rate"]),
        ("time,load,util.cpu\n1,1,35\n2,2,60\n", ["use of cpu", "60", "per cent"]),
        ("time,load,util.cpu,servers.cpu\n1,1,0.3,4\n2,2,0.6,8\n", ["servers.cpu", "4 to 8"]),
    ],
)
def test_what_is_wrong_is_named(text: str, words: list[str]) -> None:
    with pytest.raises(SampleError) as raised:
        observed(text)
    assert all(word in str(raised.value) for word in words), raised.value
    assert raised.value.remedy


def test_files_are_joined_by_their_times(tmp_path: Path) -> None:
    load, use = tmp_path / "load.csv", tmp_path / "use.csv"
    load.write_text("time,load,throughput\n" + "".join(f"{at},{at + 1},{10 * at}\n" for at in range(0, 100, 10)))
    use.write_text("time,util.cpu\n" + "".join(f"{at + 5},{at / 1000}\n" for at in range(0, 50, 10)))
    found = import_observed(str(load), also=[str(use)])
    assert found.load == tuple(range(1, 101, 10))
    assert found.use["cpu"][1] == pytest.approx(0.005)  # halfway between 0 s and 10 s of the other file
    assert math.isnan(found.use["cpu"][0]) and math.isnan(found.use["cpu"][-1])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_file_is_refused_with_what_unpacks_it(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "month.csv"
    file.write_bytes(pack(b"time,load,throughput\n" * 100))
    with pytest.raises(SampleError, match="is compressed") as raised:
        import_observed(str(file))
    assert "cat FILE | loadframe" in raised.value.remedy


@pytest.mark.parametrize("between", [";", "\t"])
def test_columns_that_no_comma_separates_are_said_to_be(tmp_path: Path, between: str) -> None:
    file = tmp_path / "month.csv"
    file.write_text(between.join(["time", "load", "throughput"]) + "\n" + between.join(["1", "2,5", "3"]) + "\n")
    with pytest.raises(SampleError, match="no comma") as raised:
        import_observed(str(file))
    assert "commas" in raised.value.remedy


def test_an_hour_that_is_there_twice_is_told_as_the_end_of_summer_time(tmp_path: Path) -> None:
    """Seen: "the rows were not in time order", and a backup at two hours of the day."""
    zone = ZoneInfo("Europe/Berlin")
    begun_s = datetime(2025, 10, 25, 12, tzinfo=UTC).timestamp()
    moments = [datetime.fromtimestamp(begun_s + 300 * at, zone) for at in range(400)]
    file = tmp_path / "month.csv"

    def notes(form: str) -> str:
        body = "".join(f"{at.strftime(form)},{10 + at.minute},{5 + at.minute}\n" for at in moments)
        file.write_text(f"time,load,throughput\n{body}")
        return " ".join(import_observed(str(file)).notes)

    assert "The times from 2025-10-26 02:00 on are there twice" in notes("%Y-%m-%d %H:%M:%S")
    assert "twice" not in notes("%Y-%m-%dT%H:%M:%S%z")
    moments[7], moments[100] = moments[100], moments[7]
    assert "twice" not in notes("%Y-%m-%d %H:%M:%S")


def test_the_resets_of_many_instances_are_one_line(tmp_path: Path) -> None:
    """Seen: a line for each of eight counters."""
    series = tuple(
        Series(
            "requests_total", {"pod": str(at)}, tuple(range(0, 400, 10)), tuple(float(n % (20 + at)) for n in range(40))
        )
        for at in range(3)
    )
    load = Series("load", {}, series[0].times_s, tuple(float(n) for n in range(40)))
    table = Table("x", (load, *series), ObservedMapping(load="load"), {}, ())
    notes = assemble(table, ObservedMapping(throughput="requests_total")).notes
    assert [one for one in notes if "reset" in one] == ["3 of the 3 counters requests_total were reset, 1 time each."]


@pytest.mark.parametrize(
    ("term", "said"),
    [("latency_ms", True), ("latency_ms / 1000", False), ("latency_ms / 1e3", False), ("items", False)],
)
def test_a_response_whose_name_says_milliseconds_and_is_taken_in_seconds_is_said_to_be(term: str, said: bool) -> None:
    body = "".join(f"{at},{at % 7},{10 + at % 5},{at % 3}\n" for at in range(50))
    found = assemble(parse_table(f"time,load,latency_ms,items\n{body}", "x"), ObservedMapping(response=term))
    assert any("says milliseconds: give 'latency_ms / 1000'" in one for one in found.notes) == said


def test_what_is_left_out_is_counted_in_the_singular_where_it_is_one(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("time,load,throughput\n1,2,3\n1,2,3\n2,-2,3\n,4,5\n", encoding="utf-8")
    assert import_observed(str(file)).notes == (
        "1 row with the time of another one left out.",
        "1 row without a time left out.",
        "1 value of the load below zero or beyond all measure left out.",
    )
