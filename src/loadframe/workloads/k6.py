"""k6: the user's own k6 script (targets: all that have an address; axis: vus, or any word that the script's own
scenarios follow).

k6 writes each of its measurements into a file of JSON lines, which is read once it has ended (k6_output.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.host.environment import located
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import step_files
from loadframe.workloads.driver_clock import Life
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.options import readable, rules, whole
from loadframe.workloads.own_output import Reader
from loadframe.workloads.own_program import OwnScript

if TYPE_CHECKING:
    from loadframe.workloads.command_output import Output

PROGRAM, OUTPUT, VUS = "k6", "k6.json", "vus"
MOST_VUS = 100_000
SHORTEST_MS = 1000
"""k6 accepts no shorter duration; what is beyond a step does not count."""
GET_IT = "with Go: go install go.k6.io/k6@latest (into ~/go/bin, which must be in PATH); Debian has no package"
GRACEFUL_STOP_S = 30.0
"""k6 waits for as long for iterations under way when the time is up (gracefulStop)."""


@dataclass(frozen=True)
class K6Options:
    file: str = readable("your k6 script; must be given")
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED: what the script draws at random may follow from it")
    startup_s: int = whole(20, 0, 600, "how long k6 may take from its start to its first request")


class K6(OwnScript[K6Options]):
    """The workload. Options: K6Options."""

    kind = "k6"
    axes = frozenset({VUS})
    axis_unit = VUS
    model = K6Options
    levels = (1, MOST_VUS)

    @property
    def late_s(self) -> float:
        return GRACEFUL_STOP_S

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return ((PROGRAM, "version"), *super().trials())

    def requirements(self) -> tuple[Requirement, ...]:
        """See OwnProgram."""
        return requirements(self.kind)

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """See OwnProgram."""
        (axis,) = self.axes
        load = (
            ("--vus", str(level), "--duration", f"{max(round(1000 * duration_s), SHORTEST_MS)}ms")
            if axis == VUS
            else ()
        )
        return [
            *(PROGRAM, "run", "--quiet", "--no-summary", "--no-thresholds", "--no-usage-report", "--address", ""),
            *("--out", f"json={folder / OUTPUT}", *load, str(self.file)),
        ]

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        """See OwnProgram."""
        return (folder / OUTPUT,)

    def reader(self, folder: Path, level: int) -> Reader:
        """See OwnProgram."""
        return partial(_read, folder / OUTPUT, self.names)


def _read(path: Path, names: list[str], life: Life, *, cut_off: bool) -> Output:
    from loadframe.workloads.command_lines import Lines
    from loadframe.workloads.command_output import of_lines
    from loadframe.workloads.k6_output import read_points

    file = step_files.opened(path)
    if file is None:
        return of_lines(Lines(names), life)
    with file:
        return of_lines(read_points(file, names), life)


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What it needs."""
    return (Requirement(kind, PROGRAM, located(PROGRAM), GET_IT),)


KIND = KindOfWorkload(K6.kind, K6, rules(K6Options), requirements, required=("file",), any_axis=True)
