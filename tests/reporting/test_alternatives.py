"""An alternative beside the target: in words, as JSON, on the page, as a chart."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from loadframe.model import (
    Alternative,
    Decision,
    Influence,
    Investigation,
    LoadInterval,
    OutcomeKind,
    Verdict,
    WarmRestart,
    Witness,
)
from loadframe.reporting import (
    alternatives,
    answers,
    facts,
    plots,
    quality_words,
    reports,
    vega,
)
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page, render_text


def verdict(ratio: float, low: float, high: float, *levels: float) -> Verdict:
    decision: Decision = "better" if low > 1 else "worse" if high < 1 else "no-proven-difference"
    return Verdict(ratio, low, high, decision, 4, "t", levels=levels)


@pytest.fixture
def beside(farm: Investigation) -> Investigation:
    """The farm with another server beside it, which has a cause of its own and lacks that of the first one."""
    first = farm.rounds[0]
    own = replace(first.findings[0], id="lock.row", title="transactions wait for row locks")
    one = Alternative(
        name="postgres",
        target_kind="postgres",
        round=replace(first, findings=(own,)),
        verdict=verdict(1.6, 1.3, 2.0, 5, 10),
        by_level=(verdict(1.02, 0.9, 1.1, 5), verdict(2.5, 2.1, 3.0, 10)),
        divergence=LoadInterval(70.0, 60.0, 90.0),
        witnesses=(Witness("target.cpu.cores", 10, 1.5, 0.7), Witness("target.paging.major_faults", 10, 5000.0, 3.0)),
    )
    return replace(farm, alternatives=(one,))


def test_the_answer_in_words(beside: Investigation) -> None:
    said = " ".join(alternatives.sentences(beside, beside.alternatives[0]))
    assert said.startswith("postgres against mariadb: no proven difference at 5 ")
    assert "2.5 times at 10 active jobs (2.1 to 3.0)." in said
    assert "They diverge at 70 active jobs (60 to 90)." in said
    assert "Only in postgres: transactions wait for row locks (" in said
    assert f"Only in mariadb: {beside.rounds[0].findings[0].title} (confirmed)." in said
    assert said in " ".join(render_text(beside, details=True).split())


def test_loads_that_were_left_out_are_not_among_all_loads(beside: Investigation) -> None:
    (one,) = beside.alternatives
    first, last = (replace(each, decision="better") for each in (one.by_level[0], one.by_level[-1]))
    said = alternatives.sentence(beside, replace(one, verdict=verdict(2.5, 2.1, 3.0, 10), by_level=(first, last)))
    assert said.startswith("2.5 times at 10 active jobs (2.1 to 3.0); ")


def test_no_ratio_over_all_loads_where_they_do_not_say_the_same(beside: Investigation) -> None:
    """Seen: "1.6 times over all loads" beside "no proven difference at 60 objects; 3.5 times at 400": true nowhere."""
    (one,) = beside.alternatives
    assert {each.decision for each in one.by_level} == {"no-proven-difference", "better"}
    assert "over all loads" not in alternatives.sentence(beside, one)


@pytest.mark.long
def test_the_page_begins_with_the_comparison(beside: Investigation) -> None:
    (one,) = beside.alternatives
    unproved = replace(one, verdict=verdict(1.1, 0.9, 1.4, 5, 10))
    equal = replace(unproved, name="copy", by_level=(verdict(1.0, 0.9, 1.1, 5),))
    assert alternatives.lead(replace(beside, alternatives=())) == ""
    assert alternatives.lead(beside) == "Postgres serves 2.5 times what mariadb serves at 10 active jobs (2.1 to 3.0)."
    overall = replace(one, by_level=one.by_level[:1])
    assert alternatives.lead(replace(beside, alternatives=(overall,))) == (
        "Postgres serves 1.6 times what mariadb serves over all loads (1.3 to 2.0)."
    )
    several = replace(beside, alternatives=(one, unproved, equal, replace(equal, name="sham", version="sham 3.1")))
    assert alternatives.lead(several).endswith(
        "Postgres serves 2.5 times what mariadb serves at 10 active jobs (2.1 to 3.0). "
        "No difference from mariadb is proven for copy and sham."
    )
    found = alternatives.lead(replace(several, alternatives=several.alternatives[:1]))
    assert render_text(beside, details=True).replace("\n", " ").startswith(f"{found} Of mariadb: ")
    page = render_page(several)
    assert page.index('id="chart-alternatives"') < page.index('id="chart-proof"') < page.index('id="environment"')
    assert "Alternative: sham</dt><dd>sham 3.1<" in page
    assert 'id="chart-side-by-side-1"' in page and '<a href="#side-by-side-1">Side by side</a>' in page
    single = render_page(beside)
    assert single.index('id="chart-side-by-side-1"') < single.index('id="chart-proof"')
    assert single.count('id="chart-side-by-side-1"') == 1 and 'id="chart-alternatives"' not in single


def test_the_comparison_tells_where_two_change_places(beside: Investigation) -> None:
    (one,) = beside.alternatives
    crossing = replace(one, verdict=verdict(1.2, 1.1, 1.4, 5, 10), by_level=(verdict(0.4, 0.3, 0.5, 5), *one.by_level))
    assert alternatives.lead(replace(beside, alternatives=(crossing,))) == (
        "Postgres serves 2.5 times what mariadb serves at 10 active jobs (2.1 to 3.0), "
        "but 0.4 times at 5 active jobs (0.3 to 0.5)."
    )


@pytest.mark.parametrize("kind", ["driver-limited", "link-full", "interrupted"])
def test_what_is_of_the_whole_run_comes_before_the_comparison(beside: Investigation, kind: OutcomeKind) -> None:
    said = answers.answer(replace(beside, outcome=replace(beside.outcome, kind=kind)))
    assert alternatives.lead(beside) in said and not said.startswith("Postgres")
    assert "Of mariadb: " not in said


def test_a_comparison_of_disturbed_steps_says_that_they_were(beside: Investigation) -> None:
    steal = Influence("steal", "disturbance", beside.quality.steps, 0.2, 0.6, 0.0, (5.0,), ("A",))
    inv = replace(beside, variants=(), quality=replace(beside.quality, influences=(steal,)))
    assert "steps were disturbed from outside" in answers.answer(inv)


def with_others(inv: Investigation, *ratios: float) -> Investigation:
    """One beside another, each so many times as fast."""
    (one,) = inv.alternatives
    curves = [
        replace(one.round.curve, points=tuple(replace(each, throughput=each.throughput * ratio) for each in points))
        for ratio in ratios
        for points in (one.round.curve.points,)
    ]
    others = (
        replace(
            one,
            name=f"other{number}",
            verdict=verdict(ratio, 0.9 * ratio, 1.1 * ratio, 5, 10),
            round=replace(one.round, curve=curve),
            by_level=(),
            divergence=None,
        )
        for number, (ratio, curve) in enumerate(zip(ratios, curves, strict=True), start=1)
    )
    return replace(inv, alternatives=tuple(others))


def test_of_many_the_fastest_leads_and_all_are_told_in_a_sentence(beside: Investigation) -> None:
    assert alternatives.lead(with_others(beside, 0.3, 0.5, 2.2, 1.0, 0.7)) == (
        "other3 serves 2.2 times what mariadb serves over all loads (2.0 to 2.4); "
        "other5 0.70 times over all loads (0.63 to 0.77); other2 0.50 times over all loads (0.45 to 0.55); "
        "other1 0.30 times over all loads (0.27 to 0.33). No difference from mariadb is proven for other4."
    )


def test_more_curves_than_colours_are_told_apart(beside: Investigation) -> None:
    several = with_others(beside, 0.3, 0.5, 2.2, 1.01, 0.7, 1.6, 0.95)
    drawn = plots.side_by_side(several, several.alternatives, vega.WIDE)
    assert drawn is not None
    said = drawn.described()
    assert all(said.count(f"other{number}: ") == 1 for number in range(1, 8))
    looks = [each["mark"] for each in drawn.specification()["layer"] if each["mark"]["type"] == "line"]
    assert len({(look["color"], str(look.get("strokeDash"))) for look in looks}) == 8


@pytest.mark.parametrize("ratios", [(0.3, 0.5, 2.2, 1.01, 0.7, 1.6, 0.95), (1.0, 1.01, 1.02, 0.99)])
def test_no_two_names_of_curves_touch(beside: Investigation, ratios: tuple[float, ...]) -> None:
    several = with_others(beside, *ratios)
    drawn = plots.side_by_side(several, several.alternatives, vega.NARROW)
    assert drawn is not None
    axis = drawn.y
    spec = drawn.specification()
    places = sorted(
        vega.NARROW.height * axis.height(spec["datasets"][layer["data"]["name"]][0]["value"]) - layer["mark"]["dy"]
        for layer in spec["layer"]
        if layer["mark"]["type"] == "text"
    )
    assert len(places) == len(ratios) + 1
    assert all(above - below >= 13 for below, above in pairwise(places))
    assert places[-1] <= vega.NARROW.height + 1


def test_curves_that_are_apart_from_the_lowest_load_on_may_have_parted_before(beside: Investigation) -> None:
    (one,) = beside.alternatives
    early = replace(one, divergence=LoadInterval(5.0, 4.9999999999, 9.12))
    said = " ".join(alternatives.sentences(beside, early))
    assert "They diverge at 9.12 active jobs at the latest." in said
    assert plots.side_by_side_title(beside, early).endswith("diverge at 9.12 active jobs at the latest")


def test_where_no_difference_is_proved_a_ratio_changes_and_nobody_parts(beside: Investigation) -> None:
    (one,) = beside.alternatives
    unproved = replace(one, by_level=(verdict(1.02, 0.9, 1.1, 5), verdict(2.5, 0.7, 3.0, 10)))
    said = " ".join(alternatives.sentences(beside, unproved))
    assert "Their ratio changes at 70 active jobs (60 to 90)." in said and "part" not in said
    assert (
        plots.side_by_side_title(beside, unproved)
        == "The ratio of mariadb and postgres changes at 70 active jobs (60 to 90)"
    )


@pytest.mark.long
def test_the_page_shows_both_sides(beside: Investigation) -> None:
    page = render_page(beside)
    assert "mariadb and postgres side by side" in page
    assert 'id="chart-side-by-side-1"' in page
    assert "no proven difference" in page
    assert page.count("major page faults of the target") >= 1
    title = reports.page_charts(beside)["side-by-side-1"].title
    assert title == "mariadb and postgres diverge at 70 active jobs (60 to 90)"
    assert "side by side" not in render_page(replace(beside, alternatives=()))


def test_causes_of_one_side_are_told_together(beside: Investigation) -> None:
    (one,) = beside.alternatives
    two = (*one.round.findings, replace(one.round.findings[0], id="lock.table", title="a table is locked"))
    said = alternatives.sentences(beside, replace(one, round=replace(one.round, findings=two)))
    alone = [sentence for sentence in said if sentence.startswith("Only in postgres: ")]
    assert len(alone) == 1
    assert "transactions wait for row locks (confirmed); a table is locked (confirmed)." in alone[0]


@pytest.mark.long
def test_the_picture_speaks_of_a_parting_only_where_it_shows_one(beside: Investigation) -> None:
    (one,) = beside.alternatives
    assert "Dashed: where their ratio begins to change" in reports.page_charts(beside)["side-by-side-1"].note
    together = replace(beside, alternatives=(replace(one, divergence=None),))
    assert reports.page_charts(together)["side-by-side-1"].note == "Shaded bands: 95 % intervals."


def test_every_step_of_an_alternative_is_there(beside: Investigation) -> None:
    page = render_page(beside)
    assert '<a href="#data-side-by-side-1">' in page
    assert page.count('id="data-side-by-side-1"') == 1
    assert f"<summary>postgres: {beside.alternatives[0].round.treatment}, " in page


def test_programs_get_every_number(beside: Investigation) -> None:
    (shape,) = investigation_json(beside)["alternatives"]
    assert (shape["name"], shape["target_kind"]) == ("postgres", "postgres")
    assert [one["levels"] for one in shape["by_level"]] == [[5], [10]]
    assert shape["parting"] == {"load": 70, "low": 60, "high": 90}
    assert shape["witnesses"][1] == {
        "metric": "target.paging.major_faults", "level": 10, "target": 5000.0, "alternative": 3.0,
    }  # fmt: skip
    one = beside.alternatives[0]
    endless = replace(one, verdict=replace(one.verdict, high=math.inf))
    json.dumps(investigation_json(replace(beside, alternatives=(endless,))), allow_nan=False)


def test_a_cache_that_did_not_come_back_is_told_with_its_error(farm: Investigation) -> None:
    lost = WarmRestart("D", "squid", "SIGKILL", 16, None, "its index is broken.")
    inv = replace(farm, warm_restarts=(WarmRestart("D", "squid", "a clean stop", 16, 9), lost))
    text = render_text(inv, details=True)
    assert "9 of 16 objects" in text and "not known: its index is broken" in text
    cells = '<td data-label="After a clean stop">9 of 16 objects</td>'
    cells += '<td data-label="After SIGKILL">not known: its index is broken</td>'
    assert cells in render_page(inv)
    shape = investigation_json(inv)["survivals"][-1]
    assert (shape["kept"], shape["error"]) == (None, "its index is broken.")


def with_silence(inv: Investigation, silence_ms: float, stalled_ms: float) -> Investigation:
    first = inv.rounds[0]
    rows = list(first.footprint)
    rows[-1] = {**rows[-1], "workload.silence_ms": silence_ms, "system.stall.longest_ms": stalled_ms}
    return replace(inv, rounds=(replace(first, footprint=tuple(rows)), *inv.rounds[1:]))


def test_times_in_which_nobody_was_answered_are_told_under_the_curve(farm: Investigation) -> None:
    level = f"{farm.rounds[0].footprint[-1]['level']:g}"
    stalled = with_silence(farm, 1500.0, 900.0)
    said = quality_words.silence_sentence(stalled)
    assert said.startswith("No request completed for up to 1,500 ms (mariadb, at ")
    assert f"at {level} active jobs)" in said
    assert said.endswith("the whole machine stalled.")
    assert said in " ".join(render_text(stalled, details=True).split())
    assert reports.page_charts(stalled)["stalls"].title == said[:-1]
    assert not quality_words.silence_sentence(with_silence(farm, 1500.0, 10.0)).endswith("still.")


def test_gaps_that_a_low_throughput_has_anyway_are_none(farm: Investigation) -> None:
    assert quality_words.silence_sentence(with_silence(farm, 150.0, 0.0)) == ""
    assert "stalls" not in reports.page_charts(farm)
    row = {**farm.rounds[0].footprint[-1], "throughput": 5.0, "workload.silence_ms": 900.0}
    assert facts.silences(replace(farm.rounds[0], footprint=(row,))) == ()
