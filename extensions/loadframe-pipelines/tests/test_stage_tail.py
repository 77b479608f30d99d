"""Files in which a pipeline prints what its stages do, followed while a load runs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from loadframe.recording.metrics import of_readings
from loadframe_pipelines.stage_tail import Tail
from loadframe_pipelines.stages import Limiting, limiting, stages_in


def _line(**fields: object) -> bytes:
    return json.dumps({"stage": "APPLY", **fields}).encode() + b"\n"


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_what_is_printed_in_a_step_is_read(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic()
        _append(path, _line(time=at_s, waiting=3, done=10))
    (reading,) = tail.readings()
    assert reading.at_s == at_s
    assert reading.counters == {
        "pipeline.APPLY.waiting": 3,
        "pipeline.APPLY.done": 10,
        "pipeline.APPLY.order": 0,
        "workload.stages": 1,
    }
    specs = {spec.metric: spec.cumulative for spec in tail.counter_specs}
    assert specs["pipeline.APPLY.done"]
    assert not specs["pipeline.APPLY.waiting"]


def test_what_a_log_has_already_is_of_before(tmp_path: Path) -> None:
    path, tail = tmp_path / "log", Tail()
    _append(path, _line(waiting=1, workers=9))
    with tail.watching([path]):
        _append(path, b"another line\n" + _line(waiting=2))
    (reading,) = tail.readings()
    assert reading.counters["pipeline.APPLY.waiting"] == 2
    assert "pipeline.APPLY.workers" not in reading.counters


def test_a_log_that_begins_again_is_read_from_there(tmp_path: Path) -> None:
    path, tail = tmp_path / "log", Tail()
    _append(path, b"x" * 1000 + b"\n")
    with tail.watching([path]):
        path.write_bytes(_line(waiting=5))
    assert [reading.counters["pipeline.APPLY.waiting"] for reading in tail.readings()] == [5]


def test_a_process_that_tells_again_soon_tells_of_another_moment(tmp_path: Path) -> None:
    """Its last line, at the end of a step, may follow the one before at once: rates are between their own times."""
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic()
        _append(path, _line(time=at_s - 0.02, done=10) + _line(time=at_s, done=12))
    told = [(reading.at_s, reading.counters["pipeline.APPLY.done"]) for reading in tail.readings()]
    assert told == [(at_s - 0.02, 10), (at_s, 12)]


def test_processes_of_one_stage_are_added_up(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic()
        _append(path, _line(time=at_s, process=1, workers=2, done=10) + _line(time=at_s, process=2, workers=3, done=5))
    counters = tail.readings()[-1].counters
    assert (counters["pipeline.APPLY.workers"], counters["pipeline.APPLY.done"]) == (5, 15)


def test_processes_that_have_files_of_their_own_are_added_up(tmp_path: Path) -> None:
    paths, tail = [tmp_path / "1", tmp_path / "2"], Tail()
    with tail.watching([], paths):
        at_s = time.monotonic()
        for path in paths:
            _append(path, _line(time=at_s, workers=2, done=10))
    (reading,) = tail.readings()
    assert (reading.counters["pipeline.APPLY.workers"], reading.counters["pipeline.APPLY.done"]) == (4, 20)


def test_of_a_process_that_has_ended_only_its_sums_stay(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic()
        lines = [{"process": 1, "ended": True}, {"process": 2, "time": at_s}]
        _append(path, b"".join(_line(**{"time": at_s, "workers": 2, "done": 10, **each}) for each in lines))
    (reading,) = tail.readings()
    assert (reading.counters["pipeline.APPLY.workers"], reading.counters["pipeline.APPLY.done"]) == (2, 20)


def test_many_processes_one_after_the_other_are_all_counted(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic()
        _append(path, b"".join(_line(time=at_s, process=number, done=1, ended=True) for number in range(1000)))
    assert tail.readings()[-1].counters["pipeline.APPLY.done"] == 1000


def test_what_a_service_prints_is_not_the_drivers(tmp_path: Path) -> None:
    path, tail = tmp_path / "log", Tail()
    with tail.watching([path]):
        _append(path, _line(done=1))
    assert "workload.stages" not in tail.readings()[0].counters


def test_a_driver_before_a_target_with_stages_is_not_the_whole_pipeline(tmp_path: Path) -> None:
    """As the clients of a bulk loader: what they do may still be what is too slow for the target."""
    loader, clients, tail = tmp_path / "loader", tmp_path / "stages.jsonl", Tail()
    with tail.watching([loader], [clients]):
        _append(clients, _line(time=time.monotonic(), done=1))
        _append(loader, json.dumps({"stage": "OPEN", "done": 1}).encode() + b"\n")
    names = {name for reading in tail.readings() for name in reading.counters}
    assert {"pipeline.APPLY.done", "pipeline.OPEN.done"} <= names
    assert "workload.stages" not in names


def test_a_time_of_another_clock_is_not_used(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    before_s = time.monotonic()
    with tail.watching([], [path]):
        _append(path, _line(time=1.7e9, done=1))
    (reading,) = tail.readings()
    assert before_s <= reading.at_s <= time.monotonic()


def test_stages_without_an_order_have_that_of_their_first_line(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    lines = [{"stage": name, "done": 1} for name in ("SCAN", "STAT", "APPLY", "STAT")]
    with tail.watching([], [path]):
        _append(path, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    found = {name: value for reading in tail.readings() for name, value in reading.counters.items()}
    assert [found[f"pipeline.{name}.order"] for name in ("SCAN", "STAT", "APPLY")] == [0, 1, 2]


def test_lines_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        _append(path, _line(done=-1) * 3 + _line(done=1))
    assert len(tail.readings()) == 1
    (said,) = tail.missing()
    assert "3 lines cannot be read" in said


def test_a_named_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    tail = Tail()
    with tail.watching([tmp_path / "none"]):
        pass
    assert tail.missing() == ("Statistics of stages in none: there is no such file.",)


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_neither_a_link_nor_a_pipe_is_read(tmp_path: Path, kind: str) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        if kind == "pipe":
            os.mkfifo(path)
        else:
            (tmp_path / "other").write_bytes(_line(done=1))
            (path.symlink_to if kind == "link" else path.hardlink_to)(tmp_path / "other")
    assert tail.readings() == []
    assert len(tail.missing()) == 1


def test_other_lines_of_a_large_log_are_not_kept(tmp_path: Path) -> None:
    path, tail = tmp_path / "log", Tail()
    with tail.watching([], [path]):
        for number in range(20):
            _append(path, b"a line of a log that says something else\n" * 50_000 + _line(done=number))
    assert tail.missing() == ()
    assert tail.readings()[-1].counters["pipeline.APPLY.done"] == 19


def test_a_process_that_begins_again_without_a_word_keeps_what_it_had_done(tmp_path: Path) -> None:
    """kill -9 of a worker that is started again: what only grows would have gone back, and told nothing."""
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic() - 5
        told = [(100, 1.0), (200, 2.0), (10, 0.1), (110, 1.1)]
        for number, (done, busy_s) in enumerate(told):
            _append(path, _line(time=at_s + number, process=1, workers=1, done=done, busy_s=busy_s))
            _append(path, _line(time=at_s + number, process=2, workers=1, done=1000 * number, busy_s=float(number)))
    done = [reading.counters["pipeline.APPLY.done"] for reading in tail.readings()]
    assert done == [100, 1200, 2210, 3310]


def test_a_sum_that_trembles_is_no_new_process(tmp_path: Path) -> None:
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        at_s = time.monotonic() - 5
        for number, busy_s in enumerate((2.0, 1.9999)):
            _append(path, _line(time=at_s + number, done=10, busy_s=busy_s))
    assert [reading.counters["pipeline.APPLY.done"] for reading in tail.readings()] == [10, 10]


def test_a_log_that_is_rotated_is_read_from_its_begin(tmp_path: Path) -> None:
    """The new file may be longer than what was read of the old one."""
    path, tail = tmp_path / "log", Tail()
    _append(path, b"before\n")
    with tail.watching([path]):
        path.rename(tmp_path / "log.1")
        _append(path, _line(waiting=5) + b"x" * 1000 + b"\n")
    assert [reading.counters["pipeline.APPLY.waiting"] for reading in tail.readings()] == [5]


SPENT = ("busy_s", "idle_s", "blocked_s")
CLOGGED = {"READ": (1000, 0.1, 0.0, 0.9), "APPLY": (1000, 0.98, 0.02, 0.0), "ACK": (1000, 0.05, 0.95, 0.0)}
IDLE = dict.fromkeys(CLOGGED, (0, 0.0, 1.0, 0.0))
SLOWER = {"READ": (100, 1.0, 0.0, 0.0), "APPLY": (100, 0.1, 0.9, 0.0), "ACK": (100, 0.05, 0.95, 0.0)}
"""Of each stage what one worker does in a second: entries, and its seconds at work, idle and blocked."""


def _told(tmp_path: Path, *processes: dict[str, tuple[float, ...]]) -> dict[str, float]:
    """The metrics of a window of four seconds in which these processes print, one soon after the other."""
    path, tail = tmp_path / "stages.jsonl", Tail()
    with tail.watching([], [path]):
        begin_s = time.monotonic() - 6
        for second in range(6):
            for process, stages in enumerate(processes):
                for stage, (entries, *spent) in stages.items():
                    values = {name: second * value for name, value in zip(SPENT, spent, strict=True)}
                    fields = {"stage": stage, "process": process, "workers": 1, "done": second * entries, **values}
                    at_s = begin_s + second + 0.01 * process
                    queued = {"waiting": 4 if values["busy_s"] > 0.9 * second > 0 else 0, "queue": 4}
                    _append(path, json.dumps({**fields, **queued, "time": at_s}).encode() + b"\n")
    readings = [(one.at_s, one.counters) for one in tail.readings()]
    return of_readings(readings, begin_s + 1, begin_s + 5.5, tail.counter_specs)


@pytest.mark.parametrize(("other", "busy"), [(CLOGGED, 0.98), (IDLE, 0.98), (SLOWER, 0.90)])
def test_a_process_with_hardly_any_entries_does_not_hide_the_stage_that_limits(
    tmp_path: Path, other: dict[str, tuple[float, ...]], busy: float
) -> None:
    metrics = _told(tmp_path, CLOGGED, other)
    assert metrics["pipeline.APPLY.busy_share"] == pytest.approx(busy, abs=0.02)
    stages = stages_in(metrics)
    found = limiting(stages)
    assert isinstance(found, Limiting) and (found.kind, stages[found.at].name) == ("stage", "APPLY")
    assert stages[found.at].is_uneven == (other is not CLOGGED)


def test_the_workers_at_work_stay_what_they_are_in_all_processes(tmp_path: Path) -> None:
    metrics = _told(tmp_path, CLOGGED, IDLE)
    assert metrics["pipeline.APPLY.busy"] == pytest.approx(0.98, abs=0.02)
    assert metrics["pipeline.APPLY.workers"] == 2
    assert metrics["pipeline.APPLY.queue_share"] == pytest.approx(1.0, abs=0.02)


def test_where_no_entry_passes_all_workers_count_alike(tmp_path: Path) -> None:
    metrics = _told(tmp_path, IDLE, IDLE)
    assert metrics["pipeline.APPLY.idle_share"] == pytest.approx(1.0)
