"""What the stages of one thread did, from the times at which it turned to each."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from loadframe_bulk.turns import LONGEST_FILE, Chain, Turn, lines, own_turn, write_regularly
from loadframe_pipelines.stage_lines import StageLine, parse_stage_line

CHAIN = Chain(("FIRST", "SECOND"), first=3)


def told(*turns: Turn) -> list[StageLine]:
    found = [parse_stage_line(line.encode()) for line in lines(CHAIN, turns, 7)]
    return [one for one in found if one is not None]


def test_the_time_of_a_thread_is_busy_in_one_stage_blocked_before_it_and_idle_behind_it() -> None:
    now = time.monotonic()
    turn = own_turn(CHAIN)
    turn.begin(CHAIN.waiting, now - 100)
    turn.to(0, now - 99)
    turn.to(1, now - 97)
    turn.to(CHAIN.handing_on, now - 93)
    turn.to(CHAIN.away, now - 85)
    turn.count(1, 5)
    first, second = told(turn)
    assert [first.name, second.name, first.process] == ["FIRST", "SECOND", "7"]
    assert (first.values["order"], second.values["order"]) == (3, 4)
    assert [round(first.values[name]) for name in ("busy_s", "idle_s", "blocked_s")] == [2, 1, 4 + 8]
    assert [round(second.values[name]) for name in ("busy_s", "idle_s", "blocked_s")] == [4, 1 + 2, 8]
    assert (second.values["done"], second.values["entries"]) == (1, 5)
    assert first.values["done"] == 0


def test_what_is_in_progress_counts_and_the_next_thread_of_a_turn_goes_on_from_there() -> None:
    turn, other = own_turn(CHAIN), own_turn(CHAIN)
    for each in (turn, other):
        each.begin(CHAIN.away)
    turn.begin(0, time.monotonic() - 10)
    assert round(told(turn, other)[0].values["busy_s"]) == 10
    turn.to(CHAIN.away)
    turn.begin(0, time.monotonic() - 5)
    assert round(told(turn, other)[0].values["busy_s"]) == 15


def test_lines_come_by_themselves_and_a_long_file_begins_again(tmp_path: Path) -> None:
    path, turn, kept = tmp_path / "stages.jsonl", own_turn(CHAIN), signal.getsignal(signal.SIGALRM)
    path.write_bytes(b"\n" * (LONGEST_FILE + 1))
    try:
        end = write_regularly(str(path), lambda: lines(CHAIN, [turn], 1), every_s=0.01)
        signal.pause()
        end()
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, kept)
    first = path.read_bytes().splitlines()[0]
    assert parse_stage_line(first) is not None
    assert path.stat().st_size < LONGEST_FILE


def test_a_link_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="link"):
        write_regularly(str(tmp_path / "link"), lambda: iter(()))
