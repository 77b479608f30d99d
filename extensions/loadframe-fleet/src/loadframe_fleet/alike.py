"""How alike the hosts of a fleet are (A/A): in each block the start is measured on one host after another, the others
idle: whether they differ; then on all of them at the same time: whether they disturb one another."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import median
from typing import Any, TypeVar

from loadframe.analysis.comparison import verdict
from loadframe.analysis.sequential import Plan
from loadframe.errors import FleetError
from loadframe.experiments.proof import grain_of
from loadframe.experiments.settings_search import Start
from loadframe.experiments.side_by_side import START
from loadframe.model import FleetHosts, HostRatio, Likeness, Purpose, Step
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import encode
from loadframe.runs.lines import Treatment
from loadframe.study import Study
from loadframe_fleet.on_hosts import OnHosts, Work
from loadframe_fleet.records import HOSTS, TaskPurpose

MARGIN = 1.2
"""Trials are compared with the start on their own host, so a difference between hosts matters only where a setting is
worth more on one than on the other; a search gives up what is below 0.7 of the best."""
ERROR = 0.05
PLAN = Plan(3, 8)
"""First and last block after which the answer is looked for."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one host in one block, by level. grain: the relative resolution of each value."""

    values: Mapping[float, float]
    grain: Mapping[float, float]


Result = TypeVar("Result")
Samples = Mapping[str, Sequence[Sample]]


def calibrate(
    hosts: Sequence[str],
    levels: Sequence[float],
    measure: Callable[[int, TaskPurpose, Sequence[str]], Mapping[str, Result]],
    sample: Callable[[Result], Sample],
    drawn: random.Random,
    run: RunFolder,
    notes: list[str],
    affords: Callable[[], bool] = lambda: True,
) -> tuple[FleetHosts, dict[str, list[Result]]]:
    """Measure blocks until all hosts are known to be alike; also each host's results while all were loaded. measure:
    runs the start on these hosts at the same time. run, notes: receive the result, also before a refusal. affords:
    another block. FleetError where hosts differ, disturb one another, or that is not decided."""
    alone: dict[str, list[Sample]] = {host: [] for host in hosts}
    together: dict[str, list[Result]] = {host: [] for host in hosts}
    fleet_hosts: FleetHosts | None = None
    for block in range(1, PLAN.last + 1):
        if block > PLAN.first and not affords():
            break
        for host in drawn.sample(list(hosts), len(hosts)):
            alone[host].append(sample(measure(block, "alone", [host])[host]))
        for host, shown in measure(block, "together", hosts).items():
            together[host].append(shown)
        if block < PLAN.first:
            continue
        fleet_hosts = compared(alone, {host: list(map(sample, results)) for host, results in together.items()}, levels)
        likenesses = {ratio.likeness for ratio in (*fleet_hosts.hosts, *fleet_hosts.together)}
        if likenesses == {"alike"} or "differ" in likenesses:
            break
    assert fleet_hosts is not None, "the plan has a look"
    HOSTS.add(run, fleet_hosts)
    notes += [
        f"With the same settings, the host {pair.host} serves {pair.ratio:.2f} ({pair.low:.2f} to {pair.high:.2f}) of "
        f"what {pair.other_host} serves."
        for pair in fleet_hosts.hosts
    ]
    _refuse(fleet_hosts)
    return fleet_hosts, together


def compared(alone: Samples, together: Samples, levels: Sequence[float]) -> FleetHosts:
    # The one with the middle throughput at the first level: of three, the odd one is named.
    ranked = sorted(alone, key=lambda host: median(sample.values[levels[0]] for sample in alone[host]))
    middle = ranked[len(ranked) // 2]
    hosts = [_ratio(host, middle, alone[host], alone[middle], levels) for host in alone if host != middle]
    disturbed = [_ratio(host, host, together[host], alone[host], levels) for host in alone]
    return FleetHosts(tuple(levels), MARGIN, tuple(hosts), tuple(disturbed))


def judge(low: float, high: float) -> Likeness:
    if low >= 1 / MARGIN and high <= MARGIN:
        return "alike"
    middle = (low * high) ** 0.5
    beyond = not 1 / MARGIN <= middle <= MARGIN
    return "differ" if beyond and not low <= 1 <= high else "unknown"


def _ratio(
    host: str, other: str, mine: Sequence[Sample], theirs: Sequence[Sample], levels: Sequence[float]
) -> HostRatio:
    # Hosts that each count the same in every block differ by as much as they count, or are alike.
    sides = theirs, mine
    before, after = ({level: [sample.values[level] for sample in side] for level in levels} for side in sides)
    coarsest = [{level: max(sample.grain[level] for sample in side) for level in levels} for side in sides]
    grain = {level: (coarsest[0][level], coarsest[1][level]) for level in levels}
    outcome = verdict(before, after, confidence=1 - ERROR, plan=PLAN, grain=grain)
    ends = outcome.low, outcome.high
    return HostRatio(host, other, outcome.ratio, *ends, outcome.blocks, judge(*ends))


def _refuse(fleet_hosts: FleetHosts) -> None:
    words = list(_differing(fleet_hosts.hosts)) or list(_differing(fleet_hosts.together))
    if not words:
        return
    differ = any(ratio.likeness == "differ" for ratio in (*fleet_hosts.hosts, *fleet_hosts.together))
    remedy = (
        "Search with hosts that are alike: take the others out of the fleet file. Where they disturb one another, bind "
        "each to CPUs of its own (cpus), or use separate machines."
        if differ
        else "Give longer windows (measure.window) or more time (measure.budget), or use hosts that are quieter."
    )
    raise FleetError(f"trials on these hosts cannot be compared: {'; '.join(words)}", remedy=remedy)


def _differing(ratios: Sequence[HostRatio]) -> Iterator[str]:
    of_itself = " of what it serves while the others rest"
    differ = [ratio for ratio in ratios if ratio.likeness == "differ"]
    for ratio in differ or [ratio for ratio in ratios if ratio.likeness == "unknown"]:
        compared_with = of_itself if ratio.host == ratio.other_host else f" of what {ratio.other_host} serves"
        while_ = "while all are loaded " if ratio.host == ratio.other_host else ""
        shown = f"{ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
        doubt = "" if differ else f", which does not prove that they are alike (from {1 / MARGIN:.2f} to {MARGIN:.2f})"
        yield f"{while_}host {ratio.host} serves {shown}{compared_with} with the same settings{doubt}"


START_TITLE = "The start"


def steps_asked(
    study: Study,
    order: Sequence[tuple[str, float]],
    *,
    states: Sequence[Treatment] = (),
    block: int = 1,
    round_number: int | None = None,
    purpose: Purpose = "trial",
    floors: Mapping[float, float] | None = None,
) -> dict[str, Any]:
    """See trial.py. states: of all treatments but the start. floors: throughput by level below which steps end."""
    return {
        "study": study.resolved(),
        "states": [encode("treatment", state).decode() for state in states],
        "order": [[name, level] for name, level in order],
        "block": block,
        "round": round_number,
        "step": purpose,
        "floors": list((floors or {}).items()),
    }


def alike(
    on: OnHosts,
    study: Study,
    run: RunFolder,
    levels: Sequence[float],
    drawn: random.Random,
    notes: list[str],
    affords: Callable[[], bool],
) -> dict[str, Start]:
    """The start on each host while all are loaded, which its trials are compared with. FleetError where the hosts are
    not known to be alike at these levels."""
    measure = partial(start_of, on, study, levels)
    _, together = calibrate(on.engine.hosts, levels, measure, _sample, drawn, run, notes, affords)
    return {host: Start.of(list(chain.from_iterable(shown)), levels) for host, shown in together.items()}


def start_of(
    on: OnHosts, study: Study, levels: Sequence[float], block: int, purpose: TaskPurpose, hosts: Sequence[str]
) -> dict[str, tuple[Step, ...]]:
    asked = steps_asked(study, [(START, level) for level in levels], block=max(1, block))
    done = on.together(hosts, Work(purpose, block, START_TITLE, lambda _: asked))
    return {host: result.steps for host, result in done.items()}


def _sample(steps: Sequence[Step]) -> Sample:
    return Sample({step.level: step.throughput for step in steps}, {step.level: grain_of(step) for step in steps})
