"""The sceptic's rows on forecasts: what is missed would show."""

from __future__ import annotations

import math

import pytest

import forecast_rows
import forecast_systems
from claims import ROWS, Figure
from forecast_claims import Outcome
from loadframe.prediction import library

ROW = {one.name: one for one in ROWS if one.section == 3}


def outcome(*, inside: bool, off: float, below: bool = False) -> Outcome:
    """A study of four loads; the rivals are 20 % off."""
    errors = {"forecast": 4 * [math.log1p(off)]} | {name: 4 * [math.log(1.2)] for name in ("law", "straight")}
    errors |= {name: 4 * [1.0] for name in ("limit", "flat")}
    return Outcome("x", "sqlite", (1.0,), errors, 4 * [inside], 4 * [3.0], most=(0.1, True), below=below)


def told(monkeypatch: pytest.MonkeyPatch, row: str, *outcomes: Outcome) -> tuple[Figure, bool]:
    monkeypatch.setattr(forecast_rows, "outcomes", lambda source: outcomes)
    figure = ROW[row].measure(1)
    return figure, ROW[row].met(figure)


def test_intervals_that_hold_too_seldom_or_always_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = outcome(inside=True, off=0.1), outcome(inside=False, off=0.1)
    for inside, enough, not_too_wide in ((38, True, True), (24, False, True), (400, True, False)):
        several = [good] * min(inside, 400) + [bad] * (0 if inside == 400 else 40 - inside)
        assert told(monkeypatch, "forecasts: library, held", *several)[1] is enough
        assert told(monkeypatch, "forecasts: library, too wide", *several)[1] is not_too_wide


def test_an_error_above_that_of_the_better_rival_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    for off, met in ((0.19, True), (0.21, False)):
        figure, right = told(monkeypatch, "forecasts: library, error", outcome(inside=True, off=off))
        assert (figure.value, right) == (pytest.approx(off / 0.2), met)
        assert "law 20" in figure.rival


def test_a_most_below_what_was_seen_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    studies = outcome(inside=True, off=0.1), outcome(inside=True, off=0.1, below=True)
    assert told(monkeypatch, "forecasts: library, below", *studies) == (
        Figure(1, 0.0, "of 2; their own error 11 %"),
        False,
    )


def test_simulated_faults_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert forecast_systems.limits_passed(1) == 0 == forecast_systems.most_told("idle", 1)
    monkeypatch.setattr(library, "binds", lambda limit: False)
    assert forecast_systems.limits_passed(2) == 2, "a limit that is not minded is passed"
