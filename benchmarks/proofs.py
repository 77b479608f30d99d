"""Proofs whose truth is known, for benchmarks/sceptic.py: what a change gave, and what became of a cause's evidence.

Each is drawn: a cause of one of the five forms (diagnosis/mechanism.py), three to six blocks, a gain of 1.3 to 5. All
of a block share a noise of 5 % in the throughput, 4 % of its own comes on top, and each metric is off by 8 %. What is
judged is what `investigate` judges: the steps of both sides and their verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadframe.analysis.disturbance import exceeded
from loadframe.diagnosis.judging import judge
from loadframe.diagnosis.mechanism import TRACES
from loadframe.experiments.proof import verdict_on
from loadframe.model import Evidence, Finding, Price, Remedy, Step
from simulated import step

Random = np.random.Generator
Truth = Literal["moved", "stays", "missing", "uncounted", "neighbour"]
CLIENTS, BEFORE = 8.0, 1000.0
BLOCK_NOISE, OWN_NOISE, METRIC_NOISE = 0.05, 0.04, 0.08
CAUSES = (
    "disk.fsync",
    "mariadb.buffer_pool",
    "postgres.shared_buffers",
    "mariadb.redo_log",
    "bulk_loader.spawn_per_file",
    "lock.writer",
    "nginx.blocked_workers",
    "cage.cpu_quota",
    "cage.writes",
    "nginx.worker_processes",
)
"""Of every form of evidence one at least."""
UNCOUNTED = "mariadb.tables_at_once"
"""A limit of which it is only known how full it is."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a drawn proof came to. better: the throughput is proven to have risen; fell: the evidence did, as a share of
    its ceiling or per request."""

    better: bool
    fell: bool
    confirmed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """A metric in a state: its value, and the ceiling beside it, for what a limit lets pass."""

    value: float
    ceiling: float = 0.0


def draw(random: Random, truth: Truth) -> Drawn:
    """One proof. moved: the cause was the cause, and its evidence went as its model says. stays: something else gave
    the gain; the evidence is in its own unit what it was, so that its share, or what a request pays, may fall.
    missing: moved, and not measured in some block of a side. uncounted: nothing of it is counted. neighbour: others
    have a share of the CPUs in many steps, which costs the state before that share of its throughput and the one after
    a part of it; in quiet the change gives nothing, and the evidence recedes."""
    cause = UNCOUNTED if truth == "uncounted" else str(random.choice(CAUSES))
    gain = random.uniform(1.3, 5.0)
    form = "share" if truth == "uncounted" else TRACES[cause].form
    before, after, gain = (_stays if truth == "stays" else _moved)(random, form, gain)
    blocks = int(random.integers(3, 7))
    together = random.normal(0, BLOCK_NOISE, blocks)
    crowded = random.random((2, blocks)) < (random.uniform(0.4, 1.0) if truth == "neighbour" else 0.0)
    foreign = crowded * random.uniform(0.3, 0.9, (2, blocks))
    bears = random.uniform(0.0, 0.5)
    sides: list[list[Step]] = []
    for which, side in enumerate((before, after)):
        beside = (1 - foreign[which]) ** (bears if which else 1.0)
        gains = beside if truth == "neighbour" else np.full(blocks, gain if which else 1.0)
        throughputs = BEFORE * gains * np.exp(together + random.normal(0, OWN_NOISE, blocks))
        steps = []
        for block, throughput in enumerate(throughputs, start=1):
            metrics = _metrics(random, cause, form, side, throughput, foreign=float(foreign[which, block - 1]))
            steps.append(_step(block, "AB"[which], throughput, metrics))
        sides.append(steps)
    if truth == "missing":
        _lose(random, sides)
    return _judged(cause, form, sides)


def pair(random: Random) -> Drawn:
    """One change that moves the evidence of two causes: that of "disk.fsync" to a tenth, that of "lock.writer" later
    and less."""
    gain = random.uniform(2.0, 5.0)
    blocks = int(random.integers(3, 7))
    sides: list[list[Step]] = []
    for which in range(2):
        steps = []
        for block in range(1, blocks + 1):
            throughput = BEFORE * (gain if which else 1.0) * float(np.exp(random.normal(0, OWN_NOISE)))
            flushes, waiting = (0.4, 0.5 * CLIENTS / gain) if which else (4.0, 0.97 * CLIENTS)
            if which and block == 1:
                waiting = 0.9 * CLIENTS
            metrics = {TRACES["disk.fsync"].metric: flushes * _off(random), TRACES["lock.writer"].metric: waiting}
            steps.append(_step(block, "AB"[which], throughput, {**metrics, "workload.concurrency": CLIENTS}))
        sides.append(steps)
    findings = [_finding("lock.writer"), _finding("disk.fsync")]
    return _settled(findings, sides, fell=True)


def _moved(random: Random, form: str, gain: float) -> tuple[Side, Side, float]:
    left = random.uniform(0.0, 0.5)
    match form:
        case "events":  # T = T0 + c e: a share of the time that follows from the gain and from what is left
            return Side(4.0), Side(4.0 * left), min(gain, 0.95 / left) if left else gain
        case "waiting":  # what a request does besides stays as it is
            share = random.uniform(0.6, 0.95)
            gain = min(gain, random.uniform(1.3, 0.98 / (1 - share)))
            return Side(share * CLIENTS), Side((1 - gain * (1 - share)) * CLIENTS), gain
        case "passes":
            return Side(random.uniform(0.95, 1.0), 1.0), Side(gain * random.uniform(0.95, 1.0), 4.0), gain
        case _:
            return Side(0.9), Side(0.9 * left), gain


def _stays(random: Random, form: str, gain: float) -> tuple[Side, Side, float]:
    if form != "passes":
        return Side(0.9), Side(0.9), gain
    use = random.uniform(0.3, 0.7)  # a limit that held nothing back, raised: no more passes than it would have let
    gain = min(gain, 0.98 / use)
    return Side(use, 1.0), Side(gain * use, 4.0), gain


def _metrics(
    random: Random, cause: str, form: str, side: Side, throughput: float, *, foreign: float
) -> dict[str, float]:
    found = {"workload.concurrency": CLIENTS}
    if foreign:
        found |= {"system.cpu.foreign": foreign, "workload.cpu_wait": random.uniform(0.3, 0.8)}
    if cause == UNCOUNTED:
        return found | {"mariadb.tables_at_once": 64.0}
    trace = TRACES[cause]
    counted = form == "events" and not trace.metric.endswith("_per_request")
    value = side.value * (throughput if counted else BEFORE if form == "rate" else 1.0)
    found[trace.metric] = value * _off(random)
    return found | ({trace.ceiling: side.ceiling} if trace.ceiling else {})


def _lose(random: Random, sides: Sequence[list[Step]]) -> None:
    """The evidence is missing in all blocks of a side, or in one."""
    side = sides[int(random.integers(2))]
    lost = range(len(side)) if random.random() < 0.5 else [int(random.integers(len(side)))]
    for i in lost:
        step = side[i]
        kept = {name: value for name, value in step.metrics.items() if name == "workload.concurrency"}
        side[i] = _step(step.block, step.treatment, step.throughput, kept)


def _judged(cause: str, form: str, sides: Sequence[list[Step]]) -> Drawn:
    return _settled([_finding(cause)], sides, fell=_fell(cause, form, sides))


def _settled(findings: Sequence[Finding], sides: Sequence[list[Step]], *, fell: bool) -> Drawn:
    remedy = Remedy("change", "change", tuple(one.id for one in findings), (), Price())
    proved = verdict_on([step for side in sides for step in side], "A", "B")
    settled = judge(findings, remedy, proved, *sides)
    return Drawn(proved.decision == "better", fell, tuple(one.id for one in settled if one.status == "confirmed"))


def _fell(cause: str, form: str, sides: Sequence[list[Step]]) -> bool:
    """By the simple rule: less of it for each request, or of its ceiling."""
    if cause == UNCOUNTED:
        return False
    trace = TRACES[cause]
    per_request = form != "passes" and not trace.metric.endswith("_per_request")
    means = []
    for side in sides:
        values = [
            step.metrics[trace.metric] / (step.throughput if per_request else step.metrics.get(trace.ceiling, 1.0))
            for step in side
            if trace.metric in step.metrics
        ]
        means.append(float(np.mean(values)) if values else 0.0)
    return means[1] < 0.9 * means[0]


def _finding(cause: str) -> Finding:
    metric = UNCOUNTED if cause == UNCOUNTED else TRACES[cause].metric
    return Finding(cause, cause, None, (Evidence(metric, 1.0, ">=", 0.5, "past the bend"),), 0.6)


def _step(block: int, treatment: str, throughput: float, metrics: dict[str, float]) -> Step:
    flags = tuple(sorted(exceeded(metrics, 1.0)))
    return step(CLIENTS, float(throughput), metrics, number=block, block=block, treatment=treatment, flags=flags)


def _off(random: Random) -> float:
    return float(np.exp(random.normal(0, METRIC_NOISE)))
