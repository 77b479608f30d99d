"""Statistics that pipelines print of their stages: one line each, in a log that has much else."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadframe_pipelines.stage_lines import (
    LONGEST_LINE,
    StageLine,
    StageLineError,
    StageLines,
    parse_stage_line,
)

APPLY = (
    b'{"stage": "DB_APPLY", "time": 12.5, "order": 2, "waiting": 40, "current": 8, "done": 100, "ms_per_op": 2.5,'
    b' "batch": 10, "entries": 1000, "idle": 0, "workers": 2, "idle_s": 0.5, "blocked_s": 0, "busy_s": 9.5}'
)
ROBINHOOD = """\
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | ==== EntryProcessor Pipeline Stats ===
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | Idle threads: 3
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | Stage              | Wait | Curr | Done |     Total | ms/op |
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |  0: GET_FID        |    0 |    0 |    0 |         0 |  0.00 |
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |  1: GET_INFO_DB    |   12 |    4 |    0 |      6000 |  0.50 |
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |  4: DB_APPLY       |  900 |   10 |    3 |      4000 |  2.00 |\
 75.00% batched (avg batch size: 10.0)
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | DB ops: get=6000/ins=4000/upd=0/rm=0
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | ChangeLog reader #0:
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |    records read        = 7000
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |    records pending     = 250
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |    last committed: rec_id=6900,\
 rec_time=2026/11/25 01:01:30.500000, committed at 2026/11/25 01:02:00.000000
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |        commit speed: 80.00 rec/sec, log/real time ratio: 0.75
"""
"""As RobinHood 3.2 formats its report: entry_proc_impl.c, EntryProcessor_DumpCurrentStages; chglog_reader.c,
cl_reader_dump_stats; the head of a line in rbh_logs.c."""


def _read(text: str) -> list[StageLine]:
    return list(StageLines().feed(text.encode()))


def test_a_line_is_read_with_all_its_fields() -> None:
    line = parse_stage_line(APPLY)
    assert line is not None
    assert (line.kind, line.name, line.at_s) == ("stage", "DB_APPLY", 12.5)
    assert line.values["waiting"] == 40
    assert line.values["busy_s"] == 9.5
    assert "time" not in line.values


@pytest.mark.parametrize(
    "before",
    [
        b"loader-1  | ",
        b"2026-11-26 22:40:01,512 INFO stats: ",
        b"\x1b[32mINFO\x1b[0m ",
        b"STATS | ",
        b"{app} ",
        b"INFO {tid=3} ",
    ],
)
def test_what_a_logger_puts_before_a_line_is_passed_over(before: bytes) -> None:
    assert _read((before + APPLY).decode() + "\r\n") == [parse_stage_line(APPLY)]


def test_a_change_log_is_read() -> None:
    line = parse_stage_line(b'{"log": "changes", "time": 3, "read": 10, "applied": 9, "pending": 1, "lag_s": 0.25}')
    assert line == StageLine("log", "changes", "", 3.0, {"read": 10.0, "applied": 9.0, "pending": 1.0, "lag_s": 0.25})


@pytest.mark.parametrize(
    "line",
    [
        b"started",
        b'{"level": "info", "msg": "a stage is ready"}',
        b'{"log": "stdout of a container", "stream": "stdout"}',
        b'{"stage": "production", "level": "info", "msg": "GET / 200"}',
        b'{"stage": "prod", "time": "2026-11-26T18:00:00Z", "msg": "GET / 200"}',
        b'["stage"]',
        b'INFO saw {"stage": 3 of 4}',
        b'{"stages": 3}',
        b"",
    ],
)
def test_what_else_is_in_a_log_is_passed_over(line: bytes) -> None:
    assert parse_stage_line(line) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"stage": "A"}', "it has none of"),
        (b'{"stage": "A", "done": -1}', "done is below 0"),
        (b'{"stage": "A", "done": "7"}', "done is no number"),
        (b'{"stage": "A", "done": true}', "done is no number"),
        (b'{"stage": "A", "done": 1e300}', "above 2^53"),
        (b'{"stage": "A", "done": NaN}', "no JSON"),
        (b'{"stage": "A", "done": 1', "no JSON"),
        (b'{"stage": "4 eyes", "done": 1}', "does not begin with a letter"),
        (b'{"stage": "A", "done": 1, "process": []}', "process is neither"),
    ],
)
def test_what_is_meant_and_cannot_be_is_said(line: bytes, why: str) -> None:
    with pytest.raises(StageLineError, match=why.replace("^", r"\^")):
        parse_stage_line(line)


def test_nonsense_is_counted_and_the_next_line_is_read() -> None:
    lines = StageLines()
    found = list(lines.feed(b'{"stage": "A", "done": -1}\n' + APPLY + b"\n"))
    assert [each.name for each in found] == ["DB_APPLY"]
    assert sum(lines.strange.values()) == 1
    assert lines.read == 1


def test_a_line_longer_than_the_bound_is_passed_over_and_the_next_is_read() -> None:
    lines = StageLines()
    long = b'{"stage": "A", "done": 1, "x": "' + b"x" * (2 * LONGEST_LINE) + b'"}\n'
    found = [each for piece in (long[:LONGEST_LINE], long[LONGEST_LINE:], APPLY + b"\n") for each in lines.feed(piece)]
    assert [each.name for each in found] == ["DB_APPLY"]


@given(cuts=st.lists(st.integers(0, len(APPLY) * 3 + 3), max_size=6))
def test_it_does_not_matter_where_a_file_is_cut(cuts: list[int]) -> None:
    text = (APPLY + b"\n") * 3
    edges = [0, *sorted(cuts), len(text)]
    lines = StageLines()
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert len([each for piece in pieces for each in lines.feed(piece)]) == 3


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.dictionaries(
            st.sampled_from(["stage", "log", "time", "done", "waiting", "read", "process", "lag_s", "other"]),
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.none())),
        ).map(lambda value: json.dumps(value).encode()),
        st.text(alphabet="STA: |0123456789.%ABz_", max_size=120).map(lambda text: b"STATS | " + text.encode()),
    )
)
def test_no_line_is_a_crash_and_what_is_read_is_within_bounds(text: bytes) -> None:
    for line in StageLines().feed(text + b"\n"):
        assert all(0 <= value <= 2**53 for value in line.values.values())
        assert line.name[0].isalpha()


def test_robinhoods_stages_are_read_in_their_order() -> None:
    stages = [line for line in _read(ROBINHOOD) if line.kind == "stage"]
    assert [(line.name, line.values["order"]) for line in stages] == [
        ("GET_FID", 0),
        ("GET_INFO_DB", 1),
        ("DB_APPLY", 4),
    ]
    assert all(line.values["pool_idle"] == 3 for line in stages)


def test_robinhoods_batches_and_the_seconds_of_its_workers() -> None:
    """3,000 of 4,000 entries in batches of 10 are 300 operations, and 1,000 single ones; 2 ms an entry are 8 s."""
    apply = next(line for line in _read(ROBINHOOD) if line.name == "DB_APPLY")
    assert apply.values["entries"] == 4000
    assert apply.values["done"] == pytest.approx(1300)
    assert apply.values["busy_s"] == pytest.approx(8.0)
    assert (apply.values["waiting"], apply.values["current"]) == pytest.approx((900 * 0.325, 10 * 0.325))


ROBINHOOD_2_4 = """\
2013/07/17 13:49:06 robinhood@mds1[30105/2] STATS | Threads waiting: 2
2013/07/17 13:49:06 robinhood@mds1[30105/2] STATS |  0: STAGE_GET_FID        | Wait:     0 | Curr:   1 | Done:   0 |\
 Total: 100000 | ms/op: 0.02
2013/07/17 13:49:06 robinhood@mds1[30105/2] STATS |  4: STAGE_DB_APPLY       | Wait:   900 | Curr:   3 | Done:   0 |\
 Total:  90000 | ms/op: 2.00
2013/07/17 13:49:06 robinhood@mds1[30105/2] STATS | ChangeLog reader #0:
2013/07/17 13:49:06 robinhood@mds1[30105/2] STATS |    processing speed ratio   = 0.75
"""


def test_older_lines_of_robinhood_are_read() -> None:
    get_fid, apply, log = _read(ROBINHOOD_2_4)
    assert (get_fid.name, apply.name) == ("GET_FID", "DB_APPLY")
    assert (apply.values["pool_idle"], apply.values["waiting"], apply.values["entries"]) == (2, 900, 90_000)
    assert log.values == {"follow": 0.75}


def _reports(*totals: int) -> list[bytes]:
    """Of stages that have done as much, and twice as much."""
    row = "2015/03/11 11:37:23 robinhood[1/2] STATS |  {}: {} |    0 |    1 |    0 | {} |  0.10 |\n"
    return [(row.format(1, "GET_FID", 2 * total) + row.format(5, "DB_APPLY", total)).encode() for total in totals]


@pytest.mark.parametrize(
    ("totals", "done"),
    [
        ((1000, 1200, 1200), [1000, 1200, 1200]),  # since the start, as before 3.1: a total goes back nowhere
        ((1000, 900, 1200), [1000, 1900, 3100]),  # of periods
        ((1000,), [1000]),
    ],
)
def test_whether_robinhoods_totals_are_since_its_start_is_seen(totals: tuple[int, ...], done: list[int]) -> None:
    pieces = _reports(*totals)
    lines = StageLines.of(pieces)
    found = [line for piece in pieces for line in lines.feed(piece) if line.name == "DB_APPLY"]
    assert [line.values["done"] for line in found] == done
    assert all(line.values.get("ms_per_op", 0.1) == pytest.approx(0.1) for line in found)


def test_where_a_file_is_cut_changes_nothing_of_what_its_totals_mean() -> None:
    text = b"".join(_reports(1000, 900, 1200))
    for cut in range(0, len(text), 7):
        pieces = [text[:cut], b"", text[cut:]]
        lines = StageLines.of(pieces)
        found = [line for piece in pieces for line in lines.feed(piece)]
        assert found[-1].values["done"] == 3100, cut


def test_robinhoods_totals_are_of_a_period_and_are_added_up() -> None:
    second = [line for line in _read(ROBINHOOD + ROBINHOOD) if line.name == "DB_APPLY"][1]
    assert second.values["entries"] == 8000


@pytest.mark.parametrize(
    "cells",
    [
        "1094 |    7 |    0 |    1077 |  -nan |",
        "1094 |    7 |    0 |    1077 |  2,70 |",
        "1094 |    7 |    0 |",
        "999999999999 | 1 | 1 | 999999999999999 | 999999999999.9 |",
    ],
)
def test_a_stage_of_robinhood_that_cannot_be_read_is_counted_like_any_other(cells: str) -> None:
    lines = StageLines()
    assert not list(lines.feed(f"2015/03/11 11:37:23 STATS |  5: DB_APPLY | {cells}\n".encode()))
    assert sum(lines.strange.values()) == 1 and lines.read == 0


def test_robinhoods_change_log_falls_behind() -> None:
    values: dict[str, float] = {}
    for line in _read(ROBINHOOD):
        values |= line.values if line.kind == "log" else {}
    assert values == {"read": 7000, "pending": 250, "lag_s": 29.5, "follow": 0.75}


def test_what_a_logger_puts_behind_a_line_is_passed_over() -> None:
    assert parse_stage_line(b"INFO " + APPLY + b" (main.go:33)") == parse_stage_line(APPLY)


def test_a_line_of_statistics_that_is_too_long_is_counted_once() -> None:
    whole, pieces = StageLines(), StageLines()
    line = b'{"stage": "A", "done": 1, "more": "' + b"x" * (3 * LONGEST_LINE) + b'"}\n'
    assert list(whole.feed(line + b"y" * (2 * LONGEST_LINE) + b"\n" + APPLY + b"\n"))
    for at in range(0, len(line), 1000):
        assert not list(pieces.feed(line[at : at + 1000]))
    assert dict(whole.strange) == dict(pieces.strange) == {"it has more than 16 KiB": 1}
