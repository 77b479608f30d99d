"""From the requests of one step to what it says: cut the warm-up off, count, and take the quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import warmup
from loadframe.model import Latency, OperationSummary

BINS = 66
"""The number of slices of what follows the least warm-up, to find the end of the warm-up: MSER-5 needs enough."""
BATCHES = 8
"""The window is cut into this many equal slices, for the noise within a step."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What the requests of one step say; fields as in model.Step. inside: which requests count, shape (requests,);
    operations: of every kind of request, also of those that are not judged; silence_ms: the longest time in the window
    in which no request was done."""

    started_s: float
    ended_s: float
    window_start_s: float
    window_end_s: float
    requests: int
    errors: int
    throughput: float
    batches: tuple[float, ...]
    latency: Latency
    waiting_share: float
    operations: tuple[OperationSummary, ...]
    lock_held: float
    waiting: float
    concurrency: float
    silence_ms: float
    settled: bool
    inside: NDArray[np.bool_]


def summarise(
    end_s: NDArray[np.float64],
    latency_ms: NDArray[np.float32],
    waiting_ms: NDArray[np.float32],
    operation: NDArray[np.uint32],
    outcome: NDArray[np.uint32],
    *,
    operations: Sequence[str],
    judged: Sequence[str],
    planned_s: float | None,
    floor_s: float,
    fixed_warmup_s: float | None,
) -> Summary:
    """Summary of the requests of the `judged` operations; arrays of shape (requests,), at least one, in order of end_s.

    planned_s: the step's length from its first request on; what ends later does not count. None: it ran until its
    work was done; then all judged requests count, from the first one's start to the last one's end, without a warm-up.
    floor_s: the least that is cut off as warm-up; fixed_warmup_s: cut exactly this instead of detecting it.
    """
    chosen = np.isin(operation, [index for index, name in enumerate(operations) if name in judged])
    begin_s = end_s - latency_ms / 1000.0
    started_s = float(begin_s.min())
    if planned_s is None:
        if not chosen.any():
            chosen = np.ones(len(end_s), dtype=np.bool_)
        start, until, settled = float(begin_s[chosen].min()), float(end_s[chosen].max()), True
    else:
        until = started_s + planned_s
        start, settled = _warmed_up(end_s[chosen], started_s, planned_s, floor_s, fixed_warmup_s)
    length = max(until - start, 1e-9)
    in_window = (end_s > start) & (end_s <= until)
    inside: NDArray[np.bool_] = chosen & in_window
    done = inside & (outcome == 0)
    # It waited first and held last. Those that end after the window count too: who starves does not end in it.
    turn_s = np.minimum(begin_s + waiting_ms / 1000.0, end_s)
    waiting_s, held_s = _overlap_s(begin_s, turn_s, start, until), _overlap_s(turn_s, end_s, start, until)
    holding = chosen & (outcome == 0)
    return Summary(
        started_s=started_s,
        ended_s=float(end_s[-1]) if planned_s is None else until,
        window_start_s=start,
        window_end_s=until,
        requests=int(done.sum()),
        errors=int((inside & (outcome != 0)).sum()),
        throughput=float(done.sum()) / length,
        batches=_batches(end_s[done], start, until),
        latency=_latency(latency_ms[done]),
        waiting_share=_share(waiting_ms[done], latency_ms[done]),
        operations=_operations(
            operations,
            operation,
            outcome,
            latency_ms,
            in_window if planned_s is not None else np.full(len(end_s), True),
        ),
        lock_held=_union_s(turn_s[holding], end_s[holding], start, until) / length,
        waiting=float(waiting_s[chosen].sum()) / length,
        concurrency=float((waiting_s + held_s)[chosen].sum()) / length,
        silence_ms=1000 * float(np.diff(np.concatenate([[start], np.sort(end_s[done]), [until]])).max()),
        settled=settled,
        inside=inside,
    )


def _overlap_s(
    begin_s: NDArray[np.float64], end_s: NDArray[np.float64], start_s: float, until_s: float
) -> NDArray[np.float64]:
    """How much of each begin_s..end_s lies in start_s..until_s."""
    overlap: NDArray[np.float64] = np.maximum(np.minimum(end_s, until_s) - np.maximum(begin_s, start_s), 0.0)
    return overlap


def _union_s(begin_s: NDArray[np.float64], end_s: NDArray[np.float64], start_s: float, until_s: float) -> float:
    """How much of start_s..until_s lies in any of these intervals. A request that has released the lock and waits for a
    CPU has not ended yet, while the next one holds it: the sum of both would be more than all of the time."""
    begin, end = np.maximum(begin_s, start_s), np.minimum(end_s, until_s)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    covered = np.concatenate([[start_s], np.maximum.accumulate(end)[:-1]]) if len(end) else end
    return float(np.maximum(end - np.maximum(begin, covered), 0.0).sum())


def _warmed_up(
    end_s: NDArray[np.float64], started_s: float, length_s: float, floor_s: float, fixed_s: float | None
) -> tuple[float, bool]:
    """Where the warm-up ends, and whether it did before it had to."""
    if fixed_s is not None:
        return started_s + fixed_s, True
    bin_s = max(length_s - floor_s, 1e-6) / BINS
    found = warmup.detect(_binned(end_s, started_s, length_s, bin_s), bin_s, floor_s=floor_s)
    return started_s + found.warmup_s, found.settled


def _binned(end_s: NDArray[np.float64], started_s: float, length_s: float, bin_s: float) -> NDArray[np.float64]:
    """Throughput (1/s) in slices of the whole step from its start."""
    bins = int(length_s / bin_s + 1e-9)
    counts, _ = np.histogram(end_s, bins=bins, range=(started_s, started_s + bins * bin_s))
    return counts.astype(np.float64) / bin_s


def _batches(end_s: NDArray[np.float64], start_s: float, ended_s: float) -> tuple[float, ...]:
    counts, edges = np.histogram(end_s, bins=BATCHES, range=(start_s, max(ended_s, start_s + 1e-9)))
    return tuple(float(count) for count in counts / (edges[1] - edges[0]))


def _latency(latency_ms: NDArray[np.float32]) -> Latency:
    if not len(latency_ms):
        return Latency(0.0, 0.0, 0.0, 0.0, 0.0)
    p50, p95, p99, p999 = (float(value) for value in np.percentile(latency_ms, [50, 95, 99, 99.9]))
    return Latency(float(latency_ms.mean()), p50, p95, p99, float(latency_ms.max()), p999)


def _share(part: NDArray[np.float32], of: NDArray[np.float32]) -> float:
    total = float(of.sum())
    return min(float(part.sum()) / total, 1.0) if total > 0 else 0.0


def _operations(
    names: Sequence[str],
    operation: NDArray[np.uint32],
    outcome: NDArray[np.uint32],
    latency_ms: NDArray[np.float32],
    inside: NDArray[np.bool_],
) -> tuple[OperationSummary, ...]:
    found = []
    for index, name in enumerate(names):
        chosen = inside & (operation == index)
        if not chosen.any():
            continue
        latencies = latency_ms[chosen & (outcome == 0)]
        found.append(
            OperationSummary(
                name=name,
                requests=int((chosen & (outcome == 0)).sum()),
                errors=int((chosen & (outcome != 0)).sum()),
                mean_ms=float(latencies.mean()) if len(latencies) else 0.0,
                p95_ms=float(np.percentile(latencies, 95)) if len(latencies) else 0.0,
            )
        )
    return tuple(found)
