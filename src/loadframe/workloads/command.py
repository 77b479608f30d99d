"""A program of the user's own makes the load and prints what it did: docs/driving-with-a-command.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import MissingTool, StudyError
from loadframe.host.environment import located
from loadframe.model import CLIENT_AXES, OPEN_LOOP_AXES, Endpoint, Requirement
from loadframe.workloads import step_files
from loadframe.workloads.base import STAGES_FILE
from loadframe.workloads.common import registration
from loadframe.workloads.options import choice, whole
from loadframe.workloads.own_program import STDERR, STDOUT, OwnProgram

UNDECLARED = "undeclared"
USERS = CLIENT_AXES | {"users"}


@dataclass(frozen=True)
class CommandOptions:
    loop: str = choice(
        UNDECLARED,
        (UNDECLARED, "closed", "open"),
        "closed: a request begins when the one before has ended; open: when it should; must be declared",
    )
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED: what the driver draws at random may follow from it")
    startup_s: int = whole(10, 0, 600, "how long the driver may take from its start to its first request")


class Command(OwnProgram[CommandOptions]):
    kind = "command"
    axes = frozenset({"level"})
    axis_unit = "level"
    model = CommandOptions
    files = (*OwnProgram.files, STAGES_FILE)
    stages = (STAGES_FILE, STDOUT, STDERR)

    def set_up(self) -> None:
        """StudyError if the loop is not the one that reports and forecasts assume for this axis."""
        super().set_up()
        self._command = self.declared.command
        loop, (axis,) = self.options.loop, self.axes
        if axis in OPEN_LOOP_AXES:
            self.axis_unit, wanted = "requests/s", "open"
        elif axis in CLIENT_AXES:
            self.axis_unit, wanted = "clients" if axis == "concurrency" else self.axis_unit, "closed"
        else:
            wanted = loop
        if loop not in (UNDECLARED, wanted):
            raise StudyError(
                f"workload.options.loop = {loop!r}, and the axis {axis} is that of a loop that is {wanted}.",
                remedy=f'Give loop = "{wanted}", or load.axis another name.',
            )

    @property
    def open_loop(self) -> bool:
        return self.options.loop == "open"

    def users(self, level: float) -> float | None:
        return level if self.options.loop == "closed" and self.axes <= USERS else None

    def trials(self) -> Sequence[Sequence[str]]:
        if not self._command:
            return ()
        files = [Path(word).absolute() for word in self._command[1:] if word and Path(word).is_file()]
        runs = located(self._command[0]) or str(Path(self._command[0]).absolute())
        return (("test", "-x", runs), ("test", "-x", str(Path.cwd())), *(("test", "-r", str(file)) for file in files))

    def demand(self) -> None:
        program = self._command[0] if self._command else ""
        if located(program) is None and not ("/" in program and Path(program).is_file()):
            raise MissingTool(
                f"workload.command: there is no program {program!r}",
                remedy="Correct its name, or give its path. A relative one begins where Loadframe is called.",
            )

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        return list(self._command)

    def working_folder(self, folder: Path) -> Path:
        """Where Loadframe was called: the command may name files there."""
        return Path.cwd()

    def environment(self, folder: Path) -> dict[str, str]:
        return {"LOADFRAME_STAGES": str(folder / STAGES_FILE)}

    def reads(self, folder: Path) -> Path:
        """The file LOADFRAME_OUTPUT; if that is empty, the standard output."""
        path = super().reads(folder)
        return path if step_files.size(path) else folder / STDOUT


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (Requirement(kind, "a program of yours", "the one that workload.command names", "write one"),)


KIND = registration(Command, requirements, tables=frozenset({"command"}), required=("command", "loop"), any_axis=True)
