"""What a search for settings found, in words and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from tunings import FOUND, INDEX, POOL, PROOF, WRITTEN

from loadframe.model import CapacityObjective, LevelRatio, Verdict
from loadframe.model.verdict import NOT_KNOWN
from loadframe.reporting.reports import render_page, render_text
from loadframe.reporting.vega import Size
from loadframe_tune import chart, tuning_json
from loadframe_tune.model import (
    ObjectiveLevel,
    ObjectiveSide,
    Tuning,
    TuningObjective,
    TuningProof,
    TuningTrial,
)

UNCHECKED = replace(PROOF, fresh=None)
"""No time was left for fresh blocks."""


def flat(found: Tuning) -> str:
    """The text without its line breaks."""
    return " ".join(render_text(found, details=True).split())


def rows_of(page: str) -> list[dict[str, Any]]:
    """All rows of the chart's data."""
    spec = page.split('id="spec-trials">')[1].split("</script>")[0]
    return [row for rows in json.loads(spec)["datasets"].values() for row in rows]


def test_the_start_is_in_the_picture_however_large_the_gain() -> None:
    proof = replace(PROOF, verdict=replace(PROOF.verdict, ratio=50.0, low=40.0, high=70.0), fresh=None)
    found = replace(FOUND, trials=tuple(replace(each, ratio=45.0) for each in FOUND.trials), proof=proof)
    drawn = chart.trials(found, Size(640, 300))
    assert drawn is not None
    (domain,) = {tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in drawn.specification()["layer"]}
    assert domain[0] < 1 < 70 < domain[1]


def test_an_interval_is_said_with_its_own_confidence() -> None:
    """A proof after which another one might follow is judged more strictly; its number is told where no time is left
    for fresh blocks."""
    for confidence, said in ((0.95, "95 % interval"), (0.975, "97.5 % interval")):
        found = replace(WRITTEN, proof=replace(UNCHECKED, verdict=replace(PROOF.verdict, confidence=confidence)))
        text, page = render_text(found, details=True), render_page(found)
        assert f"2.1 times, {said} 1.5 to 2.9" in text and f"<br>{said} 1.5 to 2.9" in page
        assert f"the deciding blocks, {said}." in page
        assert tuning_json(found)["verdict"]["confidence"] == confidence


def test_a_gain_is_told_from_fresh_blocks_beside_those_that_decided() -> None:
    text, page = flat(FOUND), render_page(WRITTEN)
    said = "The gain is from fresh blocks; the deciding blocks gave 2.1 times (95 % interval 1.5 to 2.9)."
    assert said in text and said in page and "in 4 fresh blocks" in page
    assert "likely too high" not in text + page and "overstated" not in text + page
    assert "Square: the best settings in fresh blocks, 95 % interval." in page
    shape = tuning_json(FOUND)
    assert (shape["fresh"]["schema"], shape["fresh"]["ratio"], shape["verdict"]["ratio"]) == (
        "loadframe.verdict/1", 1.75, 2.1,
    )  # fmt: skip


def test_where_no_fresh_blocks_followed_it_is_said_that_the_gain_is_likely_too_high() -> None:
    found = replace(WRITTEN, proof=UNCHECKED)
    text, page = flat(found), render_page(found)
    assert (
        text.startswith("Set the 2 settings below: 2.1x")
        and "it may be overstated, as the same blocks decided. Found in" in text
    )
    said = "No time was left for fresh blocks: the gain comes from the deciding blocks and is likely too high."
    assert said in text and said in page
    assert "in 3 blocks<br>" in page and "fresh blocks:" not in page.split(said)[1]
    assert tuning_json(found)["fresh"] is None


def test_a_gain_that_fresh_blocks_do_not_prove_again_is_told_so() -> None:
    fresh = Verdict(1.02, 0.97, 1.07, "no-proven-difference", 4, "paired")
    text = render_text(replace(FOUND, proof=replace(PROOF, fresh=fresh)), details=True)
    assert text.startswith("A gain was proved; in fresh blocks no proven difference: 1.02 times")


def test_what_fresh_blocks_take_back_is_not_recommended() -> None:
    fresh = Verdict(0.8, 0.7, 0.9, "worse", 4, "paired")
    proof = replace(PROOF, fresh=fresh)
    assert not proof.held
    text = flat(replace(FOUND, end="no-proven-gain", file_text="", proof=proof, failed_proofs=(proof,)))
    assert text.startswith(
        "No proven gain: the best of 4 trials of 3 settings gives 0.8 times the throughput in fresh blocks, after"
    )
    found = replace(FOUND, failed_proofs=(proof,))
    assert "proved, and reverted as fresh blocks say the opposite: worse: 0.8 times" in flat(found)
    assert tuning_json(found)["failed_proofs"][0]["fresh"]["ratio"] == 0.8


def test_a_proof_without_a_ratio_says_why_and_has_none_in_the_picture() -> None:
    none = Verdict(1.0, *NOT_KNOWN, "worse", 4, "nothing was served in 4 of 4 blocks at 8")
    proof = replace(PROOF, fresh=none)
    lost = replace(FOUND, end="no-proven-gain", file_text="", proof=proof, failed_proofs=(proof,))
    said = "the best of 4 trials of 3 settings: worse: nothing was served in 4 of 4 blocks at 8, after "
    assert f"No proven gain: {said}" in flat(lost)
    assert "proof:  times" not in render_page(
        replace(WRITTEN, **{name: getattr(lost, name) for name in ("end", "proof", "failed_proofs")})
    )


def test_the_page_stands_alone_and_shows_trials_and_proof() -> None:
    page = render_page(WRITTEN)
    assert page.index("Set the 2 settings below: 1.8x on average over 4 and 8 threads") < page.index("<svg")
    assert "Which settings &lt;serve&gt; more?" in page
    assert f"<del>- {POOL} = 134217728</del>" in page and f"<ins>+ {POOL} = 1073741824</ins>" in page
    assert f"+ {INDEX}" not in page
    for words in ("1.8 times (1.5 to 2.1)", "Every other value gives up durability.", "One step was disturbed.",
                  "failed: the server will not start", "= 2 gives up durability (a second of commits).",
                  "--resume runs/1"):  # fmt: skip
        assert words in page
    assert "src=" not in page and "https://" not in page.replace("https://vega.github.io", "")
    rows = rows_of(page)
    assert {row["number"]: row["kind"] for row in rows if "kind" in row} == {
        1: "trial", 2: "ended early", 3: "failed", 4: "trial",
    }  # fmt: skip
    (proof,) = (row for row in rows if "low" in row)
    assert (proof["ratio"], proof["low"], proof["high"]) == (1.75, 1.6, 1.9)
    assert proof["number"] > 4
    assert "At the bottom: trials that failed" in page
    best = [row["ratio"] for row in rows if row.keys() == {"number", "ratio"}]
    assert best == [1.9, 1.9, 1.9, 1.9], "neither what ended early nor what failed is best"


def test_an_interval_without_an_end_is_drawn_as_far_as_the_picture_goes() -> None:
    assert PROOF.fresh is not None
    endless = replace(WRITTEN, proof=replace(PROOF, fresh=replace(PROOF.fresh, high=math.inf)))
    (proof,) = (row for row in rows_of(render_page(endless)) if "low" in row)
    assert 1.9 < proof["high"] < 4


def test_the_picture_of_whole_trials_speaks_of_nothing_at_its_bottom() -> None:
    whole = tuple(each for each in WRITTEN.trials if each.ratio is not None)
    assert "At the bottom" not in render_page(replace(WRITTEN, trials=whole))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.2, 6.4, [0.2, 0.5, 1, 2, 5]),
        (0.9, 2.4, [1, 2]),
        (0.6, 60, [1, 2, 5, 10, 20, 50]),
        (0.87, 1.8, [1, 1.5]),
        (0.87, 1.3, [0.9, 1, 1.1, 1.2, 1.3]),
    ],
)
def test_ratios_are_read_at_even_steps(low: float, high: float, ticks: list[float]) -> None:
    assert chart.even_steps(low, high) == pytest.approx(ticks)


def test_a_page_without_a_proof_copies_nothing() -> None:
    page = render_page(replace(WRITTEN, end="nothing-better", proof=None, file_text=""))
    assert "Nothing better was found" in page and 'id="settings"' not in page and 'id="proof"' not in page
    assert not any("low" in row for row in rows_of(page))


def test_a_search_that_was_stopped_before_a_trial_has_a_page() -> None:
    stopped = replace(WRITTEN, end="stopped", proof=None, file_text="", trials=())
    page = render_page(stopped)
    assert "Stopped after 0 trials" in page and "chart-trials" not in page
    assert render_text(stopped, details=True).startswith("Stopped after 0 trials")


def test_what_missed_the_objective_is_marked() -> None:
    missed = TuningTrial(5, "search", {}, {8.0: 9000.0}, 9.0, objective_use=3.0, missed="at 8: p95 latency 150 ms")
    page = render_page(replace(WRITTEN, trials=(*FOUND.trials, missed), objective=objective(None)))
    assert "missed the objective at 8: p95 latency 150 ms" in page
    assert "1 trial clearly missed it." in page and "<li>8 threads: as given 40 ms (met).</li>" in page
    assert [row["ratio"] for row in rows_of(page) if row.get("kind") == "missed the objective"] == [9.0]
    assert max(row["ratio"] for row in rows_of(page) if row.keys() == {"number", "ratio"}) == 1.9


def test_the_text_says_what_it_is_worth_what_to_change_and_what_to_copy() -> None:
    text = flat(FOUND)
    assert text.startswith("Set the 2 settings below: 1.8x on average over 4 and 8 threads. Found in")
    for words in (
        "4 trials of 3 settings",
        f"{POOL} from 128 MiB to 1 GiB",
        f"Needs a restart: {POOL}",
        "gives up durability (a second of commits)",
        "runs/1/tuned.cnf",
        "[mariadbd]",
        "1 failed, 1 were ended early",
        "Not varied: - innodb_doublewrite: Every other value gives up durability.",
        "One step was disturbed.",
    ):
        assert words in text
    assert "\n    [mariadbd]\n" in render_text(FOUND, details=True) and f"{INDEX} from" not in text


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (replace(FOUND, end="nothing-better", proof=None, file_text=""), "Nothing better was found"),
        (
            replace(
                FOUND,
                end="no-proven-gain",
                proof=replace(UNCHECKED, verdict=Verdict(1.02, 0.9, 1.1, "no-proven-difference", 6, "paired")),
                file_text="",
            ),
            "No proven gain",
        ),
    ],
)
def test_without_a_proof_nothing_is_to_be_copied(found: Tuning, words: str) -> None:
    text = render_text(found, details=True)
    assert text.startswith(words) and "as they are" in text
    assert "To copy" not in text


def test_the_json_has_every_fact() -> None:
    shape = json.loads(json.dumps(tuning_json(FOUND), allow_nan=False))
    assert (shape["schema"], shape["verdict"]["schema"]) == ("loadframe.tuning/1", "loadframe.verdict/1")
    assert shape["best"] == {POOL: 1 << 30, "innodb_flush_log_at_trx_commit": 2}
    assert shape["trials"][0]["throughput"] == [{"load": 4, "throughput": 1900}, {"load": 8, "throughput": 2100}]
    assert shape["trials"][2]["ratio"] is None and shape["trials"][2]["failed"]
    assert shape["file_text"] == FOUND.file_text
    shape = tuning_json(WRITTEN)
    assert shape["flags"] == {"stranger": 2} and shape["settings"][1]["worth"] is None
    assert shape["settings"][0]["worth"] == {"value": 1 << 30, "ratio": 1.8, "low": 1.5, "high": 2.1}
    assert not {"study", "host", "conduct"} & shape.keys()


def objective(after: ObjectiveSide | None) -> TuningObjective:
    before = ObjectiveSide(latency_p95_ms=40.0, lost_share=0.0, met=True)
    return TuningObjective(CapacityObjective(latency_p95_ms=50.0), (ObjectiveLevel(8.0, before, after),))


def test_a_response_time_that_is_not_known_is_no_short_one() -> None:
    unknown = replace(FOUND, objective=objective(ObjectiveSide(0.0, 0.0, met=False)))
    assert "with the best settings no response time (missed)." in flat(unknown)


def test_what_became_of_the_objective_is_said() -> None:
    kept = replace(FOUND, objective=objective(ObjectiveSide(30.0, 0.0, met=True)))
    text = flat(kept)
    assert "1.8x on average over 4 and 8 threads, and the objective is met. Found in" in text
    assert "The objective: p95 latency within 50 ms. At the levels" in text
    assert "- 8 threads: as given 40 ms (met); in fresh blocks with the best settings 30 ms (met)." in text
    assert tuning_json(kept)["objective"]["met"] is True
    missed = replace(
        FOUND,
        end="no-proven-gain",
        file_text="",
        objective=objective(ObjectiveSide(70.0, 0.02, met=False)),
        trials=(*FOUND.trials, TuningTrial(5, "search", {}, {8.0: 1.0}, 2.0, objective_use=1.6, missed="at 8: ...")),
    )
    text = flat(missed)
    assert text.startswith(
        "No gain within the objective: the best of 5 trials of 3 settings gives 1.8 times the throughput on average"
    )
    assert "70 ms, 2 % lost (missed)" in text and "1 trial clearly missed it." in text
    shape = json.loads(json.dumps(tuning_json(missed), allow_nan=False))
    assert (shape["objective"]["met"], shape["objective"]["latency_p95_ms"]) == (False, 50)
    assert shape["objective"]["levels"][0]["after"] == {"latency_p95_ms": 70, "lost_share": 0.02, "met": False}
    assert shape["trials"][4]["missed"] and tuning_json(FOUND)["objective"] is None


def test_without_a_proof_the_objective_is_told_as_it_was_given() -> None:
    unproved = replace(FOUND, end="nothing-better", proof=None, file_text="", objective=objective(None))
    assert tuning_json(unproved)["objective"]["met"] is None
    text = render_text(unproved, details=True)
    assert "as given 40 ms (met).\n" in text


LESS = TuningProof({POOL: 1 << 29}, 2.2, verdict=Verdict(0.98, 0.9, 1.06, "no-proven-difference", 6, "paired"))
MISSED = TuningProof(
    {POOL: 1 << 31, INDEX: True},
    3.0,
    objective(ObjectiveSide(70.0, 0.0, met=False)),
    verdict=Verdict(2.5, 2.3, 2.7, "better", 4, "paired", (), (4.0, 8.0)),
    levels=(LevelRatio(4, 1000, 2500, 2.5, 2.3, 2.7),),
)


def test_proofs_that_failed_before_a_gain_are_told() -> None:
    found = replace(WRITTEN, failed_proofs=(MISSED, LESS))
    text = flat(found)
    assert "4 trials of 3 settings; settings with a higher expected gain did not hold in 2 proofs." in text
    missed = f"{POOL} = 2147483648, {INDEX} = "
    assert f"- {missed}" in text
    assert "2.5 times the throughput (95 % interval 2.3 to 2.7, 4 blocks), but the objective is missed." in text
    assert f"- {POOL} = 536870912: no proven difference: 0.98 times" in text
    page = render_page(found)
    assert 'id="other-proofs"' in page and missed in page and "The trials had predicted 2.2 times." in page
    shape = json.loads(json.dumps(tuning_json(found), allow_nan=False))["failed_proofs"]
    assert [proof["changes"] for proof in shape] == [{POOL: 1 << 31, INDEX: True}, {POOL: 1 << 29}]
    assert (shape[0]["expected"], shape[0]["verdict"]["schema"], shape[0]["verdict"]["ratio"]) == (
        3.0, "loadframe.verdict/1", 2.5,
    )  # fmt: skip
    level = {"load": 4, "before": 1000, "after": 2500, "ratio": 2.5, "low": 2.3, "high": 2.7, "from_curves": False}
    assert shape[0]["levels"] == [level]
    assert shape[0]["objective"]["met"] is False and shape[1]["objective"] is None


def test_where_no_proof_held_the_others_are_told_too() -> None:
    lost = replace(WRITTEN, end="no-proven-gain", file_text="", proof=LESS, failed_proofs=(LESS, MISSED))
    text = flat(lost)
    assert "0.98 times the throughput in fresh blocks, and the next best one did not hold either. Leave" in text
    assert text.count("- innodb_buffer_pool_size = ") == 1, "the first one is what the answer is about"
    assert len(tuning_json(lost)["failed_proofs"]) == 2
    alone = replace(lost, failed_proofs=(LESS,))
    assert "did not hold" not in flat(alone)
    assert 'id="other-proofs"' not in render_page(alone)
    assert tuning_json(FOUND)["failed_proofs"] == []
