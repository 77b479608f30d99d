"""Why the data carry no forecast: a guess that looks like one is worse than none."""

import math

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.analysis.saturation import line
from loadframe.model import Observations
from loadframe.prediction import demands
from loadframe.prediction import system as systems
from loadframe.prediction.system import System
from loadframe.progress import counted

FEWEST_LOADS = 2
FEWEST_WINDOWS = 3
"""A line through two windows has no known error."""
LEAST_USED = 0.05
"""A resource used less at the highest load is twenty loads away from its limit: out of sight."""
FEWEST_ALONE = 3
"""Fewest loads of a curve without resources, as in the library."""
CONFIDENCE = 0.95
NEAR = 0.85
"""A resource used this much explains a throughput that stops growing."""
FULL, GREW = 0.97, 1.5
"""A resource at FULL while the throughput grows by this factor does not limit it."""
GREW_FAR = 3.0
"""Nor does a resource at NEAR that does not rise meanwhile: a memory that is always in use."""
UNEXPLAINED, ERRORS = 0.15, 3.0
"""A throughput this share, and this many standard errors, below what resources explain has an unmeasured limit."""
UNMEASURED = " Something not measured holds requests up: a lock, a queue, the network."
OUT_OF_SIGHT = " The first limit is not visible; measure higher loads, or more resources."
"""A run's case study may know a limit that these resources do not show."""


def load(observations: Observations) -> str:
    top, unit = f"{observations.loads[-1]:,g}", observations.unit
    return f"{top} {unit}" if unit else f"load {top}"


def rising(observations: Observations) -> tuple[str, ...]:
    """Resources whose use grows with throughput beyond errors (one-sided t-test, 95 %), or is nearly all."""
    rows = systems.working(observations)
    throughputs = np.array([row.throughput for row in rows])
    names = []
    for name in observations.resources:
        if name in observations.flattening | observations.by_the_hour:
            continue
        used = np.array([row.utilizations[name] for row in rows])
        if max(used) < LEAST_USED or _grows_while(FULL, throughputs, used, GREW):
            continue
        constant = _grows_while(NEAR, throughputs, used, GREW_FAR)
        fitted = line(throughputs.tolist(), used.tolist(), confidence=2 * CONFIDENCE - 1)
        rises = fitted is not None and (
            fitted.slope * np.ptp(throughputs) >= demands.RESOLUTION and fitted.slope > fitted.half
        )
        if rises or (np.median(used) >= NEAR and not constant):
            names.append(name)
    return tuple(names)


def _grows_while(share: float, throughputs: Floats, used: Floats, factor: float) -> bool:
    """The use at `share` or more then shows no ceiling."""
    full = throughputs[used >= share]
    return len(full) >= FEWEST_LOADS and bool(full.max() > factor * full.min())


def too_little(observations: Observations) -> str | None:
    rows = systems.working(observations)
    loads = sorted({row.load for row in rows})
    if not rows:
        return "The throughput is 0 at every load: nothing was served, or it is not counted."
    top = observations.loads[-1]
    if loads[-1] < top:
        return (
            f"At {load(observations)}, the highest, nothing was served: what lower loads say does not hold there, nor "
            "beyond. Leave that load out, or measure between."
        )
    if len(loads) < FEWEST_LOADS:
        return (
            f"{counted(len(loads), 'load')} with throughput cannot tell a demand that grows from an error of "
            f"measurement; measure at least {FEWEST_LOADS}."
        )
    if len(rows) < FEWEST_WINDOWS:
        return (
            f"{len(rows)} windows at {len(loads)} loads do not show their scatter; measure more loads, or these again."
        )
    return None


def nothing_rises(observations: Observations) -> str | None:
    if not observations.resources:
        return "No utilisation was measured, so the saturating resource is unknown. Give columns util.NAME, or a run."
    if rising(observations):
        return None
    used = {name: max(row.utilizations[name] for row in observations.rows) for name in observations.resources}
    if flat := [f"{name} ({100 * use:.0f} %)" for name, use in used.items() if name in observations.flattening]:
        return (
            f"The use of {', '.join(flat)} flattens as the throughput rises: where it would be used up is not in sight "
            f"from here, and no other resource rises.{OUT_OF_SIGHT}"
        )
    if hourly := [name for name in used if name in observations.by_the_hour]:
        return (
            f"The use of {', '.join(hourly)} follows the hour of the day rather than the load, and no other resource "
            f"rises.{OUT_OF_SIGHT}"
        )
    return (
        f"No resource rises up to {load(observations)}: the most used stays at {100 * max(used.values()):.0f} %, or "
        f"does not follow the throughput.{OUT_OF_SIGHT}"
    )


def too_few_alone(observations: Observations) -> str | None:
    loads = {row.load for row in systems.working(observations)}
    if len(loads) >= FEWEST_ALONE:
        return None
    return f"And {len(loads)} loads are too few to forecast from the curve alone; measure at least {FEWEST_ALONE}."


def after(system: System, observations: Observations) -> str | None:
    """Fitted at the lower half of the loads, the model must give the throughput at the highest, unless a resource is
    nearly used up there."""
    rows = systems.working(observations)
    loads = sorted({row.load for row in rows})
    top = loads[-1]
    used, most = max(
        (np.median([row.utilizations[name] for row in rows if row.load == top]), name) for name in system.demands
    )
    low = [row for row in rows if row.load <= loads[(len(loads) - 1) // 2]]
    if used >= NEAR:
        return None
    lower = systems.fitted(
        system, np.array([row.load for row in low]), np.array([row.throughput for row in low]), np.random.default_rng(0)
    )
    expected = np.median(lower.throughput(np.array([top])))
    at_top = [row.throughput for row in rows if row.load == top]
    short = 1 - np.median(at_top) / expected
    error = np.median(lower.error) * math.sqrt(1 / len(low) + 1 / len(at_top))
    if short <= max(UNEXPLAINED, ERRORS * error):
        return None
    return (
        f"At {load(observations)} throughput is {100 * short:.0f} % below what the resources that rise with it would "
        f"allow; the most used of them, {most}, is at {100 * used:.0f} %.{UNMEASURED}"
    )
