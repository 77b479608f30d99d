"""The collector of a runtime that tells nothing from outside is seen in profiles of the state before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.judging import judge
from loadframe.experiments.frame import looked_at
from loadframe.experiments.profiling import looks_for_a_collector, receded, with_collecting, with_collector
from loadframe.experiments.sweep import sweep
from loadframe.model import (
    Finding,
    Price,
    ProfiledStep,
    ProfilePlace,
    ProfileSource,
    Remedy,
    Stack,
    Step,
    StepRequest,
    TargetState,
    Verdict,
)
from loadframe.recording.profiles import profiler

Simulated = Callable[..., Bookkeeping]
COLLECTOR, WORK = ("node", "v8::internal::Heap::CollectGarbage"), ("node", "uv_run")
SHARE = "target.runtime.gc_sampled_share"


def busy(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return 5000.0, {"system.cpu.count": 2.0, "target.cpu.hottest_thread": 0.97}


@pytest.fixture
def book(simulated: Simulated) -> Bookkeeping:
    """A book whose bench samples a collector in eight of ten samples of A, and in one of ten of every other state."""
    made = simulated(busy)
    made.bench.declare("B", "a larger heap", made.bench.start_state)

    def take_profile(place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        often = 640 if treatment == "A" else 80
        name = f"{treatment}.target.cpu.folded"
        made.bench.run.add_stacks(name, profiler.render_stacks([Stack(COLLECTOR, often), Stack(WORK, 800 - often)]))
        source = ProfileSource("cpu", "target", name, 800, 400.0, window_s)
        done = ProfiledStep(place, treatment, level, window_s, 10_000, 5000.0, (source,))
        made.bench.run.add_profiled(done)
        return done

    made.bench.take_profile = take_profile  # type: ignore[method-assign]
    return made


def examined(book: Bookkeeping) -> tuple[Finding, ...]:
    curve = sweep(book, "A", round_number=1)
    book.bench.take_profile("highest", treatment="A", level=32.0, window_s=2.0)
    return looked_at(book, 1, "A", book.bench.start_state, book.bench.use("A"), curve).round.findings


def test_a_profile_past_the_bend_makes_the_collector_a_finding(book: Bookkeeping) -> None:
    found = examined(book)
    assert found[0].id == "runtime.garbage_collection"
    assert found[0].evidence[0].metric == SHARE
    assert found[0].evidence[0].value == pytest.approx(0.8)
    steps = with_collecting(book.bench.run, book.of("A"))
    assert {step.level for step in steps if SHARE in step.metrics} == {32.0}, "no other level was sampled"


def remedied(book: Bookkeeping, findings: tuple[Finding, ...]) -> Finding:
    """The finding after a change that gave twice the throughput."""
    cores = receded(book, findings, "A", "B")
    sides = []
    for treatment in ("A", "B"):
        taken = [book.take(StepRequest(treatment, 32.0, block=block)) for block in (1, 2, 3)]
        sides.append(with_collector(taken, cores))
    remedy = Remedy("heap", "a larger heap", ("runtime.garbage_collection",), (), Price())
    better = Verdict(2.0, 1.9, 2.1, "better", 3, "t", levels=(32.0,))
    return judge(findings, remedy, better, *sides)[0]


def test_a_change_that_helps_confirms_it_where_the_profile_shows_the_collector_gone(book: Bookkeeping) -> None:
    found = remedied(book, examined(book))
    assert found.status == "confirmed"
    assert found.mechanism is not None
    assert found.mechanism.before is not None
    assert found.mechanism.after is not None
    assert 0.77 < 5000 * found.mechanism.before < 0.8, "the least that it can have been, of a whole CPU"
    assert 0.1 < 5000 * found.mechanism.after < 0.13, "the most that it can be"


def test_without_time_for_the_second_profile_it_only_helped(book: Bookkeeping) -> None:
    findings = examined(book)
    book.budget.total_s = book.budget.spent_s()
    assert remedied(book, findings).status == "helped"


@pytest.mark.parametrize(
    ("kind", "metrics", "looks"),
    [
        ("service", {"target.cpu.hottest_thread": 0.9}, True),
        ("url", {"target.saturation": 0.9}, True),
        ("service", {"target.cpu.hottest_thread": 0.2, "target.saturation": 0.1}, False),  # it hardly computes
        ("service", {"target.cpu.hottest_thread": 0.9, "target.runtime.gc_share": 0.4}, False),  # it is told already
        ("mariadb", {"target.saturation": 0.9}, False),
    ],
)
def test_only_where_a_profile_says_what_nothing_else_does(
    make_step: Callable[..., Step], kind: str, metrics: dict[str, float], looks: bool
) -> None:
    steps = [replace(make_step(4.0, 200.0, metrics), block=block) for block in (1, 2)]
    assert looks_for_a_collector(kind, steps, 4.0) is looks
    assert not looks_for_a_collector(kind, steps, 8.0)
