"""Limits at which requests wait uncounted, such as a declared pool. A full limit proves little: a pool in front of busy
CPUs is full, too. It is suspected if full at every level past the bend, and at none well below it; behind what is busy
then. Also requests that share a disk flush (docs/mathematics.md, "Shared flushes")."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from loadframe.analysis.in_service import InService
from loadframe.diagnosis.sizes import mean_of
from loadframe.diagnosis.windows import Windows
from loadframe.knowledge.signature import DISK_IDLE, Rank, condition_rows
from loadframe.metrics import metric as metric_of
from loadframe.metrics.exposed import OF, RESERVED
from loadframe.model import REACHED, Evidence, Finding, Limit, LoadInterval, RuledOut, Steps
from loadframe.units import show_metric

FLAT = 1.1
CONDITIONS = condition_rows(Path(__file__).with_name("operational.toml"))
BUSY = [CONDITIONS[name] for name in ("own_cpu_busy", "disk_busy", "used_up")]
"""What requests in such a limit may themselves wait for."""
ABOVE = 1.1
"""Multiple of its ceiling in use that shows another ceiling; less is due to counts read at different times."""
BEHIND = 0.4
"""The score where something is busy: below that signature's (diagnosis.findings)."""
AT_EVERY_LEVEL = 0.5
LESS = 0.001
SEEN_FROM_OUTSIDE = tuple(f"{OF}{name}" for name in RESERVED)


def finding(limit: Limit, windows: Windows, bend: LoadInterval | None, score: float) -> Finding | RuledOut | None:
    """None where the use was not measured. score: how well the limit explains the bend."""
    most, metric = REACHED * limit.ceiling, limit.use_metric
    what = metric_of(metric).what
    uses = {window.levels[0]: window.halves[metric] for window in windows.levels if metric in window.halves}
    if len(uses) < len(windows.levels):
        return None
    if (highest := max(uses.values())) > ABOVE * limit.ceiling:
        above = f"{_say(limit, highest)}, above its ceiling of {_say(limit, limit.ceiling)}"
        return RuledOut(limit.id, f"{what}: {above}: one of the two metrics is not what the study says")
    past = {level: use for level, use in uses.items() if level in windows.past.levels}
    if (least := min(past.values())) < most:
        return RuledOut(limit.id, f"{what}: {_say(limit, least)} of {_say(limit, limit.ceiling)} past the bend")
    spared = {level: use for level, use in uses.items() if use < most}
    throughputs = [window.metrics["throughput"] for window in windows.levels]
    flat = windows.bend is None and len(throughputs) > 1 and max(throughputs) < FLAT * throughputs[0]
    if windows.bend is not None and spared and max(spared) < windows.past.levels[0]:
        below = Evidence(metric, max(spared.values()), "<", most, _at(list(spared)), "below the bend")
        evidence: tuple[Evidence, ...] = (_full(limit, past), below)
        reached_at = limit.exhausted_at or bend
    elif not spared and flat:
        evidence, reached_at, score = (_full(limit, uses),), None, min(score, AT_EVERY_LEVEL)
    else:
        return RuledOut(limit.id, "it is full, but that does not begin where throughput ends to grow")
    busy = [condition for condition in BUSY if condition.met(windows.past.metrics)]
    sentences = (
        f"Requests that need more of it {'fail' if limit.loud else 'wait'}, as the study says; nothing counts them. "
        "Whether it limits the throughput shows only when it is raised."
    )
    if busy:
        sentences += f" But {metric_of(busy[0].metric).what} is high as well, and may be what fills it."
    return Finding(
        id=limit.id,
        title=f"{limit.title or limit.id} is full at {_say(limit, limit.ceiling)}",
        reached_at=reached_at,
        evidence=evidence,
        score=min(score, BEHIND) if busy else score,
        explanation=sentences,
    )


def is_the_same_limit(first: Finding, other: Finding) -> bool:
    """A limit at which requests wait, and the number in service that names it."""
    outside = [finding for finding in (first, other) if finding.id in SEEN_FROM_OUTSIDE]
    limits = [finding for finding in (first, other) if finding.id.startswith(OF) and finding not in outside]
    if not outside or not limits or not limits[0].evidence:
        return False
    return limits[0].evidence[0].metric in {item.metric for item in outside[0].evidence}


def behind(findings: Sequence[Finding]) -> list[Finding]:
    """Each limit at which requests wait comes behind the number in service that names it."""
    named = {
        item.metric: finding.score
        for finding in findings
        if finding.id in SEEN_FROM_OUTSIDE
        for item in finding.evidence
    }
    return [
        replace(finding, score=min(finding.score, named[finding.evidence[0].metric] - LESS))
        if finding.id not in SEEN_FROM_OUTSIDE and finding.id.startswith(OF) and finding.evidence[0].metric in named
        else finding
        for finding in findings
    ]


def _full(limit: Limit, uses: Mapping[float, float]) -> Evidence:
    least, most, source = min(uses.values()), REACHED * limit.ceiling, "the ceiling: " + limit.source
    return Evidence(limit.use_metric, least, ">=", most, _at(list(uses)), source)


def _at(levels: Sequence[float]) -> str:
    return f"at {levels[0]:g}" if len(levels) == 1 else f"at each level from {levels[0]:g} to {levels[-1]:g}"


def _say(limit: Limit, value: float) -> str:
    return show_metric(limit.use_metric, value)


FLUSHES = "disk.fsync"
MOST_OF_THE_TIME = 0.5
"""Share of a request's time in service, in the disk: without it twice as many would be served."""
IN_DISK = "target.waits.disk"
FLUSHED, WRITTEN, READS = (CONDITIONS[name] for name in ("flushed", "written", "reads"))


def waits_for_flushes(served: InService, flat: Steps, reached_at: LoadInterval | None) -> Finding | None:
    """flat: the steps of the plateau. None where requests do not wait for flushes most of the time, may wait for reads,
    or it was not measured."""
    in_disk, flushed, written = (mean_of(metric, flat) for metric in (IN_DISK, FLUSHED.metric, WRITTEN.metric))
    reads, working = mean_of(READS.metric, flat), mean_of(DISK_IDLE.metric, flat)
    if in_disk is None or flushed is None or written is None or reads is None:
        return None
    per_s = fmean(step.throughput for step in flat)
    if (
        in_disk < MOST_OF_THE_TIME * served.value
        or not FLUSHED.holds(flushed)
        or not WRITTEN.holds(written / per_s)
        or READS.holds(reads / per_s)
        or (working is not None and DISK_IDLE.holds(working))
    ):
        return None
    levels = sorted({step.level for step in flat})
    where = f"on the plateau, at {levels[0]:g} to {levels[-1]:g}"
    share = min(1.0, in_disk / served.value)
    return Finding(
        id=FLUSHES,
        title=f"requests wait for flushes of the disk {100 * share:.0f} % of their time in service",
        reached_at=reached_at,
        evidence=(
            FLUSHED.evidence(flushed, where),
            Evidence(
                IN_DISK, in_disk, ">=", MOST_OF_THE_TIME * served.value, where, "of those in service (Little's law)"
            ),
        ),
        score=Rank.DISK.score,
        explanation="Several requests share a flush, and those in service wait for it: all others wait for these. "
        "Fewer flushes, or none within what a request holds meanwhile, would let more be served.",
    )
