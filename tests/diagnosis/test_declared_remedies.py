"""Settings that a study declares, as remedies: what has the size found is tried first, what does nothing last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadframe.diagnosis.remedies import propose, proposed_for, state_after
from loadframe.diagnosis.remedies.declared import ways_back
from loadframe.knowledge.remedy import Situation
from loadframe.model import (
    Curve,
    CurvePoint,
    Evidence,
    Finding,
    Knob,
    LoadInterval,
    Peak,
    Round,
    SettingValue,
    TargetState,
    amount,
)

DECOY = Knob("archive_days", (30, 90, 365))
POOL = Knob("senders", (4, 8, 32))


def finding(id_: str, size: float | None = None) -> Finding:
    evidence = () if size is None else (Evidence("workload.in_service", size, "~", size, "on the plateau"),)
    return Finding(id_, "", None, evidence, 0.5)


def situation(knobs: tuple[Knob, ...], **effective: SettingValue) -> Situation:
    return Situation("service", TargetState(effective), effective, {}, {}, knobs=knobs)


def proposed(one: Finding, asked: Situation) -> list[tuple[str, SettingValue]]:
    return [(change.setting, change.after) for remedy in propose([one], asked) for change in remedy.changes]


def one_round(*findings: Finding, ends: bool = True) -> Round:
    """ends: whether throughput stops growing."""
    points = tuple(CurvePoint(load, 100.0 if ends else 100.0 * load, 90.0, 110.0, 1.0) for load in (1.0, 2.0, 4.0))
    knee = LoadInterval(2, 1, 4) if ends else None
    shape = "plateau" if ends else "linear"
    curve = Curve("concurrency", "A", points, shape, Peak(4.0, points[-1].throughput), knee, None, None, None)
    return Round(1, "A", TargetState(), {}, curve, (), findings, (), ())


MODE = Knob("mode", ("fast", "safe"))


@pytest.mark.parametrize("found", [(), (finding("cpu.saturated"),), (finding("disk.saturated"),)], ids=str)
def test_settings_are_tried_because_they_are_declared_where_no_cause_has_a_remedy(found: tuple[Finding, ...]) -> None:
    most = Knob("ttl_s", (0, 60))
    asked = situation((most, POOL, MODE), ttl_s=60, senders=4, mode="fast")
    made = proposed_for(one_round(*found), asked)
    changes = [(change.setting, change.after) for remedy in made for change in remedy.changes]
    assert changes == [("senders", 32), ("mode", "safe"), ("ttl_s", 0)], "what can be raised comes before what is cut"
    assert all(remedy.guessed and remedy.addresses == () for remedy in made), "a gain names no cause"
    assert "the study declares it" in made[0].changes[0].why


def test_a_cause_that_settings_are_for_keeps_them() -> None:
    made = proposed_for(one_round(finding("service.parallelism", 4)), situation((POOL,), senders=4))
    assert [remedy.addresses for remedy in made] == [("service.parallelism",)]


@pytest.mark.parametrize("other", ["driver.limited", "driver.beside", "cpu.others"])
def test_nothing_is_tried_by_a_curve_that_is_not_the_targets_or_that_still_grows(other: str) -> None:
    asked = situation((POOL,), senders=4)
    assert proposed_for(one_round(finding(other)), asked) == ()
    assert proposed_for(one_round(ends=False), asked) == ()


def test_what_has_the_size_that_was_found_is_tried_first() -> None:
    asked = situation((DECOY, POOL), archive_days=30, senders=4)
    assert proposed(finding("service.parallelism", 4), asked) == [("senders", 32), ("archive_days", 365)]


def test_two_that_give_the_size_together_come_before_what_has_nothing_to_do_with_it() -> None:
    knobs = (DECOY, Knob("per_process", low=1, high=64), Knob("copies", (2, 8)))
    asked = situation(knobs, archive_days=30, per_process=3, copies=2)
    assert [name for name, _ in proposed(finding("service.parallelism", 6), asked)][:2] == ["per_process", "copies"]


def test_a_number_that_has_no_larger_value_is_lowered_last_unless_it_is_the_pool_itself() -> None:
    """A shorter timeout frees what waits; fewer senders send no more."""
    timeout = Knob("timeout_ms", (10, 1000))
    asked = situation((timeout, DECOY), timeout_ms=1000, archive_days=30)
    assert proposed(finding("service.parallelism", 4), asked) == [("archive_days", 365), ("timeout_ms", 10)]
    full = situation((Knob("senders", (4, 32)),), senders=32)
    assert proposed(finding("service.parallelism", 32), full) == []


def test_what_was_kept_is_not_put_back_by_the_next_remedy() -> None:
    asked = situation((POOL,), senders=4)
    (kept,) = propose([finding("service.parallelism", 4)], asked)
    assert kept.id == "service.senders.32"
    assert ways_back(kept) == {"service.senders.4"}


def test_what_the_study_says_to_raise_a_cause_comes_before_everything() -> None:
    told = Knob("other", (1, 9), raises="service.parallelism")
    asked = situation((POOL, told), senders=4, other=1)
    assert proposed(finding("service.parallelism", 4), asked)[0] == ("other", 9)


def test_a_cause_that_is_not_inside_a_service_takes_only_settings_that_are_named_for_it() -> None:
    asked = situation((POOL, Knob("files", (64, 4096), raises="process.threads")), senders=4, files=64)
    assert proposed(finding("cpu.saturated"), asked) == []
    assert proposed(finding("process.threads"), asked) == [("files", 4096)]
    (remedy,) = propose([finding("process.threads")], asked)
    assert remedy.changes[0].raises == "process.threads"


@pytest.mark.parametrize(
    ("cause", "knob", "now", "after"),
    [
        ("net.delayed_ack", Knob("nodelay", ("off", "on")), "off", "on"),
        ("net.accept_queue", Knob("backlog", (2, 16, 256)), 2, 16),
        ("runtime.garbage_collection", Knob("heap", ("64m", "512m")), "64m", "512m"),
        ("disk.fsync", Knob("sync", (True, False)), True, False),
        ("growth.requests", Knob("max_entries", low=0, high=1000), 1000, 0),
    ],
)
def test_a_name_that_suggests_a_cause_comes_before_a_decoy(
    cause: str, knob: Knob, now: SettingValue, after: SettingValue
) -> None:
    asked = situation((DECOY, knob), **{"archive_days": 30, knob.name: now})
    found = proposed(finding(cause), asked)
    assert (knob.name, after) in found
    assert found[0] == (knob.name, after) or knob.name == "max_entries", "what can be raised comes before what is cut"


def test_a_range_is_raised_within_its_end_and_a_larger_value_is_one_that_is_declared() -> None:
    ranged = situation((Knob("senders", low=1, high=10),), senders=4)
    assert proposed(finding("service.parallelism", 4), ranged) == [("senders", 10)]
    at_most = situation((POOL,), senders=32)
    assert proposed(finding("service.parallelism", 32), at_most) == [], "fewer at a time lift no such limit"


def test_what_it_gives_up_is_its_price_and_its_change_is_one_of_the_service() -> None:
    knob = Knob("sync", ("always", "never"), gives_up="the last second of documents")
    asked = situation((knob,), sync="always")
    (remedy,) = propose([finding("disk.fsync")], asked)
    assert remedy.price.durability == "the last second of documents"
    assert state_after(asked.state, remedy).settings == {"sync": "never"}


@pytest.mark.parametrize("name", ["sync", "safety"])
def test_what_gives_up_safety_comes_before_settings_for_which_nothing_speaks(name: str) -> None:
    """A journal's two buffers had used up the time of its setting that ends the flushes."""
    buffer, index = Knob("buffer", (4096, 65536)), Knob("index", (1024, 4096, 65536))
    safety = Knob(name, ("always", "never"), gives_up="the last records")
    asked = situation((buffer, index, safety), **{"buffer": 4096, "index": 4096, name: "always"})
    assert [one.title for one in propose([finding("disk.fsync")], asked)] == [
        f"{name} = never",
        "buffer = 65536",
        "index = 65536",
    ]
    free = replace(asked, knobs=(safety, Knob("flush_ms", (1, 10))), effective={name: "always", "flush_ms": 1})
    assert [one.title for one in propose([finding("disk.fsync")], free)] == ["flush_ms = 10", f"{name} = never"]


def test_a_setting_that_is_not_in_use_is_not_tried() -> None:
    assert proposed(finding("service.parallelism", 4), situation((POOL,))) == []


@pytest.mark.parametrize(
    ("value", "size"), [(4, 4.0), ("64m", 64 << 20), ("1.5 GiB", 1.5 * 2**30), ("on", None), (True, None), ("4x", None)]
)
def test_sizes_of_words(value: SettingValue, size: float | None) -> None:
    assert amount(value) == size


def test_what_is_known_to_raise_the_open_files_comes_before_settings_that_only_might() -> None:
    named = Knob("file_cache", (64, 4096))
    asked = situation((named, DECOY), archive_days=30, file_cache=64, RLIMIT_NOFILE=64)
    state = replace(asked.state, limits={"RLIMIT_NOFILE": 64})
    asked = replace(asked, state=state, ceilings={"process.open_files": 64})
    first, *others = propose([finding("process.open_files")], asked)
    (change,) = first.changes
    assert (change.layer, change.setting, change.before, change.after) == ("process", "RLIMIT_NOFILE", 64, 260)
    assert not first.guessed
    assert [one.guessed for one in others] == [True, True]
    assert state_after(asked.state, first).limits == {"RLIMIT_NOFILE": 260}


@pytest.mark.parametrize(("kind", "most", "files"), [("url", 2**20, 64), ("service", 64, 64), ("service", 2**20, None)])
def test_open_files_are_raised_only_where_that_is_possible(kind: str, most: int, files: int | None) -> None:
    effective: dict[str, SettingValue] = {} if files is None else {"RLIMIT_NOFILE": files}
    asked = Situation(kind, TargetState(), effective, {}, {"process.open_files": 64.0}, most_open_files=most)
    assert propose([finding("process.open_files")], asked) == ()


def test_a_trial_of_what_raises_two_of_the_findings_is_told_of_both() -> None:
    """Slots that a study declares as a limit, and which have the size of the requests in service."""
    slots, other = Knob("senders", (4, 32), raises="service.slots"), Knob("archive_days", (30, 90))
    found = [finding("service.parallelism", 4), finding("service.slots"), finding("cpu.hot_thread")]
    first, second = propose(found, situation((slots, other), senders=4, archive_days=30))
    assert first.addresses == ("service.parallelism", "service.slots")
    assert second.addresses == ("service.parallelism",), "of what is only guessed a trial tells nothing more"


def test_an_option_of_the_workload_is_proposed_for_its_stage_alone_and_changed_as_one() -> None:
    knob = Knob("db_threads", low=1, high=16, raises="pipeline.DB_APPLY", layer="application")
    asked = situation((knob,), db_threads=2)
    (remedy,) = propose([finding("pipeline.DB_APPLY")], asked)
    assert remedy.changes[0].layer == "application"
    state = state_after(TargetState({"cache": 1}), remedy)
    assert (state.options, state.settings) == ({"db_threads": 8}, {"cache": 1})
    assert proposed(finding("pipeline.SCAN"), asked) == []
    assert proposed(finding("pipeline.DB_APPLY"), situation((knob,), db_threads=0)) == [], "0: as another option"
    assert proposed(finding("service.parallelism", 2), asked) == []


def test_a_setting_that_is_the_limit_itself_comes_first() -> None:
    knobs = (Knob("cache", (64, 256)), Knob("handles", (40, 400)))
    asked = replace(situation(knobs, cache=64, handles=40), ceilings={"process.open_files": 40.0})
    assert proposed(finding("process.open_files"), asked)[0][0] == "handles"


def test_a_limit_that_the_server_took_from_its_own_setting_is_raised_there() -> None:
    """As memcached sets its limit of open files to that of its connections: one that is set from outside is lost."""
    asked = replace(
        situation((Knob("conns", (40, 400)),), conns=40, RLIMIT_NOFILE=40), ceilings={"process.open_files": 40}
    )
    assert [name for name, _ in proposed(finding("process.open_files"), asked)] == ["conns", "RLIMIT_NOFILE"]


def test_a_setting_that_has_the_value_of_the_throughput_comes_before_those_for_which_nothing_speaks() -> None:
    asked = situation(
        (DECOY, Knob("rate", (250, 1000)), Knob("per_minute", (15000, 60000))),
        archive_days=30,
        rate=250,
        per_minute=15000,
    )
    cause = finding("service.parallelism", 4.0)
    assert proposed(cause, asked)[0][0] == "archive_days"
    capped = replace(cause, evidence=(*cause.evidence, Evidence("throughput", 249.0, "~", 250.0, "on the plateau")))
    assert [name for name, _ in proposed(capped, asked)] == ["rate", "per_minute", "archive_days"]
    asked = situation((POOL, Knob("rate", (250, 1000))), senders=4, rate=250)
    assert [name for name, _ in proposed(capped, asked)] == ["rate", "senders"], "a 4 is what was found often by chance"
