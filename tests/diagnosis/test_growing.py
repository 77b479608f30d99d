"""What follows the requests served is told so, comes first, and is never a limit of the load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.growing import REQUESTS, TIME, growing
from loadframe.diagnosis.operational import Seen, operational
from loadframe.diagnosis.sizes import PARALLELISM
from loadframe.diagnosis.windows import look
from loadframe.model import Curve, Latency, Round, Step, TargetState

StepMaker = Callable[..., Step]
ORDER = (4.0, 1.0, 2.0, 2.0, 4.0, 1.0, 1.0, 4.0, 2.0, 4.0, 2.0, 1.0)
IDLE = {"system.cpu.utilization": 0.3}


def served(make_step: StepMaker, per_request: float = 0.0, per_second: float = 0.0) -> list[Step]:
    """One request of 4 ms is served at a time; it costs more with each before it, or with each second."""
    steps, done, now = [], 0.0, 100.0
    for number, level in enumerate(ORDER, start=1):
        near = 1 + 0.01 * ((number * 7) % 5 - 2)
        cost_s = 0.004 * near * (1 + per_request * done + per_second * (now - 100.0))
        mean = 1000 * level * cost_s
        steps.append(
            make_step(
                level,
                1 / cost_s,
                IDLE,
                number=number,
                block=1 + (number - 1) // 3,
                latency=Latency(mean, mean, mean, mean, mean),
                started_s=now,
                window_start_s=now + 0.5,
                window_end_s=now + 1.5,
                ended_s=now + 1.6,
            )
        )
        done += 1.6 / cost_s
        now += 2.0
    return steps


def curve_of(steps: list[Step]) -> Curve:
    levels = sorted({step.level for step in steps})
    samples = [
        LevelSample(level, tuple(step.throughput for step in steps if step.level == level), ()) for level in levels
    ]
    return fit(samples, axis="concurrency", treatment="A")


def seen(steps: list[Step]) -> Seen:
    return Seen(curve_of(steps), steps, {}, [], steps)


def test_a_list_that_is_searched_is_told_before_what_the_curve_says(make_step: StepMaker) -> None:
    steps = served(make_step, per_request=1e-3)
    found, cleared = diagnose(look(curve_of(steps), steps), [], operational(seen(steps)))
    assert [each.id for each in found] in ([REQUESTS], [TIME])
    assert "not the load" in found[0].title
    assert "no limit of the load" in found[0].explanation
    assert "added" in found[0].explanation and "the cost of a request at first" in found[0].explanation
    assert "restart" in found[0].explanation
    assert PARALLELISM in {each.id for each in cleared}


def test_it_is_no_next_limit(make_step: StepMaker) -> None:
    steps = served(make_step, per_request=1e-3)
    curve = curve_of(steps)
    findings, _ = diagnose(look(curve, steps), [], operational(seen(steps)))
    assert conclusion.next_limit([Round(1, "A", TargetState(), {}, curve, (), findings, (), ())]) is None


def test_time_is_named_where_it_explains_more(make_step: StepMaker) -> None:
    found = growing("concurrency", served(make_step, per_second=0.3))
    assert found is not None
    assert found.id in (TIME, REQUESTS)
    assert (found.id == TIME) or "cannot tell the two apart" in found.explanation


def test_what_does_not_grow_is_not_told(make_step: StepMaker) -> None:
    assert growing("concurrency", served(make_step)) is None
    assert growing("active_jobs", served(make_step, per_request=1e-3)) is None, "more jobs are more work"


def test_a_growth_of_the_cpu_time_is_told_where_the_response_time_is_mostly_something_else(
    make_step: StepMaker,
) -> None:
    """As seen of a list that is searched behind a wait of 8 ms: 12 % more response time, three times the CPU time."""
    steps = [
        replace(
            step,
            latency=replace(step.latency, mean_ms=8 + 0.2 * number),
            metrics={
                **step.metrics,
                "target.cpu.cores": step.throughput * (0.5 + 0.1 * number * (1 + number % 2 / 50)) / 1000,
            },
        )
        for number, step in enumerate(served(make_step))
    ]
    found = growing("concurrency", steps)
    assert found is not None and "as much CPU time at the end as at first" in found.title
    assert "took more CPU time the later" in found.explanation
    flat = [replace(step, metrics={**step.metrics, "target.cpu.cores": step.throughput / 1000}) for step in steps]
    assert growing("concurrency", flat) is None


def test_steps_after_a_restart_do_not_count(make_step: StepMaker) -> None:
    """Those of another state came between: number 3 is missing."""
    steps = served(make_step, per_request=1e-3)
    assert growing("concurrency", [step for step in steps if step.number != 3]) is None


def test_known_servers_are_not_judged_by_it(make_step: StepMaker) -> None:
    """A table that is filled costs more by design: their examination gives no sequence."""
    steps = served(make_step, per_request=1e-3)
    found = operational(Seen(curve_of(steps), steps, {}, []))
    assert not {each.id for each in found} & {REQUESTS, TIME}
