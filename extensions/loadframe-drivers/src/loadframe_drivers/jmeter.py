"""The user's own test plan: its thread group has ${__P(users)} threads and ${__P(duration)} as its duration. The result
file is read at its end: CSV (jmeter.apache.org/usermanual/listeners.html, "CSV Log format"), with times of day in
milliseconds at the begin of a sample, without samples nested in others."""

import csv
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from loadframe.connections.address import parted
from loadframe.errors import StudyError
from loadframe.formats.plain_numbers import whole as whole_number
from loadframe.formats.said import words
from loadframe.host.environment import located
from loadframe.model import Endpoint, Requirement
from loadframe.workloads.command_lines import LONGEST_LATENCY_MS, LineError, Lines, whole_lines
from loadframe.workloads.common import registration
from loadframe.workloads.options import readable, whole
from loadframe.workloads.own_program import OwnScript

PROGRAM, OUTPUT, LOG, USERS = "jmeter", "result.jtl", "jmeter.log", "users"
HOME = "JMETER_HOME"
MOST_USERS = 100_000
GET_IT = (
    "JMeter 5 from jmeter.apache.org, its bin folder in PATH or JMETER_HOME; or: sudo apt-get install jmeter (2.13)"
)
PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
SAVED = {
    "jmeter.save.saveservice.output_format": "csv",
    "jmeter.save.saveservice.default_delimiter": ",",
    "jmeter.save.saveservice.timestamp_format": "ms",
    "sampleresult.timestamp.start": "true",
    **{
        f"jmeter.save.saveservice.{name}": "true"
        for name in (
            "print_field_names", "time", "label", "successful",
            "response_code", "response_message", "bytes", "autoflush",
        )
    },
}  # fmt: skip
NEEDED = ("timeStamp", "elapsed", "label", "success")
COLUMNS = (*NEEDED, "responseCode", "responseMessage", "bytes")


@dataclass(frozen=True)
class JMeterOptions:
    file: str = readable("your test plan (.jmx); must be given")
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED and the property seed")
    startup_s: int = whole(60, 0, 600, "how long JMeter may take from its start to its first request")


def program() -> str | None:
    home = os.environ.get(HOME, "")
    return located(PROGRAM, f"{home}/bin" if home.startswith("/") else "")


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (Requirement(kind, PROGRAM, program(), GET_IT),)


class JMeter(OwnScript[JMeterOptions]):
    kind = "jmeter"
    axes = frozenset({USERS})
    axis_unit = USERS
    model = JMeterOptions
    levels = (1, MOST_USERS)
    files = (OUTPUT, LOG)
    makes_files = False  # JMeter appends rows without a header to an existing file
    needs = staticmethod(requirements)

    def set_up(self) -> None:
        super().set_up()
        (axis,) = self.axes
        if not PROPERTY.fullmatch(axis):
            raise StudyError(
                f"load.axis = {axis!r} is no name of a property of JMeter.",
                remedy="Name a property that the plan reads, for example users: ${__P(users)}.",
            )

    def trials(self) -> Sequence[Sequence[str]]:
        return (("test", "-x", program() or PROGRAM), *super().trials())

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """JMeter counts in whole seconds; it should be late rather than early."""
        (axis,) = self.axes
        host, port = parted(endpoint.address, "80")
        given = {"host": host, "port": port, "duration": math.ceil(duration_s), "seed": self.options.seed, axis: level}
        properties = [f"-J{name}={value}" for name, value in {**SAVED, **given}.items()]
        files = ("-t", str(self.file), "-l", str(folder / OUTPUT), "-j", str(folder / LOG))
        return [program() or PROGRAM, "-n", *files, *properties]

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        return read_jtl(file, self.names, cut_off=cut_off)


def read_jtl(file: IO[bytes], names: list[str], *, cut_off: bool) -> Lines:
    """As command_lines.read. LineError."""
    lines = Lines(names, counts_bytes=True)
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in whole_lines(file, cut_off=cut_off):  # noqa: B007
            yield f"{line.decode('utf-8', 'replace')}\n"  # a quoted field may continue

    rows = csv.reader(texts(), strict=True)
    places: dict[str, int] = {}
    try:
        for row in rows:
            if not places:
                places = {name: row.index(name) for name in COLUMNS if name in row}
                if missing := [name for name in NEEDED if name not in places]:
                    why = f"it has no column {missing[0]}" if places else "it is no header of JMeter's CSV"
                    raise LineError(1, f"{why}: {words(','.join(row), 120)}")
                continue
            if len(row) <= max(places.values()):
                raise LineError(number, f"a sample is cut off: {words(','.join(row), 120)}")
            sample = {name: row[place] for name, place in places.items()}
            begin_ms, taken_ms = whole_number(sample["timeStamp"]), whole_number(sample["elapsed"])
            if begin_ms is None or taken_ms is None or begin_ms < 0 or not 0 <= taken_ms <= LONGEST_LATENCY_MS:
                given = words(f"{sample['timeStamp']!r} and {sample['elapsed']!r}", 100)
                raise LineError(number, f"a sample begins at and takes {given}; both must be whole milliseconds")
            failed = sample["success"].lower() != "true"
            if failed:
                said = (sample.get("responseCode"), sample.get("responseMessage"))
                lines.note_error(" ".join(filter(None, said)))
            moved = max(whole_number(sample.get("bytes", "0")) or 0, 0)
            operation, end_s = lines.grouped(sample["label"]), (begin_ms + taken_ms) / 1000.0
            lines.add(number, end_s, float(taken_ms), operation, failed=failed, moved=moved)
    except csv.Error as error:
        if not cut_off:
            raise LineError(number, f"it is no CSV ({error})") from error
    return lines


KIND = registration(JMeter, requirements, required=("file",), any_axis=True)
