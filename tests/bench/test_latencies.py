"""The latencies of a report are those of the steps that its curves are made of, read from their histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loadframe.experiments.writing import latencies_of
from loadframe.model import Curve, Peak, Price, Remedy, Round, Step, TargetState, Trial, Verdict
from loadframe.runs.folder import RunFolder

MakeStep = Callable[..., Step]
REMEDY = Remedy("larger", "Larger", (), (), Price())
FRESH = Verdict(3.0, 2.5, 3.5, "better", 3, "", levels=(2.0, 4.0))


def a_round(*tried: Trial) -> Round:
    curve = Curve("jobs", "A", (), "plateau", Peak(4.0, 10.0), None, None, None, None)
    return Round(1, "A", TargetState({}), {}, curve, (), (), tried, ())


def kept(*deciding: int) -> Trial:
    return Trial(REMEDY, True, {}, "A", "B", verdict=FRESH, fresh=FRESH, deciding=deciding)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "farm")


@pytest.fixture
def steps(run: RunFolder, make_step: MakeStep) -> list[Step]:
    """Two of A and two of B at 2, 4 and 8; every request of step N takes N ms, and it has 100 of them."""
    found = []
    for block in (1, 2):
        for treatment in "AB":
            for level in (2.0, 4.0, 8.0):
                found.append(step := make_step(level, 100.0, block=block, treatment=treatment))
                run.add_step(step, b"", np.full(100, step.number, dtype=np.float32))
    return found


def numbers(steps: Sequence[Step], treatment: str, level: float) -> list[int]:
    return [step.number for step in steps if (step.treatment, step.level) == (treatment, level)]


def test_before_and_after_at_the_highest_level_of_the_gain(run: RunFolder, steps: list[Step]) -> None:
    found = latencies_of(run, [a_round(kept())], steps, FRESH)
    assert [(one.treatment, one.level, one.steps, one.requests) for one in found.distributions] == [
        ("A", 4.0, 2, 200),
        ("B", 4.0, 2, 200),
    ]
    for one in found.distributions:
        shortest, longest = numbers(steps, one.treatment, 4.0)
        assert (one.points[0].latency_ms, one.latency.max_ms) == pytest.approx((shortest, longest), rel=0.001)
        assert one.latency.mean_ms == pytest.approx((shortest + longest) / 2, rel=0.001)


def test_without_a_change_the_highest_level_alone(run: RunFolder, steps: list[Step]) -> None:
    (one,) = latencies_of(run, [a_round()], steps, None).distributions
    assert (one.treatment, one.level, one.requests) == ("A", 8.0, 200)


def test_the_blocks_that_decided_and_those_that_warmed_do_not_count(run: RunFolder, steps: list[Step]) -> None:
    first, second = numbers(steps, "B", 4.0)
    _, after = latencies_of(run, [a_round(kept(first))], steps, FRESH).distributions
    assert (after.steps, after.latency.max_ms) == (1, pytest.approx(second, rel=0.001))
    warmed = [replace(step, purpose="warming") if step.number == second else step for step in steps]
    _, after = latencies_of(run, [a_round(kept())], warmed, FRESH).distributions
    assert (after.steps, after.latency.max_ms) == (1, pytest.approx(first, rel=0.001))


def test_a_run_without_histograms_shows_nothing(run: RunFolder, steps: list[Step]) -> None:
    for number in numbers(steps, "B", 4.0):
        (run.path / "latency" / f"step-{number:05d}.hlog").unlink()
    rounds = [a_round(kept())]
    assert latencies_of(run, rounds, steps, FRESH).distributions == (), "half of a comparison is none"
    assert latencies_of(run, [a_round()], steps, None).distributions
    for file in (run.path / "latency").iterdir():
        file.unlink()
    (run.path / "latency").rmdir()
    found = latencies_of(run, rounds, steps, FRESH)
    assert (found.distributions, found.warnings) == ((), ())
    assert latencies_of(run, [], steps, None).distributions == ()


@pytest.mark.parametrize("plant", ["text", "link", "folder"])
def test_a_damaged_histogram_is_a_warning(run: RunFolder, steps: list[Step], plant: str, tmp_path: Path) -> None:
    (number, _) = numbers(steps, "A", 8.0)
    file = run.path / "latency" / f"step-{number:05d}.hlog"
    file.unlink()
    if plant == "text":
        file.write_text("root:x:0:0\n")
    elif plant == "link":
        file.symlink_to("/etc/passwd")
    else:
        file.mkdir()
    found = latencies_of(run, [a_round()], steps, None)
    assert found.distributions == ()
    (said,) = found.warnings
    assert file.name in said and "no distribution of latencies" in said


def test_requests_that_failed_are_left_out_and_in_older_runs_among_them(run: RunFolder, make_step: MakeStep) -> None:
    """The histogram of an older version has as many requests as were done and failed together."""
    for held, left_out, failed in ((100, 40, 0), (140, 0, 40)):
        step = make_step(8.0, 100.0, requests=100, errors=40)
        run.add_step(step, b"", np.full(held, 5, dtype=np.float32))
        (one,) = latencies_of(run, [a_round()], [step], None).distributions
        assert (one.requests, one.left_out, one.failed) == (held, left_out, failed)
