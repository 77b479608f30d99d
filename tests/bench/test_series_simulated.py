"""Limits one behind the other, and what a kept remedy is held against, on a simulated target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.controls import halved
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import Tried, try_remedies
from loadframe.model import Change, Finding, Knob, Price, Remedy, SettingValue, TargetState

Simulated = Callable[..., Bookkeeping]
Answer = tuple[float, Mapping[str, float]]
WRITES, BYTES = "io.wiops", "io.wbps"


def caged(state: TargetState, level: float) -> Answer:
    """Two writes and 6 kB for each request, under a limit of each: 60 writes and 180 kB a second are full together."""
    limits = {"target.cage.writes": (WRITES, 2.0), "target.cage.write_bytes": (BYTES, 6000.0)}
    served = min(114.0, *(float(state.limits[name]) / each for name, each in limits.values()))
    metrics = {"system.cpu.utilization": 0.2, "system.cpu.count": 2.0, "system.cpu.own": 0.2}
    for metric, (name, each) in limits.items():
        metrics[metric], metrics[f"{metric}.limit"] = served * each, float(state.limits[name])
        metrics[f"{metric}.utilization"] = served * each / float(state.limits[name])
    return served, metrics


def in_cage(book: Bookkeeping) -> Examined:
    """The round of a target in a cage with both limits, as treatment A."""
    bench = book.bench
    state = TargetState({}, {WRITES: 60, BYTES: 180_000})
    bench.states["A"] = state  # type: ignore[attr-defined]

    def use(name: str) -> dict[str, SettingValue]:
        if bench.used[-1:] != [name]:  # type: ignore[attr-defined]
            bench.used.append(name)  # type: ignore[attr-defined]
        return dict(bench.states[name].limits)  # type: ignore[attr-defined]

    bench.use = use  # type: ignore[method-assign]
    curve = sweep(book, "A", round_number=1)
    return examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=state,
        effective=use("A"),
        curve=curve,
        target_kind="mariadb",
        highest_level=32,
    )


def statuses(tried: Tried) -> dict[str, str]:
    return {finding.id: finding.status for finding in tried.round.findings}


def by_id(tried: Tried, name: str) -> Finding:
    return next(finding for finding in tried.round.findings if finding.id == name)


def test_two_limits_that_are_full_together_are_lifted_together(simulated: Simulated) -> None:
    book = simulated(caged)
    tried = try_remedies(book, in_cage(book), set())
    assert tried.kept is not None
    assert (tried.kept[1].limits[WRITES], tried.kept[1].limits[BYTES]) == (240, 720_000)
    *alone, together = tried.round.tried
    assert [trial.kept for trial in alone] == [False, False]
    assert together.verdict.ratio == pytest.approx(3.8, rel=0.1)
    assert statuses(tried) == {"cage.writes": "confirmed", "cage.write_bytes": "confirmed"}
    assert [(control.kind, control.holds) for control in together.controls][:2] == [("without", True)] * 2
    worth = [control.verdict for control in together.controls if control.verdict is not None]
    assert [verdict.ratio for verdict in worth[:2]] == pytest.approx([3.8, 3.8], rel=0.1)


def test_a_limit_behind_which_another_one_is_full_is_not_refuted(simulated: Simulated) -> None:
    """Even where there is no time to lift both."""
    book = simulated(caged, "measure.budget=62s")
    tried = try_remedies(book, in_cage(book), set())
    assert tried.round.tried
    assert "refuted" not in statuses(tried).values()


def test_what_two_changes_are_worth_alone_is_left_out_where_there_is_no_time(simulated: Simulated) -> None:
    book = simulated(caged, "measure.budget=100s")
    tried = try_remedies(book, in_cage(book), set())
    assert tried.kept is not None
    assert {control.verdict for control in tried.round.tried[-1].controls} == {None}
    assert "too little of the budget" in tried.round.tried[-1].controls[0].because
    assert set(statuses(tried).values()) == {"helped"}, "which of the two it was is not told"
    mechanism = by_id(tried, "cage.writes").mechanism
    assert mechanism is not None
    assert "several changes" in mechanism.because


def test_a_change_that_adds_nothing_to_the_other_is_left_out(simulated: Simulated) -> None:
    """More bytes did not help at first, as something was cold; once it is warm they alone do it all."""
    book = simulated(caged)
    examined, bench = in_cage(book), book.bench

    def warmed(state: TargetState, level: float) -> Answer:
        _, metrics = caged(state, level)
        warm = bench.used[-1] > "C" and state.limits[BYTES] > 180_000  # type: ignore[attr-defined]
        return (114.0 if warm else 30.0), metrics

    bench.model = warmed  # type: ignore[attr-defined]
    tried = try_remedies(book, examined, set())
    together, alone = tried.round.tried[-2:]
    assert {control.holds for control in together.controls} == {True, False}
    assert statuses(tried)["cage.writes"] == "refuted"
    assert (together.kept, alone.kept) == (False, True)
    assert tried.kept is not None
    assert (tried.kept[1].limits[WRITES], tried.kept[1].limits[BYTES]) == (60, 720_000)


def test_what_did_not_help_before_is_open_again_once_another_state_is_kept(simulated: Simulated) -> None:
    book, already = simulated(caged), {"cage.cpu_quota.raise"}
    assert try_remedies(book, in_cage(book), already).kept is not None
    assert already == {"cage.cpu_quota.raise"}, "what the target could not work with stays out"


# --- controls ---


def churning(state: TargetState, level: float) -> Answer:
    """Five tables per job; what they are opened for is less the more of them fit."""
    size = float(state.settings["table_open_cache"])
    missing = max(0.0, 1 - size / (5 * level))
    throughput = 9000 / (1 + 4 * missing)
    return throughput, {
        "system.cpu.utilization": 0.5,
        "system.cpu.count": 2.0,
        "mariadb.open_tables": min(5 * level + 3, size),
        "mariadb.table_open_cache": size,
        "mariadb.opened_tables": 5 * missing * throughput,
        "target.memory.rss": 1e8,
    }


def farm(book: Bookkeeping) -> Examined:
    curve = sweep(book, "A", round_number=1)
    return examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=book.bench.start_state,
        effective=book.bench.use("A"),
        curve=curve,
        target_kind="mariadb",
        highest_level=32,
    )


def test_a_confirmed_cause_stands_its_sham_and_its_dose(simulated: Simulated) -> None:
    book = simulated(churning)
    tried = try_remedies(book, farm(book), set())
    trial = tried.round.tried[0]
    assert tried.round.findings[0].status == "confirmed"
    assert [(control.kind, control.holds) for control in trial.controls] == [("sham", True), ("dose", True)]
    sham, dose = (control.verdict for control in trial.controls)
    assert sham is not None
    assert dose is not None
    assert sham.decision == "no-proven-difference"
    assert 1 < dose.low <= dose.high < trial.verdict.low


def test_a_restart_that_helps_as_much_takes_the_confirmation_away(simulated: Simulated) -> None:
    """Whatever is restarted is three times as fast for its first steps, and the state before never is."""
    book = simulated(churning)
    bench = book.bench

    def faster(state: TargetState, level: float) -> Answer:
        throughput, metrics = churning(state, level)
        restarted = state.settings["table_open_cache"] == 64 and bench.used[-1] != "A"  # type: ignore[attr-defined]
        return (9000.0, metrics) if restarted else (throughput, metrics)

    bench.model = faster  # type: ignore[attr-defined]
    tried = try_remedies(book, farm(book), set())
    sham = tried.round.tried[0].controls[0]
    assert (sham.kind, sham.holds) == ("sham", False)
    finding = tried.round.findings[0]
    assert finding.status == "helped"
    assert finding.mechanism is not None
    assert "a restart alone gives" in finding.mechanism.because


def test_a_dose_that_gives_more_than_the_whole_contradicts(simulated: Simulated) -> None:
    def peaked(state: TargetState, level: float) -> Answer:
        throughput, metrics = churning(state, level)
        between = 64 < float(state.settings["table_open_cache"]) < 150
        return (20_000.0, metrics) if between else (throughput, metrics)

    book = simulated(peaked)
    tried = try_remedies(book, farm(book), set())
    dose = tried.round.tried[0].controls[-1]
    assert (dose.kind, dose.holds) == ("dose", False)
    assert tried.round.findings[0].status == "helped"


def test_controls_are_left_out_where_there_is_no_time_and_that_is_said(simulated: Simulated) -> None:
    book = simulated(churning, "measure.budget=70s")
    tried = try_remedies(book, farm(book), set())
    assert tried.round.findings[0].status == "confirmed"
    controls = tried.round.tried[0].controls
    assert [control.verdict for control in controls] == [None, None]
    assert all("skipped" in control.because for control in controls)
    assert book.budget.left_s() > 0


def test_a_server_that_is_not_ours_is_not_restarted_for_a_control(simulated: Simulated) -> None:
    book = simulated(churning)
    examined, study = farm(book), book.bench.study
    book.bench.study = study.model_copy(update={"target": study.target.model_copy(update={"attach": "somebody's"})})
    sham, dose = try_remedies(book, examined, set()).round.tried[0].controls
    assert sham.verdict is None
    assert "Loadframe may not restart this server" in sham.because
    assert dose.holds


def test_a_dose_that_the_target_does_not_take_is_left_out(simulated: Simulated) -> None:
    book = simulated(churning, refuses=lambda state: 64 < float(state.settings["table_open_cache"]) < 150)
    tried = try_remedies(book, farm(book), set())
    dose = tried.round.tried[0].controls[-1]
    assert (dose.kind, dose.verdict) == ("dose", None)
    assert "will not start" in dose.because
    assert tried.round.findings[0].status == "confirmed"
    assert tried.kept is not None
    assert book.bench.used[-1] == tried.kept[0]  # type: ignore[attr-defined]


def refusing(state: TargetState, level: float) -> Answer:
    """Clients beyond the connections are refused, and ask again: those that are served are as many."""
    most = float(state.settings["max_connections"])
    refused = max(0.0, level - most) * 20
    return 1000.0, {
        "system.cpu.utilization": 0.5,
        "mariadb.max_used_connections": min(level, most),
        "mariadb.max_connections": most,
        "mariadb.connection_errors_max": refused,
        "workload.errors": refused,
    }


def test_failures_that_a_restart_ends_as_well_are_not_the_cause_s(simulated: Simulated) -> None:
    for restarts_help in (False, True):
        book = simulated(refusing, "target.settings={max_connections=10}")
        examined, bench = farm(book), book.bench

        def model(state: TargetState, level: float, helps: bool = restarts_help, bench: Any = bench) -> Answer:
            if helps and bench.used[-1] != "A":
                state = TargetState({"max_connections": 1000})
            return refusing(state, level)

        bench.model = model  # type: ignore[attr-defined]
        tried = try_remedies(book, examined, set())
        trial = tried.round.tried[0]
        assert (trial.kept, trial.verdict.decision) == (True, "no-proven-difference")
        assert [(control.kind, control.holds) for control in trial.controls] == [("sham", not restarts_help)]
        assert tried.round.findings[0].status == ("helped" if restarts_help else "confirmed")


def test_half_the_way_of_what_a_study_declares_is_one_of_its_values() -> None:
    def half(values: tuple[SettingValue, ...], before: SettingValue, after: SettingValue) -> SettingValue | None:
        change = Change("server", "pool", before, after)
        remedy = Remedy("service.pool", "", ("service.parallelism",), (change,), Price())
        found = halved(remedy, [Knob("pool", values)])
        return None if found is None else found.changes[0].after

    assert half((4, 8, 32), 4, 32) == 8, "11 is none of them"
    assert half((4, 32), 4, 32) is None
    assert half((0.5, 1.5, 4.0), 4.0, 0.5) == 1.5
    assert half((), 4, 32) == 11, "any number of a range"


def test_half_the_way_is_a_middle_of_every_number() -> None:
    size = Change("server", "table_open_cache", "64", 256)
    enough = Change("process", "RLIMIT_NOFILE", 1024, 1024, needed=False)
    remedy = Remedy("cache", "larger", ("x",), (enough, size), Price())
    half = halved(remedy)
    assert half is not None
    assert [(change.setting, change.after) for change in half.changes] == [("table_open_cache", 128)]
    assert halved(replace(remedy, changes=(size, Change("server", "journal_mode", "delete", "WAL")))) is None
    pool = halved(replace(remedy, changes=(Change("server", "shared_buffers", 2 << 20, 16 << 20),)))
    assert pool is not None
    assert pool.changes[0].after == 6 << 20, "whole MiB, as servers count them in pages"
    assert halved(replace(remedy, changes=(Change("server", "x", 1, 2),))) is None, "nothing lies between"
    assert halved(replace(remedy, changes=(Change("server", "x", True, False),))) is None
