"""What a change only helped against is said in those words everywhere, and never stated as the cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadframe.model import OTHERS, Control, Finding, Investigation, Mechanism, RuledOut
from loadframe.reporting import answers, facts, verdict_words
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page, render_text

UNMOVED = Mechanism(
    "workload.lock_waiting", 3.0, 3.0, 2.1, False, False, "requests waiting for that lock, average: 3 before, 3 after"
)


def with_findings(inv: Investigation, *findings: Finding) -> Investigation:
    first = inv.rounds[0]
    return replace(inv, rounds=(replace(first, findings=findings), *inv.rounds[1:]))


@pytest.fixture
def helped(farm: Investigation) -> Investigation:
    """The farm, whose cache a change helped against and whose mechanism was not seen."""
    return with_findings(farm, replace(farm.rounds[0].findings[0], status="helped", mechanism=UNMOVED))


def test_it_is_said_in_the_answer_the_text_the_page_and_the_record(helped: Investigation) -> None:
    answer = answers.answer(helped)
    assert "A change for this cause helped, its mechanism was not observed" in answer
    text, page = " ".join(render_text(helped, width=100, details=True).split()), " ".join(render_page(helped).split())
    for said in (text, page):
        assert verdict_words.STATUS["helped"] in said
        assert "requests waiting for that lock, average: 3 before, 3 after" in said
    assert '<span class="tag helped">helped</span>' in page
    finding = investigation_json(helped)["rounds"][0]["findings"][0]
    assert finding["status"] == "helped"
    assert (finding["mechanism"]["before"], finding["mechanism"]["receded"]) == (3.0, False)


def test_beside_a_confirmed_cause_it_is_not_stated_as_one(farm: Investigation) -> None:
    confirmed = farm.rounds[0].findings[0]
    lock = replace(confirmed, id="lock.writer", status="helped", title="one writer holds the lock", mechanism=UNMOVED)
    inv = with_findings(farm, lock, confirmed)
    assert [finding.id for finding in facts.main_findings(inv)] == [confirmed.id, "lock.writer"]
    assert "one writer" not in answers.answer(inv)
    assert "One writer holds the lock (helped)" in render_text(inv, details=True)


def test_a_cause_that_a_later_state_shows_again_is_suspected_there_not_refuted(farm: Investigation) -> None:
    other = farm.rounds[0].findings[1]
    assert other.status == "refuted"
    again = replace(farm.rounds[1], findings=(replace(other, status="suspected"),))
    inv = replace(farm, rounds=(farm.rounds[0], again))
    assert facts.refuted_findings(inv) == ()
    assert [finding.id for finding in facts.suspected_findings(inv)] == [other.id]


def test_controls_are_told_with_what_was_left_out(farm: Investigation) -> None:
    trial = farm.rounds[0].tried[0]
    control = Control("sham", "restarted without the change", None, None, "skipped: too little of the budget was left")
    worth = Control("without", "more bytes", trial.verdict, True, "with it beside the others more is done")
    tried = replace(trial, controls=(control, worth))
    inv = replace(farm, rounds=(replace(farm.rounds[0], tried=(tried,)), *farm.rounds[1:]))
    for said in (" ".join(render_text(inv, width=100, details=True).split()), " ".join(render_page(inv).split())):
        assert "too little of the budget was left" in said
        assert "more bytes" in said
    assert investigation_json(inv)["rounds"][0]["tried"][0]["controls"][1]["verdict"]["ratio"] == trial.verdict.ratio


def test_others_that_took_the_cpu_come_before_what_only_helped_and_was_not_kept(helped: Investigation) -> None:
    """Seen: "the target's own limit was not judged" above a kept change of 2.7 times (2.2 to 3.2)."""
    first = helped.rounds[0].findings[0]
    crowded = replace(first, id=OTHERS, status="suspected", title="others take the CPU", mechanism=None)
    kept = with_findings(helped, crowded, *helped.rounds[0].findings)
    assert [finding.id for finding in facts.main_findings(kept)[:2]] == [first.id, OTHERS]
    assert "was not judged" not in answers.answer(kept)
    assert "Others take the CPU" in render_text(kept, details=True)
    reverted = tuple(replace(one, tried=tuple(replace(t, kept=False) for t in one.tried)) for one in kept.rounds)
    found = replace(kept, rounds=reverted)
    assert facts.main_findings(found)[0].id == OTHERS
    assert answers.answer(found).startswith("Other programs had the CPUs while this was measured")
    confirmed = with_findings(helped, crowded, replace(first, status="confirmed"))
    assert OTHERS not in [finding.id for finding in facts.main_findings(confirmed)]


FOREIGN = "CPU time of processes outside the study: 4.76 %, not at least 20 %"


def test_others_that_came_later_are_not_ruled_out_by_what_was_seen_before(farm: Investigation) -> None:
    """Seen: `cpu.others` suspected in the last state, and ruled out by a figure of the first one."""
    confirmed = replace(farm.rounds[0].findings[0], ruled_out=(RuledOut(OTHERS, FOREIGN), RuledOut("disk.busy", "6 %")))
    crowded = replace(confirmed, id=OTHERS, status="suspected", title="others take the CPU", ruled_out=())
    first = replace(farm.rounds[0], findings=(confirmed,), ruled_out=confirmed.ruled_out)
    inv = replace(farm, rounds=(first, replace(farm.rounds[1], findings=(crowded,), ruled_out=())))
    for said in (" ".join(render_text(inv, width=100, details=True).split()), " ".join(render_page(inv).split())):
        assert said.count(FOREIGN) == 1
        assert f"suspected: no change has proved it; before any change, this spoke against it: {FOREIGN}" in said
        assert "6 %" in said
        assert "disk.busy:" not in said, "a name, not an id"
    assert f"- {OTHERS}: " not in render_text(inv, width=200, details=True)


def test_others_of_the_first_state_are_not_ruled_out_by_what_was_seen_after(farm: Investigation) -> None:
    first, last = farm.rounds
    crowded = replace(first.findings[0], id=OTHERS, status="suspected", title="others take the CPU", ruled_out=())
    helped = replace(first.findings[0], status="helped", ruled_out=(RuledOut(OTHERS, FOREIGN),), mechanism=UNMOVED)
    inv = replace(
        farm,
        rounds=(
            replace(first, findings=(crowded,), ruled_out=()),
            replace(last, findings=(helped,), ruled_out=helped.ruled_out),
        ),
    )
    for said in (" ".join(render_text(inv, width=100, details=True).split()), " ".join(render_page(inv).split())):
        assert said.count(FOREIGN) == 1
        assert f"suspected: no change has proved it; in the last state, this spoke against it: {FOREIGN}" in said
