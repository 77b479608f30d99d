"""The load axis rate, for workloads whose levels are otherwise clients of some kind."""

from __future__ import annotations

from loadframe.workloads.options import whole_level

HIGHEST_RATE = 200_000


class AtRate:
    """Requests at a given rate, whatever becomes of those before; latencies count from the intended start. It stands
    before the workload among the bases of a class."""

    kind: str
    axes = frozenset({"rate"})
    axis_unit = "requests/s"

    def check_level(self, level: float) -> int:
        """The rate as a whole number of `axis_unit`. StudyError where it cannot be one."""
        return whole_level(self.kind, "rate", level, 1, HIGHEST_RATE)

    def describe_axis(self, level: float) -> str:
        return f"{level:g} {self.axis_unit}"
