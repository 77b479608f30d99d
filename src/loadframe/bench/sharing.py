"""What the load driver has of the CPUs that its target may use, and whether the target goes without for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadframe.host.processes import bound_to, parse_cpus


def cpus_of_processes(pids: Iterable[int]) -> frozenset[int]:
    """The CPUs that any of these processes may use; none of those that have ended."""
    return frozenset(cpu for pid in pids if (text := bound_to(pid)) is not None for cpu in parse_cpus(text))


def shared(metrics: Mapping[str, float], target: frozenset[int], driver: frozenset[int]) -> dict[str, float]:
    """Three shares of a window: of the target's CPUs what the driver had, at least, and what was busy, at least; and of
    the time in which the target's threads could run that in which they had no CPU (schedstat).

    target, driver: the CPUs that each may use. What the driver can have had on CPUs of its own is not counted. Absent
    is what cannot be known: all, where the CPU time of one of the two was not measured.
    """
    own, theirs = metrics.get("target.cpu.cores"), metrics.get("driver.cpu.cores")
    if own is None or theirs is None or not target:
        return {}
    beside = max(0.0, theirs - len(driver - target)) if driver & target else 0.0
    busy = min(1.0, (own + beside) / len(target))
    if len(target) >= metrics.get("system.cpu.count", float("inf")):
        busy = max(busy, metrics.get("system.cpu.utilization", 0.0))
    found = {"driver.cpu.beside": min(1.0, beside / len(target)), "target.cpus.busy": busy}
    waited = metrics.get("target.cpu.run_delay")
    if waited is not None and waited + own > 0:
        found["target.cpus.wait"] = waited / (waited + own)
    return found
