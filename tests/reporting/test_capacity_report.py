"""What a capacity search found, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from loadframe.model import Capacity, CapacityLevel, CapacityObjective, CapacityTrial, LoadInterval, Verdict
from loadframe.model.capacity import AlternativeCapacity
from loadframe.model.verdict import NOT_KNOWN
from loadframe.reporting.json_shapes import capacity_json
from loadframe.reporting.reports import render_text

NONE = Verdict(1.0, *NOT_KNOWN, "cannot-tell", 0, "the target failed")
FOUND = Capacity(
    axis="rate",
    axis_unit="requests/s",
    objective=CapacityObjective(loss_ratio=0.01, latency_p95_ms=50),
    end="found",
    load=612,
    low=600,
    high=622,
    error_probability=0.013,
    precision=0.05,
    held_s=60.4,
    load_seconds=101.2,
    seconds_above_share=0.038,
    open_loop=True,
    levels=(CapacityLevel(600, 9, 9, 60.4, "meets", 0.006), CapacityLevel(622, 3, 0, 1.2, "misses", 0.007)),
    trials=(
        CapacityTrial(1, 600, 3.6, "", 600.2, 600.1, 12.5, False, True),
        CapacityTrial(2, 622, 0.4, "it fell so far behind that the trial was stopped", 200, 622, 310, True, True),
    ),
    run="runs/1",
    warnings=("One step was disturbed.",),
)


def test_the_text_says_the_answer_its_proof_and_its_price() -> None:
    text = " ".join(render_text(FOUND).split())
    assert text.startswith("Capacity: 612 requests/s. 600 requests/s is shown to meet and 622 requests/s to miss")
    for words in ("1.3 %", "p95 latency within 50 ms, at most 1 % of the requests lost", "intended start", "9 of 9"):
        assert words in text
    for words in (
        "2 trials at 2 levels, 1 min 41 s of load, 3.8 % of it above the",
        "60.4 s",
        "One step was disturbed.",
        "runs/1",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"end": "below-range", "load": None, "low": None, "high": 50}, "below 50 requests/s, the lowest level"),
        ({"end": "above-range", "load": 5000, "low": 5000, "high": None}, "5,000 requests/s, still meets"),
        (
            {"end": "undecided", "high": None},
            "not known to 5 %: about 612 requests/s; 600 requests/s is shown to meet.",
        ),
        ({"end": "undecided", "low": None, "high": None}, "no level is decided yet"),
        ({"expected": LoadInterval(640, 560, 730)}, "Expected beforehand: 640 requests/s (560 to 730)."),
    ],
)
def test_every_end_has_its_words(change: dict[str, object], words: str) -> None:
    assert words in " ".join(render_text(replace(FOUND, **change)).split())  # type: ignore[arg-type]


def test_the_json_is_what_other_tools_were_promised() -> None:
    shape = capacity_json(FOUND)
    assert json.loads(json.dumps(shape, allow_nan=False)) == shape
    assert shape["schema"] == "loadframe.capacity/1"
    assert shape["capacity"] == {"load": 612, "low": 600, "high": 622}
    assert [trial["met"] for trial in shape["trials"]] == [True, False]
    assert shape["seconds_above_share"] == 0.038
    assert capacity_json(replace(FOUND, load=None))["capacity"] is None


def test_other_settings_stand_beside_the_start_of_their_own_host() -> None:
    beside = (
        AlternativeCapacity("more", "one", "found", 1210, 1200, 1240, Verdict(1.98, 1.7, 2.3, "better", 3, "bounds")),
        AlternativeCapacity(
            "all", "two", "above-range", 2000, 2000, None, Verdict(2.9, 2.9, 1e50, "better", 3, "bounds")
        ),
        AlternativeCapacity("none", "two", "", None, None, None, NONE, "it has ended"),
    )
    text = render_text(replace(FOUND, alternatives=beside))
    assert "2.0 times (1.7 to 2.3)" in text and "above 2,000 requests/s" in text
    assert "at least 2.9 times" in text and "the target failed" in text and text.count("better") == 2
    assert "none failed: It has ended." in text
    shown = json.loads(json.dumps(capacity_json(replace(FOUND, alternatives=beside))))["beside"]
    assert [each["verdict"]["decision"] for each in shown] == ["better", "better", "cannot-tell"]
    assert [each["verdict"]["high"] for each in shown] == [2.3, None, None]
    assert shown[1]["high"] is None and shown[2]["failed"] == "it has ended"
