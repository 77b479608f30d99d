"""The capacity with several settings on the hosts of a fleet, over an engine without machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import FleetError, StudyError
from loadframe.model import Capacity, Step
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import encode
from loadframe_fleet.records import ATTEMPTS
from loadframe_fleet.trials import CapacitiesOnHosts, check_settings_alone

from .simulated_hosts import SimulatedEngine, found_at
from .test_climbing import gains

Simulated = Callable[..., Bookkeeping]
MakeStep = Callable[..., Step]
OTHERS = (
    "alternative=[{name='pool',target={settings={innodb_buffer_pool_size=268435456}}},"
    "{name='harm',target={settings={thread_cache_size=0}}},"
    "{name='nothing',target={settings={join_buffer_size=1048576}}}]"
)


def searched(book: Bookkeeping, folder: Path, engine: SimulatedEngine) -> tuple[Capacity, RunFolder]:
    run = RunFolder.create(folder, "searched")
    return CapacitiesOnHosts(engine, ("Searches ran on a and b.",))(book, run, book.bench.study, found_at(900.0)), run


def test_each_is_held_against_the_start_of_its_own_host(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book = simulated(gains, OTHERS)
    engine = SimulatedEngine(book, make_step, {"a": 1.0, "b": 1.12}, model=gains)
    found, run = searched(book, tmp_path, engine)
    told = {each.name: each for each in found.alternatives}
    assert {name: each.verdict.decision for name, each in told.items()} == {
        "pool": "better", "harm": "worse", "nothing": "no-proven-difference",
    }  # fmt: skip
    for name, factor in (("pool", 3.0), ("harm", 0.8), ("nothing", 1.0)):
        one = told[name].verdict
        assert one.ratio == pytest.approx(factor, rel=0.05), "what differs between hosts does not enter"
        assert one.low < factor < one.high
    assert {each.host for each in found.alternatives} == {"a", "b"}
    assert found.hosts is not None and {each.likeness for each in found.hosts.hosts} == {"alike"}
    assert found.load == 900.0 and "Searches ran on a and b." in found.warnings
    kept = [each for each in ATTEMPTS.of(run) if each.purpose == "capacity"]
    assert len(kept) == 3 and all(each.capacity is not None for each in kept)


@pytest.mark.parametrize(
    ("speeds", "more", "words"),
    [({"a": 1.0, "b": 0.5}, {}, "serves"), ({"a": 1.0, "b": 1.0}, {"crowded": 0.5}, "while all are loaded")],
)
def test_hosts_that_differ_are_refused_before_any_other_setting(
    speeds: Mapping[str, float],
    more: Mapping[str, Any],
    words: str,
    simulated: Simulated,
    make_step: MakeStep,
    tmp_path: Path,
) -> None:
    book = simulated(gains, OTHERS)
    with pytest.raises(FleetError, match="cannot be compared") as refused:
        searched(book, tmp_path, SimulatedEngine(book, make_step, speeds, model=gains, **more))
    assert words in refused.value.fact
    (run,) = tmp_path.glob("*-searched")
    assert {each.purpose for each in ATTEMPTS.of(RunFolder.open(run))} == {"alone", "together"}


def test_settings_with_which_the_target_fails_have_no_capacity(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book = simulated(gains, OTHERS)
    engine = SimulatedEngine(
        book, make_step, {"a": 1.0, "b": 1.0}, model=gains,
        fail=lambda asked: "it has ended" if "thread_cache_size" in asked["changes"] else "",
    )  # fmt: skip
    found, _ = searched(book, tmp_path, engine)
    (failed,) = [each for each in found.alternatives if each.failed]
    assert (failed.name, failed.load, failed.verdict.decision) == ("harm", None, "cannot-tell")
    assert not failed.verdict.has_ratio
    assert failed.failed == "it has ended"


def test_a_start_whose_capacity_is_not_known_is_refused(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    class Above(SimulatedEngine):
        def _capacity(self, host: str, asked: Mapping[str, Any], many: bool) -> str:
            above = replace(found_at(900.0), end="above-range", load=900.0, high=None)
            return encode("capacity-record", above).decode()

    book = simulated(gains, OTHERS)
    with pytest.raises(FleetError, match="not between two levels") as refused:
        searched(book, tmp_path, Above(book, make_step, {"a": 1.0, "b": 1.0}, model=gains))
    assert "above-range" in refused.value.fact and "load.levels" in refused.value.remedy


class Undecided(SimulatedEngine):
    """Each search by itself ends without an answer on one host, as often as it is told."""

    open_searches = 0

    def _capacity(self, host: str, asked: Mapping[str, Any], many: bool) -> str:
        if host == "b" and not many and self.open_searches > 0:
            self.open_searches -= 1
            return encode("capacity-record", replace(found_at(900.0), end="undecided", high=None)).decode()
        return super()._capacity(host, asked, many)


def test_a_search_that_does_not_decide_is_made_again_once(
    simulated: Simulated, make_step: MakeStep, tmp_path: Path
) -> None:
    book = simulated(gains, OTHERS)
    engine = Undecided(book, make_step, {"a": 1.0, "b": 1.0}, model=gains)
    engine.open_searches = 1
    found, run = searched(book, tmp_path, engine)
    assert {each.name: each.verdict.decision for each in found.alternatives}["pool"] == "better"
    assert any("did not decide on b" in each for each in found.warnings)
    alone = [each for each in ATTEMPTS.of(run) if each.purpose == "alone" and each.host == "b"]
    assert sum(each.capacity is not None and each.capacity.end == "undecided" for each in alone) == 1, "it is kept"

    engine = Undecided(book, make_step, {"a": 1.0, "b": 1.0}, model=gains)
    engine.open_searches = 2
    with pytest.raises(FleetError, match="undecided"):
        searched(book, tmp_path, engine)


MORE = "alternative=[{name='x',target={settings={table_open_cache=9}},cage={open_files=99}}]"


@pytest.mark.parametrize("override", ["alternative=[]", MORE])
def test_what_is_not_settings_alone_is_refused(override: str, simulated: Simulated) -> None:
    with pytest.raises(StudyError) as refused:
        check_settings_alone(simulated(gains, override).bench.study)
    assert "target.settings" in refused.value.remedy
