"""Answers that were compared are a field of their own, on the page and in the text; only unequal ones are warnings."""

from __future__ import annotations

from dataclasses import replace

from loadframe.model import AnswerCompared, AnswersCompared, Investigation
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page, render_text
from loadframe.runs.formats import decode, encode

SAME = AnswersCompared(
    "the tree of 25,000 entries", 25_000, "du and find", (AnswerCompared("bytes on disk", 3_309_568, 3_309_568),)
)
OTHER = AnswersCompared(
    "the tree of 9 entries", 9, "du and find", (AnswerCompared("entries", 9, 10, ("only find has a<b",)),)
)


def test_compared_answers_are_in_the_json_the_text_and_the_page(investigation: Investigation) -> None:
    inv = replace(investigation, answers=(SAME, OTHER))
    first, second = investigation_json(inv)["answers"]
    assert first == {
        "of": "the tree of 25,000 entries",
        "load": 25_000,
        "beside": "du and find",
        "equal": True,
        "missing": None,
        "answers": [
            {"answer": "bytes on disk", "target": 3_309_568, "other": 3_309_568, "equal": True, "differences": []}
        ],
    }
    assert second["equal"] is False and second["answers"][0]["differences"] == ["only find has a<b"]
    said = " ".join(render_text(inv, width=10_000, details=True).split())
    assert (
        "and those of du and find: The same as du and find, of the tree of 25,000 entries: bytes on disk 3,309,568."
        in said
    )
    assert "entries: the target says 9, du and find 10 (only find has a<b)" in said
    page = render_page(inv)
    assert "Its answers and those of du and find" in page and "only find has a&lt;b" in page


def test_a_run_folder_keeps_them(farm: Investigation) -> None:
    stored = encode("investigation-record", replace(farm, answers=(SAME, OTHER)))
    assert decode("investigation-record", stored, Investigation, where="").answers == (SAME, OTHER)


def test_without_answers_nothing_is_said(investigation: Investigation) -> None:
    assert investigation_json(investigation)["answers"] == []
    assert "Its answers and those" not in render_page(investigation)
