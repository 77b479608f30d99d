"""What the rounds add up to, said honestly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from loadframe.analysis.comparison import verdict_at_end
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.sizes import IN_SERVICE
from loadframe.model import (
    Change,
    Curve,
    CurvePoint,
    Evidence,
    Finding,
    Limit,
    LoadInterval,
    NextLimit,
    Peak,
    Price,
    Remedy,
    Round,
    Saturation,
    Step,
    Stop,
    TargetState,
    Trial,
    Unfinished,
    Verdict,
)

LOSS = "it may be lost"
HIGHEST = 4.0


def curve(*, knee: float | None = None, growth: float = 0.0) -> Curve:
    """growth: 0 for a flat one, 1 for one that grows with the load."""
    points = tuple(CurvePoint(load, 100.0 * load**growth, 95.0, 105.0, 1.0) for load in (1.0, 2.0, HIGHEST))
    at = None if knee is None else LoadInterval(knee, knee, knee)
    peak = Peak(points[-1].load, points[-1].throughput)
    return Curve("jobs", "A", points, "linear" if growth else "plateau", peak, at, None, None, None)


def finding(name: str, *, score: float = 0.6, metric: str = "system.disk.flushes_per_request") -> Finding:
    evidence = (Evidence(metric, 4.0, ">=", 0.5, "past the bend"),)
    return Finding(name, name, LoadInterval(2, 2, 2), evidence, score)


def trial(name: str, factor: float, *, gives_up: str | None = None) -> Trial:
    before = {1.0: [100.0, 101.0, 99.0, 100.5]}
    found = verdict_at_end(before, {1.0: [factor * value for value in before[1.0]]})
    remedy = Remedy(name, name, ("disk.fsync",), (), Price(gives_up))
    return Trial(remedy, found.decision == "better", {}, verdict=found)


def one_round(
    *trials: Trial,
    findings: tuple[Finding, ...] = (),
    limits: tuple[Limit, ...] = (),
    knee: float | None = None,
    growth: float = 0.0,
) -> Round:
    return Round(1, "A", TargetState(), {}, curve(knee=knee, growth=growth), limits, findings, trials, ())


def limit(name: str, load: float) -> Limit:
    at = Saturation(load, load, load, "measured" if load <= HIGHEST else "extrapolated", "line")
    return Limit(name, "server", 100, None, 100, 50, 50, False, "", at)


def test_the_ladder_is_of_what_was_kept() -> None:
    rounds = [one_round(trial("wal", 8.0)), one_round(trial("normal", 6.0, gives_up=LOSS)), one_round(trial("x", 0.5))]
    assert [step.change for step in conclusion.ladder(rounds)] == ["wal", "normal"]
    assert sum(step.share for step in conclusion.ladder(rounds)) == pytest.approx(1)
    assert conclusion.outcome(rounds).kind == "gained"


@pytest.mark.parametrize(
    ("rounds", "kind"),
    [
        ([one_round(growth=1.0)], "no-limit-reached"),
        ([one_round(growth=0.5)], "no-limit-reached"),
        ([one_round(knee=2.0)], "limit-not-seen"),
        ([one_round()], "limit-not-seen"),
        ([one_round(findings=(finding("service.parallelism", score=0.51),))], "limit-without-remedy"),
        ([one_round(findings=(finding("cpu.saturated"),))], "cpu-saturated"),
        ([one_round(findings=(finding("driver.limited"),))], "driver-limited"),
        ([one_round(findings=(finding("driver.beside"),))], "limit-without-remedy"),
        ([one_round(findings=(finding("disk.saturated"),))], "limit-without-remedy"),
        ([one_round(trial("wal", 1.0), findings=(finding("disk.fsync"),))], "no-proven-gain"),
    ],
)
def test_nothing_gained_is_said_so(rounds: list[Round], kind: str) -> None:
    assert conclusion.outcome(rounds).kind == kind
    assert conclusion.outcome(rounds, interrupted=True).kind == "interrupted"


@pytest.fixture
def proof_steps(make_step: Callable[..., Step]) -> list[Step]:
    """A step takes 2 s, 1.5 s of which pass before its load begins: the target starts anew in the other state."""
    return [make_step(1.0, number=n, treatment="AB"[n % 2], started_s=2.0 * n - 0.5, ended_s=2.0 * n) for n in range(3)]


@pytest.mark.parametrize(
    ("ratios", "open_"),
    [((1.29, 1.72, 1.66, 1.57), True), ((1.29, 0.9, 1.66, 1.57), False), ((1.29, 1.72), False)],
)
def test_what_gained_in_every_block_and_is_not_proved_says_what_would_decide(
    proof_steps: list[Step], ratios: tuple[float, ...], open_: bool
) -> None:
    """Seen: a gain of 1.55, 4 of 4 blocks from 1.29 to 1.72, was put back as "no proven gain", and no more was said."""
    undecided = Verdict(1.55, 0.8, 3.0, "cannot-tell", len(ratios), "paired", ratios, (1.0,))
    tried = replace(trial("wal", 1.0), verdict=undecided, deciding=(1, 2))
    command = "loadframe investigate study.toml"
    found = conclusion.unfinished([one_round(trial("other", 0.5), tried)], proof_steps, 60.0, 12, command)
    assert found == (Unfinished("wal", undecided, 24.0, f"{command} --set measure.budget=84s") if open_ else None)


def test_what_only_lacks_fresh_blocks_says_how_long_they_would_take(proof_steps: list[Step]) -> None:
    """Seen: 2.1 to 4.1 times in each of four blocks, put back, and "no change that was tried has a proven gain"."""
    once = Verdict(3.0, 1.4, 6.6, "better", 4, "paired", (2.1, 4.1, 3.5, 2.7), (1.0,), floor=(0.52, 1.9))
    tried = replace(trial("pool", 1.0), verdict=once, kept=False, deciding=(1, 2))
    assert conclusion.unfinished([one_round(tried)], proof_steps, 60.0, 6, "run") == Unfinished(
        "pool", once, 16.0, "run --set measure.budget=76s"
    )
    again = replace(tried, fresh=replace(once, ratio=1.2, floor=(0.5, 2.0)))
    assert conclusion.unfinished([one_round(again)], proof_steps, 60.0, 6, "run") is None


def test_what_was_proved_once_is_likely_where_fresh_blocks_had_not_settled(proof_steps: list[Step]) -> None:
    """Seen in a demo while the hypervisor took up to 35 % of the CPUs: 5.7 to 6.1 times in the blocks that decided, 3.9
    to 5.9 times in each fresh one, no warm-up of which had ended, and "no change that was tried has a proven gain"."""
    once = Verdict(5.9, 4.7, 7.3, "better", 3, "paired", (6.1, 5.9, 5.7), (1.0,))
    fresh = Verdict(5.0, 2.7, 9.4, "cannot-tell", 3, "paired", (5.9, 3.9, 5.6), (1.0,), unsettled_at=(1.0,))
    tried = replace(trial("wal", 1.0), verdict=once, fresh=fresh, kept=False, deciding=(1, 2))
    found = conclusion.unfinished([one_round(tried)], proof_steps, 60.0, 7, "run")
    assert found == Unfinished("wal", fresh, 12.0, "run --set measure.budget=72s")


def test_what_no_number_of_blocks_decides_hides_nothing_and_has_no_command(proof_steps: list[Step]) -> None:
    """Seen: 1,025 blocks, where a study allows 100, and a proposal of more of them where no warm-up had ended."""

    def tried(name: str, ratio: float, low: float, unsettled_at: tuple[float, ...] = ()) -> Trial:
        told = Verdict(ratio, low, 9.0, "cannot-tell", 4, "", (1.1, 1.2, 1.3, 1.4), (1.0,), unsettled_at=unsettled_at)
        return replace(trial(name, 1.0), verdict=told, deciding=(1, 2))

    near, far = tried("near", 1.3, 0.9), tried("far", 1.7, 0.04)
    rising, without = tried("rising", 1.9, 0.9, (1.0,)), tried("without scatter", 1.8, 1.0)

    def remedy(*trials: Trial) -> str | None:
        found = conclusion.unfinished([one_round(*trials)], proof_steps, 60.0, 12, "command")
        return found and found.remedy

    assert remedy(near) == "near"
    for other in (far, rising, without):
        assert (remedy(other), remedy(other, near)) == (None, "near")


def test_where_the_whole_is_not_decided_no_change_has_a_share_of_it() -> None:
    """Seen: "Share of the whole: 0 %" of each."""
    kept = [replace(trial(name, 1.1), kept=True) for name in ("wal", "normal")]
    open_ = [replace(one, verdict=replace(one.verdict, decision="cannot-tell")) for one in kept]
    assert [step.share for step in conclusion.ladder([one_round(*open_)])] == [None, None]


def test_next_is_first_a_cause_that_is_open_in_the_last_state() -> None:
    """Seen: "about 22 workers, give the target more CPUs", of a state of which one writer held the lock from 2 on."""
    last = one_round(findings=(finding("lock.writer"),), limits=(limit("process.cpus", 8),), growth=0.5)
    found = conclusion.next_limit([last])
    assert found is not None
    assert (found.id, found.load) == ("lock.writer", 2)
    settled = replace(
        last, tried=(replace(trial("wal", 8.0), remedy=Remedy("wal", "wal", ("lock.writer",), (), Price())),)
    )
    found = conclusion.next_limit([settled])
    assert found is not None and found.id == "process.cpus", "the change that was kept is for it"
    refuted = replace(last, findings=(replace(finding("lock.writer"), status="refuted"),))
    found = conclusion.next_limit([refuted])
    assert found is not None and found.id == "process.cpus"


def test_then_what_a_line_fills_first_at_most_at_twice_the_highest_load() -> None:
    found = conclusion.next_limit([one_round(limits=(limit("far", 8), limit("near", 6)), growth=0.5)])
    assert found is not None
    assert (found.id, found.load) == ("near", 6)
    assert conclusion.next_limit([one_round(limits=(limit("far", 9),), growth=0.5)]) is None


def test_a_limit_that_is_full_at_the_bend_comes_before_one_that_would_be_full_above() -> None:
    limits = (limit("process.cpus", 7), limit("cpu.saturated", 2))
    found = conclusion.next_limit([one_round(limits=limits, knee=2.0, growth=0.5)])
    assert found is not None
    assert (found.id, found.load) == ("cpu.saturated", 2)
    for other in (one_round(limits=limits, growth=0.5), one_round(limits=limits, knee=3.5, growth=0.5)):
        found = conclusion.next_limit([other])
        assert found is not None
        assert found.id == "process.cpus", "full, and nothing bends there"


def test_what_was_moved_and_is_full_again_comes_before_what_a_line_fills_later() -> None:
    """Seen: a stage with two workers raised to eight, all at work from 11 on, and another "next, at 23"."""
    kept, full, later = trial("raise", 4.0), limit("disk.fsync", 4), limit("cache", 1.5 * HIGHEST)
    found = conclusion.next_limit([one_round(kept), one_round(limits=(full, later), growth=0.5)])
    assert found is not None and (found.id, found.load) == ("disk.fsync", 4)
    other = conclusion.next_limit([one_round(kept), one_round(limits=(replace(full, id="x"), later), growth=0.5)])
    assert other is not None and other.id == "cache"


def test_a_setting_that_was_raised_is_next_at_its_new_value() -> None:
    raised = replace(limit("cache.size", 400), setting="cache_size", ceiling=2000.0)
    kept = trial("raise", 4.0)
    kept = replace(kept, remedy=replace(kept.remedy, changes=(Change("server", "cache_size", 64, 2000),)))
    found = conclusion.next_limit([one_round(kept), one_round(limits=(raised, limit("memory", 7)), growth=0.5)])
    assert found is not None and found.id == "memory", "a line fills it before"
    found = conclusion.next_limit([one_round(kept), one_round(limits=(raised, limit("memory", 700)), growth=0.5)])
    assert found is not None
    assert (found.id, found.load) == ("cache.size", None), "400 is a hundred times what was tested"
    assert conclusion.next_limit([one_round(limits=(raised,), growth=0.5)]) is None
    by_chance = replace(raised, setting="another", configured=2000.0)
    assert conclusion.next_limit([one_round(kept), one_round(limits=(by_chance,), growth=0.5)]) is None


@pytest.mark.parametrize(("size", "named"), [(8, "threads"), (64, None)])
def test_as_many_requests_as_a_raised_setting_serves_at_once_are_next(size: int, named: str | None) -> None:
    """Seen: threads were raised from 4 to 32, and next was "no limit in sight up to 16 connections"."""
    kept = trial("raise", 4.0)
    kept = replace(kept, remedy=replace(kept.remedy, changes=(Change("server", "threads", 4, size),)))

    def next_of(at_once: float, axis: str = "concurrency") -> NextLimit | None:
        seen = replace(finding("service.parallelism"), evidence=(Evidence(IN_SERVICE, 4.1, "~", at_once, "", ""),))
        last = one_round(growth=0.5)
        last = replace(last, curve=replace(last.curve, axis=axis))
        return conclusion.next_limit([one_round(kept, findings=(seen,)), last])

    found = next_of(4.0)
    assert (found and found.id, found and found.load) == (named, named and 8.0)
    assert next_of(6.0) is None, "of something else: each of several processes has so many"
    assert next_of(4.0, "rate") is None, "so many at once are no rate"


@pytest.mark.extension("loadframe_pipelines")
def test_a_queue_that_fills_is_not_next_but_the_workers_behind_it_are() -> None:
    last = one_round(limits=(limit("pipeline.APPLY.queue", 6), limit("pipeline.APPLY", 7)))
    found = conclusion.next_limit([last])
    assert found is not None
    assert found.id == "pipeline.APPLY"


def test_with_nothing_growing_next_is_what_caps_the_throughput() -> None:
    found = conclusion.next_limit([one_round(findings=(finding("lock.writer"),))])
    assert found is not None
    assert found.id == "lock.writer"
    assert conclusion.next_limit([one_round()]) is None


def test_other_programs_are_what_limits_next_only_where_nothing_else_is_seen() -> None:
    """Seen, of a demo beside other work: "Next: others take the CPU", though the lock was seen as well."""
    both = conclusion.next_limit([one_round(findings=(finding("cpu.others"), finding("lock.writer")))])
    alone = conclusion.next_limit([one_round(findings=(finding("cpu.others"),))])
    assert both is not None and both.id == "lock.writer"
    assert alone is not None and alone.id == "cpu.others"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (one_round(knee=2.0), "Throughput stops growing at jobs 2, and nothing that is seen from outside is exhausted"),
        (one_round(), "Throughput does not grow from the lowest level, jobs 1, on"),
    ],
)
def test_a_bend_that_nothing_explains_is_a_limit_that_is_not_seen(one: Round, words: str) -> None:
    assert words in conclusion.outcome([one]).text


def test_what_the_curve_says_alone_is_no_cause_that_a_change_was_tried_for() -> None:
    found = conclusion.outcome([one_round(findings=(finding("service.parallelism", score=0.51),))])
    assert found.text == "Service.parallelism; no change that could confirm why was tried."


def test_a_setting_that_was_tried_because_it_is_declared_names_no_cause() -> None:
    declared = replace(trial("pool = 8", 2.0), remedy=Remedy("pool", "pool = 8", (), (), Price(), guessed=True))
    told = conclusion.outcome([one_round(declared, knee=2.0)])
    assert told.kind == "gained"
    assert "tried because the study declares it; its gain names no cause" in told.text
    assert "names no cause" not in conclusion.outcome([one_round(trial("pool = 8", 2.0), knee=2.0)]).text


def test_where_nothing_is_found_and_no_declared_setting_helps_the_limit_is_not_seen() -> None:
    told = conclusion.outcome([one_round(trial("pool = 8", 1.0), knee=2.0)])
    assert told.kind == "limit-not-seen"
    assert "no setting that the study declares has a proven gain" in told.text
    assert "nothing was changed" not in told.text


def hardly_growing(*limits: Limit) -> Round:
    """1.27 times the throughput at 32 times the load, and no bend that is proved."""
    points = tuple(CurvePoint(load, 860.0 * load**0.07, 780.0, 1200.0, 1.0) for load in (1.0, 4.0, 32.0))
    told = Curve("concurrency", "A", points, "plateau", Peak(32.0, points[-1].throughput), None, None, None, None)
    return replace(one_round(limits=limits), curve=told)


def test_throughput_that_hardly_grows_has_a_limit_and_the_nearest_is_told() -> None:
    cpus = replace(limit("cpu.saturated", 40.0), title="the CPUs", ceiling=2.0, use=1.89)
    full = replace(limit("cache", 1.0), ceiling=100.0, use=100.0)
    told = conclusion.outcome([hardly_growing(cpus, full)])
    assert told.kind == "limit-not-seen"
    assert told.text.startswith("Throughput hardly grows: it is 1.27 times as high at 32 times the concurrency")
    assert told.text.endswith("exhausted; nearest to that: the CPUs, 94.5 % in use; nothing was changed.")
    assert "nearest" not in conclusion.outcome([hardly_growing(full)]).text, "a cache that is full costs nothing here"


def test_a_target_that_did_not_recover_is_no_limit_that_was_not_reached() -> None:
    told = conclusion.outcome([one_round()], interrupted=True, stop=Stop(3, 8.0, "A", "/", 503, 76.0))
    assert told.kind == "stopped-answering"
    assert "The target failed, and did not recover at " in told.text
