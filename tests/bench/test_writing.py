"""What a run that was killed says: the rounds as far as they went, and nothing of states that were only tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import RunError
from loadframe.experiments import reading
from loadframe.experiments.examination import examine
from loadframe.experiments.sweep import curve_of, sweep
from loadframe.experiments.writing import partial, write_down
from loadframe.model import StepRequest, TargetState
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts
from loadframe.runs.folder import Effective, RunFolder, Treatment
from loadframe.runs.lines import read_host

Simulated = Callable[..., Bookkeeping]


def tried_and_killed(simulated: Simulated, folder: Path) -> tuple[RunFolder, Bookkeeping]:
    """A sweep of A, and steps of B at two levels."""
    book = simulated(lambda state, level: (9000.0 / level, {"mariadb.open_tables": 5 * level}))
    sweep(book, "A", round_number=1)
    book.next_treatment("tried", TargetState({"table_open_cache": 400}, {}))
    for level in (16, 32):
        book.take(StepRequest("B", level, 1, 1))
    run = RunFolder.create(folder, "killed")
    run.write_record("study.json", "study", book.bench.study.resolved())
    for name, state in book.bench.states.items():  # type: ignore[attr-defined]
        run.append_line("treatments.jsonl", "treatment", Treatment(name, name, state))
    for step in book.steps:
        run.add_step(step, b"", np.array([1.0], dtype=np.float32))
    run.append_line("effective.jsonl", "effective", Effective("A", {"table_open_cache": 48}))
    return run, book


def test_a_state_that_was_only_tried_is_none_that_was_reached(simulated: Simulated, tmp_path: Path) -> None:
    run, _ = tried_and_killed(simulated, tmp_path)
    (one,) = partial(run)
    assert one.treatment == "A"
    assert one.effective == {"table_open_cache": 48}
    assert "64" in one.clamped[0], "asked for 64, granted 48"


def test_of_a_run_that_was_killed_before_its_first_state_was_measured_nothing_is_concluded(
    simulated: Simulated, tmp_path: Path
) -> None:
    """Blocks begin with any of their states."""
    run, book = tried_and_killed(simulated, tmp_path)
    (run.path / "steps.jsonl").unlink()
    run.add_step(book.of("B")[0], b"", np.array([1.0], dtype=np.float32))
    assert partial(run) == []
    found = reading.conclude(run)
    assert found.answer is None
    with pytest.raises(RunError, match="no finished round"):
        reading.write_answer(run, found)


def test_of_a_run_that_was_killed_after_it_had_warmed_its_target_nothing_is_concluded(
    simulated: Simulated, tmp_path: Path
) -> None:
    run, book = tried_and_killed(simulated, tmp_path)
    (run.path / "steps.jsonl").unlink()
    run.add_step(replace(book.of("A")[0], purpose="warming"), b"", np.array([1.0], dtype=np.float32))
    assert partial(run) == []
    with pytest.raises(RunError, match="no finished step"):
        reading.conclude(run)


def test_rounds_that_were_kept_are_told_as_they_were(simulated: Simulated, tmp_path: Path) -> None:
    run, book = tried_and_killed(simulated, tmp_path)
    one = examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=book.bench.start_state,
        effective={},
        curve=curve_of(book.steps, book.bench.study, "A"),
        target_kind="mariadb",
        highest_level=32,
    ).round
    run.save_rounds([one])
    assert partial(run) == [one]


def test_a_curve_that_is_the_drivers_says_so_at_its_levels(simulated: Simulated) -> None:
    book = simulated(lambda state, level: (9000.0 / level, {"mariadb.open_tables": 5 * level}))
    sweep(book, "A", round_number=1)
    levels = sorted({step.level for step in book.steps})
    assert not [words for words in curve_of(book.steps, book.bench.study, "A").warnings if "driver" in words]
    for flag, begins in (
        ("driver-limited", f"driver.limited: at {levels[-1]:g} the load driver was the bottleneck"),
        ("driver-beside", f"driver.beside: at {levels[-1]:g} the load driver had a quarter"),
    ):
        steps = [replace(step, flags=(flag,)) if step.level == levels[-1] else step for step in book.steps]
        (said,) = [words for words in curve_of(steps, book.bench.study, "A").warnings if "driver" in words]
        assert said.startswith(begins)


def test_a_conclusion_says_what_of_the_recording_is_missing(simulated: Simulated, tmp_path: Path) -> None:
    run, _ = tried_and_killed(simulated, tmp_path)
    run.write_record("bench.json", "bench", {})
    run.write_record("host.json", "host", read_host())
    absent = write_down(run, partial(run)).warnings
    assert any("has no raw/host.lfr" in warning for warning in absent)
    recording = run.path / "raw" / "host.lfr"
    recording.parent.mkdir(exist_ok=True)
    FrameWriter(recording, Facts(0.1, 100, 2, 4096, 0.5, 0.0, 1e9)).close()
    with recording.open("ab") as file:
        file.write(b"half a block")
    torn = "In the recording host.lfr: The last 12 bytes are no complete block (the recorder was killed); left out."
    assert torn in write_down(run, partial(run)).warnings
