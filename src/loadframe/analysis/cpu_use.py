"""The busiest threads and components of each state."""

import re
import statistics
from collections.abc import Iterable, Mapping

from loadframe.metrics import METRICS
from loadframe.model import Companion, CpuUse, StateUse, Steps, at_highest

OF_THREAD = re.compile(r"(?P<name>[a-z]+\d*)\.cpu\.hottest_thread")
OF_COMPONENT = re.compile(r"(?P<name>[a-z][a-z0-9_-]*)\.cpu\.cores")
OF_KIND = re.compile(r"[a-z_]+\.(?P<name>\w+)_cpu")
"""CPU time (s/s) of threads by what they do, as servers report it."""
WHOLE = "target"
OURS = "recorder"
LEAST = 0.005


def of_states(steps: Steps, titles: Mapping[str, str]) -> tuple[StateUse, ...]:
    """CPU use of each state at its highest level; the state without changes first. titles: treatment -> changes."""
    counting = [step for step in steps if step.counts and step.treatment in titles]
    order = sorted({step.treatment for step in counting}, key=lambda name: (titles[name] != "", name))
    return tuple(_of_state(titles[name], [step for step in counting if step.treatment == name]) for name in order)


def _of_state(title: str, steps: Steps) -> StateUse:
    steps = at_highest(steps)
    names = {name for step in steps for name in step.metrics}
    median = {name: statistics.median(step.metrics[name] for step in steps if name in step.metrics) for name in names}
    components, threads = _named(OF_COMPONENT, median), _named(OF_THREAD, median)
    pieces = components.keys() - {WHOLE, "driver", OURS}
    seen = [name for name in components if name != OURS and not (pieces and name == WHOLE)]
    times = {name: value for name, value in median.items() if name in METRICS and METRICS[name].unit == "s/s"}
    return StateUse(
        state=title,
        level=steps[0].level,
        throughput=statistics.median(step.throughput for step in steps),
        steps=len(steps),
        threads=_busiest(CpuUse(name, threads[name], 1.0) for name in seen if name in threads),
        kinds=_busiest(CpuUse(name, cores, 1.0) for name, cores in _named(OF_KIND, times).items()),
        components=_busiest(
            CpuUse(name, components[name], median.get(f"{name}.cpu.limit", median.get("system.cpu.count", 1.0)))
            for name in seen
        ),
        busy=median.get("system.cpu.utilization"),
        others=median.get("system.cpu.foreign"),
    )


def companions(steps: Steps) -> tuple[Companion, ...]:
    """Programs outside the target that work for it, busiest first: medians at the first state's highest level."""
    counting = [step for step in steps if step.counts]
    first = min((step.treatment for step in counting), default="")
    mine = at_highest(step for step in counting if step.treatment == first)
    if not mine:
        return ()
    cores = [_named(OF_COMPONENT, step.metrics) for step in mine]
    names = sorted({name for of_components in cores for name in of_components if f"{name}.cpu.cores" not in METRICS})
    of = statistics.median(step.metrics.get("system.cpu.count", 1.0) for step in mine)
    used = {name: statistics.median(of_components.get(name, 0.0) for of_components in cores) for name in names}
    rows = sorted(used.items(), key=lambda row: -row[1])
    return tuple(Companion(name, value, of, mine[0].level) for name, value in rows if value >= LEAST)


def _named(pattern: re.Pattern[str], metrics: Mapping[str, float]) -> dict[str, float]:
    matches = {name: match for name in metrics if (match := pattern.fullmatch(name)) is not None}
    return {match["name"]: metrics[name] for name, match in matches.items()}


def _busiest(uses: Iterable[CpuUse]) -> tuple[CpuUse, ...]:
    return tuple(sorted((use for use in uses if use.cores >= LEAST), key=lambda use: -use.cores))
