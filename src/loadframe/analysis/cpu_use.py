"""The busiest threads and components of each state, from the metrics of steps."""

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from loadframe.metrics import METRICS
from loadframe.model import Companion, CpuUse, StateUse, Step

OF_THREAD = re.compile(r"(?P<name>[a-z]+\d*)\.cpu\.hottest_thread")
OF_COMPONENT = re.compile(r"(?P<name>[a-z][a-z0-9_-]*)\.cpu\.cores")
OF_KIND = re.compile(r"[a-z_]+\.(?P<name>\w+)_cpu")
"""CPU time (s/s) of threads by what they do, as servers report it."""
WHOLE = "target"
OURS = "recorder"
LEAST = 0.005


def of_states(steps: Sequence[Step], titles: Mapping[str, str]) -> tuple[StateUse, ...]:
    """CPU use of each state at its highest level; the state without changes first. titles: treatment -> changes."""
    counting = [step for step in steps if step.counts and step.treatment in titles]
    order = sorted({step.treatment for step in counting}, key=lambda name: (titles[name] != "", name))
    return tuple(_of_state(titles[name], [step for step in counting if step.treatment == name]) for name in order)


def _of_state(title: str, steps: Sequence[Step]) -> StateUse:
    level = max(step.level for step in steps)
    steps = [step for step in steps if step.level == level]
    names = {name for step in steps for name in step.metrics}
    median = {name: statistics.median(step.metrics[name] for step in steps if name in step.metrics) for name in names}
    components = _found(OF_COMPONENT, median)
    pieces = len(components.keys() - {WHOLE, "driver", OURS}) > 0
    seen = [name for name in components if name != OURS and not (pieces and name == WHOLE)]
    threads, kinds = _found(OF_THREAD, median), _found(OF_KIND, median)
    return StateUse(
        state=title,
        level=level,
        throughput=statistics.median(step.throughput for step in steps),
        steps=len(steps),
        threads=_busiest(CpuUse(name, threads[name], 1.0) for name in seen if name in threads),
        kinds=_busiest(CpuUse(name, cores, 1.0) for name, cores in kinds.items()),
        components=_busiest(
            CpuUse(name, components[name], median.get(f"{name}.cpu.limit", median.get("system.cpu.count", 1.0)))
            for name in seen
        ),
        busy=median.get("system.cpu.utilization"),
        others=median.get("system.cpu.foreign"),
    )


def companions(steps: Sequence[Step]) -> tuple[Companion, ...]:
    """Programs outside the target that work for it, busiest first: medians at the first state's highest level."""
    counting = [step for step in steps if step.counts]
    mine = [step for step in counting if step.treatment == min((step.treatment for step in counting), default="")]
    level = max((step.level for step in mine), default=0.0)
    mine = [step for step in mine if step.level == level]
    cores = [_found(OF_COMPONENT, step.metrics) for step in mine]
    names = sorted({name for of_components in cores for name in of_components if f"{name}.cpu.cores" not in METRICS})
    of = statistics.median([step.metrics.get("system.cpu.count", 1.0) for step in mine] or [1.0])
    used = {name: statistics.median(of_components.get(name, 0.0) for of_components in cores) for name in names}
    return tuple(
        Companion(name, value, of, level)
        for name, value in sorted(used.items(), key=lambda entry: -entry[1])
        if value >= LEAST
    )


def _found(pattern: re.Pattern[str], metrics: Mapping[str, float]) -> dict[str, float]:
    kind = pattern is OF_KIND
    named = ((pattern.fullmatch(name), name, value) for name, value in metrics.items())
    return {
        matches["name"]: value
        for matches, name, value in named
        if matches is not None and (not kind or (name in METRICS and METRICS[name].unit == "s/s"))
    }


def _busiest(uses: Iterable[CpuUse]) -> tuple[CpuUse, ...]:
    return tuple(sorted((use for use in uses if use.cores >= LEAST), key=lambda use: -use.cores))
