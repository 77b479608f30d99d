"""The truths behind the sceptic's rows on causes: what is drawn is what is said, and a code that errs would show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import counters
import proofs
from loadframe.diagnosis import judging
from loadframe.diagnosis.mechanism import Moved, moved
from loadframe.metrics import METRICS
from loadframe.model import Finding, Step

DRAWS = 40


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def test_what_a_counter_hides_is_there_and_comes_first_where_all_count(random: np.random.Generator) -> None:
    seen = [counters.draw(random, still=False) for _ in range(DRAWS)]
    assert all(one.first and not one.blind and not one.ruled_out and not one.trusting for one in seen)


def test_a_counter_that_stands_still_hides_it_from_those_who_trust_it(random: np.random.Generator) -> None:
    seen = [counters.draw(random) for _ in range(DRAWS)]
    assert all(one.trusting for one in seen)
    assert not any(one.ruled_out for one in seen)


@pytest.mark.extension("loadframe_bulk", "loadframe_caches")
def test_counters_and_evidence_are_metrics() -> None:
    names = {name for stands in counters.STILL.values() for name in stands}
    assert names | {proofs.TRACES[cause].metric for cause in proofs.CAUSES} <= METRICS.keys()
    assert {proofs.TRACES[cause].form for cause in proofs.CAUSES} == {"events", "rate", "waiting", "share", "passes"}


@pytest.mark.parametrize("truth", ["stays", "missing", "uncounted", "neighbour"])
@pytest.mark.extension("loadframe_bulk", "loadframe_caches")
def test_what_is_not_the_cause_gains_and_is_not_confirmed(truth: proofs.Truth, random: np.random.Generator) -> None:
    seen = [proofs.draw(random, truth) for _ in range(3 * DRAWS)]
    least = 1 if truth == "neighbour" else DRAWS / 2  # what a neighbour can have cost widens the interval
    assert sum(one.better for one in seen) >= least
    assert not any(one.confirmed for one in seen)


@pytest.mark.extension("loadframe_bulk", "loadframe_caches")
def test_a_rule_that_takes_the_gain_alone_for_a_proof_would_show(
    monkeypatch: pytest.MonkeyPatch, random: np.random.Generator
) -> None:
    def believing(finding: Finding, before: list[Step], after: list[Step], gain: float, **how: bool) -> Moved:
        seen = moved(finding, before, after, gain, **how)
        return replace(seen, mechanism=replace(seen.mechanism, receded=True))

    monkeypatch.setattr(judging, "moved", believing)
    wrong: Mapping[str, list[proofs.Drawn]] = {
        truth: [proofs.draw(random, truth) for _ in range(DRAWS)] for truth in ("stays", "missing", "uncounted")
    }
    assert all(any(one.confirmed for one in drawn) for drawn in wrong.values())


@pytest.mark.extension("loadframe_bulk", "loadframe_caches")
def test_a_true_cause_is_confirmed_and_of_two_the_first(random: np.random.Generator) -> None:
    seen = [proofs.draw(random, "moved") for _ in range(DRAWS)]
    assert sum(bool(one.confirmed) for one in seen) >= 0.7 * DRAWS
    assert all(proofs.pair(random).confirmed == ("disk.fsync",) for _ in range(DRAWS))
