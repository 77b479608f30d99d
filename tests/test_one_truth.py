"""One run, one truth (one_truth.py) of all kinds of runs that are stored; and what shows that these checks can fail."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import loadframe
import one_truth
from loadframe.analysis.divergence import at_loads
from loadframe.experiments import comparing, forecasting
from loadframe.model import CaseStudy, CurvePoint, Investigation, LevelRatio, NextLimit, Peak, StateSummary, Verdict
from loadframe.reporting import answers, vega
from loadframe.runs.folder import RunFolder
from loadframe_live import exporting
from loadframe_live.view import Reads, RunView

RECORDED = Path(__file__).parent / "data" / "runs"
RUNS = [*sorted(path.name for path in RECORDED.iterdir()), "job-queue, killed", "render-farm, nothing tried"]


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    name, _, ended = request.param.partition(", ")
    path = Path(shutil.copytree(RECORDED / name, tmp_path_factory.mktemp("runs") / name))
    for written in ("investigation.json", "conduct.json") if ended else ():
        (path / written).unlink()
    if ended == "nothing tried":
        steps = (path / "steps.jsonl").read_text().splitlines(keepends=True)
        (path / "steps.jsonl").write_text("".join(line for line in steps if json.loads(line)["treatment"] == "A"))
    return loadframe.open_run(path)


@pytest.fixture(scope="module")
def case(run: RunFolder) -> CaseStudy:
    return loadframe.conclude(run)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "render", lambda _spec, _name, _title: "")
    monkeypatch.setattr(vega, "start_engine", lambda: None)


@pytest.mark.parametrize("check", one_truth.CHECKS, ids=lambda check: check.__name__)
def test_every_reader_of_a_stored_run_says_the_same(
    run: RunFolder, case: CaseStudy, check: Callable[[RunFolder, CaseStudy], None]
) -> None:
    check(run, case)


def test_the_answer_of_a_stored_run_is_short(case: CaseStudy) -> None:
    if isinstance(case.answer, Investigation):
        said = " ".join(answers.lines(case.answer))
        assert len(said.split()) <= 45 and len(re.findall(r"\d[\d.,]*", said)) <= 6, said


SENTINEL = {1.0: (1010.0, 1.11), 2.0: (2020.0, 2.22), 4.0: (7070.0, 7.77)}
"""By load: throughput, p95 in ms. None of a real run."""
PLANTED = Verdict(6.66, 6.61, 6.69, "better", 3, "planted", (6.66, 6.66, 6.66), (2.0, 4.0))


def planted(case: CaseStudy) -> CaseStudy:
    """The same run with other numbers in its last state, and another next limit."""
    answer = case.answer
    assert isinstance(answer, Investigation)
    last, variant = answer.rounds[-1], answer.variants[-1]
    points = tuple(CurvePoint(load, value, value, value, p95, 3) for load, (value, p95) in SENTINEL.items())
    curve = replace(last.curve, points=points, peak=Peak(load=4.0, throughput=7070.0), knee=None, shape="linear")
    rounds = (*answer.rounds[:-1], replace(last, curve=curve))
    gains = tuple(LevelRatio(load, value / 6.66, value, 6.66, 6.61, 6.69) for load, (value, _) in SENTINEL.items())
    planted = replace(
        answer,
        rounds=rounds,
        after=StateSummary(curve.peak, None),
        variants=(*answer.variants[:-1], replace(variant, levels=gains, verdict=PLANTED)),
        next_limit=NextLimit("planted.limit", 5.0, "the planted limit", "it was put there"),
    )
    steps = tuple(
        replace(step, throughput=SENTINEL[step.level][0], latency=replace(step.latency, p95_ms=SENTINEL[step.level][1]))
        for step in case.states[last.treatment].steps
    )
    state = replace(case.states[last.treatment], curve=curve, steps=steps, first=planted.next_limit, first_from=None)
    return replace(case, answer=planted, rounds=rounds, states={**case.states, last.treatment: state})


def test_a_record_with_planted_numbers_shows_them_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What computes a number of its own shows that of the run's files instead."""
    run = loadframe.open_run(Path(shutil.copytree(RECORDED / "job-queue", tmp_path / "job-queue")))
    case = planted(loadframe.conclude(run))
    last = case.rounds[-1].treatment
    reads = Reads(lambda _run: case, lambda _run: case.answer)
    one_truth.check_is_shown(case, run, reads)
    for module in (comparing, exporting, forecasting):
        monkeypatch.setattr(module, "conclude", lambda _run: case)
    assert {load: value for load, *value in _live_curve(run, reads, last)} == {
        load: list(values) for load, values in SENTINEL.items()
    }
    levels = loadframe.compare_runs(run, run, treatments=("A", last)).levels
    assert {each.load: (each.after, each.ratio) for each in levels} == {
        load: (value, 6.66) for load, (value, _) in SENTINEL.items()
    }
    found = loadframe.predict_run(run, list(SENTINEL), treatment=last)
    assert found.capacity is not None
    assert (found.capacity.limited_by, found.capacity.load.value) == ("planted.limit", 5.0)
    assert {point.load: point.throughput.value for point in found.at} == pytest.approx(
        {load: value for load, (value, _) in SENTINEL.items()}
    )
    metrics = one_truth.metrics_of(run)
    assert one_truth.by_state(metrics, "peak_throughput_requests_per_second")[last] == 7070.0
    assert one_truth.by_state(metrics, "peak_load")[last] == 4.0
    assert [value for _, value in metrics["gain_ratio"]] == [6.66]
    one_truth.every_point_of_every_state_is_the_same_in_all_exports(run, case)


def test_a_gain_from_two_sources_is_seen(case: CaseStudy) -> None:
    """As it was: the loads from the curves, beside the blocks of the proof."""
    for one in case.answer.variants if isinstance(case.answer, Investigation) and case.rounds[1:] else ():
        levels = at_loads(case.rounds[0].curve, case.rounds[-1].curve)
        if one.reported.block_ratios:
            with pytest.raises(AssertionError):
                one_truth.check_is_one_gain(replace(one, levels=levels))


def _live_curve(run: RunFolder, reads: Reads, state: str) -> list[list[float]]:
    view = RunView(run, "0/run", reads)
    view.refresh()
    found: list[list[float]] = view.heading["curves"][state]
    return found


def test_no_one_else_reads_what_a_run_has_concluded() -> None:
    """Else a verb would show what an earlier version had written down. Of a run in progress the live page shows what
    the loop has noted."""
    source = Path(loadframe.__file__).parent
    allowed = {"reading.py", "writing.py", "answer_kinds.py", "view.py"}
    read = re.compile(r"\.(investigation|rounds)\(\)|\.stored\((run)?\)")
    found = {path.name for path in source.rglob("*.py") if read.search(path.read_text())}
    assert found <= allowed
