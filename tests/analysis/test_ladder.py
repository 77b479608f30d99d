"""A ladder taken apart: its shares add up, its intervals hold, and changes that need one another are found."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from loadframe.analysis.ladder import (
    Samples,
    State,
    contrast,
    decompose,
    interactions,
    pair,
    pair_states,
    rising,
    states,
    without,
)

KEPT: State = ("pool", "flush", "threads")
FACTORS = {"pool": 3.0, "flush": 1.5, "threads": 1.2}
LEVELS = (4.0, 8.0)


def measured(
    random: np.random.Generator,
    asked: tuple[State, ...],
    *,
    factors: Mapping[str, float] = FACTORS,
    together: Mapping[frozenset[str], float] | None = None,
    blocks: int = 5,
    noise: float = 0.05,
) -> Samples:
    """Throughputs of these states. together: what several changes are worth beyond their product. A block has a drift
    that all its states share."""
    drift = np.exp(random.normal(0, 0.3, blocks))
    found: dict[State, dict[float, list[float]]] = {}
    for state in asked:
        true = math.prod(factors[change] for change in state)
        true *= math.prod(more for changes, more in (together or {}).items() if changes <= set(state))
        found[state] = {
            level: list(100 * level * true * drift * np.exp(random.normal(0, noise, blocks))) for level in LEVELS
        }
    return found


def test_the_states_of_a_ladder() -> None:
    assert rising(("a", "b")) == ((), ("a",), ("a", "b"))
    assert states(("a", "b", "c")) == ((), ("a",), ("a", "b"), ("a", "b", "c"), ("b", "c"), ("a", "c"))
    assert states(("a",)) == ((), ("a",))
    assert without(("a", "b", "c"), "a", "c") == ("b",)


@pytest.mark.parametrize("seed", range(20))
def test_gains_multiply_to_the_total_and_shares_add_up_to_one(seed: int) -> None:
    found = decompose(measured(np.random.default_rng(seed), states(KEPT), noise=0.3), KEPT)
    assert math.prod(gain.ratio for gain in found.gains) == pytest.approx(found.total.ratio)
    if found.total.decision == "no-proven-difference":
        assert not found.shares
    else:
        assert sum(found.shares) == pytest.approx(1)


def test_a_state_that_failed_has_no_gain_and_no_share() -> None:
    samples = measured(np.random.default_rng(1), rising(KEPT))
    samples[("pool",)][4.0][2] = 0.0
    found = decompose(samples, KEPT)
    assert [gain.has_ratio for gain in found.gains] == [False, False, True]
    assert found.total.has_ratio and found.shares == ()


def test_a_change_that_loses_has_a_negative_share() -> None:
    factors = {"pool": 3.0, "flush": 0.7, "threads": 1.2}
    found = decompose(measured(np.random.default_rng(2), states(KEPT), factors=factors), KEPT)
    assert found.shares[1] < 0 < found.shares[2]
    assert found.gains[1].decision == "worse"


def test_what_was_not_measured_at_the_top_stays_open() -> None:
    found = decompose(measured(np.random.default_rng(3), rising(KEPT)), KEPT)
    assert found.at_top[:2] == (None, None)
    assert found.at_top[2] == found.gains[2]


def test_a_total_that_is_not_proven_has_no_shares() -> None:
    nothing = dict.fromkeys(KEPT, 1.0)
    found = decompose(measured(np.random.default_rng(4), states(KEPT), factors=nothing), KEPT)
    assert found.total.decision == "no-proven-difference"
    assert found.shares == ()


def test_a_ladder_without_a_change_is_refused() -> None:
    with pytest.raises(ValueError, match="without a change"):
        decompose({(): {1.0: [1.0, 2.0]}}, ())


@pytest.mark.long
def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    truth = [*FACTORS.values()]
    held = []
    for _ in range(200):
        found = decompose(measured(random, states(KEPT), blocks=4), KEPT)
        held += [gain.low <= true <= gain.high for gain, true in zip(found.gains, truth, strict=True)]
        held += [top.low <= true <= top.high for top, true in zip(found.at_top, truth, strict=True) if top]
        held.append(found.total.low <= math.prod(truth) <= found.total.high)
    assert np.mean(held) >= 0.94


def test_changes_that_do_not_touch_one_another_are_rarely_called_interacting() -> None:
    random = np.random.default_rng(6)
    wrong = sum(bool(interactions(measured(random, states(KEPT)), KEPT)) for _ in range(300))
    assert wrong <= 0.05 * 300 + 2 * math.sqrt(0.05 * 0.95 * 300)


def test_a_change_that_needs_another_is_found_with_its_size() -> None:
    """The pool is worth twice as much once the last change is there."""
    random = np.random.default_rng(7)
    together = {frozenset({"pool", "threads"}): 2.0}
    samples = measured(random, states(KEPT), together=together, blocks=6)
    (found,) = interactions(samples, KEPT)
    assert (found.change, found.partner) == ("pool", None)
    assert found.verdict.low < 2 < found.verdict.high
    top = decompose(samples, KEPT).at_top[0]
    assert top is not None and top.low < 6 < top.high


def test_of_the_change_before_the_last_the_partner_is_the_last() -> None:
    samples = measured(
        np.random.default_rng(8), states(KEPT), together={frozenset({"flush", "threads"}): 0.5}, blocks=6
    )
    (found,) = interactions(samples, KEPT)
    assert (found.change, found.partner) == ("flush", "threads")
    assert found.verdict.high < 1


def test_of_a_pair_it_is_known_which_one_is_responsible() -> None:
    random = np.random.default_rng(9)
    together = {frozenset({"pool", "threads"}): 2.0}
    guilty = measured(random, pair_states(KEPT, "pool", "threads"), together=together)
    innocent = measured(random, pair_states(KEPT, "pool", "flush"), together=together)
    one, other = pair(guilty, KEPT, "pool", "threads"), pair(innocent, KEPT, "pool", "flush")
    assert one.verdict.low < 2 < one.verdict.high
    assert one.verdict.decision == "better"
    assert other.verdict.low < 1 < other.verdict.high


def test_a_pair_is_the_same_from_either_side() -> None:
    samples = measured(np.random.default_rng(10), pair_states(KEPT, "pool", "flush"))
    one, other = pair(samples, KEPT, "pool", "flush"), pair(samples, KEPT, "flush", "pool")
    assert one.verdict.ratio == pytest.approx(other.verdict.ratio)


def test_only_blocks_that_both_sides_have_count() -> None:
    samples = {("a",): {1.0: [2.0, 2.0, 8.0]}, (): {1.0: [1.0, 1.0]}}
    assert contrast(samples, [("a",)], [()]).ratio == pytest.approx(2)
