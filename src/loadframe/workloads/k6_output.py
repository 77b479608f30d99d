"""The points that k6 writes with `--out json` (grafana.com/docs/k6, "JSON output"), as requests.

A line is {"type": "Point", "metric": .., "data": {"time": .., "value": .., "tags": {..}}}; a request has some eight
points, of which the one with its duration is read. `time` is the time of day at its end, and the duration is k6's own:
sending, waiting and receiving, without the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.said import words
from loadframe.workloads.command_lines import LONGEST_LATENCY_MS, MOST_LINE_BYTES, LineError, Lines

DURATIONS = frozenset({"http_req_duration", "grpc_req_duration"})
WANTED = tuple(f'"metric":"{name}"'.encode() for name in sorted(DURATIONS))


def read_points(file: IO[bytes], names: list[str]) -> Lines:
    """The requests in the output of k6. names: as for command_lines.read. LineError. A torn last line is left out."""
    lines = Lines(names)
    for number, line in _numbered(file):
        if any(each in line for each in WANTED):
            _take(lines, number, line)
    return lines


def _numbered(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise LineError(number, f"it has more than {MOST_LINE_BYTES:,} bytes")
        if line.endswith(b"\n"):
            yield number, line


def _take(lines: Lines, number: int, line: bytes) -> None:
    try:
        point = parse_json(line)
        if point["type"] != "Point" or point["metric"] not in DURATIONS:
            return
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
