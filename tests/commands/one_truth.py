"""One run, one truth: whatever a run says of a peak, a gain, a latency, where a state levels off and what limits next,
every verb, page and export says. Held against all stored runs (test_one_truth.py), and against runs that other tests
make: `check`."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest

import loadframe
from loadframe.diagnosis.windows import explained
from loadframe.errors import RunError
from loadframe.experiments.reading import answer_of
from loadframe.model import (
    CaseStudy,
    Compared,
    Curve,
    Investigation,
    Ladder,
    LevelRatio,
    RunAnswer,
    Step,
    Verdict,
)
from loadframe.reporting import answers, document, facts, forecasts, ladder_report, verdict_words, words
from loadframe.reporting.next_step import is_named_limit, next_limit_words
from loadframe.reporting.reports import render_page
from loadframe.runs.folder import RunFolder
from loadframe_live.exporting import export
from loadframe_live.view import Reads, RunView
from loadframe_tune import report, tuning_json
from loadframe_tune.model import Tuning

READS = Reads(loadframe.conclude, answer_of)


# --- what is judged was sampled enough ---


def has_enough(step: Step) -> bool:
    """20 requests that ended, and 5 response times: from what was measured, not from what the step says of itself."""
    window_s = step.window_end_s - step.window_start_s
    return step.requests + step.errors >= 20 and window_s >= 5 * step.latency.mean_ms / 1000


def no_window_with_too_little_in_it_decides_anything(run: RunFolder, case: CaseStudy) -> None:
    few = {step.number: step for step in run.steps() if not has_enough(step)}
    for state in case.states.values():
        assert not few.keys() & {step.number for step in state.steps}, f"in the curve of {state.treatment}"
    for trial in (trial for one in case.rounds for trial in one.tried):
        sparse = {few[number].level for number in trial.deciding if number in few}
        assert not trial.verdict.has_ratio or not sparse.intersection(trial.verdict.levels), trial.remedy.id


Points = dict[str, dict[float, tuple[float, float | None]]]


def points_of(case: CaseStudy) -> Points:
    """By state and load: throughput, p95 in ms."""
    return {name: _points(state.curve) for name, state in case.states.items()}


def _points(curve: Curve) -> dict[float, tuple[float, float | None]]:
    return {point.load: (point.throughput, point.latency_p95_ms) for point in curve.points}


def _number(text: str) -> float | None:
    return float(text) if text else None


def metrics_of(run: RunFolder) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The OpenMetrics text of a run, by family."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in export(run, "openmetrics").decode().splitlines():
        if match := re.fullmatch(r"loadframe_(\w+)\{(.*)\} (\S+)", line):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
            found.setdefault(match[1], []).append((labels, float(match[3])))
    return found


def live(run: RunFolder) -> dict[str, Any]:
    view = RunView(run, "0/run", READS)
    view.refresh()
    assert not view.error
    return view.heading


def by_state(found: dict[str, list[tuple[dict[str, str], float]]], family: str) -> dict[str, float]:
    return {labels["treatment"]: value for labels, value in found.get(family, [])}


# --- peak, latency, where it levels off ---


def every_point_of_every_state_is_the_same_in_all_exports(run: RunFolder, case: CaseStudy) -> None:
    exported: Points = {}
    for line in csv.DictReader(io.StringIO(export(run, "curve.csv").decode(), newline="")):
        values = (float(line["throughput"]), _number(line["latency_p95_ms"]))
        exported.setdefault(line["treatment"], {})[float(line["load"])] = values
    assert exported == points_of(case)
    bencher: Points = {}
    for name, measures in json.loads(export(run, "bencher")).items():
        _, treatment, place = name.split("/")
        latency = measures.get("latency-p95-ms", {"value": None})["value"]
        bencher.setdefault(treatment, {})[float(place.partition("=")[2])] = (measures["throughput"]["value"], latency)
    assert bencher == points_of(case)


def peak_and_knee_are_the_same_in_openmetrics_and_on_the_live_page(run: RunFolder, case: CaseStudy) -> None:
    metrics, heading = metrics_of(run), live(run)
    peaks = {name: state.curve.peak for name, state in case.states.items()}
    assert by_state(metrics, "peak_throughput_requests_per_second") == {
        name: peak.throughput for name, peak in peaks.items()
    }
    assert by_state(metrics, "peak_load") == {name: peak.load for name, peak in peaks.items()}
    knees = {name: state.curve.knee for name, state in case.states.items() if state.curve.knee is not None}
    assert by_state(metrics, "knee_load") == {name: knee.load for name, knee in knees.items()}
    assert heading["knees"] == {name: [knee.load, knee.low, knee.high] for name, knee in knees.items()}
    shown = {name: {load: (value, p95) for load, value, p95 in points} for name, points in heading["curves"].items()}
    assert shown == points_of(case)


def the_curve_is_that_of_the_report(run: RunFolder, case: CaseStudy) -> None:
    """Of `curve RUN` and of the rounds that text, page and JSON of the report show."""
    for one in case.rounds:
        assert case.state(one.treatment).curve == explained(one)
        assert loadframe.curve_json(one.curve)["peak"]["throughput"] == one.curve.peak.throughput
    if isinstance(found := case.answer, Investigation) and found.before is not None:
        assert found.before.peak == case.state(found.rounds[0].treatment).curve.peak
        after = found.after or found.before
        assert after.peak == case.state(found.rounds[-1].treatment).curve.peak


def a_comparison_of_two_states_is_that_of_the_run_or_of_its_curves(run: RunFolder, case: CaseStudy) -> None:
    for name in case.states:
        try:
            found = loadframe.compare_runs(run, run, treatments=("A", name))
        except RunError:  # a state that was only tried has too few steps
            continue
        if (known := case.compared("A", name)) is not None:
            assert (found.verdict, found.levels) == (known.reported, known.levels)
        points = points_of(case)
        for each in found.levels:
            if each.from_curves:
                assert (each.before, each.after) == (points["A"][each.load][0], points[name][each.load][0])


def a_forecast_at_a_measured_load_is_what_was_measured(run: RunFolder, case: CaseStudy) -> None:
    for name, state in case.states.items():
        found = loadframe.predict_run(run, [point.load for point in state.curve.points], treatment=name)
        for point in found.at:
            throughput, p95_ms = _points(state.curve)[point.load]
            assert point.throughput.value == pytest.approx(throughput)
            assert (point.latency_p95_ms and point.latency_p95_ms.value) == (p95_ms and pytest.approx(p95_ms))
        full = {limit.id: limit.exhausted_at for limit in state.limits if limit.exhausted_at is not None}
        assert {limit.id: limit.exhausted_at for limit in found.exhaustion} == full


def what_a_forecast_says_saturates_first_is_what_limits_next(run: RunFolder, case: CaseStudy) -> None:
    """Of the last state. A study of two states with the writer lock named as its next limit at 2 workers was told by
    `predict` that the lock runs out at 3."""
    found = loadframe.predict_run(run, treatment=case.rounds[-1].treatment)
    if found.capacity is None or case.next_limit is None or case.next_limit.load is None:
        return
    assert (found.capacity.limited_by, found.capacity.load.value) == (case.next_limit.id, case.next_limit.load)
    assert found.capacity.load.low <= found.capacity.load.value <= found.capacity.load.high
    for one in found.saturation:
        assert one.at_load is None or one.at_load.value >= case.next_limit.load


def what_a_forecast_of_the_first_state_says_saturates_first_is_its_cause(run: RunFolder, case: CaseStudy) -> None:
    """`predict` of a ladder said that the writer lock runs out at 3 workers: its first state waits for the disk at 1,
    and the lock was seen to be full at 1."""
    if isinstance(case.answer, Investigation):
        if len(case.rounds) < 2:
            return
        cause = facts.main_findings(case.answer)[0]
    elif case.rounds[0].findings:
        cause = case.rounds[0].findings[0]
    else:
        return
    found = loadframe.predict_run(run, treatment=case.rounds[0].treatment)
    if found.refused is not None:
        return
    if found.capacity is None:
        assert found.first is not None and found.first.title == cause.title
        assert cause.title in forecasts.outcome(found, run.bench().axis_unit)[0]
        return
    assert cause.reached_at is not None
    assert (found.capacity.limited_by, found.capacity.load.value) == (cause.id, cause.reached_at.load)


def what_a_forecast_says_saturates_first_is_what_the_case_study_names_in_that_state(
    run: RunFolder, case: CaseStudy
) -> None:
    for name, state in case.states.items():
        found = loadframe.predict_run(run, treatment=name)
        if found.refused is not None or state.first is None or state.first.load is None:
            continue
        if state.first.load <= found.measured[-1]:
            assert (
                f"{state.first.title} ({state.first.id}), from " in forecasts.outcome(found, run.bench().axis_unit)[0]
            )
        if found.capacity is None:
            continue
        assert (found.capacity.limited_by, found.capacity.load.value) == (state.first.id, state.first.load), name
        if state.first_from is not None:
            assert (found.capacity.load.low, found.capacity.load.high) == (state.first_from.low, state.first_from.high)


ENDS = {"cpu": "cpu.saturated", "disk": "disk.busy", "target.cpu": "process.cpus"}
"""The limit that a resource of a forecast comes to, where it has another name."""


def a_forecast_has_one_load_at_which_a_resource_is_full(run: RunFolder, case: CaseStudy) -> None:
    """What was measured. Seen: "lock.writer saturates at 2.8 workers (2.2 to 3.5)", below it "lock.writer runs out at 1
    worker", under a headline whose limit was in neither."""
    for name, state in case.states.items():
        found = loadframe.predict_run(run, treatment=name)
        told: dict[str, set[float]] = {
            limit.id: {limit.exhausted_at.load} for limit in state.limits if limit.exhausted_at
        }
        top = state.curve.points[-1].load
        if state.first is not None and state.first.load is not None:
            told[state.first.id] = {state.first.load}
        told = {limit: loads for limit, loads in told.items() if max(loads) <= top}
        saturates = {ENDS.get(one.resource, one.resource): one.at_load for one in found.saturation}
        for each, at in saturates.items():
            if at is not None:
                told.setdefault(each, set()).add(at.value)
        for limit in found.exhaustion:
            if limit.exhausted_at is not None and (limit.id in told or limit.id in saturates):
                told[limit.id].add(limit.exhausted_at.load)
        if found.capacity is not None:
            told.setdefault(ENDS.get(found.capacity.limited_by, found.capacity.limited_by), set()).add(
                found.capacity.load.value
            )
        assert {each: loads for each, loads in told.items() if len(loads) > 1} == {}, name
        rows = [row.cells for table in forecasts.tables(found, run.bench().axis_unit, "") for row in table.lines]
        shown = [words.strip(document.plain(cells[0])) for cells in rows]
        for each in told if found.refused is None else ():
            named = [
                one for one in shown if one in (each, *(k for k, v in ENDS.items() if v == each)) or f"({each})" in one
            ]
            assert len(named) == 1, f"{each} in {shown}"


# --- limits, gain, what comes next ---


def where_limits_run_out_is_the_same_in_exports_and_rounds(run: RunFolder, case: CaseStudy) -> None:
    table = csv.DictReader(io.StringIO(export(run, "limits.csv").decode(), newline=""))
    exported = {(int(line["round"]), line["limit"]): _number(line["exhausted_at"]) for line in table}
    assert exported == {
        (one.number, limit.id): None if limit.exhausted_at is None else limit.exhausted_at.load
        for one in case.rounds
        for limit in one.limits
    }


def a_limit_runs_out_where_its_finding_begins(run: RunFolder, case: CaseStudy) -> None:
    """Seen: a writer lock at 2 workers in the answer, at 2.2 in the exports."""
    for state in case.rounds:
        begins = {finding.id: finding.reached_at for finding in state.findings if finding.reached_at is not None}
        there = {limit.id: limit.exhausted_at for limit in state.limits if limit.id in begins}
        assert {name: at and at.load for name, at in there.items()} == {name: begins[name].load for name in there}


def gain_and_answer_are_the_same_everywhere(run: RunFolder, case: CaseStudy) -> None:
    gains = [value for _, value in metrics_of(run).get("gain_ratio", [])]
    assert gains == ([] if case.gain is None else [case.gain.ratio])
    if isinstance(case.gain, LevelRatio):
        levels = loadframe.compare_runs(run, run, treatments=("A", case.rounds[-1].treatment)).levels
        assert {each.load: each.ratio for each in levels}[case.gain.load] == case.gain.ratio
    match case.answer:
        case Investigation() as found:
            said: Callable[[], str] = lambda: answers.answer(found)  # noqa: E731
        case Ladder() as ladder:
            said = lambda: ladder_report.answer(ladder)  # noqa: E731
        case Tuning() as tuning:
            said = lambda: report.answer(tuning)  # noqa: E731
        case _:
            raise AssertionError("none of the stored runs is of another kind")
    assert live(run)["answer"] == said()
    assert RunView(run, "0/run", READS).unopened()["answer"] == said()


def check_is_one_gain(compared: Compared) -> None:
    """What is said over all loads is the mean of what is said at each of them."""
    told = compared.reported
    judged = [each for each in compared.levels if each.load in told.levels]
    for each in compared.levels:
        assert each.low <= each.ratio <= each.high
        assert each.ratio == pytest.approx(each.after / each.before, rel=1e-6)
    if not told.has_ratio or told.decision == "cannot-tell":  # levels without an answer have no ratio, either
        return
    assert [each.load for each in judged] == list(told.levels)
    assert told.ratio == pytest.approx(math.exp(fmean(math.log(each.ratio) for each in judged)), rel=1e-6)
    assert not told.block_ratios or not any(each.from_curves for each in judged)
    if len(judged) == 1:
        assert (judged[0].low, judged[0].high) == (told.low, told.high)


def a_pair_of_states_has_one_gain(run: RunFolder, case: CaseStudy) -> None:
    """Seen: "31x at 4 workers", and "32x at 1, 31x at 2, 31x at 4" from the curves, beside "at 2 and 4 workers, block
    by block: 34 times" from the last blocks."""
    if isinstance(case.answer, Ladder) and case.answer.total is not None and case.answer.total.levels:
        check_is_one_gain(case.answer.total)
    if isinstance(case.answer, Tuning) and case.answer.proof is not None:
        check_is_one_gain(case.answer.proof)
    for one in case.answer.variants if isinstance(case.answer, Investigation) else ():
        check_is_one_gain(one)
        for tried in (each for round_ in case.rounds for each in round_.tried):
            if (tried.treatment_before, tried.treatment_after) == (one.treatment_before, one.treatment_after):
                assert tried.reported == one.reported
                assert {*tried.levels} <= {*one.levels}


def no_output_has_two_ratios_of_one_pair_at_one_load(run: RunFolder, case: CaseStudy) -> None:
    """The peaks against each other among them."""
    if not isinstance(found := case.answer, Investigation) or not found.variants:
        return
    shape, last = json.loads(json.dumps(loadframe.investigation_json(found))), found.variants[-1]
    known, reach = {row.load: row.ratio for row in last.levels}, shape["reach"]
    assert shape["gain"]["ratio"] == last.reported.ratio
    at_one = reach is not None and reach["before"]["load"] == reach["after"]["load"]
    assert not at_one or reach["ratio"] == known[reach["after"]["load"]]
    shown, unit = texts(found, run), found.study.load_unit
    for name in ("page", "details", "md"):
        assert verdict_words.proof_sentence(last.reported, unit).partition(": ")[0] in shown[name]
        assert len(known) < 2 or verdict_words.by_load(last, unit) in shown[name]
        _, label, after = shown[name].partition("Peak against peak")
        assert bool(label) == (reach is not None)
        assert not at_one or " times" not in after[:90]


def the_report_that_is_written_says_the_same(run: RunFolder, case: CaseStudy) -> None:
    found = loadframe.write_answer(run, case)
    page = (run.path / "report.html").read_text()
    if not isinstance(found, Investigation):
        return
    assert (found.before, found.after, found.gain) == (case.answer.before, case.answer.after, case.answer.gain)  # type: ignore[union-attr]
    assert found.next_limit == case.next_limit
    shape = loadframe.investigation_json(found)
    assert (shape["next_limit"] or {}).get("id") == getattr(case.next_limit, "id", None)
    assert (shape["next_limit"] or {}).get("load") == getattr(case.next_limit, "load", None)
    for shown, one in zip(shape["rounds"], case.rounds, strict=True):
        assert {each["load"]: (each["throughput"], each["latency_p95_ms"]) for each in shown["curve"]["points"]} == (
            _points(one.curve)
        )
    plain = re.sub(r"\s+", " ", loadframe.render_text(found, details=True))
    for state in (found.before, found.after):
        if state is not None:
            peak = words.peak(state, found.study.load_unit, found.study.work_unit)
            assert peak in plain
            assert peak in re.sub(r"\s+", " ", page)
    again = loadframe.conclude(run)
    assert again.answer == found, "what was written is read again"


# --- the numbers as a reader sees them ---


def texts(answer: RunAnswer, run: RunFolder) -> dict[str, str]:
    """By renderer, each on one line: what is read of a run's answer."""
    match answer:
        case Investigation():
            shape = loadframe.investigation_json(answer)
        case Ladder():
            shape = loadframe.ladder_json(answer)
        case Tuning():
            shape = tuning_json(answer)
        case _:
            raise AssertionError("none of the stored runs is of another kind")
    page = render_page(answer)
    brief, details = loadframe.render_text(answer), loadframe.render_text(answer, details=True)
    markdown = read_markdown(loadframe.render_markdown(answer, details=True))
    shown = {"page": html.unescape(re.sub(r"<[^>]+>", " ", page)), "text": brief, "details": details, "md": markdown}
    return {name: re.sub(r"\s+", " ", one) for name, one in shown.items()} | {"json": json.dumps(shape)}


def read_markdown(page: str) -> str:
    """As a reader sees it, but for what makes a table."""
    return html.unescape(page).replace("\u200b", "").replace("`", "")


def numbers_of(shape: object) -> set[float]:
    """Every number in a JSON shape."""
    match shape:
        case bool() | str() | None:
            return set()
        case dict():
            return set().union(*map(numbers_of, shape.values()))
        case list():
            return set().union(*map(numbers_of, shape))
        case _:
            return {float(str(shape))}


def check_is_shown(case: CaseStudy, run: RunFolder, reads: Reads) -> None:
    """Peak, gain, its load, the next limit and every latency of an investigation, in all that a reader sees of it."""
    answer = case.answer
    assert isinstance(answer, Investigation)
    unit, work = answer.study.load_unit, answer.study.work_unit
    shown, view = texts(answer, run), RunView(run, "0/run", reads)
    view.refresh()
    assert not view.error
    assert view.heading["answer"] == answers.answer(answer) == view.unopened()["answer"]
    numbers = numbers_of(json.loads(shown["json"]))
    if isinstance(case.gain, LevelRatio) and case.gain.low > 1:
        said = f"{verdict_words.led_ratio(case.gain)}x at {words.load(case.gain.load, unit)}"
        assert said in view.heading["answer"]
        assert all(said in shown[name] for name in ("page", "text", "details", "md"))
        assert {case.gain.ratio, case.gain.load} <= numbers
    if case.next_limit is not None:
        said = next_limit_words(answer, case.next_limit)
        lowest = case.rounds[0].curve.points[0].load  # "one worker already hits the limit"
        if case.gain is None and case.next_limit.load is not None and case.next_limit.load > lowest:
            assert said.rpartition(", ")[2].removeprefix("at ") in view.heading["answer"], "it names that cause already"
        if case.gain is not None:
            assert said in view.heading["answer"]
            assert said in shown["text"]
        if not is_named_limit(answer):  # what the answer names is not said again as what comes next
            assert all(said.lower() in shown[name].lower() for name in ("page", "details", "md"))
        assert case.next_limit.load is None or case.next_limit.load in numbers
    for round_ in case.rounds:
        curve = loadframe.render_curve(round_.curve, unit=unit, work=work)
        lines = re.sub(r" +", " ", curve)
        for point in round_.curve.points:
            assert point.throughput in numbers
            assert f" {words.point_throughput(point, work)} " in lines
            assert point.latency_p95_ms is None or point.latency_p95_ms in numbers
            latency = words.milliseconds(point.latency_p95_ms)
            assert latency in lines
            assert latency in shown["page"]
            assert f"| {latency} |" in shown["md"] or not latency
    for state in (answer.before, answer.after):
        assert state is None or all(words.peak(state, unit, work) in shown[name] for name in ("page", "details", "md"))


def a_reader_sees_the_same_numbers_wherever(run: RunFolder, case: CaseStudy) -> None:
    if isinstance(case.answer, Investigation):
        check_is_shown(case, run, READS)
        return
    assert case.answer is not None
    if case.gain is None:  # a search that found nothing better
        return
    assert isinstance(case.gain, Verdict)
    said = f"{verdict_words.led_ratio(case.gain)}{'x ' if verdict_words.led_gain(case.gain, '') else ' times the'}"
    shown = texts(case.answer, run)
    assert all(said in shown[name] for name in ("page", "text", "md"))
    assert said in live(run)["answer"]
    assert case.gain.ratio in numbers_of(json.loads(shown["json"]))


CHECKS: tuple[Callable[[RunFolder, CaseStudy], None], ...] = (
    no_window_with_too_little_in_it_decides_anything,
    every_point_of_every_state_is_the_same_in_all_exports,
    peak_and_knee_are_the_same_in_openmetrics_and_on_the_live_page,
    the_curve_is_that_of_the_report,
    a_comparison_of_two_states_is_that_of_the_run_or_of_its_curves,
    a_forecast_at_a_measured_load_is_what_was_measured,
    what_a_forecast_says_saturates_first_is_what_limits_next,
    what_a_forecast_of_the_first_state_says_saturates_first_is_its_cause,
    what_a_forecast_says_saturates_first_is_what_the_case_study_names_in_that_state,
    a_forecast_has_one_load_at_which_a_resource_is_full,
    where_limits_run_out_is_the_same_in_exports_and_rounds,
    a_limit_runs_out_where_its_finding_begins,
    gain_and_answer_are_the_same_everywhere,
    a_pair_of_states_has_one_gain,
    no_output_has_two_ratios_of_one_pair_at_one_load,
    the_report_that_is_written_says_the_same,
    a_reader_sees_the_same_numbers_wherever,
)


def check(run: RunFolder) -> None:
    """Of a run that was made just now."""
    case = loadframe.conclude(run)
    for each in CHECKS:
        each(run, case)
