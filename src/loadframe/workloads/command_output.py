"""What a driver of the user's own printed, as requests of ours.

What it counted in whole seconds is spread over them: each value of its histogram is a request that ended somewhere in
that second, at random. So the counts and the latencies are its own, and what happened within a second is not known,
which the step says. Where it gave quantiles alone no latency is known: they belong to seconds, and cannot be added up.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadframe.model import NO_LATENCIES, WHOLE_SECONDS
from loadframe.workloads.command_lines import Lines, Second
from loadframe.workloads.driver_clock import SLACK_S, ClockError, Life, offset_s
from loadframe.workloads.request_log import Requests

SHORTEST_MS = 1e-3
"""A latency that is shown as 0 was shorter than the driver's clock can tell."""


@dataclass(frozen=True)
class Output:
    """requests: in the order of their ends. moved_bytes: of each; None where the driver does not count them. marks:
    flags of a step that is measured like this (model.FLAGS). errors: the errors that it named, the most frequent first.
    """

    requests: Requests
    moved_bytes: NDArray[np.uint64] | None = None
    marks: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def of_lines(lines: Lines, life: Life) -> Output:
    """What lines say. ClockError."""
    if not len(lines):
        return Output(_sorted(*(np.empty(0) for _ in range(4)))[0])
    made = _of_seconds(lines, life) if lines.seconds else _of_requests(lines, life)
    told = tuple(f"{words} ({count:,} times)" for words, count in lines.errors.most_common(5))
    return Output(made.requests, made.moved_bytes if lines.counts_bytes else None, made.marks, told)


def _of_requests(lines: Lines, life: Life) -> Output:
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
    return Output(requests, np.frombuffer(lines.moved_bytes, "u8")[order], marks)


def _of_seconds(lines: Lines, life: Life) -> Output:
    first_s = min(second.at_s for second in lines.seconds)
    last_s = max(second.at_s + second.length_s for second in lines.seconds)
    longest_s = max(second.length_s for second in lines.seconds)
    # A second may have begun before the driver, and be told when it has not passed.
    offset = offset_s(life, first_s, last_s, lines.zero_s, slack_s=longest_s + SLACK_S)
    _check_apart(lines)
    known = all(second.counts is not None for second in lines.seconds if second.requests)
    parts = [_spread(second, offset, known) for second in lines.seconds]
    end_s, latency_ms, operation, failed, moved = (np.concatenate(each) for each in zip(*parts, strict=True))
    requests, order = _sorted(np.minimum(end_s, life.ended.monotonic_s), latency_ms, operation, failed)
    return Output(requests, moved.astype("u8")[order], (WHOLE_SECONDS, *(() if known else (NO_LATENCIES,))))


def _check_apart(lines: Lines) -> None:
    """ClockError where two seconds of one kind of request overlap: one of them would be counted twice."""
    until: dict[int, tuple[float, int]] = {}
    for second in sorted(lines.seconds, key=lambda one: one.at_s):
        before_s, line = until.get(second.operation, (0.0, 0))
        if second.at_s < before_s - SLACK_S:
            raise ClockError(f"lines {line:,} and {second.line:,} count the same second, {second.at_s:g}")
        until[second.operation] = second.at_s + second.length_s, second.line


def _spread(second: Second, offset: float, known: bool) -> tuple[NDArray[Any], ...]:
    """End, latency, operation, outcome and bytes of each request of a second; arrays of shape (requests + errors,)."""
    random = np.random.default_rng(second.line)
    count = second.requests + second.errors
    end_s = second.at_s + offset + second.length_s * np.sort(random.random(count))
    latency_ms = np.full(count, SHORTEST_MS if known else 0.0)
    if known and second.values_ms is not None and second.counts is not None:
        latency_ms[: second.requests] = np.repeat(second.values_ms, second.counts)
    failed = np.arange(count) >= second.requests
    mixed = random.permutation(count)
    each = second.moved_bytes / count if count else 0.0
    return end_s, latency_ms[mixed], np.full(count, float(second.operation)), failed[mixed] * 1.0, np.full(count, each)


def _sorted(
    end_s: NDArray[np.float64],
    latency_ms: NDArray[np.float64],
    operation: NDArray[np.generic],
    failed: NDArray[np.generic],
) -> tuple[Requests, NDArray[np.intp]]:
    """In the order of their ends, and that order. Latencies of 0 are SHORTEST_MS unless all are."""
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
