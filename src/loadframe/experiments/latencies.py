"""The latency distributions of a report, from the histograms of the steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import distribution
from loadframe.analysis.selection import deciding, select
from loadframe.diagnosis.conclusion import kept_trials
from loadframe.errors import RunError
from loadframe.model import LatencyDistribution, Round, Step, Verdict
from loadframe.runs.folder import RunFolder
from loadframe.runs.histograms import bin_latencies_ms


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of the first and the last kept state. warnings: why a histogram cannot be read."""

    distributions: tuple[LatencyDistribution, ...] = ()
    warnings: tuple[str, ...] = ()


def latencies_of(run: RunFolder, rounds: Sequence[Round], steps: Sequence[Step], gain: Verdict | None) -> Latencies:
    """At the highest level of the gain, or of all. steps: of the whole run."""
    if not rounds:
        return Latencies()
    kept = kept_trials(rounds)
    treatments = [rounds[0].treatment, *([kept[-1].treatment_after] if kept else [])]
    decided = deciding(rounds)
    mine = [select((step for step in steps if step.treatment == name), decided=decided).steps for name in treatments]
    common = set.intersection(*({step.level for step in side} for side in mine))
    if not common:
        return Latencies()
    level = max(common.intersection(gain.levels if gain else ()) or common)
    try:
        distributions = [_merged(run, [step for step in side if step.level == level]) for side in mine]
    except RunError as error:
        return Latencies(warnings=(f"the report shows no distribution of latencies: {error.fact}",))
    there = tuple(distribution for distribution in distributions if distribution is not None)
    return Latencies(there) if len(there) == len(treatments) else Latencies()


def _merged(run: RunFolder, steps: Sequence[Step]) -> LatencyDistribution | None:
    read = [(step, counts) for step in steps if (counts := run.latency_counts(step.number)) is not None]
    if not any(counts.any() for _, counts in read):
        return None
    whole = np.sum([counts for _, counts in read], axis=0)
    failed = sum(step.errors for step, _ in read)
    among_them = int(whole.sum()) > sum(step.requests for step, _ in read)  # as in older versions
    latencies_ms = bin_latencies_ms()
    return LatencyDistribution(
        treatment=steps[0].treatment,
        level=steps[0].level,
        steps=len(read),
        requests=int(whole.sum()),
        failed=failed if among_them else 0,
        latency=distribution.summary(latencies_ms, whole),
        points=distribution.points(latencies_ms, whole),
        left_out=0 if among_them else failed,
    )
