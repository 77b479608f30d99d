"""A cost that grows: a pause tells whether it follows requests or time, and a restart confirms it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.growing import GROWTH, REQUESTS, TIME, grown
from loadframe.experiments.frame import looked_at
from loadframe.experiments.growing_costs import measure_after_pause, restart_confirms
from loadframe.experiments.sweep import curve_of, sweep
from loadframe.model import Finding, Latency, Step, StepRequest, TargetState
from loadframe.study import parse

StepMaker = Callable[..., Step]
STUDY = """
[study]
name = "app"
question = "?"
[target]
kind = "service"
command = ["python3", "app.py", "{port}"]
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2, 4]
[measure]
window = "1s"
blocks = { min = 3, max = 3 }
budget = "200s"
"""
SLEEPER_S, WORK_S = 0.002, 0.001


@dataclass
class Service:
    """Each request takes 2 ms, and 1 ms for one at a time, which grows by `per_request` of it with each request served
    since it was started, and by `per_second` with each second. drifts: with what the machine does, whatever is
    restarted."""

    per_request: float = 0.0
    per_second: float = 0.0
    drifts: float = 0.0
    served: float = 0.0
    started_s: float = 0.0
    number: int = 0
    took: list[str] = field(default_factory=list)

    def cost_s(self, now_s: float) -> float:
        own = 1 + self.per_request * self.served + self.per_second * (now_s - self.started_s)
        return WORK_S * (own + self.drifts * now_s)


def loop(simulated: Callable[..., Bookkeeping], make_step: StepMaker, service: Service) -> Bookkeeping:
    """A book whose bench measures this service; noise of 1 % from a fixed pattern."""

    def idle(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
        raise AssertionError("its own take_step is used")

    made = simulated(idle)
    clock = made.bench.clock  # type: ignore[attr-defined]
    made.bench.study = parse(STUDY)  # type: ignore[misc]

    def take_step(request: StepRequest) -> Step:
        treatment, level = request.treatment, request.level
        began = clock.now_s
        service.number += 1
        service.took.append(treatment)
        middle_s = began + 0.9
        service.served += 0.5 * 1.6 * rate(level, service.cost_s(middle_s))
        cost_s = service.cost_s(middle_s)
        throughput = rate(level, cost_s) * (1 + 0.01 * ((service.number * 7) % 5 - 2))
        service.served += 0.5 * 1.6 * throughput
        clock.now_s += 1.6
        mean = 1000 * level / throughput
        return make_step(
            level,
            throughput,
            {"system.cpu.utilization": 0.3, "system.cpu.count": 2.0},
            number=service.number,
            block=request.block,
            treatment=treatment,
            latency=Latency(mean, mean, mean, mean, mean),
            started_s=began,
            window_start_s=began + 0.4,
            window_end_s=began + 1.4,
            ended_s=clock.now_s,
        )

    def recover(name: str) -> None:
        service.served, service.started_s = 0.0, clock.now_s

    made.bench.take_step = take_step  # type: ignore[method-assign]
    made.bench.recover = recover  # type: ignore[method-assign]
    return made


def rate(level: float, cost_s: float) -> float:
    return min(level / (SLEEPER_S + cost_s), 1 / cost_s)


def swept(book: Bookkeeping) -> Finding | None:
    """The growth that the loop finds, after its pause and its restart."""
    curve = sweep(book, "A", round_number=1)
    paused = measure_after_pause(book, "A")
    curve = curve_of(book.steps, book.bench.study, "A") if paused else curve
    seen = looked_at(book, 1, "A", book.bench.start_state, {}, curve)
    found = restart_confirms(book, seen, paused=paused).round.findings
    return next((each for each in found if each.id in (REQUESTS, TIME)), None)


@pytest.mark.parametrize(
    ("cause", "service"), [(REQUESTS, Service(per_request=3e-4)), (TIME, Service(per_second=0.15))]
)
def test_a_pause_tells_what_a_cost_follows_and_a_restart_that_it_does(
    simulated: Callable[..., Bookkeeping], make_step: StepMaker, cause: str, service: Service
) -> None:
    found = swept(loop(simulated, make_step, service))
    assert found is not None
    assert (found.id, found.status) == (cause, "confirmed")
    assert "cannot tell the two apart" not in found.explanation
    assert found.mechanism is not None
    assert "before a restart without any change" in found.mechanism.because


def test_a_restart_that_brings_it_back_without_a_pause_before_it_says_why_it_confirms_nothing(
    simulated: Callable[..., Bookkeeping], make_step: StepMaker
) -> None:
    book = loop(simulated, make_step, Service(per_request=3e-4))
    seen = looked_at(book, 1, "A", book.bench.start_state, {}, sweep(book, "A", round_number=1))
    found = next(each for each in restart_confirms(book, seen, paused=False).round.findings if each.id in GROWTH)
    assert found.status == "suspected"
    assert found.mechanism is not None
    assert "whether the cost follows requests or time, and no pause was measured" in found.mechanism.because


def test_after_a_restart_levels_come_in_the_order_of_the_first_block(
    simulated: Callable[..., Bookkeeping], make_step: StepMaker
) -> None:
    """Within a block a cost that grows fast is another one at its end. Seen: the last level of one block came first in
    the next one, with no request between them, and was found not to have become dearer."""
    book = loop(simulated, make_step, Service(per_second=0.15))
    swept(book)
    steps = sorted(book.steps, key=lambda step: step.number)
    before, after = dict.fromkeys(step.treatment for step in steps)
    order = [step.level for step in steps if (step.treatment, step.block) == (before, 1)]
    assert [step.level for step in steps if step.treatment == after] == 2 * order


def test_what_a_restart_does_not_bring_back_is_not_confirmed(
    simulated: Callable[..., Bookkeeping], make_step: StepMaker
) -> None:
    """The machine became slower, not the service."""
    found = swept(loop(simulated, make_step, Service(drifts=0.15)))
    assert found is not None
    assert found.status == "suspected"
    assert found.mechanism is not None
    assert "not as cheap as at first" in found.mechanism.because


def test_a_cost_that_stays_is_neither_paused_nor_restarted(
    simulated: Callable[..., Bookkeeping], make_step: StepMaker
) -> None:
    service = Service()
    book = loop(simulated, make_step, service)
    assert swept(book) is None
    assert len(service.took) == 9


def test_without_budget_it_stays_suspected(simulated: Callable[..., Bookkeeping], make_step: StepMaker) -> None:
    service = Service(per_request=3e-4)
    book = loop(simulated, make_step, service)
    sweep(book, "A", round_number=1)
    assert grown("concurrency", book.of("A")) is not None
    book.budget.total_s = book.budget.spent_s()
    found = swept(book)
    assert found is not None
    assert found.status == "suspected"
    assert found.mechanism is not None
    assert found.mechanism.because.startswith("not confirmed: too little of the budget was left for a restart")
    assert len(service.took) == 9


def test_a_running_service_is_never_restarted(simulated: Callable[..., Bookkeeping], make_step: StepMaker) -> None:
    service = Service(per_request=3e-4)
    book = loop(simulated, make_step, service)
    book.bench.study = parse(STUDY.replace('command = ["python3", "app.py", "{port}"]', "listen = 8080"))  # type: ignore[misc]
    found = swept(book)
    assert found is not None
    assert found.status == "suspected"
    assert found.mechanism is not None
    assert found.mechanism.because == "not confirmed: a service that runs is not restarted"
    assert set(service.took) == {"A"}
