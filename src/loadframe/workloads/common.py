"""What the workloads of this package have in common, and how those at a given rate differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, Requirement, SettingValue
from loadframe.workloads.base import KindOfWorkload, Workload
from loadframe.workloads.options import read_options, rules, whole_level

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar("Options", bound="DataclassInstance")
HIGHEST_RATE = 200_000
"""Requests/s: beyond, a driver of one process is the bottleneck long before the server."""


class Common(Generic[Options]):
    """levels: the least and the greatest of its axis."""

    kind: str
    axes: frozenset[str]
    axis_unit: str
    model: type[Options]
    levels: tuple[int, int]
    one_lock = False
    runs_to_completion = False

    def __init__(
        self,
        options: Mapping[str, SettingValue],
        allowance: Allowance | None = None,
        declared: Declared | None = None,
        *,
        axis: str = "",
    ) -> None:
        """options: of `model`. allowance: None if it is never started. declared: what else the study declares. axis:
        what grows, in the study's words; "": that of the class. StudyError for bad options."""
        self._allowance = allowance
        self.options: Options = read_options(self.model, self.kind, options)
        self.declared = declared or Declared()
        if axis:
            self.axes, self.axis_unit = frozenset({axis}), axis.replace("_", " ")
        self.set_up()

    def set_up(self) -> None:
        """At the end of __init__: work out what follows from the options. StudyError for those that do not agree."""

    @property
    def allowance(self) -> Allowance:
        assert self._allowance is not None, "a workload that is only asked about is never started"
        return self._allowance

    @property
    def operations(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def judged(self) -> tuple[str, ...]:
        return self.operations

    def check_level(self, level: float) -> int:
        """A whole number of `axis_unit`. StudyError if it is not one of the axis."""
        (axis,) = self.axes
        return whole_level(self.kind, axis, level, *self.levels)

    def words_of(self, level: float) -> str:
        return f"{level:g} {self.axis_unit.removesuffix('s') if level == 1 else self.axis_unit}"

    def clients(self, level: int) -> int:
        return level

    def after_step(self, endpoint: Endpoint) -> None:
        """Nothing is left behind."""

    def remove(self, endpoint: Endpoint) -> None:
        """Nothing was made."""

    def rate(self, level: int) -> int | None:
        """Requests per second in an open loop; None in a closed one."""
        return None


class OfModel(Workload, Protocol):
    model: Any


def registration(
    workload: type[OfModel], requirements: Callable[[str], tuple[Requirement, ...]], **more: Any
) -> KindOfWorkload:
    """more: other fields of KindOfWorkload."""
    return KindOfWorkload(workload.kind, workload, rules(workload.model), requirements, **more)


def thinking(think_s: float) -> str:
    """A pause in words for the report."""
    pause = f"{think_s:.3g} s" if think_s >= 1 else f"{1e3 * think_s:.3g} ms"
    return f"A user thinks for {pause} on average between an answer and the next request: N = X (R + Z) with this Z."


class AtRate:
    """Mixin, to stand before the workload among the bases: requests at a given rate, whatever becomes of earlier ones;
    latencies count from the intended start. What has not begun when the step ends is never sent."""

    options: Any
    axes = frozenset({"rate"})
    axis_unit = "requests/s"
    levels = (1, HIGHEST_RATE)
    served_by = "connections"
    """The option with the number of connections."""

    def words_of(self, level: float) -> str:
        return f"{level:g} {self.axis_unit}"

    def clients(self, level: int) -> int:
        return int(getattr(self.options, self.served_by))

    def rate(self, level: int) -> int | None:
        return level
