"""One measured window at one load, and the latency distributions of several."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the requests in flight in a window (analysis/window.py), 0 for none; without failed ones, as an immediate
    error would look like a short response. In a closed loop from each request's own begin, without correction for
    coordinated omission; on OPEN_LOOP_AXES from its intended start. max_ms: or the age of a request that had not ended.
    In older runs: p999_ms 0, and only the requests that ended in the window."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    p999_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class OperationSummary:
    name: str
    requests: int
    errors: int
    mean_ms: float
    p95_ms: float


Purpose = Literal["", "warming", "sizing", "curve", "side by side", "proof", "trial"]
"""warming: after a start or another treatment; counts for nothing. sizing: whether a raised limit is large enough.
curve: one state over the levels. side by side: alternatives in the same blocks. proof: treatments against each other.
trial: of a search. "": a curve, proof or trial of an older version."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """window_s: None: the study's. most_waiting: an open loop ends once more requests wait. warmup_s: the least, where
    the study sets none."""

    treatment: str
    level: float
    round_number: int | None = None
    block: int | None = None
    purpose: Purpose = "curve"
    window_s: float | None = None
    most_waiting: int | None = None
    warmup_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Blind:
    """A counter that contradicted others. counter: the metric that names it; metrics: all that come from it."""

    counter: str
    metrics: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Step:
    """started_s..ended_s: the driver ran; window_start_s..window_end_s: what counts. batches: throughput (1/s) of equal
    slices of the window. waiting_share: of requests' time, in a lock or queue. metrics: averages, rates and peaks.
    closed_loop: of N users, who think for think_s, X (R + Z) = N (response time law). needed_s: with TOO_FEW, the
    window that would have been enough. round, block: None for warming; sizing has no block, side by side no round."""

    number: int
    round: int | None
    block: int | None
    treatment: str
    level: float
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
    metrics: Mapping[str, float]
    flags: tuple[str, ...] = ()
    closed_loop: bool = True
    blind: tuple[Blind, ...] = ()
    purpose: Purpose = "curve"
    think_s: float = 0.0
    needed_s: float = 0.0

    @property
    def latency_known(self) -> bool:
        return self.requests > 0 and not {NO_LATENCIES, OUT_OF_BALANCE}.intersection(self.flags)

    @property
    def counts(self) -> bool:
        """Not if it warmed the target, had too few requests, or the target failed."""
        return self.purpose != "warming" and not {TOO_FEW, NOT_RECOVERED}.intersection(self.flags)


Steps = Sequence[Step]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def by_block(steps: Iterable[Step]) -> dict[int, list[Step]]:
    """In rising order; steps without a block are left out."""
    return dict(sorted(grouped((step.block, step) for step in steps if step.block is not None).items()))


def by_level(steps: Iterable[Step]) -> dict[float, list[Step]]:
    """In rising order."""
    return dict(sorted(grouped((step.level, step) for step in steps).items()))


def timed(steps: Steps) -> Steps:
    """Steps at one level with response times; none where most have none."""
    known = [step for step in steps if step.latency_known]
    return known if 2 * len(known) > len(steps) else []


def at_highest(steps: Iterable[Step]) -> list[Step]:
    return next(reversed(by_level(steps).values()), [])


def of_treatment(steps: Iterable[Step], treatment: str) -> list[Step]:
    return [step for step in steps if step.treatment == treatment]


UNFINISHED = 0xFFFFFFFF
"""Outcome, in a request log, of a request that had not ended with its driver; its latency is its age."""
UNSETTLED = "not-settled"
TOO_FEW = "too-few"
OUT_OF_BALANCE = "out-of-balance"
WHOLE_SECONDS = "whole-seconds"
NO_LATENCIES = "no-latencies"
TIME_UNIT = "time-unit"
NOT_RECOVERED = "not-recovered"
PART_LOST = "part-lost"
FLAGS: Mapping[str, str] = {
    UNSETTLED: "the warm-up had not ended when the window began",
    TOO_FEW: "the window had fewer than 20 requests or was shorter than 5 response times, so nothing is decided by it",
    OUT_OF_BALANCE: "throughput times response time differed from the requests in flight by more than 20 %, so no "
    "response time is shown",
    "errors": "some requests failed",
    "driver-limited": "the load driver was the bottleneck",
    "driver-beside": "the load driver had a quarter or more of the CPUs that the target was short of",
    "driver-lag": "requests waited for the load driver's own CPUs while others were idle",
    PART_LOST: "a part of the target ended, and the others went on without it",
    "steal": "the hypervisor used more than a tenth of the CPUs for other work",
    "stranger": "processes outside the study used more than a fifth of the CPUs",
    "clock-step": "the wall clock was set",
    "frequency": "the CPUs changed their speed",
    "disk-stalled": "the disk had requests and ended none of them for a tenth of the window",
    "recorder-late": "the recorder missed ticks: the machine stalled or was overloaded",
    WHOLE_SECONDS: "the load driver counted whole seconds: what happened within one is not known",
    NO_LATENCIES: "the load driver gave quantiles of its seconds alone, which cannot be added up: no latency is known",
    TIME_UNIT: "the response times that the load driver reported are about 1,000 times too short, or too long, for its "
    "users and its throughput: their unit looks wrong",
    NOT_RECOVERED: "after it the target was dead, did not answer, or still refused although no load was left",
    "ended-early": "the target fell so far behind the offered load that the step was stopped early",
}
InfluenceKind = Literal["effect", "disturbance"]
"""effect: it follows the state and the load. disturbance: it follows time, or that is unknown."""


@dataclass(frozen=True, slots=True)
class Influence:
    """What affected steps besides the study (analysis/disturbance.py). low, high: its quantity in these steps, None for
    a mere flag; elsewhere: the most in other states and loads. left_out: steps that do not count for it. goes_with: the
    disk's metric that correlates. names: programs that use most of the CPUs."""

    flag: str
    kind: InfluenceKind
    steps: int
    low: float | None
    high: float | None
    elsewhere: float | None
    levels: tuple[float, ...]
    treatments: tuple[str, ...]
    left_out: int = 0
    goes_with: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Companion:
    """A program that the target connects to: its CPU time (s/s), of all CPUs, at the first state's highest load."""

    name: str
    cores: float
    of: float
    load: float


RATE_AXES = frozenset({"rate"})
"""They count requests offered per second."""
OPEN_LOOP_AXES = RATE_AXES | {"speed"}
"""Requests begin on schedule, whatever became of the ones before."""
CLIENT_AXES = frozenset({"clients", "concurrency", "sessions", "threads"})
"""They count clients, each with one request after the other."""


@dataclass(frozen=True, slots=True)
class Observation:
    """throughput in 1/s; utilizations: of resources (0..1)."""

    load: float
    throughput: float
    latency_p95_ms: float | None = None
    latency_mean_ms: float | None = None
    utilizations: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observations:
    """Windows; several at one load are blocks. servers: of a resource (default 1). ceilings: resources that are part of
    another or contain it: they bound the throughput. flattening: each request needs less and less of them: their
    saturation is not forecast. by_the_hour: they follow the hour of the day."""

    name: str
    rows: tuple[Observation, ...]
    axis: str = "load"
    unit: str = ""
    servers: Mapping[str, float] = field(default_factory=dict)
    ceilings: frozenset[str] = frozenset()
    flattening: frozenset[str] = frozenset()
    by_the_hour: frozenset[str] = frozenset()

    @property
    def loads(self) -> tuple[float, ...]:
        return tuple(sorted({row.load for row in self.rows}))

    @property
    def resources(self) -> tuple[str, ...]:
        names = self.rows[0].utilizations if self.rows else ()
        return tuple(name for name in names if all(name in row.utilizations for row in self.rows))


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    one_in: float
    latency_ms: float


@dataclass(frozen=True, slots=True)
class LatencyDistribution:
    """Merged by counts. left_out: failed requests; failed: those included, in older runs. points: one_in from 1, the
    shortest, to `requests`, the longest."""

    treatment: str
    level: float
    steps: int
    requests: int
    failed: int
    latency: Latency
    points: tuple[LatencyPoint, ...]
    left_out: int = 0
