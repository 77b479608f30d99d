"""A ladder whose blocks are measured on the hosts of a fleet, over an engine without machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import FleetError
from loadframe.experiments.climbing import Climbed, LadderStates, climb
from loadframe.model import Step
from loadframe.runs.folder import RunFolder
from loadframe_fleet.records import ATTEMPTS, FleetAttempt
from loadframe_fleet.trials import BlocksOnHosts

from .simulated_hosts import SimulatedEngine
from .test_climbing import CHANGES, ONE_LEVEL, gains

Simulated = Callable[..., Bookkeeping]
MakeStep = Callable[..., Step]


def on_hosts(book: Bookkeeping, folder: Path, engine: SimulatedEngine, notes: list[str]) -> Climbed:
    run = RunFolder.create(folder, "climbed")
    states = LadderStates(book)
    BlocksOnHosts(engine, ("Blocks ran on a and b.",)).begin(book, run, states, notes)
    return climb(book, states, keep_all=False)


def attempts_of(folder: Path) -> list[FleetAttempt]:
    (run,) = folder.glob("*-climbed")
    return ATTEMPTS.of(RunFolder.open(run))


def test_a_ladder_on_two_hosts_finds_what_one_machine_finds(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book, notes = simulated(gains, CHANGES, ONE_LEVEL), list[str]()
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.12}, model=gains)
    found = on_hosts(book, tmp_path, engine, notes)
    assert found.kept == ("pool", "flush")
    assert (
        found.total is not None
        and found.total.reported.low < 4.5 < found.total.reported.high
        and found.total.reported.high < 5
    )
    blocks = [each for each in attempts_of(tmp_path) if each.purpose == "block"]
    assert Counter(each.host for each in blocks).keys() == {"a", "b"}
    for each in blocks:
        held = {step.treatment for step in each.steps}
        assert len(held) >= 2, f"what is compared is measured on one host: {held}"
    assert "Blocks ran on a and b." in notes
    assert any(words.startswith("With the same settings, the host") for words in notes)
    assert any("serve" in words and "of what this machine serves" in words for words in notes)


@pytest.mark.parametrize(
    ("speeds", "more", "words"),
    [
        ({"a": 1.0, "b": 0.5}, {}, "serves"),
        ({"a": 1.0, "b": 1.0}, {"crowded": 0.5}, "while all are loaded host a serves 0.5"),
    ],
)
def test_hosts_that_differ_are_refused_before_any_change(
    speeds: Mapping[str, float],
    more: Mapping[str, Any],
    words: str,
    simulated: Simulated,
    make_step: MakeStep,
    tmp_path: Path,
) -> None:
    book = simulated(gains, CHANGES, ONE_LEVEL)
    engine = SimulatedEngine(book, make_step, speeds, model=gains, **more)
    with pytest.raises(FleetError, match="trials on these hosts cannot be compared") as refused:
        on_hosts(book, tmp_path, engine, [])
    assert words in refused.value.fact and refused.value.remedy
    assert {each.purpose for each in attempts_of(tmp_path)} == {"alone", "together"}
    assert book.elsewhere is None


def test_a_lost_block_is_measured_again_as_a_whole(simulated: Simulated, make_step: MakeStep, tmp_path: Path) -> None:
    lost: list[int] = []

    def lose(host: str, asked: Mapping[str, Any]) -> str:
        first = asked["step"] == "proof" and not lost
        lost.extend([asked["number"]] if first else [])
        return "its worker has gone" if first else ""

    book, notes = simulated(gains, CHANGES, ONE_LEVEL), list[str]()
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.0}, lose=lose, model=gains)
    found = on_hosts(book, tmp_path, engine, notes)
    assert found.kept == ("pool", "flush")
    mine = [each for each in attempts_of(tmp_path) if each.purpose == "block" and each.number == lost[0]]
    assert [(each.attempt, each.counted, len(each.steps)) for each in mine] == [(1, False, 0), (2, True, 2)]
    assert any("was lost on" in words for words in notes)


def test_a_change_with_which_the_target_fails_is_refused_and_the_others_are_tried(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book = simulated(gains, CHANGES, ONE_LEVEL)
    harmed = '"thread_cache_size":0'
    engine = SimulatedEngine(
        book, make_step, {"a": 1.0, "b": 1.0}, model=gains,
        fail=lambda asked: "it has ended" if any(harmed in line for line in asked["states"]) else "",
    )  # fmt: skip
    found = on_hosts(book, tmp_path, engine, [])
    assert [rung.change for rung in found.rungs if rung.refused] == ["harm"]
    assert "it has ended (on host" in next(rung.refused for rung in found.rungs if rung.refused)
    assert found.kept == ("pool", "flush")
