"""jmeter: the user's own test plan (targets: all that have an address; axis: users, or any property of the plan).

JMeter runs without its window and is told the level by a property: the plan's thread group has ${__P(users)} threads
and ${__P(duration)} as its duration. The result file is read once it has ended (jtl.py).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.connections.host_port import parted
from loadframe.errors import StudyError
from loadframe.host.environment import located
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import step_files
from loadframe.workloads.command_lines import Lines
from loadframe.workloads.driver_clock import Life
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.options import readable, rules, whole
from loadframe.workloads.own_output import Reader
from loadframe.workloads.own_program import OwnScript

if TYPE_CHECKING:
    from loadframe.workloads.command_output import Output

PROGRAM, OUTPUT, LOG, USERS = "jmeter", "result.jtl", "jmeter.log", "users"
HOME = "JMETER_HOME"
MOST_USERS = 100_000
GET_IT = (
    "JMeter 5 from jmeter.apache.org, its bin folder in PATH or JMETER_HOME; or: sudo apt-get install jmeter (2.13)"
)
PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
SAVED = {
    "jmeter.save.saveservice.output_format": "csv",
    "jmeter.save.saveservice.print_field_names": "true",
    "jmeter.save.saveservice.default_delimiter": ",",
    "jmeter.save.saveservice.timestamp_format": "ms",
    "jmeter.save.saveservice.time": "true",
    "jmeter.save.saveservice.label": "true",
    "jmeter.save.saveservice.successful": "true",
    "jmeter.save.saveservice.response_code": "true",
    "jmeter.save.saveservice.response_message": "true",
    "jmeter.save.saveservice.bytes": "true",
    "jmeter.save.saveservice.autoflush": "true",
    "sampleresult.timestamp.start": "true",
}
"""Properties by which the result file is what is read."""


@dataclass(frozen=True)
class JMeterOptions:
    file: str = readable("your test plan (.jmx); must be given")
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED and the property seed")
    startup_s: int = whole(60, 0, 600, "how long JMeter may take from its start to its first request")


class JMeter(OwnScript[JMeterOptions]):
    """The workload. Options: JMeterOptions."""

    kind = "jmeter"
    axes = frozenset({USERS})
    axis_unit = USERS
    model = JMeterOptions
    levels = (1, MOST_USERS)
    makes_outputs = False  # to a file that is there, JMeter appends rows without a header

    def __init__(
        self, options: Mapping[str, SettingValue], allowance: Allowance | None = None, *, axis: str = USERS
    ) -> None:
        """axis: the property that has the level. StudyError for one that is none, and for no test plan."""
        super().__init__(options, allowance, axis=axis)
        if not PROPERTY.fullmatch(axis):
            raise StudyError(
                f"load.axis = {axis!r} is no name of a property of JMeter.",
                remedy="Name a property that the plan reads, for example users: ${__P(users)}.",
            )

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return (("test", "-x", program() or PROGRAM), *super().trials())

    def requirements(self) -> tuple[Requirement, ...]:
        """See OwnProgram."""
        return requirements(self.kind)

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """See OwnProgram. JMeter counts in whole seconds, and is late rather than early."""
        (axis,) = self.axes
        host, port = parted(endpoint.address, "80")
        told = {"host": host, "port": port, "duration": math.ceil(duration_s), "seed": self.options.seed, axis: level}
        properties = [f"-J{name}={value}" for name, value in {**SAVED, **told}.items()]
        files = ("-t", str(self.file), "-l", str(folder / OUTPUT), "-j", str(folder / LOG))
        return [program() or PROGRAM, "-n", *files, *properties]

    def outputs(self, folder: Path) -> tuple[Path, ...]:
        """See OwnProgram."""
        return (folder / OUTPUT, folder / LOG)

    def reader(self, folder: Path, level: int) -> Reader:
        """See OwnProgram."""
        return partial(_read, folder / OUTPUT, self.names)


def _read(path: Path, names: list[str], life: Life, *, cut_off: bool) -> Output:
    from loadframe.workloads.command_output import of_lines
    from loadframe.workloads.jtl import read_jtl

    file = step_files.opened(path)
    if file is None:
        return of_lines(Lines(names), life)
    with file:
        return of_lines(read_jtl(file, names, cut_off=cut_off), life)


def program() -> str | None:
    """Where JMeter is."""
    home = os.environ.get(HOME, "")
    return located(PROGRAM, f"{home}/bin" if home.startswith("/") else "")


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What it needs."""
    return (Requirement(kind, PROGRAM, program(), GET_IT),)


KIND = KindOfWorkload(JMeter.kind, JMeter, rules(JMeterOptions), requirements, required=("file",), any_axis=True)
