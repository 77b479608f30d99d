"""The end of the command: the answer first, in plain text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from loadframe.model import (
    KEPT_FIRST,
    Comparison,
    Investigation,
    LoadInterval,
    Margin,
    NextLimit,
    OperationTimes,
    Outcome,
    OutcomeKind,
    RuledOut,
    UntriedRemedy,
    Verdict,
)
from loadframe.reporting import answers, change_words
from loadframe.reporting.comparison_report import render_comparison
from loadframe.reporting.curve_report import render_curve
from loadframe.reporting.next_step import next_step
from loadframe.reporting.reports import render_page, render_text


def test_the_answer_is_the_first_line(investigation: Investigation) -> None:
    first = render_text(investigation, details=True).splitlines()[0]
    assert answers.answer(investigation).startswith(first)


def test_it_fits_a_screen_and_has_no_control_characters(investigation: Investigation) -> None:
    """`--details` prints the rest."""
    for details in (False, True):
        text = render_text(investigation, details=details)
        assert details or len(text.splitlines()) <= 25
        assert all(len(line) <= 100 for line in text.splitlines())
        assert all(character == "\n" or character.isprintable() for character in text)
    assert "--details" in render_text(investigation) and investigation.report in render_text(investigation)


def test_settings_to_copy_are_a_block_for_each_variant_and_the_safe_one_comes_first(queue: Investigation) -> None:
    told = [line.strip().removeprefix("To copy").strip() for line in render_text(queue).splitlines()]
    begin = told.index("Safe:")
    assert told[begin : begin + 5] == [
        "Safe:",
        "PRAGMA journal_mode = WAL;",
        "But the last commits may be lost when the machine loses power:",
        "PRAGMA journal_mode = WAL;",
        "PRAGMA synchronous = NORMAL;",
    ]


def test_the_details_have_all_that_a_screen_has_and_each_number_once(queue: Investigation) -> None:
    screen, details = (" ".join(render_text(queue, details=every).split()) for every in (False, True))
    for said in ("4.9x (4.1 to 5.7) at 1 worker", "29 times, each at its own load", "0.903 to 1.11 times"):
        assert said in screen
        assert details.count(said) == 1, said
    assert "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" in details


def test_what_requests_took_is_told_of_the_change_that_it_belongs_to(queue: Investigation) -> None:
    took = (OperationTimes(8.0, "submit", 9.1, 1.2),)
    rounds = tuple(
        replace(one, tried=tuple(replace(trial, operations=took) for trial in one.tried)) for one in queue.rounds
    )
    told = " ".join(render_text(replace(queue, rounds=rounds), details=True).split())
    first, second = told.index("Commit to a write-ahead log (kept)"), told.index("Flush at checkpoints only (kept)")
    took_at = [place.start() for place in re.finditer("8 submit 9.1 ms 1.2 ms", told)]
    assert len(took_at) == 2 and first < took_at[0] < second < took_at[1]


def test_what_cannot_be_judged_is_not_said_to_be_ruled_out(farm: Investigation) -> None:
    open_ = RuledOut("runtime.garbage_collection", "it cannot be seen from outside", judged=False)
    first = farm.rounds[0]
    findings = tuple(replace(one, ruled_out=(open_, *one.ruled_out)) for one in first.findings)
    inv = replace(farm, rounds=(replace(first, findings=findings), *farm.rounds[1:]))
    ruled_out, _, open_items = render_text(inv, details=True).partition("  Not judged\n")
    assert "  Ruled out\n" in ruled_out and "collects garbage" in open_items.splitlines()[0]
    page = render_page(inv)
    assert page.count("<h4>Not judged</h4>") == 1
    assert (
        page.index("<h4>Ruled out</h4>") < page.index("<h4>Not judged</h4>") < page.index("cannot be seen from outside")
    )


@pytest.mark.parametrize("width", [60, 80, 140])
def test_it_keeps_to_the_width(farm: Investigation, width: int) -> None:
    assert max(len(line) for line in render_text(farm, width=width).splitlines()) <= width


def test_it_carries_what_a_reader_needs(farm: Investigation) -> None:
    text = " ".join(render_text(farm, details=True).split())
    for part in (
        farm.study.question,
        "Look-ups that the table cache could not answer: value: 1,240/s",
        "CPUs were 41 % busy",
        "table_open_cache from 64 to 2000",
        "the server uses 431",
        "152 MiB before, 261 MiB after",
        "the hypervisor used more than a tenth of the CPUs for other work",
        "at about 420 active jobs",
        "80 dispatch 1.52 ms 0.61 ms",
        "80 list 41.2 s 12.3 s",
        farm.report,
    ):
        assert part in text, part


def test_a_curve_alone_shows_every_level_with_a_bar(farm: Investigation) -> None:
    text = render_curve(farm.rounds[0].curve)
    lines = text.splitlines()
    bars = {line.split()[0]: line.count("#") for line in lines if "#" in line}
    assert list(bars) == ["5", "10", "12", "15", "20", "40", "80", "160", "320"]
    assert bars["5"] == 30
    assert bars["20"] == 10
    assert "Throughput falls to 35 % between 12 and 20 active jobs." in text
    assert "Knee: 13 active jobs (12 to 14)." in text


def test_a_curve_of_a_run_says_what_disturbed_it_and_what_recording_cost(farm: Investigation) -> None:
    curve = replace(farm.rounds[0].curve, warnings=("The driver is the bottleneck.",))
    alone, told = render_curve(curve), render_curve(curve, quality=farm.quality)
    assert "The driver is the bottleneck." in alone and "recorder" not in alone
    for part in ("66 steps were measured, 2 of them run again.", "2 of 66 steps: the hypervisor", "1.2 % of one CPU"):
        assert part in told, told


def test_a_comparison_has_the_answer_first_and_what_may_spoil_it_below(farm: Investigation) -> None:
    verdict = Verdict(
        ratio=0.9, low=0.85, high=0.95, decision="worse", blocks=7, method="paired blocks", block_ratios=()
    )
    notes = ("3 of 28 steps: the hypervisor took CPU time away.", "Only one sample has blocks.")
    found = Comparison(
        "a.csv", "b.csv", verdict=verdict, margin=Margin(0.03, "proven-worse"), notes=notes, run="runs/one"
    )
    lines = render_comparison(found).splitlines()
    assert "worse" in lines[0] and "b.csv" in lines[0]
    text = " ".join(" ".join(lines).split())
    for part in (*notes, "Paired blocks.", "runs/one", "3.0 %"):
        assert part in text, text


def test_a_forecast_is_told_with_what_came_of_it(foretold: Investigation) -> None:
    said = " ".join(render_text(foretold, details=True).split())
    assert "loader.cpu saturates first" in said
    assert "inside its interval at 1 of the 2 loads forecast" in said


def test_what_was_not_tried_for_a_cause_at_all_levels_comes_next(farm: Investigation) -> None:
    """A cause that is there from the lowest level on is no next limit at that level."""
    first = farm.rounds[0]
    lowest = first.curve.points[0].load
    suspected = replace(first.findings[0], status="suspected", reached_at=LoadInterval(lowest, lowest, lowest))
    remedy = replace(first.tried[0].remedy, addresses=(suspected.id,))
    because = "too little of the budget is left to prove it; give measure.budget more time"
    one = replace(first, findings=(suspected,), tried=(), untried=(UntriedRemedy(remedy, because),))
    found = replace(
        farm,
        rounds=(one,),
        outcome=Outcome("limit-without-remedy", ""),
        variants=(),
        next_limit=NextLimit(suspected.id, lowest, suspected.title, ""),
    )
    assert next_step(found).action == f"{remedy.title} may confirm it, and was not tried: {because}."
    assert answers.answer(found).startswith(f"{lowest:g} active jobs already hit the limit.")
    assert next_step(replace(found, rounds=(replace(one, untried=()),))).action.startswith(suspected.title[:1].upper())


@pytest.mark.parametrize(
    ("later", "kind", "said"),
    [
        (True, "gained", "and what was found in the state with it does not call for this one"),
        (False, "gained", "and no further round came: an investigation has 1 at most"),
        (False, "interrupted", "and the run was stopped before a further round"),
    ],
)
def test_what_came_of_a_remedy_behind_one_that_was_kept_is_told(
    farm: Investigation, later: bool, kind: OutcomeKind, said: str
) -> None:
    first, last = farm.rounds[0], replace(farm.rounds[-1], tried=(), untried=())
    other = UntriedRemedy(replace(first.tried[0].remedy, id="other", title="idle = 120"), KEPT_FIRST)
    rounds = (replace(first, untried=(other,)), last)
    told = change_words.untried(replace(farm, rounds=rounds if later else rounds[:1], outcome=Outcome(kind, "")))
    assert [each.because for each in told] == [f"{KEPT_FIRST}, {said}"]
    budget = UntriedRemedy(other.remedy, "too little of the budget is left to prove it")
    again = replace(farm, rounds=(rounds[0], replace(last, untried=(budget,))))
    assert change_words.untried(again) == [budget], "the last round says it"
