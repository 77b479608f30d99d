"""The user's own k6 script. Its measurements (`--out json`; grafana.com/docs/k6, "JSON output") are read at its end; of
the some eight points of a request only its duration is read. `time` is the time of day at its end, and the duration is
k6's own: sending, waiting and receiving, without the connection."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.said import words
from loadframe.host.environment import located
from loadframe.model import Endpoint, Requirement
from loadframe.workloads.command_lines import LONGEST_LATENCY_MS, LineError, Lines, whole_lines
from loadframe.workloads.common import registration
from loadframe.workloads.options import readable, whole
from loadframe.workloads.own_program import OwnScript

PROGRAM, OUTPUT, VUS = "k6", "k6.json", "vus"
MOST_VUS = 100_000
SHORTEST_MS = 1000
"""k6 accepts no shorter duration; what runs beyond a step does not count."""
GET_IT = "with Go: go install go.k6.io/k6@latest (into ~/go/bin, which must be in PATH); Debian has no package"
DURATIONS = frozenset({"http_req_duration", "grpc_req_duration"})
WANTED = tuple(f'"metric":"{name}"'.encode() for name in sorted(DURATIONS))


@dataclass(frozen=True)
class K6Options:
    file: str = readable("your k6 script; must be given")
    seed: int = whole(1, 0, 2**32 - 1, "LOADFRAME_SEED: what the script draws at random may follow from it")
    startup_s: int = whole(20, 0, 600, "how long k6 may take from its start to its first request")


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (Requirement(kind, PROGRAM, located(PROGRAM), GET_IT),)


class K6(OwnScript[K6Options]):
    kind = "k6"
    axes = frozenset({VUS})
    axis_unit = VUS
    model = K6Options
    levels = (1, MOST_VUS)
    files = (OUTPUT,)
    needs = staticmethod(requirements)
    late_s = 30.0
    """How long k6 waits for running iterations when the time is up (gracefulStop)."""

    def trials(self) -> Sequence[Sequence[str]]:
        return ((PROGRAM, "version"), *super().trials())

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        (axis,) = self.axes
        duration = f"{max(round(1000 * duration_s), SHORTEST_MS)}ms"
        return [
            *(PROGRAM, "run", "--quiet", "--no-summary", "--no-thresholds", "--no-usage-report", "--address", ""),
            *("--out", f"json={folder / OUTPUT}"),
            *(("--vus", str(level), "--duration", duration) if axis == VUS else ()),
            str(self.file),
        ]

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        return read_points(file, self.names)


def read_points(file: IO[bytes], names: list[str]) -> Lines:
    """names: as for command_lines.read. A torn last line is left out. LineError."""
    lines = Lines(names)
    for number, line in whole_lines(file, cut_off=True):
        if not any(metric in line for metric in WANTED):
            continue
        try:
            point = parse_json(line)
            if point["type"] != "Point" or point["metric"] not in DURATIONS:
                continue
            data = point["data"]
            end_s, latency_ms = datetime.fromisoformat(data["time"]).timestamp(), float(data["value"])
            tags: dict[str, Any] = {**data["tags"]}
        except (JsonError, ValueError, KeyError, TypeError, OverflowError, OSError) as error:
            raise LineError(number, f"it is no point of k6 ({words(error, 100)})") from error
        if not 0 <= latency_ms <= LONGEST_LATENCY_MS or end_s < 0:
            raise LineError(number, f"a request of {latency_ms:g} ms that ended at {words(data['time'], 60)}")
        failed = str(tags.get("expected_response", "true")) == "false"
        if failed:
            lines.note_error(str(tags.get("error") or f"status {tags.get('status', '?')}"))
        name = " ".join(str(tags[key]) for key in ("method", "name") if tags.get(key))
        lines.add(number, end_s, latency_ms, lines.grouped(name), failed=failed)
    return lines


KIND = registration(K6, requirements, required=("file",), any_axis=True)
