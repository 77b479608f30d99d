"""A claim is worded by its standing, and a number carries no more digits than its interval supports."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.analysis.comparison import verdict_at_end
from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis import conclusion
from loadframe.experiments.examination import placed
from loadframe.metrics import METRICS
from loadframe.model import (
    DRIVER_BESIDE,
    Comparison,
    Decision,
    Evidence,
    Finding,
    Influence,
    Investigation,
    LoadInterval,
    Mechanism,
    NextLimit,
    OutcomeKind,
    Peak,
    Price,
    Remedy,
    Saturation,
    Scalability,
    Stop,
    Unfinished,
    UntriedRemedy,
    Verdict,
)
from loadframe.reporting import answers, facts, finding_words, rounding, verdict_words, words
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.next_step import next_step
from loadframe.reporting.reports import render_markdown, render_page, render_text


def what_next(inv: Investigation) -> str:
    step = next_step(inv)
    return f"{step.action} Why: {step.why}" if step.why else step.action


def verdict(ratio: float, low: float, high: float, decision: Decision = "better") -> Verdict:
    return Verdict(ratio, low, high, decision, 5, "bootstrap")


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (verdict(4.13, 3.82, 4.41), "4.1 times the throughput (95 % interval 3.8 to 4.4, 5 blocks)"),
        (verdict(47.53, 43.4, 52.1), "48 times the throughput (95 % interval 43 to 52, 5 blocks)"),
        (verdict(1.5, 1.04, 1.96), "1.50 times the throughput (95 % interval 1.04 to 1.96, 5 blocks)"),
        (
            verdict(1.02, 0.97, 1.06, "no-proven-difference"),
            "no proven difference: 1.02 times the throughput (95 % interval 0.97 to 1.06, 5 blocks)",
        ),
        (verdict(0.8, 0.7, 0.9, "worse"), "worse: 0.8 times the throughput (95 % interval 0.7 to 0.9, 5 blocks)"),
        (verdict(2.0, math.nan, math.nan), "2.00 times the throughput (no interval, 5 blocks)"),
    ],
)
def test_a_gain_is_rounded_to_what_its_interval_supports(given_: Verdict, said: str) -> None:
    assert verdict_words.gain_sentence(given_) == said


@given(
    st.floats(min_value=0.01, max_value=1e6),
    st.floats(min_value=1e-4, max_value=0.5),
    st.floats(min_value=1e-4, max_value=0.5),
)
def test_rounding_moves_nothing_by_more_than_half_the_interval(value: float, below: float, above: float) -> None:
    low, high = value * (1 - below), value * (1 + above)
    shown = [float(text.replace(",", "")) for text in rounding.with_interval(value, low, high)]
    slack = max((high - low) / 2, 0.0005) * 1.0001
    for exact, rounded in zip((value, low, high), shown, strict=True):
        assert abs(exact - rounded) <= slack


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (59.97, "60 s"),
        (101, "1 min 41 s"),
        (3000, "50 min"),
        (5400, "1 h 30 min"),
        (7200, "2 h"),
        (47.5 * 3600, "47 h 30 min"),
        (719.92 * 3600, "30 days"),
        (8.25 * 86400, "8.25 days"),
    ],
)
def test_a_duration_has_no_zero_of_its_smaller_unit(value: float, words: str) -> None:
    """Seen: "50 min 0 s", and "719 h 55 min" of a month."""
    assert rounding.seconds(value) == words


def test_the_side_of_one_survives_rounding() -> None:
    _, low, _ = rounding.with_interval(1.5, 1.004, 1.996)
    assert float(low) > 1


def test_a_wide_interval_does_not_reach_down_to_nothing() -> None:
    """Seen on a noisy machine: 9.6 (2.9 to 31) was printed as "10 (0 to 30)", as if nothing had been proved."""
    assert rounding.with_interval(9.6, 2.9, 31.0) == ("9.6", "2.9", "31")
    assert rounding.with_interval(5.22, 1.02, 26.72) == ("5.2", "1.02", "27")
    assert rounding.with_interval(1.003, 0.76, 1.321) == ("1.0", "0.8", "1.3"), "the value may be told as 1"


def test_a_value_read_back_in_another_spelling_is_no_cut(queue: Investigation) -> None:
    trial = queue.rounds[0].tried[0]
    spelled = replace(trial, effective={"journal_mode": "wal"})
    inv = replace(queue, rounds=(replace(queue.rounds[0], tried=(spelled,)), *queue.rounds[1:]))
    assert "the target uses" not in answers.answer(inv)
    assert facts.same_value(True, "ON") and facts.same_value(2000, "2000") and facts.same_value(1.0, 1)
    assert not facts.same_value(2000, 431) and not facts.same_value("FULL", "NORMAL")


def test_a_suspected_cause_is_never_stated(farm: Investigation) -> None:
    first = farm.rounds[0]
    suspected = tuple(replace(finding, status="suspected") for finding in first.findings)
    kinds: list[OutcomeKind] = ["no-proven-gain", "limit-without-remedy", "interrupted"]
    for kind in kinds:
        inv = replace(
            farm, rounds=(replace(first, findings=suspected, tried=()),), variants=(),
            outcome=replace(farm.outcome, kind=kind),
        )  # fmt: skip
        answer = answers.answer(inv)
        assert "suspected, not proved" in answer.lower(), answer
        assert "confirmed" not in answer


def test_the_answer_names_load_cause_change_and_gain(farm: Investigation) -> None:
    answer = answers.answer(farm)
    for part in ("about 13 active jobs", "table cache is full", "table_open_cache = 2000", "2.5x at 320 active jobs"):
        assert part in answer, answer


def test_the_answer_is_three_lines_and_one_of_what_comes_next(investigation: Investigation) -> None:
    said = answers.lines(investigation)
    assert 1 <= len(said) <= 3
    assert len(" ".join(said).split()) <= 45, said
    assert len(re.findall(r"\d[\d.,]*", " ".join(said))) <= 6, said
    assert answers.next_line(investigation).count("\n") == 0
    assert not re.search(r"\b[ABC]\b(?! change)", " ".join(said))


def test_what_the_budget_did_not_finish_is_likely_and_its_command_stands_below(farm: Investigation) -> None:
    """Seen: four lines, 60 words, and the command in the middle of them."""
    told = replace(farm.rounds[0].tried[0].reported, decision="no-proven-difference", levels=(20.0, 80.0))
    open_ = Unfinished(
        "raise the table cache to 2000", told, 23.3, "loadframe investigate STUDY --set measure.budget=84s"
    )
    first = replace(farm.rounds[0], tried=tuple(replace(one, kept=False) for one in farm.rounds[0].tried))
    outcome = replace(farm.outcome, kind="no-proven-gain")
    inv = replace(farm, rounds=(first,), variants=(), outcome=outcome, unfinished=open_)
    said = " ".join(answers.lines(inv))
    assert "Likely: raise the table cache to 2000, " in said and "About 24 s more would decide." in said
    assert len(said.split()) <= 45 and len(re.findall(r"\d[\d.,]*", said)) <= 6, said
    for shown in (render_text(inv), render_text(inv, details=True), render_markdown(inv), render_page(inv)):
        assert open_.command.partition(" --set")[2] in shown


def test_a_riskless_variant_comes_first_with_its_own_numbers(queue: Investigation) -> None:
    _, safe, risky = answers.lines(queue)
    assert safe == "Set journal_mode = WAL (safe): 6x at 4 workers."
    assert risky.startswith("With synchronous = NORMAL too: ") and "but the last commits may be lost" in risky


def test_loads_at_which_it_makes_no_difference_stand_beside_the_gain(farm: Investigation) -> None:
    """A wide interval that includes 1 is no proof that there is none."""
    (variant,) = farm.variants
    equal = [one.load for one in variant.levels if not one.decided]
    assert len(equal) > 2 and "2.5x at 320 active jobs; none at the lowest loads" in answers.answer(farm)
    few = replace(variant, levels=tuple(one for one in variant.levels if one.decided or one.load == equal[0]))
    assert f"2.5x at 320 active jobs; none at {equal[0]:g}." in answers.answer(replace(farm, variants=(few,)))
    none = replace(few, at=equal[0])
    assert f"none at {equal[0]:g} active jobs" in answers.answer(replace(farm, variants=(none,)))
    wide = replace(few, levels=(replace(few.levels[0], ratio=4.4, low=0.5, high=21.0), *few.levels[1:]))
    assert "2.5x at 320 active jobs." in answers.answer(replace(farm, variants=(wide,))), "that stands below"


def test_a_change_kept_because_requests_no_longer_fail_says_that(farm: Investigation) -> None:
    """Seen: "Set max_connections = 40: cannot tell at 32 threads.", of a server that had refused a tenth of them."""
    (variant,), (first, *rest) = farm.variants, farm.rounds
    unknown = replace(variant.gain, ratio=1.2, low=0.8, high=1.8)
    levels = tuple(unknown if one.load == variant.at else replace(one, low=0.8, high=1.8) for one in variant.levels)
    cured = tuple(replace(one, note="requests that failed fell from 10.3 % to none") for one in first.tried)
    inv = replace(farm, rounds=(replace(first, tried=cured), *rest), variants=(replace(variant, levels=levels),))
    _, do, why = answers.lines(inv)
    assert do.endswith(": no proven gain at 320 active jobs.")
    assert why == "Requests that failed fell from 10.3 % to none."
    silent = tuple(replace(one, note="") for one in first.tried)
    *_, price = answers.lines(replace(inv, rounds=(replace(first, tried=silent), *rest)))
    assert price == answers.lines(farm)[-1] and "Memory" in price, "what it costs is said where nothing was cured"


def test_a_change_that_costs_throughput_at_the_load_of_the_answer_leads_with_where_it_gains(
    farm: Investigation,
) -> None:
    (variant,) = farm.variants
    worse = replace(variant.gain, after=0.5 * variant.gain.before, ratio=0.5, low=0.45, high=0.55)
    rest = tuple(one for one in variant.levels if one.load != variant.at)
    best = max((one for one in rest if not one.from_curves), key=lambda one: one.low)
    assert best != max(rest, key=lambda one: one.low), "what the curves alone give does not lead"
    said = answers.answer(replace(farm, variants=(replace(variant, levels=(*rest, worse)),)))
    assert f"{verdict_words.led_ratio(best)}x at {best.load:g} active jobs; 0.50x at 320 active jobs" in said, said


def test_the_page_shows_the_gain_at_its_load_and_the_peaks_beside_it(farm: Investigation) -> None:
    page = " ".join(render_page(farm).split())
    assert '<a href="#changes">2.5×</a>' in page
    assert "the throughput at 320 active jobs" in page
    assert "2,050/s before, 2,110/s after, both at 10 active jobs" in page
    assert page.count("2,050/s before, 2,110/s after") == 1  # beside the number it stands below, as Before and After
    assert "Block by block, on average over 20, 40 and 80 active jobs: 2.9 times" in page
    assert "table_open_cache = 2000" in page


def ended(farm: Investigation, kind: OutcomeKind, *, found: bool) -> Investigation:
    """The farm's first state alone, with what is suspected there or nothing, and with the limit that comes of it."""
    first = farm.rounds[0]
    tried = tuple(replace(trial, kept=False) for trial in first.tried) if kind == "no-proven-gain" else ()
    suspected = tuple(replace(finding, status="suspected") for finding in first.findings) if found else ()
    rounds = (replace(first, findings=suspected, tried=tried),)
    return replace(
        farm, rounds=rounds, variants=(), outcome=replace(farm.outcome, kind=kind),
        next_limit=conclusion.next_limit(rounds),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["no-proven-gain", "limit-without-remedy"])
def test_what_limits_is_said_once_and_then_what_moves_it(farm: Investigation, kind: OutcomeKind) -> None:
    inv = ended(farm, kind, found=True)
    assert answers.answer(inv).lower().count("the table cache is full") == 1
    found = replace(inv.rounds[0].findings[0], id="disk.fsync", title="every commit waits for the disk")
    rounds = (replace(inv.rounds[0], findings=(found,)),)
    disk = replace(inv, rounds=rounds, next_limit=conclusion.next_limit(rounds))
    assert answers.lines(disk)[1].startswith("To get more, use a faster disk")
    unexplained = ended(farm, kind, found=False)
    assert answers.next_line(unexplained) == "Next: the limit mariadb.table_open_cache, at about 12.8 active jobs."
    assert "table_open_cache" not in " ".join(answers.lines(unexplained))


@pytest.mark.parametrize("kind", ["driver-limited", "link-full"])
def test_where_the_target_was_not_reached_nothing_is_said_of_its_limits(farm: Investigation, kind: OutcomeKind) -> None:
    inv = ended(farm, kind, found=True)
    assert "table cache" not in answers.answer(inv).lower()
    assert answers.lines(inv)[1].startswith("Give the ")


def test_a_last_curve_that_bends_has_a_limit_in_sight_and_one_that_stayed_is_told_so(farm: Investigation) -> None:
    *before, last = farm.rounds
    unexplained = replace(last, findings=(), limits=())
    bending = replace(farm, next_limit=None, rounds=(*before, replace(unexplained, curve=farm.rounds[0].curve)))
    assert answers.next_line(bending).startswith("Next: not known. Throughput falls to 35 % between 12 and 20 active")
    straight = replace(last.curve, shape="linear", knee=None, cliff=None)
    growing = replace(bending, rounds=(*before, replace(unexplained, curve=straight)))
    assert answers.next_line(growing) == "Next: no limit in sight up to 320 active jobs."
    cause = farm.rounds[0].findings[0]
    again = NextLimit(cause.id, None, cause.title, cause.explanation)
    assert answers.next_line(replace(farm, next_limit=again)).endswith("for every job, as before.")


@pytest.mark.parametrize(
    ("status", "ends"),
    [("suspected", " (suspected)."), ("helped", "."), ("confirmed", ".")],
)
def test_what_comes_next_is_no_fact_while_it_is_suspected(farm: Investigation, status: Any, ends: str) -> None:
    *before, last = farm.rounds
    cause = replace(farm.rounds[0].findings[0], id="lock.writer", title="one writer holds the lock", status=status)
    inv = replace(
        farm,
        rounds=(*before, replace(last, findings=(cause,))),
        next_limit=NextLimit(cause.id, None, cause.title, cause.explanation),
    )
    assert answers.next_line(inv) == f"Next: one writer holds the lock{ends}"


def test_the_answer_says_where_the_target_uses_something_else(farm: Investigation) -> None:
    assert "table_open_cache = 2000 (the target uses 431)" in answers.answer(farm)


def test_nothing_to_gain_is_said_plainly(examples: dict[str, Investigation]) -> None:
    inv = examples["cpu_saturated"]
    assert answers.answer(inv).startswith("The CPUs are the limit")
    assert "Nothing was changed" in answers.answer(inv)
    cause = inv.rounds[0].findings[0]
    again = NextLimit(cause.id, 4.0, cause.title, f"it is there where the last curve bends: {cause.explanation}")
    for one in (inv, replace(inv, next_limit=again)):
        assert what_next(one) == "Give the target more CPUs, or make each request cost less CPU time."
        assert render_text(one).count("Give the target more CPUs") == 1
    other = NextLimit("disk.space", None, "the disk", "its use grows with active_jobs")
    assert next_step(replace(inv, next_limit=other)).action == "The disk. To get more, make room on that file system."
    first, highest = inv.rounds[0], inv.rounds[0].curve.points[-1].load
    full = replace(first.limits[0], id="disk.space", exhausted_at=Saturation(2 * highest, 1.8 * highest, 3 * highest))
    far = replace(inv, next_limit=replace(other, load=2 * highest), rounds=(replace(first, limits=(full,)),))
    assert next_step(far).action == (
        "The disk, at about 600 active jobs (extrapolated). To get more, make room on that file system."
    )
    unlimited = replace(inv, outcome=replace(inv.outcome, kind="no-limit-reached"))
    assert answers.answer(unlimited).startswith("No limit was reached up to 320 active jobs")
    assert "above 320 active jobs" in what_next(unlimited)


def test_the_next_limit_is_rounded_as_in_the_ledger(farm: Investigation) -> None:
    """The ledger shows 420 (390 to 450): the first screen must not say 415."""
    assert "at about 420 active jobs" in what_next(farm)


def test_a_next_limit_within_the_levels_is_there_already_and_is_no_surer_than_its_finding(farm: Investigation) -> None:
    cause = next(one for round_ in farm.rounds for one in round_.findings)
    suspected = replace(cause, status="suspected", reached_at=LoadInterval(20.0, 10.0, 20.0))
    last = replace(farm.rounds[-1], findings=(suspected,), limits=())
    limit = NextLimit(cause.id, 20.0, cause.title, "it is there")
    said = what_next(replace(farm, rounds=(*farm.rounds[:-1], last), next_limit=limit))
    assert "at about 20 active jobs. Suspected, not proved." in said


def test_a_forecast_has_three_digits_however_narrow_its_interval(farm: Investigation) -> None:
    assert words.about_load(LoadInterval(357.34, 357.31, 357.36), "active jobs") == "about 357 active jobs"
    assert words.about_load(LoadInterval(1.0, 0.5, 2.0), "active jobs") == "about 1 active job"


def test_a_next_limit_outside_what_was_tested_names_no_load(farm: Investigation) -> None:
    limit = NextLimit("disk.busy", None, "the disk", "it is 40 % busy")
    said = what_next(replace(farm, next_limit=limit))
    assert said.startswith("The disk. To get more, ")
    assert "jobs" not in said


def test_a_refuted_finding_another_round_confirmed_is_not_called_refuted(farm: Investigation) -> None:
    first = farm.rounds[0]
    again = replace(farm.rounds[1], findings=(replace(first.findings[0], status="refuted"),))
    inv = replace(farm, rounds=(first, again))
    assert [finding.id for finding in facts.refuted_findings(inv)] == ["mariadb.table_definition_cache"]


def test_every_metric_is_described_in_words_that_stand_alone() -> None:
    for name in METRICS:
        said = finding_words.metric_words(name)
        assert said and said != name
        assert not said.startswith("of "), f"{name}: {said!r} needs another line to be understood"


def test_every_metric_in_evidence_is_described(investigation: Investigation) -> None:
    for round_ in investigation.rounds:
        for finding in round_.findings:
            for piece in finding.evidence:
                assert (
                    finding_words.evidence_sentence(piece).startswith(METRICS[piece.metric].what[:3])
                    or piece.metric in METRICS
                )
                assert not re.search(r"\w_\w|\w\.\w+\.", finding_words.metric_words(piece.metric))


def test_a_metric_nobody_registered_is_still_readable() -> None:
    said = finding_words.evidence_sentence(Evidence("nginx.requests_waiting", 12.0, ">", 3.0, "level 8"))
    assert said == "nginx requests waiting: 12 (threshold: more than 3; level 8)"


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (LoadInterval(12.6, 11.8, 13.9), "13 active jobs (12 to 14)"),
        (LoadInterval(80.0, 80.0, 80.0), "80 active jobs"),
        (LoadInterval(171.0, 148.0, 204.0), "170 active jobs (150 to 200)"),
        (LoadInterval(2.0, 1.0, 2.0), "2 active jobs (1 to 2)"),
        (LoadInterval(1.0, 1.0, 2.0), "1 active job (1 to 2)"),
    ],
)
def test_a_load_is_said_in_the_users_units(interval: LoadInterval, said: str) -> None:
    assert words.load_interval(interval, "active jobs") == said


def test_a_server_that_names_itself_is_not_named_twice(farm: Investigation) -> None:
    assert words.target_name(farm.study) == "mariadb 10.11.14"
    assert words.target_name(replace(farm.study, target_version="MariaDB 10.11")) == "MariaDB 10.11"


def test_one_is_singular() -> None:
    assert words.load(1.0, "workers") == "1 worker"
    assert words.load(2.0, "workers") == "2 workers"
    assert [words.load(1.0, unit) for unit in ("processes", "entries")] == ["1 process", "1 entry"]
    assert words.load(1.0, "units of load") == "1 unit of load"


def test_a_curve_of_nothing_has_no_peak() -> None:
    nothing = fit([LevelSample(load, (0.0, 0.0), ()) for load in (1.0, 2.0, 4.0)], axis="concurrency", treatment="A")
    assert words.curve_phrase(nothing, "clients") == "is 0 at every load: nothing was served, or it is not counted"
    assert not any(fact.startswith("Peak") for fact in words.curve_facts(nothing, "clients"))


def test_settings_keep_their_spelling_at_the_start_of_a_sentence() -> None:
    assert words.sentence("table_open_cache was cut") == "table_open_cache was cut."
    assert words.sentence("books = 16") == "books = 16."
    assert words.sentence("the disk was busy.") == "The disk was busy."


def test_the_kind_of_loop_is_said_where_it_is_known(farm: Investigation) -> None:
    curve = farm.rounds[0].curve
    assert not any("loop" in fact for fact in words.curve_facts(curve, "jobs"))
    assert "Closed loop" in words.curve_facts(replace(curve, closed_loop=True), "jobs")[-1]
    assert "Open loop" in words.curve_facts(replace(curve, closed_loop=False), "jobs")[-1]


def test_a_peak_of_the_scalability_law_is_told_with_its_interval_and_only_near_what_was_measured(
    farm: Investigation,
) -> None:
    curve = farm.rounds[0].curve
    highest = curve.points[-1].load

    def facts_of(peak_load: float, low: float, *, falls: bool = True) -> str:
        shown = replace(curve, shape="decline" if falls else "plateau")
        kappa = (highest / 1000) / highest**2
        law = Scalability(
            9.0, 1 - kappa * peak_load**2, kappa, (8.0, 10.0), (0.0, 0.1), (low * kappa, 2 * kappa), peak_load
        )
        return " ".join(words.curve_facts(replace(shown, usl=law), "jobs"))

    assert "Scalability law" in facts_of(0.8 * highest, 0.5)
    assert "Scalability law" not in facts_of(0.8 * highest, 0.5, falls=False)  # it was there, and did not fall
    assert re.search(
        r"Scalability law: peak expected at [0-9,.]+ jobs \([0-9,.]+ to [0-9,.]+\)", facts_of(2 * highest, 0.5)
    )
    assert "Scalability law" not in facts_of(2 * highest, -0.1)  # not proven to be above 0
    assert "Scalability law" not in facts_of(25 * highest, 0.5)


def test_what_to_do_about_a_driver_beside_its_target_is_the_next_step(farm: Investigation) -> None:
    first = farm.rounds[0]
    beside = replace(first.findings[0], id=DRIVER_BESIDE, status="suspected", title="the load driver takes CPUs")
    inv = replace(
        farm, rounds=(replace(first, findings=(beside,), tried=()),), variants=(), next_limit=None,
        outcome=replace(farm.outcome, kind="limit-without-remedy"),
    )  # fmt: skip
    assert "the load driver takes CPUs" in answers.answer(inv)
    assert "cage.driver.cpus" in what_next(inv)
    other = replace(inv, rounds=(replace(first, findings=(replace(beside, id="disk.saturated"),), tried=()),))
    assert "cage.driver.cpus" not in what_next(other)


def test_a_bend_that_a_limit_explains_is_told_at_its_load_with_both_intervals(farm: Investigation) -> None:
    """Else a page says "bends at 90 (60 to 140)" beside "gives way at 117"."""
    first = farm.rounds[0]
    knee, full = LoadInterval(90.0, 60.0, 140.0), LoadInterval(117.0, 112.0, 124.0)
    cause = replace(first.findings[0], reached_at=full)
    limits = (replace(first.limits[0], id=cause.id),)
    one = replace(first, curve=replace(first.curve, knee=knee), findings=(cause,), limits=limits)
    inv = replace(farm, rounds=(one, farm.rounds[1]), before=conclusion.summary(one))
    assert inv.before is not None
    both = "bends at 117 active jobs (112 to 124), where mariadb.table_open_cache is full; the curve alone gives 90"
    assert both in words.state_sentence(inv.before, "active jobs")
    for said in (" ".join(render_text(inv, width=100, details=True).split()), " ".join(render_page(inv).split())):
        assert "117 active jobs (112 to 124), where mariadb.table_open_cache is full" in said
        assert "the curve alone gives 90 active jobs (60 to 140)" in said
    record = investigation_json(inv)
    assert record["before"]["bend"] == {
        "load": {"load": 117.0, "low": 112.0, "high": 124.0},
        "curve": {"load": 90.0, "low": 60.0, "high": 140.0},
        "limit": "mariadb.table_open_cache",
    }
    assert record["before"]["knee"]["load"] == 90.0
    assert record["reach"]["knee"][0]["load"] == 117.0


def test_one_load_where_the_cause_and_the_curve_agree_and_both_with_the_reason_where_not(farm: Investigation) -> None:
    """Seen: "gives way at about 140 MiB" beside a bend at 150 (120 to 180)."""
    first = farm.rounds[0]
    knee = LoadInterval(150.0, 120.0, 180.0)

    def said(cause: LoadInterval) -> str:
        found = (replace(first.findings[0], id="memory.mmap_page_faults", reached_at=cause),)
        one = replace(first, curve=replace(first.curve, knee=knee, cliff=None), findings=found)
        return answers.answer(replace(farm, rounds=(placed(one), farm.rounds[1])))

    agreeing = said(LoadInterval(140.0, 125.0, 155.0))
    assert agreeing.startswith("Throughput drops at about 150 active jobs: ") and "140" not in agreeing
    apart = said(LoadInterval(60.0, 50.0, 70.0))
    assert apart.startswith("A limit is reached at about 60 active jobs: "), "the throughput drops elsewhere"


def test_a_bend_that_no_limit_explains_is_the_curves(farm: Investigation) -> None:
    assert farm.before is not None
    assert "the curve alone" not in words.state_sentence(replace(farm.before, bend=None), "active jobs")
    assert investigation_json(replace(farm, before=replace(farm.before, bend=None)))["before"]["bend"] is None


def of_service(inv: Investigation, kind: OutcomeKind, *findings: Finding) -> Investigation:
    """A service of the reader's own, with these findings and nothing gained."""
    one = replace(inv.rounds[0], findings=findings, tried=(), ruled_out=())
    return replace(
        inv, rounds=(one,), variants=(), next_limit=None, outcome=replace(inv.outcome, kind=kind), after=None,
        study=replace(inv.study, target_kind="service"),
    )  # fmt: skip


def test_a_bend_that_nothing_explains_is_not_called_no_limit(farm: Investigation) -> None:
    inv = of_service(farm, "limit-not-seen")
    answer = answers.answer(inv)
    assert "nothing that is seen from outside is exhausted" in answer
    assert "No limit was reached" not in answer
    assert "add levels" not in what_next(inv)
    assert "[target.setting.NAME]" in what_next(inv)
    known = replace(inv, study=replace(inv.study, target_kind="mariadb"))
    assert "target.setting" not in what_next(known), "its settings are known"


def test_a_flat_curve_of_disturbed_steps_is_not_judged(farm: Investigation) -> None:
    inv = of_service(farm, "limit-not-seen")
    steal = Influence("steal", "disturbance", inv.quality.steps, 0.2, 0.6, 0.0, (5.0,), ("A",))
    answer = answers.answer(replace(inv, quality=replace(inv.quality, influences=(steal,))))
    assert "what limits it was not judged" in answer and "disturbed from outside" in answer
    assert "nothing that is seen" not in answer and "not judged" not in answers.answer(inv)


def test_settings_that_were_tried_because_they_are_declared_are_told_as_such(farm: Investigation) -> None:
    trial = farm.rounds[0].tried[0]
    declared = replace(trial, remedy=replace(trial.remedy, addresses=()))
    kept = replace(farm, rounds=(replace(farm.rounds[0], findings=(), tried=(declared,)),))
    assert "tried because the study declares it; its gain names no cause" in answers.answer(kept)
    assert "names no cause" not in answers.answer(farm)
    seen = of_service(farm, "limit-not-seen")
    fruitless = replace(seen, rounds=(replace(seen.rounds[0], tried=(replace(declared, kept=False),)),))
    assert "The one change that was tried shows no proven gain" in answers.answer(fruitless)
    assert "tried" not in answers.answer(seen)


def test_levels_that_begin_on_the_plateau_are_told_to_begin_at_one(farm: Investigation) -> None:
    flat = of_service(farm, "limit-not-seen")
    points = tuple(replace(point, throughput=100.0, throughput_high=105.0) for point in flat.rounds[0].curve.points)
    curve = replace(flat.rounds[0].curve, points=points, shape="plateau", knee=None, cliff=None, peak=Peak(20, 100.0))
    inv = replace(flat, rounds=(replace(flat.rounds[0], curve=curve),))
    assert "Measure from a load of 1" in what_next(inv)


def test_what_would_confirm_a_number_in_service_is_the_next_step(farm: Investigation) -> None:
    finding = Finding(
        "service.parallelism", "4 requests are served at a time", None, (), 0.51, "200/s x 20 ms is 4",
        advice="Declare the pool.",
    )  # fmt: skip
    inv = of_service(farm, "limit-without-remedy", finding)
    assert "4 requests are served at a time" in answers.answer(inv)
    assert what_next(inv) == "Declare the pool. Why: 200/s x 20 ms is 4.", "what to do comes before the arithmetic"
    tried = replace(inv, outcome=replace(inv.outcome, kind="no-proven-gain"))
    assert next_step(tried).action.startswith("Declare further settings as [target.setting.NAME]")
    assert "has no proven gain. 200/s x 20 ms is 4." in next_step(tried).why
    listed = replace(tried, study=replace(tried.study, target_kind="mariadb"))
    assert next_step(listed).action.startswith("Try another of its settings"), "a study declares none of this kind"
    pool = Remedy("service.pool.8", "pool = 8", (finding.id,), (), Price())
    left = UntriedRemedy(pool, "too little of the budget is left to prove it; give measure.budget more time")
    one = replace(tried, rounds=(replace(tried.rounds[0], untried=(left,)),))
    assert "pool = 8 may confirm it, and was not tried: too little of the budget" in what_next(one)
    assert "Declare further" not in what_next(one)


def test_a_cost_that_grows_is_no_load_at_which_anything_gives_way(farm: Investigation) -> None:
    finding = Finding("growth.requests", "a request costs 4 times as much", None, (), 0.9)
    inv = of_service(farm, "limit-without-remedy", finding)
    assert answers.answer(inv).startswith("Suspected, not proved: a request costs 4 times as much.")
    confirmed = of_service(farm, "limit-without-remedy", replace(finding, status="confirmed"))
    assert answers.answer(confirmed).startswith("A request costs 4 times as much; a restart confirms it.")
    assert "Restart the service" in what_next(inv)


def test_a_time_is_told_as_people_say_it() -> None:
    assert words.moment("2026-11-25T23:48:57+01:00") == "25 November 2026, 22:48 UTC"
    assert words.moment("yesterday") == "yesterday"


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("from the peak on, at 2 to 4", "from the peak on, at 2 to 4 workers"),
        ("past the bend, at 1,024", "past the bend, at 1,024 workers"),
        ("over the whole run", "over the whole run"),
        ("", ""),
    ],
)
def test_the_levels_of_evidence_have_their_unit(window: str, told: str) -> None:
    evidence = Evidence("system.cpu.own", 0.2, "<", 0.9, window)
    assert finding_words.evidence_window(evidence, "workers") == told
    assert finding_words.evidence_window(evidence, "") == window


def test_a_gain_whose_interval_is_too_wide_leads_with_its_lower_end(queue: Investigation) -> None:
    assert queue.gain is not None
    vague = replace(queue.gain, decision="better", ratio=280.0, low=11.2, high=7000.0)
    assert verdict_words.gain_sentence(vague).startswith("at least 11 times the throughput (95 % interval 11 to more")
    assert verdict_words.gain_sentence(replace(vague, ratio=2.0, low=1.9, high=2.1)).startswith("2.0 times")
    unproved = replace(vague, low=0.9, decision="no-proven-difference")
    assert "280 times" in verdict_words.gain_sentence(unproved)
    found = verdict_words.reach_of(queue)
    assert found is not None
    assert verdict_words.led_ratio(replace(found, ratio=220, low=88, high=520)) == "at least 88"
    assert verdict_words.led_ratio(replace(found, ratio=2.0, low=1.9, high=2.1)) == "2.0"
    gain = replace(queue.variants[-1].gain, ratio=280.0, low=11.2, high=7000.0)
    assert verdict_words.led_ratio(gain) == "at least 11"


def test_what_cannot_be_told_has_no_ratio_in_any_sentence() -> None:
    nothing = verdict_at_end({4.0: [0.0, 0.0, 0.0]}, {4.0: [100.0, 101.0, 99.0]})
    compared = Comparison("as given", "wal", verdict=nothing)
    for said in (
        verdict_words.gain_sentence(nothing, "workers"),
        verdict_words.ratio_words(nothing),
        verdict_words.proof_sentence(nothing, "workers"),
        verdict_words.comparison_sentence(compared),
    ):
        assert "cannot tell: one side did nothing" in said and "times" not in said, said


def test_a_growth_that_stays_suspected_says_why(farm: Investigation) -> None:
    first = farm.rounds[0].findings[0]
    told = Mechanism("workload.cost_growth", 4.8, None, None, False, False, "not confirmed: too little of the budget")
    grows = replace(first, id="growth.requests", status="suspected", mechanism=told)
    said = finding_words.sentence(farm, grows)
    assert "suspected: no restart has confirmed it; not confirmed: too little of the budget" in said
    assert "not confirmed" not in finding_words.sentence(farm, replace(grows, id="lock.writer"))


def test_a_cost_that_grows_says_what_a_restart_showed_and_never_asks_for_one_that_was_made(farm: Investigation) -> None:
    first = replace(farm.rounds[0].findings[0], id="growth.requests", status="suspected", mechanism=None)
    shown = Mechanism("workload.cost_growth", 4.8, 1.2, None, False, True, "response time at level 1: 13 ms before")
    came_back, stayed = replace(first, mechanism=shown), replace(first, mechanism=replace(shown, receded=False))
    confirmed = replace(came_back, status="confirmed")
    for finding, said in (
        (first, "Restart the service and see whether requests are cheap again"),
        (came_back, "A longer measure.budget may confirm it"),
        (stayed, "Look for what outlives a restart"),
        (confirmed, "Find what the service keeps until it is restarted. Then measure again."),
    ):
        told = what_next(of_service(farm, "limit-without-remedy", finding))
        assert said in told
        assert ("Restart the service" in told) is (finding is first)
    sentence = finding_words.sentence(farm, confirmed)
    assert "confirmed: after a restart requests were cheap again" in sentence
    assert "changing it moved" not in sentence, "nothing was changed"
    assert finding_words.mechanism_sentence(confirmed) == shown.because
    text = " ".join(render_text(of_service(farm, "limit-without-remedy", stayed), details=True).split())
    assert text.count(shown.because) == 1


@pytest.mark.parametrize(
    ("axis", "unit", "lowest", "limited", "from_on"),
    [
        ("concurrency", "clients", 1.0, "One client already hits the limit", "flat from 1 client on"),
        ("concurrency", "clients", 4.0, "4 clients already hit the limit", "flat from 4 clients on"),
        ("rate", "requests/s", 1.0, "The lowest rate, 1 request/s, already hits the limit", "flat from 1 request/s on"),
        ("rate", "requests/s", 50.0, "The lowest rate, 50 requests/s, already hits the limit", "from 50 requests/s on"),
    ],
)
def test_a_flat_curve_is_not_told_to_have_no_bend(
    farm: Investigation, axis: str, unit: str, lowest: float, limited: str, from_on: str
) -> None:
    """Beside "Throughput is limited from 1 client on" stood "no bend within the tested levels"."""
    points = tuple(
        replace(point, load=lowest * 2**number, throughput=100.0, throughput_low=95.0, throughput_high=105.0)
        for number, point in enumerate(farm.rounds[0].curve.points[:3])
    )
    curve = replace(
        farm.rounds[0].curve, points=points, shape="plateau", knee=None, cliff=None, peak=Peak(lowest * 2, 100.0)
    )
    cause = replace(
        farm.rounds[0].findings[0], id="disk.fsync", status="suspected", reached_at=LoadInterval(lowest, lowest, lowest)
    )
    found = of_service(farm, "limit-without-remedy", cause)
    one = replace(found.rounds[0], curve=curve)
    levels = tuple(point.load for point in points)
    study = replace(found.study, axis=axis, axis_unit=unit, levels=levels)
    inv = replace(found, rounds=(one,), before=conclusion.summary(one), study=study)
    for said in (" ".join(render_text(inv, details=True).split()), " ".join(render_page(inv).split())):
        assert from_on in said and limited in said
        assert "no bend" not in said
    seen_later = replace(cause, reached_at=LoadInterval(lowest * 4, lowest, lowest * 4))
    at_peak = replace(curve, peak=Peak(lowest, 100.0))
    later = replace(inv, rounds=(replace(one, findings=(seen_later,), curve=at_peak),))
    assert answers.answer(later).startswith(limited), "a peak at the lowest load, and a cause that may begin there"


def test_what_grows_up_to_the_highest_load_is_not_told_to_be_limited_from_the_lowest_on(farm: Investigation) -> None:
    points = tuple(replace(point, throughput=100.0 * point.load) for point in farm.rounds[0].curve.points)
    highest = max(point.load for point in points)
    curve = replace(
        farm.rounds[0].curve, points=points, shape="linear", knee=None, cliff=None, peak=Peak(highest, 100.0 * highest)
    )
    lowest = min(point.load for point in points)
    cause = replace(farm.rounds[0].findings[0], status="suspected", reached_at=LoadInterval(lowest, lowest, lowest))
    found = of_service(farm, "limit-without-remedy", cause)
    one = replace(found.rounds[0], curve=curve)
    inv = replace(
        found, rounds=(one,), before=conclusion.summary(one), study=replace(found.study, levels=(lowest, lowest))
    )
    assert "but is held back at every load" in answers.answer(inv)
    assert "limited from" not in answers.answer(inv)


def test_a_service_that_stopped_answering_is_told_first_and_is_no_cause(farm: Investigation) -> None:
    inv = of_service(farm, "stopped-answering", replace(farm.rounds[0].findings[0], status="suspected"))
    inv = replace(inv, stop=Stop(7, 16.0, "A", "/orders", 503, 76.4))
    said = answers.answer(inv)
    assert said.startswith(
        "At 16 active jobs the service failed: it answered /orders with status 503, and still did 76.4 s after the "
        "load. Until then: "
    )
    assert "Suspected, not proved" in said
    assert "See the service's own log" in what_next(inv)
    other = replace(inv, stop=Stop(7, 16.0, "B", "/orders", 503, 76.4, "A larger pool"))
    assert "At 16 active jobs, in another state (A larger pool), the service failed: " in answers.answer(other)
    assert answers.stop_sentence(farm.stop, "jobs") == ""


def test_only_a_limit_is_called_the_next_limit(farm: Investigation) -> None:
    """What to do next may stand in its place, beside a limit that is known."""
    assert farm.next_limit is not None
    assert next_step(farm).limit
    stopped = replace(farm, outcome=replace(farm.outcome, kind="stopped-answering"))
    assert not next_step(stopped).limit


def test_of_a_pool_the_answer_has_the_setting_and_of_a_bend_elsewhere_the_load(farm: Investigation) -> None:
    title = "4 requests are served at a time (4 threads sleep; the setting workers is 4; the setting rows is 4)"
    first = farm.rounds[0]
    assert first.curve.knee is not None
    far = LoadInterval(300.0, 290.0, 310.0)
    found = (replace(first.findings[0], id="service.parallelism", title=title, reached_at=far),)
    said = answers.answer(replace(farm, rounds=(replace(first, findings=found), farm.rounds[1])))
    at = "A limit is reached at about 300 active jobs"
    assert said.startswith(f"{at}: 4 requests are served at a time (the setting workers or rows).")
    plain = replace(found[0], title="4 requests are served at a time (4 threads sleep; 4 processes)")
    said = answers.answer(replace(farm, rounds=(replace(first, findings=(plain,)), farm.rounds[1])))
    assert said.startswith(f"{at}: 4 requests are served at a time (4 threads sleep).")


def test_beside_other_programs_the_target_has_no_limit_and_no_advice(farm: Investigation) -> None:
    """Seen: "the target's own limit was not judged", then "Next: the CPUs are saturated" and "give it more CPUs"."""
    inv = of_service(farm, "limit-without-remedy", Finding("cpu.others", "others take the CPU", None, (), 0.9))
    inv = replace(inv, next_limit=NextLimit("cpu.saturated", 4.0, "the CPUs", "full"))
    assert answers.answer(inv).endswith("the target's own limit was not judged.")
