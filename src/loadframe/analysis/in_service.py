"""How many requests are in service at once where throughput no longer grows.

Little's law, L = X W, holds for whatever part of a server one looks at. Take the part that each request holds while it
is served: a worker, a connection, a lock. Where n of them are all that there are and all are taken, X W = n, with W the
time for which a request holds one. W is at most the time R of a request that met no queue, so n <= X R; and it is not
much less where little of R lies outside of that part. docs/mathematics.md has how wide the interval is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import student

CONFIDENCE = 0.95
OUTSIDE = 0.15
"""Of a request's time without a queue, what may lie outside of what limits (connections, parsing, threads that are
woken), where it is not known how much CPU time that takes."""
LEAST_OUTSIDE = 0.05
"""... and besides that time where it is known: a loopback and a scheduler cost time, too."""
LONGER = 0.05
"""By this share a request may take longer in service at a high load than at a low one, besides its waits for a CPU."""
LARGEST = 1e9
NARROW = 0.4
"""An interval of that share of the value, from end to end, tells sizes apart; a wider one names none."""


@dataclass(frozen=True, slots=True)
class InService:
    """value: X R, low..high: where the number of requests in service lies (95 %, and what may lie outside).
    throughput: of the plateau (1/s); response_s: R. bounded: requests queued at the lowest load already, so that there
    are at most `high`."""

    value: float
    low: float
    high: float
    throughput: float
    response_s: float
    bounded: bool = False

    @property
    def known(self) -> bool:
        """Whether the interval is narrow enough to compare the number with anything's size."""
        return not self.bounded and (self.whole is not None or self.high - self.low <= NARROW * self.value)

    @property
    def whole(self) -> int | None:
        """The only whole number in the interval; where there is none, the next one below it, as n <= X R; None where
        there are several."""
        first, last = max(1, math.ceil(self.low)), math.floor(min(self.high, LARGEST))
        return last if 1 <= last <= first and not self.bounded else None

    def holds(self, size: float) -> bool:
        """Whether it may be that number."""
        return self.known and (self.low <= size <= self.high or size == self.whole)


def in_service(
    throughputs: Sequence[Sequence[float]],
    responses_s: Sequence[Sequence[float]],
    *,
    outside_s: float | None = None,
    waits_s: float = 0.0,
    grain: float = 0.0,
    bounded: bool = False,
    clients: float | None = None,
) -> InService:
    """From the throughputs (1/s) of the levels of the plateau and the mean response times of all levels, rising, a
    number per step each; R is that of the first one.

    outside_s: what of R is CPU time of target and driver and their waits for a CPU, None where that is not known.
    waits_s: for a CPU, per request, on the plateau. grain: to what share of itself a throughput is known. clients: at
    the highest level, where each of what serves has a queue of its own: then some are idle, and of n with queues that
    are joined at random and times in service that scatter exponentially, n N / (N + n - 1) serve N clients (mean value
    analysis; Reiser and Lavenberg 1980), of others more. ValueError without a positive throughput and time. With one
    step on either side there is no interval: it is bounded by nothing.
    """
    flat = np.concatenate([np.asarray(each, dtype=np.float64) for each in throughputs])
    first = np.asarray(responses_s[0], dtype=np.float64)
    if not flat.size or not first.size or min(flat.min(), first.min()) <= 0:
        raise ValueError("a number in service needs throughputs and response times above zero")
    value = float(np.exp(np.log(flat).mean() + np.log(first).mean()))
    response_s = float(np.exp(np.log(first).mean()))
    half = _half(np.log(flat), [np.log(each) for each in responses_s if min(each) > 0], grain)
    outside = OUTSIDE if outside_s is None else min(1.0, LEAST_OUTSIDE + outside_s / response_s)
    return InService(
        value=value,
        low=1.0 if bounded else value * math.exp(-half) * (1 - outside),
        high=_all(value, clients) * math.exp(half) * (1 + LONGER + waits_s / response_s),
        throughput=float(np.exp(np.log(flat).mean())),
        response_s=response_s,
        bounded=bounded,
    )


def _all(serving: float, clients: float | None) -> float:
    """How many there are, idle ones among them, where each has a queue of its own; those that serve, where the clients
    are not known."""
    return serving if clients is None or clients <= serving else serving * (clients - 1) / (clients - serving)


def _half(flat: np.ndarray, responses: Sequence[np.ndarray], grain: float) -> float:
    """Half of the t-interval of log X + log R, the two taken for independent (Welch 1938). The noise of R is the larger
    of that of the lowest level and that of all levels: a few blocks may agree by chance."""
    first = responses[0]
    if len(flat) < 2 or len(first) < 2:
        return math.inf
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in responses)
    freedom = sum(len(each) - 1 for each in responses)
    parts = (
        ((float(flat.var(ddof=1)) + grain**2 / 12) / len(flat), len(flat) - 1),
        (max(squares / freedom, float(first.var(ddof=1))) / len(first), freedom),
    )
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    worth = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    return float(student.quantile((1 + CONFIDENCE) / 2, worth)) * math.sqrt(variance)
