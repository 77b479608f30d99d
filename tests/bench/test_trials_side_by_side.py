"""Trials on the hosts of a fleet, over an engine without machines: hosts that differ, and workers that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import FleetError
from loadframe.model import Step
from loadframe.runs.folder import RunFolder
from loadframe_fleet.alike import PLAN, judge
from loadframe_fleet.on_hosts import MOST_ATTEMPTS
from loadframe_fleet.records import ATTEMPTS, FleetAttempt
from loadframe_fleet.trials import SideBySide
from loadframe_tune.trials import trials_in

from .simulated_hosts import SimulatedEngine
from .simulated_search import SETTINGS, after, busy, tune

Simulated = Callable[..., Bookkeeping]
MakeStep = Callable[..., Step]


def attempts_of(folder: Path) -> list[FleetAttempt]:
    (run,) = folder.glob("*-tuned")
    return ATTEMPTS.of(RunFolder.open(run))


def test_trials_on_two_hosts_find_what_one_machine_finds(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.1})
    found = tune(book, tmp_path, trials=16, searching=SideBySide(engine, ("Trials ran on a and b.",)))
    assert found.end == "gained" and float(after(found)["innodb_io_capacity"]) >= 1600
    assert Counter(trial.host for trial in found.trials).keys() == {"a", "b"}
    assert sorted(trial.number for trial in found.trials) == list(range(1, 17))
    as_given = [trial.ratio for trial in found.trials if not trial.changes]
    assert as_given == [pytest.approx(1.0, abs=0.05)] * len(as_given), "each is held against the start of its own host"
    assert "Trials ran on a and b." in found.warnings
    (run,) = tmp_path.glob("*-tuned")
    alike = RunFolder.open(run).hosts_alike()
    assert alike is not None and {each.likeness for each in (*alike.hosts, *alike.together)} == {"alike"}
    order = [each.host for each in attempts_of(tmp_path) if each.purpose == "alone"]
    assert Counter(order[:6]) == {"a": 3, "b": 3} and all({*order[i : i + 2]} == {"a", "b"} for i in range(0, 6, 2))
    assert engine.closed, "nothing runs beside the proof"


@pytest.mark.parametrize(
    ("speeds", "more", "words"),
    [
        ({"a": 1.0, "b": 0.5}, {}, "host b serves 0.50"),
        ({"a": 1.0, "b": 1.0, "c": 0.5}, {}, "host c serves 0.50"),
        ({"a": 1.0, "b": 1.0}, {"crowded": 0.5}, "while all are loaded host a serves 0.5"),
        ({"a": 1.0, "b": 1.0}, {"noise": 0.4}, "does not prove that they are alike"),
    ],
)
def test_hosts_that_differ_are_refused_before_any_trial(
    speeds: Mapping[str, float],
    more: Mapping[str, Any],
    words: str,
    simulated: Simulated,
    make_step: MakeStep,
    tmp_path: Path,
) -> None:
    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(book, make_step, speeds, **more)
    with pytest.raises(FleetError, match="trials on these hosts cannot be compared") as refused:
        tune(book, tmp_path, searching=SideBySide(engine))
    assert words in refused.value.fact and refused.value.remedy
    assert {each.purpose for each in attempts_of(tmp_path)} == {"alone", "together"}
    assert engine.closed


@pytest.mark.parametrize(("speed", "said"), [(1.0, {"alike"}), (0.5, {"differ"})])
def test_hosts_that_count_the_same_in_every_block_are_told_apart_by_what_they_count(
    speed: float, said: set[str], simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": speed}, noise=0.0)
    if speed == 1.0:
        tune(book, tmp_path, trials=1, searching=SideBySide(engine))
    else:
        with pytest.raises(FleetError, match=r"host b serves 0\.50"):
            tune(book, tmp_path, searching=SideBySide(engine))
    (run,) = tmp_path.glob("*-tuned")
    found = RunFolder.open(run).hosts_alike()
    assert found is not None and {each.likeness for each in found.hosts} == said
    assert {each.blocks for each in found.hosts} == {PLAN.first}, "more blocks would say the same"


def test_a_lost_trial_is_told_and_done_again_and_counts_once(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    lost: list[int] = []

    def lose(host: str, asked: Mapping[str, Any]) -> str:
        first = bool(asked["changes"]) and asked["number"] not in lost and len(lost) < 2
        lost.extend([asked["number"]] if first else [])
        return "its worker has gone" if first else ""

    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.0}, lose=lose, twice=True)
    found = tune(book, tmp_path, trials=10, searching=SideBySide(engine))
    assert len(lost) == 2
    assert sorted(trial.number for trial in found.trials) == list(range(1, 11)), "each once, also where told twice"
    for number in lost:
        mine = [each for each in attempts_of(tmp_path) if each.purpose == "trial" and each.number == number]
        assert [(each.attempt, each.counted, bool(each.lost)) for each in mine] == [(1, False, True), (2, True, False)]
        assert any(f"Trial {number} was lost on {mine[0].host}" in words for words in found.warnings)


def test_settings_that_kill_every_worker_have_failed(simulated: Simulated, make_step: MakeStep, tmp_path: Path) -> None:
    def lose(host: str, asked: Mapping[str, Any]) -> str:
        return "its worker has gone" if asked["changes"].get("innodb_adaptive_hash_index") else ""

    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.0}, lose=lose)
    found = tune(book, tmp_path, trials=12, searching=SideBySide(engine))
    failed = [trial for trial in found.trials if trial.failed]
    assert failed and all("it was lost 3 times, on" in trial.failed for trial in failed)
    assert max(each.attempt for each in attempts_of(tmp_path)) == MOST_ATTEMPTS
    assert found.end == "gained" and "innodb_adaptive_hash_index" not in after(found)


def test_a_host_that_cannot_go_on_leaves_its_trial_to_the_other(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    def refuse(host: str, asked: Mapping[str, Any]) -> str:
        return "no space left" if host == "b" and asked["changes"] else ""

    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.0}, refuse=refuse)
    found = tune(book, tmp_path, trials=8, searching=SideBySide(engine))
    assert len(found.trials) == 8 and {trial.host for trial in found.trials if trial.changes} == {"a"}
    assert "Host b takes no more trials: no space left." in found.warnings


def test_without_a_host_the_trials_so_far_are_kept(simulated: Simulated, make_step: MakeStep, tmp_path: Path) -> None:
    book = simulated(busy, *SETTINGS)
    engine = SimulatedEngine(
        book, make_step, {"a": 1.0, "b": 1.0}, refuse=lambda host, asked: "no space left" if asked["changes"] else ""
    )
    with pytest.raises(FleetError, match="no host of the fleet is left") as ended:
        tune(book, tmp_path, trials=8, searching=SideBySide(engine))
    assert "--resume" in ended.value.remedy
    (run,) = tmp_path.glob("*-tuned")
    assert [trial.changes for trial in trials_in(RunFolder.open(run))] in ([], [{}], [{}, {}])


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(0.9, 1.1, "alike"), (1.02, 1.1, "alike"), (0.4, 0.6, "differ"), (1.15, 1.5, "differ"), (0.7, 1.1, "unknown")],
)
def test_what_an_interval_says_of_two_hosts(low: float, high: float, found: str) -> None:
    assert judge(low, high) == found


def test_a_host_that_has_changed_meanwhile_is_named(simulated: Simulated, make_step: MakeStep, tmp_path: Path) -> None:
    book = simulated(busy, *SETTINGS)
    speeds = {"a": 1.0, "b": 1.0}

    def throttled(host: str, asked: Mapping[str, Any]) -> str:
        speeds["b"] = 0.6 if asked["number"] in (0, 8) else 1.0
        return ""

    engine = SimulatedEngine(book, make_step, speeds, lose=throttled)
    found = tune(book, tmp_path, trials=8, searching=SideBySide(engine))
    assert any("After the trials host b serves 0.6" in words for words in found.warnings)
    assert not any("After the trials host a" in words for words in found.warnings)
