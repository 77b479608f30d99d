"""What a driver of the user's own prints: a JSON object a line, for a request or a second of them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from loadframe.formats.hdr_histogram import Histogram, decode
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.said import did_you_mean, words

MOST_LINE_BYTES = 1 << 20
MOST_REQUESTS = 50_000_000
"""Requests of one step: their records take 1.2 GB."""
MOST_OPERATIONS = 64
MOST_ERRORS = 20
LONGEST_LATENCY_MS = 3_600_000.0
LONGEST_NAME = 64
MOST_BYTES = 2**62
OTHERS = "others"
INFINITE = float("inf")
AT_A_TIME = 2000
"""Lines parsed as one document: a million lines take seconds, parsed singly a minute."""
REQUEST_KEYS = ("end", "start", "intended", "latency_ms", "operation", "ok", "error", "bytes")
REQUEST_SET = frozenset(REQUEST_KEYS)
OF_STAGES = frozenset({"stage", "log"})
SECOND_KEYS = (
    "second", "length_s", "requests", "errors", "operation", "bytes", "histogram", "unit",
    "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
)  # fmt: skip
QUANTILES = tuple(key for key in SECOND_KEYS if key.endswith("_ms"))
UNITS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0}
LONGEST_SECOND_S = 10.0


class LineError(ValueError):
    """What is wrong, in words. number: of the line, from 1."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"line {number:,}: {why}")
        self.number = number


class _FaultError(ValueError): ...


@dataclass(frozen=True)
class Second:
    """What a driver counted in length_s. at_s: its begin on the driver's clock. requests: successful; errors: failed.
    values_ms, counts: latencies of the successful ones and how many had each; None without a histogram."""

    line: int
    at_s: float
    length_s: float
    requests: int
    _: KW_ONLY
    errors: int = 0
    operation: int = 0
    moved_bytes: int = 0
    values_ms: NDArray[np.float64] | None = None
    counts: NDArray[np.int64] | None = None


@dataclass
class Lines:
    """The arrays have one entry per request: end on the driver's clock, latency, operation (index into `names`), 1 if
    failed, bytes, line number. zero_s: the instant that is 0 on that clock. grouping: surplus operations are combined.
    began_before: a request may have begun before the driver was started."""

    names: list[str]
    _: KW_ONLY
    grouping: bool = False
    began_before: bool = False
    zero_s: float | None = None
    end_s: array[float] = field(default_factory=lambda: array("d"))
    latency_ms: array[float] = field(default_factory=lambda: array("d"))
    operation: array[int] = field(default_factory=lambda: array("I"))
    failed: array[int] = field(default_factory=lambda: array("I"))
    moved_bytes: array[int] = field(default_factory=lambda: array("Q"))
    line: array[int] = field(default_factory=lambda: array("Q"))
    seconds: list[Second] = field(default_factory=list)
    in_seconds: int = 0
    counts_bytes: bool = False
    errors: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.end_s) + len(self.seconds)

    def add(
        self, number: int, end_s: float, latency_ms: float, operation: int, *, failed: bool = False, moved: int = 0
    ) -> None:
        """LineError if there are too many requests."""
        self.end_s.append(end_s)
        self.latency_ms.append(latency_ms)
        self.operation.append(operation)
        self.failed.append(failed)
        self.moved_bytes.append(min(moved, MOST_BYTES))
        self.line.append(number)
        if len(self.end_s) > MOST_REQUESTS:
            raise LineError(number, f"there are more than {MOST_REQUESTS:,} requests")

    def grouped(self, name: str) -> int:
        """The index of a kind of request; those after the first MOST_OPERATIONS - 1 are combined as OTHERS."""
        name = words(name, LONGEST_NAME) or self.names[0]
        if name not in self.names:
            name = name if len(self.names) < MOST_OPERATIONS else OTHERS
            if name not in self.names:
                self.names.append(name)
        return self.names.index(name)

    def note_error(self, error: object) -> None:
        text = words(error, 200) if isinstance(error, str) and error else "an error without words"
        self.errors[text if text in self.errors or len(self.errors) < MOST_ERRORS else OTHERS] += 1


def read(file: IO[bytes], names: list[str], *, cut_off: bool, grouping: bool = False) -> Lines:
    """names: of the operations so far; new ones are appended. cut_off: the writer was killed, so the last line may be
    torn. LineError."""
    lines = Lines(names, grouping=grouping)
    numbered = whole_lines(file, cut_off=cut_off)
    while some := list(islice(numbered, AT_A_TIME)):
        for (number, _), value in zip(some, _parsed(some), strict=True):
            try:
                _take(lines, number, value)
            except _FaultError as error:
                raise LineError(number, str(error)) from None
    return lines


def whole_lines(file: IO[bytes], *, cut_off: bool) -> Iterator[tuple[int, bytes]]:
    """Non-empty, stripped, with their numbers. LineError."""
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise LineError(number, f"it has more than {MOST_LINE_BYTES:,} bytes: {words(_text(line), 80)}")
        if cut_off and not line.endswith(b"\n"):
            return
        if line := line.strip():
            yield number, line


def _parsed(some: Sequence[tuple[int, bytes]]) -> Iterable[Any]:
    """Parsed as one document lines are several times as fast; a null between them keeps a part of one line from joining
    its neighbour. If that fails, singly: the error names the line."""
    try:
        parsed = parse_json(b"[" + b",null,".join(line for _, line in some) + b"]")
        if len(parsed) == 2 * len(some) - 1 and all(isinstance(entry, dict) for entry in parsed[::2]):
            values: list[Any] = parsed[::2]
            return values
    except JsonError:
        pass
    values = []
    for number, line in some:
        try:
            values.append(parse_json(line))
        except JsonError as error:
            raise LineError(number, f"it is not JSON ({words(error, 120)}): {words(_text(line), 120)}") from None
        if not isinstance(values[-1], dict):
            raise LineError(number, f"it is no JSON object: {words(_text(line), 120)}")
    return values


def _text(line: bytes) -> str:
    return line[:1000].decode("utf-8", "replace")


def _take(lines: Lines, number: int, value: dict[str, Any]) -> None:
    if "second" in value:
        if lines.end_s:
            raise _FaultError("it counts a second, and the lines before it are requests; print one of them alone")
        _take_second(lines, number, value)
    elif not OF_STAGES.isdisjoint(value):
        return  # statistics of a pipeline's stages, which are read on their own (docs/pipelines.md)
    elif "zero" in value and not len(lines):
        _known(value, ("zero",))
        lines.zero_s = _number(value, "zero")
    else:
        if lines.seconds:
            raise _FaultError("it is a request, and the lines before it count seconds; print one of them alone")
        _take_request(lines, number, value)


def _take_request(lines: Lines, number: int, value: dict[str, Any]) -> None:
    if not value.keys() <= REQUEST_SET:
        _known(value, REQUEST_KEYS)
    end_s, latency_ms = _when(value)
    ok = value.get("ok", True)
    if not isinstance(ok, bool):
        raise _FaultError(f"ok is {_shown(ok)}; it must be true or false")
    error = value.get("error")
    failed = not ok or (error is not None and error is not False and error != "")
    if failed:
        lines.note_error(error)
    operation = _operation(lines, value)
    lines.add(number, end_s, latency_ms, operation, failed=failed, moved=_moved(lines, value))


def _when(value: dict[str, Any]) -> tuple[float, float]:
    end, taken = value.get("end"), value.get("latency_ms")
    if type(end) is float and type(taken) is float and end >= 0 and 0 <= taken <= LONGEST_LATENCY_MS:
        return end, taken  # what most lines are, and there may be millions
    begin = "intended" if "intended" in value else "start"
    if "latency_ms" in value:
        latency_ms = _number(value, "latency_ms", LONGEST_LATENCY_MS)
        if "end" in value:
            return _number(value, "end"), latency_ms
        if begin in value:
            return _number(value, begin) + latency_ms / 1000.0, latency_ms
        raise _FaultError(f"it has no end and no start{_its_keys(value)}")
    if "end" not in value or begin not in value:
        raise _FaultError(f"it has no latency_ms{_its_keys(value)}")
    end_s = _number(value, "end")
    latency_ms = 1000.0 * (end_s - _number(value, begin))
    if not 0 <= latency_ms <= LONGEST_LATENCY_MS:
        raise _FaultError(f"it takes {latency_ms:g} ms from {begin} to end")
    return end_s, latency_ms


def _take_second(lines: Lines, number: int, value: dict[str, Any]) -> None:
    _known(value, SECOND_KEYS)
    for name in QUANTILES:
        if name in value:
            _number(value, name, LONGEST_LATENCY_MS)
    unit = value.get("unit", "us")
    if not isinstance(unit, str) or unit not in UNITS:
        raise _FaultError(f"unit is {words(repr(unit), 60)}; it must be one of {', '.join(UNITS)}")
    histogram = _histogram(value)
    counted = None if histogram is None else int(histogram.counts.sum())
    if counted is None and "requests" not in value:
        raise _FaultError("it has neither requests nor a histogram")
    requests = _whole({"requests": counted, **value}, "requests")
    if counted not in (None, requests):
        raise _FaultError(f"requests is {requests:,}, and its histogram has {counted:,}")
    errors = _whole(value, "errors")
    if errors:
        lines.errors["errors, without words"] += errors
    second = Second(
        number,
        _number(value, "second"),
        _number({"length_s": 1.0, **value}, "length_s", LONGEST_SECOND_S, low=0.01),
        requests,
        errors=errors,
        operation=_operation(lines, value),
        moved_bytes=_moved(lines, value),
        values_ms=None if histogram is None else histogram.middles * UNITS[unit],
        counts=None if histogram is None else histogram.counts,
    )
    lines.in_seconds += requests + errors
    if lines.in_seconds > MOST_REQUESTS:
        raise _FaultError(f"with it there are more than {MOST_REQUESTS:,} requests in the step")
    lines.seconds.append(second)


def _histogram(value: dict[str, Any]) -> Histogram | None:
    given = value.get("histogram")
    if given is None:
        return None
    try:
        if not isinstance(given, str):
            raise ValueError(f"it is {type(given).__name__}, not text in base64")
        return decode(given)
    except ValueError as error:
        raise _FaultError(f"histogram: {words(error)}") from None


def _known(value: dict[str, Any], keys: Sequence[str]) -> None:
    for name in value:
        if name not in keys:
            hint = did_you_mean(name, keys)
            raise _FaultError(f"it has {words(repr(name), 60)}. {hint}There may be: {', '.join(keys)}")


def _number(value: dict[str, Any], name: str, high: float = INFINITE, *, low: float = 0.0) -> float:
    given = value[name]
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise _FaultError(f"{name} is {_shown(given)}; it must be a number")
    if not low <= given <= high:
        right = f"at least {low:g}" if high == INFINITE else f"from {low:g} to {high:g}"
        raise _FaultError(f"{name} is {given:g}; it must be {right}")
    return float(given)


def _whole(value: dict[str, Any], name: str) -> int:
    given = value.get(name, 0)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= MOST_BYTES:
        raise _FaultError(f"{name} is {_shown(given)}; it must be a whole number from 0")
    return given


def _its_keys(value: dict[str, Any]) -> str:
    return f"; it has {words(', '.join(value), 120)}" if value else "; it is empty"


def _shown(given: object) -> str:
    if given is None or isinstance(given, bool):
        return "null" if given is None else str(given).lower()
    return words(repr(given), 60)


def _operation(lines: Lines, value: dict[str, Any]) -> int:
    given = value.get("operation", lines.names[0])
    if given == lines.names[0]:
        return 0
    try:
        return lines.names.index(given)
    except ValueError:
        pass
    if lines.grouping:
        return lines.grouped(str(given))
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_NAME or not given.isprintable():
        raise _FaultError(f"operation is {words(repr(given), 80)}; it must be a word of 1 to {LONGEST_NAME} characters")
    if len(lines.names) > MOST_OPERATIONS:
        raise _FaultError(
            f"operation {given!r} is the {len(lines.names) + 1}th; group them into at most {MOST_OPERATIONS}"
        )
    lines.names.append(given)
    return len(lines.names) - 1


def _moved(lines: Lines, value: dict[str, Any]) -> int:
    if "bytes" not in value:
        return 0
    lines.counts_bytes = True
    return _whole(value, "bytes")
