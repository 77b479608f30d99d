"""The user's own locustfile, in one process, with a listener of ours (in_locust/) that prints every request as a
command of the user's own does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from loadframe.errors import StudyError
from loadframe.host.environment import importing, python, python_package
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import command_lines, step_files
from loadframe.workloads.command_lines import Lines
from loadframe.workloads.command_output import Life, Output
from loadframe.workloads.common import registration
from loadframe.workloads.options import readable, whole
from loadframe.workloads.own_program import OwnScript

USERS = "users"
LISTENER = Path(__file__).with_name("in_locust") / "loadframe_listener.py"
UNJUDGED = "unjudged.txt"
"""Why Little's law cannot check the reported times; empty if it can."""
MOST_USERS = 100_000


@dataclass(frozen=True)
class LocustOptions:
    file: str = readable("your locustfile; must be given")
    spawn_rate: int = whole(0, 0, MOST_USERS, "users started per second; 0: all at once")
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED: what the locustfile draws at random may follow from it")
    startup_s: int = whole(20, 0, 600, "how long locust may take from its start to its first request")


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (python_package(kind, "locust", "locust"),)


class Locust(OwnScript[LocustOptions]):
    kind = "locust"
    axes = frozenset({USERS})
    axis_unit = "users"
    model = LocustOptions
    levels = (1, MOST_USERS)
    files = ("output.jsonl", UNJUDGED)
    needs = staticmethod(requirements)

    def set_up(self) -> None:
        super().set_up()
        self._unjudged = False
        if self.file is not None and "," in str(self.file):
            raise StudyError(
                f"workload.options.file = {self.options.file!r} has a comma, by which locust separates files.",
                remedy="Rename it.",
            )

    def users(self, level: float) -> float | None:
        """None if users wait between tasks, or a locustfile reports times of its own."""
        return level if self.axes == {USERS} and not self._unjudged else None

    def trials(self) -> Sequence[Sequence[str]]:
        return (importing("locust"), ("test", "-r", str(LISTENER)), *super().trials())

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        rate = self.options.spawn_rate or level
        return [
            *python("locust", "-f", f"{self.file},{LISTENER}", "--headless", "--only-summary"),
            *("--users", str(level), "--spawn-rate", str(rate), "--host", f"http://{endpoint.address}"),
            *("--exit-code-on-error", "0", "--stop-timeout", "0"),
        ]

    def environment(self, folder: Path) -> dict[str, str]:
        """Keeps Python from making a __pycache__ next to the user's locustfile."""
        return {"LOADFRAME_UNJUDGED": str(folder / UNJUDGED), "PYTHONDONTWRITEBYTECODE": "1"}

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        """A locustfile may report what began before it, such as the age of a message."""
        return replace(command_lines.read(file, self.names, cut_off=cut_off, grouping=True), began_before=True)

    def written(self, folder: Path, life: Life, *, cut_off: bool) -> Output:
        self._unjudged = step_files.size(folder / UNJUDGED) > 0
        return super().written(folder, life, cut_off=cut_off)


KIND = registration(Locust, requirements, required=("file",), any_axis=True)
