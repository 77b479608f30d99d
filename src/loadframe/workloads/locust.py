"""locust: the user's own locustfile (targets: all that have an address; axis: users, or any word that its own
LoadTestShape follows).

Locust runs in one process, with a listener of ours (in_locust/) that writes every request into the request log:
throughput and quantiles come from the same records as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadframe.errors import StudyError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.said import words
from loadframe.host.environment import importing, python, python_package
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import request_log, step_files
from loadframe.workloads.command_lines import LONGEST_LATENCY_MS, LineError
from loadframe.workloads.driver_clock import ClockError, Life, offset_s
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.options import readable, rules, whole
from loadframe.workloads.own_output import Reader
from loadframe.workloads.own_program import OwnScript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadframe.workloads.command_output import Output

USERS = "users"
LISTENER, LOG = Path(__file__).with_name("in_locust") / "loadframe_listener.py", "requests.bin"
MOST_USERS = 100_000


@dataclass(frozen=True)
class LocustOptions:
    file: str = readable("your locustfile; must be given")
    spawn_rate: int = whole(0, 0, MOST_USERS, "users started per second; 0: all at once")
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED: what the locustfile draws at random may follow from it")
    startup_s: int = whole(20, 0, 600, "how long locust may take from its start to its first request")


class Locust(OwnScript[LocustOptions]):
    """The workload. Options: LocustOptions."""

    kind = "locust"
    axes = frozenset({USERS})
    axis_unit = "users"
    model = LocustOptions
    levels = (1, MOST_USERS)

    def __init__(
        self, options: Mapping[str, SettingValue], allowance: Allowance | None = None, *, axis: str = USERS
    ) -> None:
        """axis: users, or what the locustfile's own shape makes of the level. StudyError for no locustfile."""
        super().__init__(options, allowance, axis=axis)
        self._unjudged: list[str] = []
        if self.file is not None and "," in str(self.file):
            raise StudyError(
                f"workload.options.file = {self.options.file!r} has a comma, by which locust separates files.",
                remedy="Rename it.",
            )

    def users(self, level: float) -> float | None:
        """See TellsTimes: of users who do not wait between two tasks, and whose times a locustfile tells."""
        return level if self.axes == {USERS} and not self._unjudged else None

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return (importing("locust"), importing("loadframe.workloads.request_log"), *super().trials())

    def requirements(self) -> tuple[Requirement, ...]:
        """See OwnProgram."""
        return requirements(self.kind)

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """See OwnProgram."""
        rate = self.options.spawn_rate or level
        return [
            *python("locust", "-f", f"{self.file},{LISTENER}", "--headless", "--only-summary"),
            *("--users", str(level), "--spawn-rate", str(rate), "--host", f"http://{endpoint.address}"),
            *("--exit-code-on-error", "0", "--stop-timeout", "0"),
        ]

    def environment(self, folder: Path) -> dict[str, str]:
        """See OwnProgram. Python makes no __pycache__ beside the user's locustfile."""
        return {"LOADFRAME_OUTPUT": str(folder / LOG), "PYTHONDONTWRITEBYTECODE": "1"}

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        """See OwnProgram."""
        return tuple(folder / name for name in (LOG, f"{LOG}.sizes", f"{LOG}.names"))

    def reader(self, folder: Path, level: int) -> Reader:
        """See OwnProgram."""
        return partial(_read, folder, self.names, self._unjudged)


def _read(folder: Path, names: list[str], unjudged: list[str], life: Life, *, cut_off: bool) -> Output:
    """The request log, its operations as the workload numbers them. unjudged: why the times are not judged, as the
    step says it."""
    from loadframe.workloads.command_output import Output, numbered

    told, errors, unjudged[:] = _told(step_files.read(folder / f"{LOG}.names"))
    records = request_log.array_of(step_files.read(folder / LOG))
    if not len(records):
        return Output(request_log.from_bytes(b""))
    _check(records, len(told), life)
    return numbered(records, told, names, step_files.read(folder / f"{LOG}.sizes"), errors)


def _told(text: bytes) -> tuple[list[str], tuple[str, ...], list[str]]:
    """The names of its operations, the errors, each in the order in which they came, and why its times are not judged.
    LineError."""
    operations: list[str] = []
    errors: list[str] = []
    unjudged: list[str] = []
    for number, line in enumerate(text[: text.rfind(b"\n") + 1].splitlines(), 1):
        try:
            ((what, word),) = parse_json(line).items()
            {"operation": operations, "error": errors, "unjudged": unjudged}[what].append(words(word))
        except (JsonError, ValueError, AttributeError, KeyError) as error:
            raise LineError(number, f"the names of the requests are spoilt ({words(error)})") from error
    return operations, tuple(errors), unjudged


def _check(records: NDArray[Any], operations: int, life: Life) -> None:
    """The locustfile's own code may have spoilt them, or told of requests that cannot be. ClockError."""
    import numpy as np

    latency_ms, end_s = records["latency_ms"], records["end_s"]
    if not (np.isfinite(latency_ms).all() and (latency_ms >= 0).all() and (latency_ms <= LONGEST_LATENCY_MS).all()):
        raise ClockError("the locustfile told of requests whose time is negative, infinite or above an hour")
    if not (np.isfinite(end_s).all() and (records["operation"] < operations).all()):
        raise ClockError("its request log is spoilt")
    offset_s(life, float(end_s.min()), float(end_s.max()), 0.0)


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What it needs."""
    return (python_package(kind, "locust", "locust"),)


KIND = KindOfWorkload(Locust.kind, Locust, rules(LocustOptions), requirements, required=("file",), any_axis=True)
