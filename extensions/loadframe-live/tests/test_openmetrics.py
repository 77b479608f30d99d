"""What is exported as OpenMetrics text is what the parsers of Prometheus' own client read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from loadframe.experiments.reading import conclude, open_run
from loadframe.model import CaseStudy, Verdict
from loadframe.model.verdict import NOT_KNOWN
from loadframe.reporting.openmetrics import CONTENT_TYPE, PREFIX, UNITS, Sample, text
from loadframe_live.openmetrics import FAMILIES, samples_of

RECORDED = Path(__file__).parents[3] / "tests/data/runs"
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def exposition(runs: list[CaseStudy]) -> str:
    return text((sample for run in runs for sample in samples_of(run)), FAMILIES)


def read(text: str) -> Values:
    """Every sample that the OpenMetrics parser finds."""
    found: Values = {}
    for family in openmetrics_parser.text_string_to_metric_families(text):
        for sample in family.samples:
            found[(sample.name, tuple(sorted(sample.labels.items())))] = sample.value
    return found


def read_as_prometheus(text: str) -> Values:
    """The same by the parser of the older text format."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def run() -> CaseStudy:
    return conclude(open_run(RECORDED / "investigation"))


@pytest.mark.extension("loadframe_tune")
def test_a_gain_without_a_ratio_is_no_sample(run: CaseStudy) -> None:
    from loadframe_tune.model import Tuning

    none = Verdict(1.0, *NOT_KNOWN, "worse", 4, "nothing was served")
    tuned = conclude(open_run(RECORDED / "tuning"))
    assert isinstance(tuned.answer, Tuning) and tuned.answer.proof is not None
    lost = replace(tuned, answer=replace(tuned.answer, proof=replace(tuned.answer.proof, fresh=none)))
    assert "gain_ratio" in exposition([tuned]) and "gain_ratio{" not in exposition([lost])


def test_the_curve_is_read_back_as_it_was(run: CaseStudy) -> None:
    found = read(exposition([run]))
    own = {"run": "investigation", "study": run.study.name}
    for treatment, state in run.states.items():
        for point in state.curve.points:
            labels = {**own, "treatment": treatment, "load": f"{point.load:g}"}
            at = tuple(sorted(labels.items()))
            assert found[("loadframe_throughput_requests_per_second", at)] == point.throughput
            assert found[("loadframe_throughput_low_requests_per_second", at)] == point.throughput_low
            p95_s = found.get(("loadframe_latency_p95_seconds", at))
            assert p95_s == (point.latency_p95_ms and pytest.approx(point.latency_p95_ms / 1000))
    limits = {dict(labels)["limit"] for name, labels in found if name == "loadframe_limit_use"}
    assert limits == {limit.id for one in run.rounds for limit in one.limits}
    statuses = {dict(labels)["status"] for name, labels in found if name == "loadframe_finding_info"}
    assert statuses == {finding.status for one in run.rounds for finding in one.findings}


def test_both_formats_of_prometheus_read_the_same(run: CaseStudy) -> None:
    written = exposition([run])
    assert read(written) == read_as_prometheus(written)


def test_two_runs_are_told_apart_by_their_names(run: CaseStudy) -> None:
    other = replace(run, name="another")
    once, twice = read(exposition([run])), read(exposition([run, other]))
    assert len(twice) == 2 * len(once)
    assert {dict(labels)["run"] for _, labels in twice} == {"investigation", "another"}


def test_every_family_has_its_unit_at_the_end_of_its_name_and_a_sentence_of_help() -> None:
    assert all(meaning.endswith(".") for meaning in FAMILIES.values())
    units = dict(
        re.findall(r"# UNIT loadframe_(\S+) (\S+)", text((Sample(name, 1.0, {}) for name in FAMILIES), FAMILIES))
    )
    assert all(name.endswith(f"_{unit}") for name, unit in units.items())
    assert set(units.values()) == set(UNITS)
    assert not {"limit_use", "knee_load", "steps"} & set(units)


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.long
@given(title=HOSTILE, study=HOSTILE, flag=HOSTILE)
def test_no_name_of_others_can_break_a_line(run: CaseStudy, title: str, study: str, flag: str) -> None:
    quality = replace(run.quality, flags={flag: 3})
    states = {"A": replace(run.states["A"], title=title)}
    named = replace(run, study=replace(run.study, name=study), states=states, quality=quality)
    assert len(read(exposition([named]))) == len(read(exposition([replace(named, study=run.study)])))
    assert len(exposition([named]).splitlines()) == exposition([named]).count("\n")


def test_quotes_and_backslashes_are_read_back() -> None:
    name = 'a "b" \\ c\\n {d="e"} 1 # EOF'
    written = text([Sample("steps", 1.0, {"run": name})], FAMILIES)
    assert list(read(written)) == [("loadframe_steps", (("run", name),))]


def test_what_is_no_number_is_left_out_and_what_is_infinite_is_told() -> None:
    samples = [
        Sample("limit_ceiling", value, {"limit": name}) for name, value in (("a", float("inf")), ("b", float("nan")))
    ]
    assert read(text(samples, FAMILIES)) == {(f"{PREFIX}limit_ceiling", (("limit", "a"),)): float("inf")}


def test_one_series_is_told_once() -> None:
    """A reader refuses a second value of the same series, and all else with it."""
    samples = [Sample("steps", value, {"run": "a"}) for value in (1.0, 2.0)]
    assert list(read(text(samples, FAMILIES)).values()) == [1.0]


def test_a_family_that_is_not_declared_is_refused() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        text([Sample("nowhere", 1.0, {})], FAMILIES)


def test_the_content_type_is_the_one_of_the_text(make_step: Callable[..., object]) -> None:
    assert CONTENT_TYPE.startswith("application/openmetrics-text; version=1.0.0")
    assert text([], FAMILIES) == "# EOF\n"
