"""What a driver of the user's own printed, as requests of ours. Of whole seconds each value of a histogram becomes a
request that ended at a random time in it. Its clock: CLOCK_MONOTONIC, the time of day, or one whose zero it prints."""

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadframe.model import NO_LATENCIES, WHOLE_SECONDS
from loadframe.workloads.command_lines import Lines, Second
from loadframe.workloads.request_log import Requests

SLACK_S = 0.05
STEPPED_S = 0.02
EPOCH_S = 1e9
"""The time of day is beyond this since 2001, and no machine is up for 31 years."""
UNITS = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
ADVICE = "print seconds of CLOCK_MONOTONIC (Python: time.monotonic()), or of the time of day"
SHORTEST_MS = 1e-3


class ClockError(ValueError): ...


@dataclass(frozen=True)
class Instant:
    """One look at both clocks. day_s: of the time of day."""

    monotonic_s: float
    day_s: float

    @classmethod
    def now(cls) -> Self:
        return cls(time.monotonic(), time.time())

    @property
    def apart_s(self) -> float:
        """CLOCK_MONOTONIC minus the time of day."""
        return self.monotonic_s - self.day_s


@dataclass(frozen=True)
class Life:
    started: Instant
    ended: Instant


def offset_s(life: Life, first_s: float, last_s: float, zero_s: float | None, slack_s: float = SLACK_S) -> float:
    """What to add to a driver's times to get CLOCK_MONOTONIC. first_s, last_s: the earliest and latest of them; zero_s:
    when its clock showed 0. slack_s: how far they may lie outside its life. ClockError."""

    def outside(offset: float, scale: float = 1.0) -> str:
        before_s = life.started.monotonic_s - first_s / scale - offset
        after_s = last_s / scale + offset - life.ended.monotonic_s
        if before_s > slack_s:
            return f"its first request ended {before_s:.3g} s before the driver was started"
        if after_s > slack_s:
            return f"its last request ended {after_s:.3g} s after the driver itself: its clock runs fast"
        return ""

    if zero_s is not None:
        offset = zero_s + (_from_day(life) if zero_s >= EPOCH_S else 0.0)
        if why := outside(offset):
            raise ClockError(f"with its zero at {zero_s:.3f} {why}")
        return offset
    if not outside(0.0):
        return 0.0
    if first_s >= EPOCH_S / 2 and not outside(offset := _from_day(life)):
        return offset
    begin_s, end_s = life.started.monotonic_s, life.ended.monotonic_s
    times = f"its times ({first_s:.6g} to {last_s:.6g}) are"
    clocks = {"CLOCK_MONOTONIC": 0.0, "the time of day": life.started.apart_s}
    for name, offset in clocks.items():
        for scale, unit in UNITS.items():
            if not outside(offset, scale):
                raise ClockError(f"{times} {name} in {unit}; print seconds")
    for name, offset in clocks.items():
        until_s = end_s + slack_s
        if begin_s - slack_s <= first_s + offset <= until_s or begin_s <= last_s + offset <= until_s:
            raise ClockError(f"its times are of {name}, and {outside(offset)}")
    if first_s >= 0 and last_s <= 2 * (end_s - begin_s) + 10:
        raise ClockError(
            f'{times} of a clock of its own that begins near 0. Print {{"zero": SECONDS}} as the first line, where '
            "SECONDS is CLOCK_MONOTONIC or the time of day when that clock showed 0; or " + ADVICE
        )
    raise ClockError(
        f"{times} of no clock of this machine: CLOCK_MONOTONIC went from {begin_s:.3f} to {end_s:.3f}, the time of day "
        f"from {life.started.day_s:.3f} to {life.ended.day_s:.3f}; {ADVICE}"
    )


def _from_day(life: Life) -> float:
    stepped_s = life.ended.apart_s - life.started.apart_s
    if abs(stepped_s) > STEPPED_S:
        raise ClockError(
            f"the time of day was set by {-stepped_s:+.3f} s during the step, and the driver's times are of it; "
            "print seconds of CLOCK_MONOTONIC"
        )
    return life.started.apart_s


@dataclass(frozen=True)
class Output:
    """requests: in the order of their ends. moved_bytes: of each; None if not counted. marks: flags of the step
    (model.FLAGS). errors: the most frequent first."""

    requests: Requests
    moved_bytes: NDArray[np.uint64] | None = None
    marks: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


Made = tuple[Requests, NDArray[np.uint64], tuple[str, ...]]


def of_lines(lines: Lines, life: Life) -> Output:
    """ClockError."""
    if not len(lines):
        return Output(_sorted(*(np.empty(0) for _ in range(4)))[0])
    requests, moved_bytes, marks = _of_seconds(lines, life) if lines.seconds else _of_requests(lines, life)
    errors = tuple(f"{words} ({count:,} times)" for words, count in lines.errors.most_common(5))
    return Output(requests, moved_bytes if lines.counts_bytes else None, marks, errors)


def _of_requests(lines: Lines, life: Life) -> Made:
    end_s, latency_ms = np.frombuffer(lines.end_s), np.frombuffer(lines.latency_ms)
    end_s = end_s + offset_s(life, float(end_s.min()), float(end_s.max()), lines.zero_s)
    begin_s = end_s - latency_ms / 1000.0
    first = int(begin_s.argmin())
    early_s = life.started.monotonic_s - float(begin_s[first])
    if early_s > SLACK_S and not lines.began_before:
        raise ClockError(
            f"line {lines.line[first]:,}: with {latency_ms[first]:g} ms it began {early_s:.3g} s before the driver was "
            "started; latency_ms is in milliseconds"
        )
    requests, order = _sorted(
        end_s, latency_ms, np.frombuffer(lines.operation, "u4"), np.frombuffer(lines.failed, "u4")
    )
    marks = () if latency_ms.any() else (NO_LATENCIES,)  # no request takes no time
    return requests, np.frombuffer(lines.moved_bytes, "u8")[order], marks


def _of_seconds(lines: Lines, life: Life) -> Made:
    first_s = min(second.at_s for second in lines.seconds)
    last_s = max(second.at_s + second.length_s for second in lines.seconds)
    longest_s = max(second.length_s for second in lines.seconds)
    # A second may have begun before the driver, and be printed before it is over.
    offset = offset_s(life, first_s, last_s, lines.zero_s, slack_s=longest_s + SLACK_S)
    until: dict[int, tuple[float, int]] = {}
    for second in sorted(lines.seconds, key=lambda second: second.at_s):
        before_s, line = until.get(second.operation, (0.0, 0))
        if second.at_s < before_s - SLACK_S:
            raise ClockError(f"lines {line:,} and {second.line:,} count the same second, {second.at_s:g}")
        until[second.operation] = second.at_s + second.length_s, second.line
    known = all(second.counts is not None for second in lines.seconds if second.requests)
    parts = [_spread(second, offset, known) for second in lines.seconds]
    end_s, latency_ms, operation, failed, moved = (np.concatenate(column) for column in zip(*parts, strict=True))
    requests, order = _sorted(np.minimum(end_s, life.ended.monotonic_s), latency_ms, operation, failed)
    return requests, moved.astype("u8")[order], (WHOLE_SECONDS, *(() if known else (NO_LATENCIES,)))


def _spread(second: Second, offset: float, known: bool) -> tuple[NDArray[Any], ...]:
    """End, latency, operation, outcome and bytes of each request; arrays of shape (requests + errors,)."""
    random = np.random.default_rng(second.line)
    count = second.requests + second.errors
    end_s = second.at_s + offset + second.length_s * np.sort(random.random(count))
    latency_ms = np.full(count, SHORTEST_MS if known else 0.0)
    if known and second.values_ms is not None and second.counts is not None:
        latency_ms[: second.requests] = np.repeat(second.values_ms, second.counts)
    failed = np.arange(count) >= second.requests
    mixed = random.permutation(count)
    operation, moved = np.full(count, float(second.operation)), np.full(count, second.moved_bytes / max(count, 1))
    return end_s, latency_ms[mixed], operation, failed[mixed] * 1.0, moved


def _sorted(
    end_s: NDArray[np.float64],
    latency_ms: NDArray[np.float64],
    operation: NDArray[np.generic],
    failed: NDArray[np.generic],
) -> tuple[Requests, NDArray[np.intp]]:
    """In the order of their ends, and that order. Latencies of 0 become SHORTEST_MS unless all are 0."""
    order = np.argsort(end_s, kind="stable")
    if latency_ms.any():
        latency_ms = np.maximum(latency_ms, SHORTEST_MS)
    requests = Requests(
        end_s[order],
        latency_ms[order].astype(np.float32),
        np.zeros(len(order), dtype=np.float32),
        operation[order].astype(np.uint32),
        failed[order].astype(np.uint32),
    )
    return requests, order
