"""Steps whose counters are known, for benchmarks/sceptic.py: a server held back by a known cause, and one counter that
stands still.

A server before two CPUs and a disk, with a neighbour that uses a little of both. What is counted twice agrees as far as
real counters do: a process writes up to ten times what reaches the disk (a page is changed again before it is written),
the disk writes for others too, CPU time is sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.windows import look, sighted
from loadframe.metrics.agreements import contradictions, without
from loadframe.model import Blind, Step
from simulated import step

Random = np.random.Generator
LEVELS = (1.0, 2.0, 4.0, 8.0)
BLOCKS = 3
CPUS = 2.0
FOREVER = 0.03
"""What a counter that does not count says at most, as a share of the truth: nothing, or what it counts of others."""
STILL: Mapping[str, tuple[str, ...]] = {
    "target.cage.write_bytes": ("target.cage.write_bytes", "target.cage.writes", "target.cage.writes.utilization"),
    "target.io.write_bytes": ("target.io.write_bytes",),
    "system.disk.write_bytes": (
        "system.disk.write_bytes",
        "system.disk.writes",
        "system.disk.flushes",
        "system.disk.busy",
    ),
    "target.cpu.thread_cores": ("target.cpu.thread_cores", "target.cpu.hottest_thread", "target.cpu.run_delay"),
    "target.cage.cpu": ("target.cage.cpu", "target.cage.cpu.utilization"),
    "mariadb.questions": ("mariadb.questions", "mariadb.row_lock_waits", "mariadb.pool_reads"),
}
"""By the name under which it is blind: the metrics that stand still together, as they come from one place."""
HIDDEN: Mapping[str, tuple[str, ...]] = {
    "disk.fsync": ("target.cage.write_bytes",),
    "cage.writes": ("target.cage.write_bytes",),
    "cage.cpu_quota": ("target.cage.cpu",),
    "cpu.hot_thread": ("target.cpu.thread_cores",),
    "lock.row": ("mariadb.questions",),
    "mariadb.buffer_pool": ("mariadb.questions",),
}
"""By cause: the counters without which it seems to be ruled out."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of the cause that is there. ruled_out: by a counter; trusting: the same by a diagnosis that trusts
    every counter; first: it comes first; named: the counter that stands still is named as blind; blind: how many
    are."""

    ruled_out: bool
    trusting: bool
    first: bool
    named: bool
    blind: int


def draw(random: Random, *, still: bool = True) -> Seen:
    """A cause, and a counter that hides it; none with still = False."""
    cause = str(random.choice(list(HIDDEN)))
    hiding = HIDDEN[cause]
    counter = str(random.choice(hiding))
    stands_for = STILL[counter] if still else ()
    told = random.choice([0.0, FOREVER])
    raw: list[tuple[float, dict[str, float]]] = []
    for _ in range(BLOCKS):
        for level in LEVELS:
            throughput = 1000.0 * min(level, 2.0) ** 0.3 * float(np.exp(random.normal(0, 0.03)))
            metrics = _metrics(random, cause, level, throughput)
            raw.append((throughput, {n: v * told if n in stands_for else v for n, v in metrics.items()}))
    judged = [_step(i, throughput, metrics, trusting=False) for i, (throughput, metrics) in enumerate(raw)]
    trusted = [_step(i, throughput, metrics, trusting=True) for i, (throughput, metrics) in enumerate(raw)]
    findings, ruled_out = _diagnosed(sighted(judged))
    _, by_trust = _diagnosed(trusted)
    names = {one.counter for step in judged for one in step.blind}
    return Seen(
        ruled_out=cause in ruled_out,
        trusting=cause in by_trust,
        first=bool(findings) and findings[0] == cause,
        named=counter in names,
        blind=len(names),
    )


def _metrics(random: Random, cause: str, level: float, throughput: float) -> dict[str, float]:
    """What every counter says where all of them count."""

    def about(value: float, noise: float = 0.05) -> float:
        return value * float(np.exp(random.normal(0, noise)))

    waits = cause in ("disk.fsync", "cage.writes")
    writes = throughput * random.uniform(1.0, 3.0)
    reaching = writes * random.uniform(6e3, 16e3)
    cores = {"cpu.hot_thread": 0.99, "cage.cpu_quota": 0.6}.get(cause, random.uniform(0.3, 0.7))
    driver, others = random.uniform(0.1, 0.3), random.uniform(0.0, 0.1)
    pays = {"lock.row": 0.5, "mariadb.buffer_pool": 0.6}
    return {
        "throughput": throughput,
        "workload.concurrency": level,
        "target.cage.write_bytes": about(reaching),
        "target.cage.writes": about(writes),
        "target.cage.writes.utilization": 0.97 if cause == "cage.writes" else random.uniform(0.1, 0.5),
        "target.io.write_bytes": about(reaching) * 10 ** random.uniform(0.0, 0.9),
        "system.disk.write_bytes": about(reaching) * random.uniform(1.0, 1.5),
        "system.disk.writes": about(writes) * random.uniform(1.0, 1.5),
        "system.disk.flushes": about(throughput * (2.0 if cause == "disk.fsync" else 0.01)),
        "system.disk.busy": random.uniform(0.5, 0.8),
        "system.pressure.io.some": random.uniform(0.3, 0.8) if waits else random.uniform(0.0, 0.1),
        "target.cpu.cores": about(cores, 0.01),
        "target.cpu.thread_cores": about(cores, 0.02),
        "target.cpu.hottest_thread": about(0.97, 0.01) if cause == "cpu.hot_thread" else 0.3 * cores,
        "target.cpu.run_delay": 0.05,
        "target.cage.cpu": about(cores, 0.02),
        "target.cage.cpu.utilization": about(0.97, 0.01) if cause == "cage.cpu_quota" else 0.4,
        "target.cage.cpu.throttled_share": 0.9 if cause == "cage.cpu_quota" else 0.0,
        "driver.cpu.cores": about(driver, 0.01),
        "system.cpu.busy_cores": about(cores + driver + others, 0.02),
        "system.cpu.utilization": min(1.0, (cores + driver + others) / CPUS),
        "system.cpu.count": CPUS,
        "mariadb.questions": about(throughput * random.uniform(1.0, 3.0)),
        "mariadb.row_lock_waits": about(throughput * (pays["lock.row"] if cause == "lock.row" else 0.001)),
        "mariadb.pool_reads": about(throughput * (pays[cause] if cause == "mariadb.buffer_pool" else 0.001)),
    }


def _step(number: int, throughput: float, metrics: Mapping[str, float], *, trusting: bool) -> Step:
    """As `investigate` makes one of what was counted: what contradicts goes first, then what follows is worked out."""
    blind: tuple[Blind, ...] = () if trusting else contradictions(metrics)
    found = without(metrics, blind)
    parts = ("target.cpu.cores", "driver.cpu.cores")
    if all(name in found for name in parts):
        found["system.cpu.own"] = sum(found[name] for name in parts) / CPUS
    if "system.disk.flushes" in found:
        found["system.disk.flushes_per_request"] = found["system.disk.flushes"] / throughput
    block, place = divmod(number, len(LEVELS))
    return step(LEVELS[place], throughput, found, number=number, block=block + 1, blind=blind)


def _diagnosed(steps: Sequence[Step]) -> tuple[list[str], set[str]]:
    """Ids of findings, and of what was ruled out."""
    samples = [
        LevelSample(level, tuple(step.throughput for step in steps if step.level == level), ()) for level in LEVELS
    ]
    findings, ruled_out = diagnose(look(fit(samples, axis="concurrency", treatment="A"), steps), ())
    return [finding.id for finding in findings], {one.id for one in ruled_out}
