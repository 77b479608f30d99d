"""A cause is confirmed only where its own evidence receded; without that a change has helped, and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadframe.analysis.comparison import verdict_at_end
from loadframe.diagnosis.judging import cures_failures, judge
from loadframe.diagnosis.mechanism import TRACES, moved, trace_of
from loadframe.diagnosis.operational import OPERATIONAL, served_at_once
from loadframe.diagnosis.remedies import BUILDERS
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.ledger.rules import RULES
from loadframe.metrics import METRICS
from loadframe.model import Change, Evidence, Finding, Price, Remedy, Step, Verdict
from loadframe.runs.folder import RunFolder

StepMaker = Callable[..., Step]
Metrics = Mapping[str, float]
FLUSHES = "system.disk.flushes_per_request"
WAITING, HELD, CONCURRENCY = "workload.lock_waiting", "workload.lock_held", "workload.concurrency"
REDO, FLUSHED = "mariadb.redo_fill", "mariadb.pages_flushed"
BEFORE = 100.0


def finding(name: str, *metrics: str) -> Finding:
    evidence = tuple(Evidence(metric, 4.0, ">=", 0.5, "past the bend") for metric in metrics)
    return Finding(name, name, None, evidence, 0.6)


def gain(factor: float) -> Verdict:
    before = {4.0: [100.0, 101.0, 99.0]}
    return verdict_at_end(before, {4.0: [factor * value for value in before[4.0]]})


def side(make_step: StepMaker, throughput: float, *metrics: Metrics, treatment: str = "A") -> list[Step]:
    """A step of each of three blocks; with several metrics each block has its own."""
    blocks = metrics if len(metrics) > 1 else metrics * 3
    return [
        make_step(4, throughput, each, block=block, treatment=treatment) for block, each in enumerate(blocks, start=1)
    ]


def judged(
    make_step: StepMaker,
    causes: Sequence[Finding],
    factor: float,
    before: Metrics | Sequence[Metrics],
    after: Metrics | Sequence[Metrics],
) -> list[str]:
    remedy = Remedy("change", "change", tuple(cause.id for cause in causes), (), Price())
    one, two = ([each] if isinstance(each, Mapping) else each for each in (before, after))
    first, second = side(make_step, BEFORE, *one), side(make_step, factor * BEFORE, *two, treatment="B")
    return [each.status for each in judge(causes, remedy, gain(factor), first, second)]


def test_a_cause_is_confirmed_where_what_requests_pay_for_it_falls_with_the_gain(make_step: StepMaker) -> None:
    cause = [finding("disk.fsync", FLUSHES)]
    assert judged(make_step, cause, 8, {FLUSHES: 4.0}, {FLUSHES: 1.0}) == ["confirmed"]
    assert judged(make_step, cause, 8, {FLUSHES: 4.0}, {FLUSHES: 4.0}) == ["helped"]
    assert judged(make_step, cause, 1, {FLUSHES: 4.0}, {FLUSHES: 4.0}) == ["refuted"]
    assert judged(make_step, cause, 1.05, {FLUSHES: 4.0}, {FLUSHES: 1.0}) == ["helped"], "too small a gain"


def test_a_metric_that_is_missing_after_the_change_confirms_nothing(make_step: StepMaker) -> None:
    cause = [finding("disk.fsync", FLUSHES)]
    assert judged(make_step, cause, 8, {FLUSHES: 4.0}, {}) == ["helped"]
    in_one_block = [{FLUSHES: 1.0}, {}, {FLUSHES: 1.0}]
    assert judged(make_step, cause, 8, {FLUSHES: 4.0}, in_one_block) == ["helped"]
    assert judged(make_step, cause, 8, {}, {FLUSHES: 1.0}) == ["helped"]


def test_a_cause_of_which_nothing_is_counted_is_not_confirmed(make_step: StepMaker) -> None:
    cause = [finding("some.limit", "mariadb.open_tables")]
    assert judged(make_step, cause, 3, {"mariadb.open_tables": 64.0}, {"mariadb.open_tables": 64.0}) == ["helped"]


def test_a_share_that_stays_does_not_recede_because_the_throughput_rose(make_step: StepMaker) -> None:
    """SQLite's change of journal: held 97 % and waited for by 3.0 before, 95 % and 3.0 after, at 1.43 times as much."""
    cause = [finding("lock.writer", WAITING, HELD)]
    before, after = {WAITING: 3.0, HELD: 0.97, CONCURRENCY: 4.0}, {WAITING: 3.0, HELD: 0.95, CONCURRENCY: 4.0}
    assert judged(make_step, cause, 1.43, before, after) == ["helped"]
    assert judged(make_step, cause, 1.43, before, {WAITING: 1.5, CONCURRENCY: 4.0}) == ["confirmed"]


def test_waiting_must_account_for_the_gain(make_step: StepMaker) -> None:
    """Three of four requests wait: without any wait at most four times as much is done."""
    cause = [finding("lock.writer", WAITING)]
    before = {WAITING: 3.0, CONCURRENCY: 4.0}
    assert judged(make_step, cause, 3, before, {WAITING: 0.9, CONCURRENCY: 4.0}) == ["confirmed"]
    assert judged(make_step, cause, 3, before, {WAITING: 1.8, CONCURRENCY: 4.0}) == ["helped"]
    assert judged(make_step, cause, 8, before, {WAITING: 0.1, CONCURRENCY: 4.0}) == ["helped"]


CAGES = [("cpu_quota", "cpu"), *((name, name) for name in ("read_bytes", "write_bytes", "reads", "writes"))]


@pytest.mark.parametrize(("limit", "use"), CAGES)
def test_use_of_a_raised_limit_falls_by_arithmetic_and_must_itself_rise(
    limit: str, use: str, make_step: StepMaker
) -> None:
    cage = f"target.cage.{use}"
    cause = [finding(f"cage.{limit}", f"{cage}.utilization")]

    def seen(value: float, ceiling: float) -> dict[str, float]:
        return {cage: value, f"{cage}.limit": ceiling, f"{cage}.utilization": value / ceiling}

    assert judged(make_step, cause, 1.5, seen(95, 100), seen(96, 400)) == ["helped"]
    assert judged(make_step, cause, 1.5, seen(95, 100), seen(142, 400)) == ["confirmed"]
    assert judged(make_step, cause, 1.5, {cage: 95.0}, seen(142, 400)) == ["helped"], "its ceiling is not known"


def test_a_log_that_is_larger_is_less_full_whatever_the_cause_was(make_step: StepMaker) -> None:
    cause = [finding("mariadb.redo_log", REDO, FLUSHED)]
    before = {REDO: 0.9, FLUSHED: 0.9 * BEFORE}
    assert judged(make_step, cause, 1.5, before, {REDO: 0.2, FLUSHED: 0.9 * 1.5 * BEFORE}) == ["helped"]
    assert judged(make_step, cause, 1.5, before, {REDO: 0.2, FLUSHED: 0.3 * 1.5 * BEFORE}) == ["confirmed"]
    assert judged(make_step, cause, 1.5, before, {REDO: 0.2, FLUSHED: 0.9 * BEFORE}) == ["helped"], "as many a second"


def test_evidence_recedes_by_as_much_as_the_gain_asks_for(make_step: StepMaker) -> None:
    """Pages read for each request fall by a third: that alone cannot make each request three times as fast."""
    cause = [finding("mariadb.buffer_pool", "mariadb.pool_reads")]
    before = {"mariadb.pool_reads": 0.9 * BEFORE}
    assert judged(make_step, cause, 3, before, {"mariadb.pool_reads": 0.6 * 3 * BEFORE}) == ["helped"]
    assert judged(make_step, cause, 3, before, {"mariadb.pool_reads": 0.2 * 3 * BEFORE}) == ["confirmed"]


def test_what_recedes_in_the_mean_alone_is_noise(make_step: StepMaker) -> None:
    cause = [finding("disk.fsync", FLUSHES)]
    noisy = [{FLUSHES: value} for value in (0.1, 5.0, 0.2)]
    assert judged(make_step, cause, 8, {FLUSHES: 4.0}, noisy) == ["helped"]


def test_one_change_confirms_one_cause(make_step: StepMaker) -> None:
    """A write-ahead log is for flushes and for the lock: the one whose evidence moved most is confirmed."""
    causes = [finding("lock.writer", WAITING), finding("disk.fsync", FLUSHES)]
    before = {WAITING: 3.0, CONCURRENCY: 4.0, FLUSHES: 4.0}
    after = {WAITING: 0.9, CONCURRENCY: 4.0, FLUSHES: 0.1}
    assert judged(make_step, causes, 3, before, after) == ["helped", "confirmed"]
    assert judged(make_step, causes, 3, before, {**after, WAITING: 0.01}) == ["confirmed", "helped"]
    late = [{**after, WAITING: 3.0}, {**after, WAITING: 0.0}, {**after, WAITING: 0.0}]
    assert judged(make_step, causes, 1.2, before, late) == ["helped", "confirmed"]


def test_of_a_recorded_queue_the_flushes_receded_and_the_lock_did_not() -> None:
    """Four flushes per commit before the write-ahead log, one after; the lock was held and waited for as before."""
    run = RunFolder.open(Path(__file__).parents[1] / "data/runs/investigation")
    one, steps = run.rounds()[0], run.steps()
    trial = one.tried[0]
    before, after = (
        [step for step in steps if step.treatment == name and step.block and step.level in trial.verdict.levels]
        for name in (trial.treatment_before, trial.treatment_after)
    )
    open_again = [replace(each, status="suspected") for each in one.findings]
    found = {each.id: each for each in judge(open_again, trial.remedy, trial.verdict, before, after)}
    assert {name: each.status for name, each in found.items()} == {"disk.fsync": "confirmed", "lock.writer": "helped"}
    lock = found["lock.writer"].mechanism
    assert lock is not None
    assert lock.after == pytest.approx(lock.before, rel=0.02)


def test_the_one_that_moved_first_is_told_by_its_blocks(make_step: StepMaker) -> None:
    cause = finding("disk.fsync", FLUSHES)
    before = side(make_step, BEFORE, {FLUSHES: 4.0})
    at_once = side(make_step, 800, {FLUSHES: 1.0})
    later = side(make_step, 800, {FLUSHES: 3.5}, {FLUSHES: 0.5}, {FLUSHES: 0.5})
    assert moved(cause, before, at_once, 8).order < moved(cause, before, later, 8).order


def test_what_was_seen_of_the_mechanism_is_told(make_step: StepMaker) -> None:
    cause = finding("disk.fsync", FLUSHES)
    remedy = Remedy("change", "change", (cause.id,), (), Price())
    before, after = side(make_step, BEFORE, {FLUSHES: 4.0}), side(make_step, 800, {FLUSHES: 1.0}, treatment="B")
    (found,) = judge([cause], remedy, gain(8), before, after)
    assert found.mechanism is not None
    assert (found.mechanism.before, found.mechanism.after, found.mechanism.wanted) == (4.0, 1.0, pytest.approx(2.8))
    assert "4 before, 1 after the change" in found.mechanism.because
    (found,) = judge([cause], remedy, gain(8), before, side(make_step, 800, {}, treatment="B"))
    assert found.mechanism is not None
    assert "not measured after the change" in found.mechanism.because


def test_failures_that_end_are_worth_something_even_without_more_throughput(make_step: StepMaker) -> None:
    cause = finding("mariadb.max_connections", "mariadb.connection_errors_max")
    remedy, refused = Remedy("change", "change", (cause.id,), (), Price()), "mariadb.connection_errors_max"
    failing = [replace(step, errors=50) for step in side(make_step, 100, {refused: 50.0})]
    sound, fewer = side(make_step, 100, {refused: 0.0}), side(make_step, 100, {refused: 20.0})
    assert gain(1).decision == "no-proven-difference"
    assert cures_failures(failing, sound)
    assert not cures_failures(sound, sound)
    assert not cures_failures(failing, [replace(step, errors=20) for step in sound])
    assert judge([cause], remedy, gain(1), failing, sound)[0].status == "confirmed"
    assert judge([cause], remedy, gain(1), failing, fewer)[0].status == "helped", "a tenth of the refusals may be left"


def test_failures_that_may_have_ended_by_chance_do_not_excuse_a_small_gain(make_step: StepMaker) -> None:
    cause = finding("mariadb.max_connections", "mariadb.connection_errors_max")
    remedy, refused = Remedy("change", "change", (cause.id,), (), Price()), "mariadb.connection_errors_max"
    after = side(make_step, 105, {refused: 0.0}, treatment="B")

    def status(*failed: int) -> str:
        before = [
            replace(each, errors=count)
            for each, count in zip(side(make_step, 100, {refused: 4.0}), failed, strict=True)
        ]
        return judge([cause], remedy, gain(1.05), before, after)[0].status

    assert status(40, 42, 41) == "confirmed"
    assert status(123, 0, 0) == "helped", "one burst in one of three blocks"


def test_a_remedy_says_nothing_about_other_findings(make_step: StepMaker) -> None:
    other = finding("lock.row", "mariadb.row_lock_waits")
    remedy = Remedy("change", "change", ("disk.fsync",), (), Price())
    steps = side(make_step, BEFORE, {})
    assert judge([other], remedy, gain(8), steps, steps) == (other,)


def test_every_cause_that_a_remedy_is_for_has_a_trace_that_can_be_measured() -> None:
    harm = {rule.id: rule.thrash or rule.errors for rule in RULES}
    first = {signature.id: signature.present[0].metric for signature in reversed(SIGNATURES)}
    for cause in BUILDERS:
        counted = first.get(cause) or harm.get(cause) or ""
        trace = trace_of(finding(cause, counted))
        assert trace is not None, cause
        assert trace.metric in METRICS
        assert trace.form != "passes" or trace.ceiling in METRICS
    assert set(TRACES) <= set(harm) | set(first) | OPERATIONAL


IN_SERVICE = "workload.in_service"


@pytest.mark.parametrize(
    ("factor", "after", "status"),
    [
        (4, 16.0, "confirmed"),
        (4, 4.1, "helped"),  # each request takes a quarter of the time
        (4, 14.5, "confirmed"),  # as much as the response time at the lowest load is known to
        (4, 13.0, "helped"),
        (4, 10.0, "helped"),  # some of both
        (1.0, 4.0, "suspected"),  # not refuted: something else has that size
    ],
)
def test_more_at_a_time_is_confirmed_where_more_are_in_service_not_where_each_is_faster(
    make_step: StepMaker, factor: float, after: float, status: str
) -> None:
    cause = [finding("service.parallelism", IN_SERVICE)]
    assert judged(make_step, cause, factor, {IN_SERVICE: 4.0}, {IN_SERVICE: after}) == [status]


@pytest.mark.parametrize(
    ("cause", "factor", "before", "after", "status"),
    [
        ("service.parallelism", 1.12, 2.0, 2.24, "helped"),  # two at a time, in the noise: no third
        ("service.parallelism", 1.5, 2.0, 3.0, "confirmed"),
        ("service.serial", 1.2, 1.0, 1.2, "helped"),
        ("service.parallelism", 1.2, 20.0, 24.0, "confirmed"),
    ],
)
def test_more_at_a_time_is_confirmed_where_one_more_is_in_service(
    make_step: StepMaker, cause: str, factor: float, before: float, after: float, status: str
) -> None:
    found = [finding(cause, IN_SERVICE)]
    assert judged(make_step, found, factor, {IN_SERVICE: before}, {IN_SERVICE: after}) == [status]


@pytest.mark.parametrize(
    ("cause", "size", "setting", "guessed", "status", "why"),
    [
        ("service.parallelism", 4.0, 4, True, "confirmed", ""),
        (
            "service.parallelism",
            4.0,
            2,
            True,
            "confirmed",
            "one for 50 % of its time, or it is a rate, of 2 in 20",
        ),
        ("service.parallelism", 4.0, 2, False, "confirmed", ""),
        ("service.parallelism", 4.0, 100, True, "helped", "is the throughput itself, in requests per second"),
        ("service.serial", 1.0, 101, True, "helped", "is the throughput itself, in requests per second"),
        ("service.parallelism", 4.0, 6000, True, "helped", "in requests per minute"),
        ("service.parallelism", 4.0, 64, True, "helped", "by Little's law 4 at most are served at a time"),
        ("service.parallelism", 4.0, "64m", True, "helped", "by Little's law"),
        ("service.parallelism", 4.0, "fair", True, "confirmed", ""),  # a word is no number
        ("service.parallelism", 4.0, 100, False, "confirmed", ""),  # the study says that it raises this
        ("service.parallelism", 100.0, 100, True, "confirmed", ""),  # 100 at a time, a second each
    ],
)
def test_a_rate_that_is_raised_shows_no_number_at_a_time(
    make_step: StepMaker, cause: str, size: float, setting: int | str, guessed: bool, status: str, why: str
) -> None:
    """A token bucket of 100 requests/s is as flat as a pool of 4, and X R = 4 doubles with its rate."""
    found = replace(finding(cause), evidence=(Evidence(IN_SERVICE, size, "~", size, "on the plateau"),))
    change = Change("server", "cap", setting, 2 * setting if isinstance(setting, int) else "wide")
    remedy = Remedy("service.cap", "cap", (cause,), (change,), Price(), guessed=guessed)
    one, two = side(make_step, BEFORE, {IN_SERVICE: size}), side(make_step, 2 * BEFORE, {IN_SERVICE: 2 * size})
    two = [replace(step, treatment="B") for step in two]
    (judged_so,) = judge([found], remedy, gain(2.0), one, two)
    assert judged_so.status == status
    assert judged_so.mechanism is not None and why in judged_so.mechanism.because
    assert ("its time" in judged_so.mechanism.because) == ("its time" in why)


@pytest.mark.parametrize(
    ("raises", "status"),
    [("pipeline.FLUSH", "helped"), ("disk.fsync", "helped"), ("service.slots", "confirmed"), ("", "confirmed")],
)
def test_a_setting_that_the_study_says_to_raise_another_cause_confirms_none_but_that(
    make_step: StepMaker, raises: str, status: str
) -> None:
    """A group commit that waited for a timer: one request at a time, and the stage's own setting ended it."""
    found = replace(finding("service.serial"), evidence=(Evidence(IN_SERVICE, 1.0, "~", 1.0, "on the plateau"),))
    change = Change("server", "flushers", 1, 4, raises=raises)
    remedy = Remedy("service.flushers", "flushers", (found.id,), (change,), Price(), guessed=True)
    one, two = side(make_step, BEFORE, {IN_SERVICE: 1.0}), side(make_step, 2 * BEFORE, {IN_SERVICE: 2.0})
    (judged_so,) = judge([found], remedy, gain(2.0), one, [replace(step, treatment="B") for step in two])
    assert judged_so.status == status
    assert judged_so.mechanism is not None
    assert ("says that flushers raises" in judged_so.mechanism.because) == (status == "helped")


@pytest.mark.parametrize(
    ("raised", "sizes", "left"),
    [
        ("slots", "the setting batch is 4", ""),
        ("slots", "4 threads sleep; the setting slots is 4; the setting batch is 4; and 2 more of that size",
         " (4 threads sleep; the setting slots is 4)"),
        ("batch", "4 connections to 127.0.0.1:5432", " (4 connections to 127.0.0.1:5432)"),
    ],
)  # fmt: skip
def test_a_confirmed_cause_names_no_setting_that_has_its_size_by_chance(
    make_step: StepMaker, raised: str, sizes: str, left: str
) -> None:
    title = "4 requests are served at a time"
    found = replace(
        finding("service.parallelism"),
        title=f"{title} ({sizes})",
        evidence=(Evidence(IN_SERVICE, 4.0, "~", 4.0, "on the plateau"),),
    )
    remedy = Remedy("service.x", "x", (found.id,), (Change("server", raised, 4, 8),), Price(), guessed=True)
    one, two = side(make_step, BEFORE, {IN_SERVICE: 4.0}), side(make_step, 2 * BEFORE, {IN_SERVICE: 8.0})
    (judged_so,) = judge([found], remedy, gain(2.0), one, [replace(step, treatment="B") for step in two])
    assert (judged_so.status, judged_so.title) == ("confirmed", title + left)
    (suspected,) = judge([found], replace(remedy, addresses=()), gain(2.0), one, two)
    assert suspected.title == found.title


def test_without_a_response_time_at_the_lowest_load_nothing_is_confirmed(make_step: StepMaker) -> None:
    cause = [finding("service.serial", IN_SERVICE)]
    assert judged(make_step, cause, 4, {IN_SERVICE: 1.0}, {}) == ["helped"]


def test_requests_in_service_follow_from_the_response_times_of_both_states(make_step: StepMaker) -> None:
    steps = [make_step(8, 200.0), make_step(8, 1200.0, treatment="B"), make_step(8, 5.0, treatment="C")]
    found = served_at_once(steps, {"A": 0.02, "B": 0.021})
    assert [step.metrics.get(IN_SERVICE) for step in found] == [pytest.approx(4.0), pytest.approx(25.2), None]


@pytest.mark.parametrize(("guessed", "status"), [(False, "refuted"), (True, "suspected")])
def test_a_setting_that_is_only_guessed_to_matter_refutes_no_cause(
    make_step: StepMaker, guessed: bool, status: str
) -> None:
    """A decoy that a study declares says nothing of a thread that computes all the time."""
    cause = finding("cpu.hot_thread", "target.cpu.hottest_thread")
    remedy = Remedy("service.host.b", "host = b", (cause.id,), (), Price(), guessed=guessed)
    busy = {"target.cpu.hottest_thread": 1.0}
    one, two = side(make_step, BEFORE, busy), side(make_step, BEFORE, busy, treatment="B")
    assert [each.status for each in judge([cause], remedy, gain(1.0), one, two)] == [status]


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (1.0, 1.9, "confirmed"),
        (1.0, 1.6, "confirmed"),  # what threads cost that hand a CPU over is saved as well
        (1.0, 1.0, "helped"),  # each request needs half of the CPU time
        (1.2, 1.4, "helped"),  # a thread spins, and requests take a tenth of that
    ],
)
def test_one_cpu_is_confirmed_as_the_limit_where_the_gain_is_made_by_more_of_them(
    make_step: StepMaker, before: float, after: float, status: str
) -> None:
    cause = [finding("cpu.hot_thread", "target.cpu.hottest_thread")]
    cores = "target.cpu.cores"
    assert judged(make_step, cause, 2.0, {cores: before}, {cores: after}) == [status]


SLOTS = "service.relay_slots_in_use"
IN_SERVICE = "workload.in_service"


def slots(full: float = 2.91) -> Finding:
    """A limit of 3 that the study declares, as waiting_limits.py makes it."""
    return replace(finding("service.slots"), evidence=(Evidence(SLOTS, 3.0, ">=", full, "past the bend"),))


@pytest.mark.parametrize(
    ("others", "used", "wanted"),
    [
        ((SLOTS,), 12.0, ["confirmed", "confirmed"]),
        ((SLOTS,), 3.0, ["confirmed", "helped"]),
        ((), 12.0, ["confirmed", "helped"]),
    ],
    ids=["one cause", "the slots are as they were", "something else has that size"],
)
def test_a_limit_that_the_number_in_service_names_is_one_cause_with_it(
    make_step: StepMaker, others: Sequence[str], used: float, wanted: list[str]
) -> None:
    many = finding("service.parallelism", IN_SERVICE, *others)
    before, after = {IN_SERVICE: 3.1, SLOTS: 3.0}, {IN_SERVICE: 12.5, SLOTS: used}
    assert judged(make_step, [many, slots()], 3.5, before, after) == wanted
