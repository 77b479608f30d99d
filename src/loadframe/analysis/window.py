"""From the requests of a step to its summary. Latency is of every request in flight in the window, weighted by the
share of its time in it, so that Little's law holds (1961, Operations Research 9; docs/mathematics.md, "Response
times")."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import warmup
from loadframe.analysis.arrays import Flags, Floats, Singles, Whole
from loadframe.analysis.warmup import CLIMBS, Line, straight
from loadframe.model import UNFINISHED, UNSETTLED, Latency, LatencyPoint, OperationSummary, Steps, by_level

Codes = NDArray[np.uint32]
BINS = 66
"""Slices of the time after the least warm-up: MSER-5 needs enough."""
BATCHES = 8
FEWEST_REQUESTS = 20
"""Requests of a window that decides something: with fewer a throughput is not known to a fifth."""
FEWEST_RESPONSES = 5.0
"""Response times in it: in a shorter one, users who began together count once more or less often."""
OUT_OF_BALANCE = 0.2
"""Share by which X R may differ from the number in flight; beyond, no response time is known."""


@dataclass(frozen=True, slots=True)
class Summary:
    """As in model.Step. operations: also those not judged. silence_ms: longest time without a completed request.
    failed_time: share of the time in flight that was of requests that failed. latencies_ms: as many as requests, with
    the distribution of `latency`. balanced: throughput times response time is the number in flight. needed_s: shortest
    window that would decide something; 0 where this does."""

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
    failed_time: float
    silence_ms: float
    settled: bool
    latencies_ms: Singles
    balanced: bool
    needed_s: float


@dataclass(frozen=True, slots=True)
class _InFlight:
    """Latencies (ms), ascending, and the share of each request's time in the window; (requests,)."""

    latency_ms: Singles
    share: Floats

    @classmethod
    def of(cls, latency_ms: NDArray[Any], share: NDArray[Any], chosen: Flags) -> Self:
        there = chosen & (share > 0)
        order = np.argsort(latency_ms[there], kind="stable")
        return cls(latency_ms[there][order], share[there][order])

    @property
    def count(self) -> float:
        return float(self.share.sum())

    @property
    def mean_ms(self) -> float:
        return float(self.latency_ms @ self.share) / self.count if len(self.share) else 0.0

    def quantile_ms(self, *probabilities: float) -> list[float]:
        if not len(self.share):
            return [0.0 for _ in probabilities]
        reached = np.cumsum(self.share)
        places = np.searchsorted(reached, np.array(probabilities) * reached[-1] * (1 - 1e-9))
        return [float(value) for value in self.latency_ms[np.minimum(places, len(reached) - 1)]]

    def latency(self) -> Latency:
        p50, p95, p99, p999 = self.quantile_ms(0.50, 0.95, 0.99, 0.999)
        longest = float(self.latency_ms[-1]) if len(self.latency_ms) else 0.0  # however little of it is in the window
        return Latency(self.mean_ms, p50, p95, p99, longest, p999)

    def as_many(self, count: int) -> Singles:
        """With the same distribution, ascending, the longest included."""
        if not len(self.share):
            return self.latency_ms
        down = np.ceil(np.cumsum(self.share[::-1]) * count / self.count - 1e-6).astype(np.int64)
        times: Whole = np.diff(down.clip(min(count, 1), count), prepend=0)
        return np.repeat(self.latency_ms, times[::-1])


def summarise(
    end_s: Floats,
    latency_ms: Singles,
    waiting_ms: Singles,
    operation: Codes,
    outcome: Codes,
    *,
    operations: Sequence[str],
    judged: Sequence[str],
    planned_s: float | None,
    floor_s: float,
    fixed_warmup_s: float | None,
) -> Summary:
    """Of the `judged` operations; arrays (requests,), at least one, in order of end_s. planned_s: the step's length
    from the first request on; what ends later does not count. None: it ran until its work was done; then all judged
    requests count, without a warm-up. floor_s: least warm-up; fixed_warmup_s: cut exactly this. Unfinished requests
    (UNFINISHED) count with their age."""
    begin_s, ended = end_s - latency_ms / 1000.0, outcome != UNFINISHED
    # The driver does not know the kind of an unfinished request.
    chosen = ~ended | np.isin(operation, [index for index, name in enumerate(operations) if name in judged])
    started_s = float(begin_s.min())
    if planned_s is None:
        if not chosen.any():
            chosen = np.ones(len(end_s), dtype=np.bool_)
        start, until, settled = float(begin_s[chosen].min()), float(end_s[chosen].max()), True
    else:
        until = started_s + planned_s
        start, settled = _warmed_up(end_s[chosen & ended], started_s, planned_s, floor_s, fixed_warmup_s)
    length = max(until - start, 1e-9)
    in_window = (end_s > start) & (end_s <= until) & ended
    done = chosen & in_window & (outcome == 0)
    errors = int((chosen & in_window & (outcome != 0)).sum())
    # A request waits first, then holds. Those that end after the window count too: one that starves does not end in it.
    turn_s = np.minimum(begin_s + waiting_ms / 1000.0, end_s)
    waiting_s, held_s = _overlap_s(begin_s, turn_s, start, until), _overlap_s(turn_s, end_s, start, until)
    holding = chosen & (outcome == 0)
    if planned_s is None:
        share = np.ones(len(end_s))
    else:  # a request of zero duration is one whose duration the driver did not report
        share = np.where(latency_ms > 0, (waiting_s + held_s) / np.maximum(latency_ms / 1000.0, 1e-12), in_window)
        share = np.minimum(share, 1.0)
    in_flight = _InFlight.of(latency_ms, share, chosen & ((outcome == 0) | ~ended))
    requests, in_progress_s = int(done.sum()), float((waiting_s + held_s)[chosen].sum())
    failed_s = float((waiting_s + held_s)[chosen & ended & (outcome != 0)].sum())
    needed_s, responses_s = 0.0, FEWEST_RESPONSES * (in_flight.mean_ms / 1000.0)
    if planned_s is not None and (requests + errors < FEWEST_REQUESTS or length < responses_s):
        rate = (in_flight.count + errors) / length
        needed_s = max(FEWEST_REQUESTS / rate if rate > 0 else 0.0, responses_s, length)
    # A request that waits for a CPU after releasing the lock overlaps with the next holder: time is counted once.
    begin, end = np.maximum(turn_s[holding], start), np.minimum(end_s[holding], until)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    covered = np.concatenate([[start], np.maximum.accumulate(end)[:-1]]) if len(end) else end
    counts, edges = np.histogram(end_s[done], bins=BATCHES, range=(start, max(until, start + 1e-9)))
    return Summary(
        started_s=started_s,
        ended_s=float(end_s[-1]) if planned_s is None else until,
        window_start_s=start,
        window_end_s=until,
        requests=requests,
        errors=errors,
        throughput=requests / length,
        batches=tuple(float(count) for count in counts / (edges[1] - edges[0])),
        latency=in_flight.latency(),
        waiting_share=float(waiting_s[chosen].sum()) / in_progress_s if in_progress_s > 0 else 0.0,
        operations=_operations(
            operations, operation, outcome, latency_ms, share, ended if planned_s is None else in_window
        ),
        lock_held=float(np.maximum(end - np.maximum(begin, covered), 0.0).sum()) / length,
        waiting=float(waiting_s[chosen].sum()) / length,
        concurrency=in_progress_s / length,
        failed_time=failed_s / in_progress_s if in_progress_s > 0 else 0.0,
        silence_ms=1000 * float(np.diff(np.concatenate([[start], np.sort(end_s[done]), [until]])).max()),
        settled=settled,
        latencies_ms=in_flight.as_many(requests),
        balanced=abs(requests - in_flight.count) <= OUT_OF_BALANCE * in_flight.count,
        needed_s=needed_s,
    )


def _overlap_s(begin_s: Floats, end_s: Floats, start_s: float, until_s: float) -> Floats:
    return np.asarray(np.maximum(np.minimum(end_s, until_s) - np.maximum(begin_s, start_s), 0.0))


def _warmed_up(
    end_s: Floats, started_s: float, length_s: float, floor_s: float, fixed_s: float | None
) -> tuple[float, bool]:
    if fixed_s is not None:
        return started_s + fixed_s, True
    bin_s = max(length_s - floor_s, 1e-6) / BINS
    bins = int(length_s / bin_s + 1e-9)
    counts, _ = np.histogram(end_s, bins=bins, range=(started_s, started_s + bins * bin_s))
    warm_up = warmup.detect(counts.astype(np.float64) / bin_s, bin_s, floor_s=floor_s)
    return started_s + warm_up.warmup_s, warm_up.settled


def _operations(
    names: Sequence[str], operation: Codes, outcome: Codes, latency_ms: Singles, share: Floats, in_window: Flags
) -> tuple[OperationSummary, ...]:
    summaries = []
    counting = (outcome == 0) | (outcome == UNFINISHED)
    for index, name in enumerate(names):
        chosen = (share > 0) & (operation == index)
        if not chosen.any():
            continue
        in_flight = _InFlight.of(latency_ms, share, chosen & counting)
        summaries.append(
            OperationSummary(
                name=name,
                requests=int((chosen & in_window & (outcome == 0)).sum()),
                errors=int((chosen & in_window & (outcome != 0)).sum()),
                mean_ms=in_flight.mean_ms,
                p95_ms=in_flight.quantile_ms(0.95)[0],
            )
        )
    return tuple(summaries)


MOST_UNSETTLED = 0.5
LIKELY = 0.95
"""Probability that is enough to look again, not to report."""


def unsettled(steps: Steps, probability: float = CLIMBS) -> tuple[float, ...]:
    """Levels at which most steps of a treatment had not settled, or their pooled throughput climbs, but in steps
    without a cut, which measure climbs (a cache that fills)."""
    levels = []
    for level, mine in by_level(steps).items():
        line = common_line([step for step in mine if step.window_start_s > step.started_s])
        climbs = line is not None and line.rises(probability)
        if climbs or fmean(UNSETTLED in step.flags for step in mine) > MOST_UNSETTLED:
            levels.append(level)
    return tuple(levels)


def common_line(steps: Steps) -> Line | None:
    shares = [
        np.array(step.batches) / step.throughput
        for step in steps
        if len(step.batches) == BATCHES and step.throughput > 0
    ]
    return straight(np.stack(shares)) if shares else None


def of_histogram(latencies_ms: Floats, counts: Whole) -> Latency:
    """Latency from a histogram with at least one request: latencies, ascending, and counts, (bins,)."""
    return _InFlight.of(latencies_ms, counts, counts > 0).latency()


POINTS_PER_DECADE, MOST_POINTS = 40, 300
"""40 per decade show every bend, 300 reach one request in thirty million."""


def points(latencies_ms: Floats, counts: Whole) -> tuple[LatencyPoint, ...]:
    """At most MOST_POINTS and the usual percentiles, evenly spaced on the scale of HdrHistogram's plots (Tene):
    percentile q at one_in = 1 / (1 - q). Arrays as for `of_histogram`."""
    reached = np.cumsum(counts)
    requests = int(reached[-1])
    decades = math.log10(requests)
    some = np.geomspace(1.0, requests, min(MOST_POINTS, 1 + math.ceil(POINTS_PER_DECADE * decades)))
    usual = [2.0, *(10.0**power for power in range(1, math.floor(decades) + 1))]
    places = sorted({float(place) for place in (*some[:-1], *usual) if place < requests})
    ranks = [max(requests - math.floor(requests / place + 1e-9), 1) for place in places]
    quantiles = latencies_ms[np.searchsorted(reached, ranks)].tolist()
    shown = [LatencyPoint(*point) for point in zip(places, quantiles, strict=True)]
    return (*shown, LatencyPoint(float(requests), float(latencies_ms[np.flatnonzero(counts)[-1]])))


DELAYED_ACK_MS = (38.0, 48.0)
"""TCP_DELACK_MIN is 40 ms (include/net/tcp.h); timers of 100 to 1000 Hz are off by up to a tick."""
HIGHEST_CONTRAST = 1000.0


@dataclass(frozen=True, slots=True)
class Band:
    """share: of the requests. contrast: their number over that of the fuller of two equally wide bands, the next below
    and the second above; about 1 for a broad distribution."""

    share: float
    contrast: float


def band(latency_ms: Singles, low_ms: float, high_ms: float) -> Band | None:
    if not len(latency_ms):
        return None
    width_ms = high_ms - low_ms
    edges = (low_ms - width_ms, low_ms, high_ms, high_ms + width_ms, high_ms + 2 * width_ms)
    below, inside, _, above = (
        int(((latency_ms >= first) & (latency_ms < last)).sum()) for first, last in pairwise(edges)
    )
    contrast = inside / max(below, above) if below or above else HIGHEST_CONTRAST
    return Band(inside / len(latency_ms), min(contrast, HIGHEST_CONTRAST))
