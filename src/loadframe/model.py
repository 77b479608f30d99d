"""The records that travel between the rooms of the house.

Frozen, without I/O, with units in their names: `_s` seconds, `_ms` milliseconds, `_bytes`, `_share` (0..1).
Throughput is requests per second everywhere. Times called `*_s` that are points in time are CLOCK_MONOTONIC
seconds of the machine that measured, the same clock in the driver's request log and in the recording.

Every record can be written to and read from JSON with pydantic's TypeAdapter; nothing here knows how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SettingValue = str | int | float | bool
"""One configuration value, in the target's own spelling and unit."""

Layer = Literal["host", "process", "server", "application"]
"""Where a change is made. `process` covers rlimits, affinity and the cage, `server` the target's own settings."""


# --- the target and its state ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetState:
    """Everything that Loadframe decides about a private target: what a treatment is made of.

    settings: the target's own settings, as configured (asked for, not necessarily what it gets).
    limits: resource limits of the process by their name in setrlimit(2), for instance {"RLIMIT_NOFILE": 1024}, and of
    its control group by their name in version 2, for instance {"cpu.max": 50000} (cage/cages.py says the units).
    """

    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a load driver reaches a target.

    address: a socket path, a file path or host:port, as `kind` needs it.
    options: further words, for instance the user, the schema, or SQLite's per-connection pragmas.
    shards: of a target of several pieces, each of them in order; empty for one of one piece.
    """

    kind: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict)
    shards: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """One number that a target can be asked for while it runs.

    metric: the name under which it is known afterwards (units.py). cumulative: True where it only ever grows and its
    rate (1/s) is what matters; False where its largest value in the window is.
    """

    name: str
    metric: str
    cumulative: bool


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a kind of target or workload, or a part of Loadframe, needs on the machine. found: where or which version;
    None where it is missing."""

    kind: str
    what: str
    found: str | None
    how_to_get_it: str


# --- steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of the requests of one step: from each request's own begin in a closed loop, where nothing corrects for
    coordinated omission; from its intended start on an axis of OPEN_LOOP_AXES."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class OperationSummary:
    """What one kind of request did in a step."""

    name: str
    requests: int
    errors: int
    mean_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Step:
    """One measured window: one level, one treatment, one block.

    level: value on the load axis. started_s..ended_s: the driver ran; window_start_s..window_end_s: what counts,
    after the warm-up was cut off. batches: throughput (1/s) of equal slices of the window in time order, for the
    noise within the step. waiting_share: time that requests spent waiting for a lock or in a queue, divided by all
    their time. metrics: averages, rates and peaks over the window, by the names in units.py.
    flags: why the step should be read with care (see FLAGS).
    """

    number: int
    round: int
    block: int
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


FLAGS: Mapping[str, str] = {
    "not-settled": "the warm-up had not ended when the window had to begin",
    "errors": "some requests failed",
    "driver-limited": "the load driver was the bottleneck",
    "driver-lag": "requests waited for the load driver's own CPUs while others were idle",
    "steal": "the hypervisor gave the CPU to somebody else",
    "stranger": "processes that belong neither to the target nor to the driver used the CPU",
    "clock-step": "the wall clock was set",
    "frequency": "the CPUs changed their speed",
    "recorder-late": "the recorder missed ticks: the machine stalled or was overloaded",
    "ended-early": "the target was so far behind what it was offered that the step was ended before its time",
}
"""The closed list of flags that a step can carry."""

DISTURBED = frozenset({"steal", "stranger", "clock-step", "frequency", "recorder-late"})
"""Flags that say that something outside the study disturbed the step."""


OPEN_LOOP_AXES = frozenset({"rate"})
"""Load axes on which requests begin when they should, whatever became of the ones before."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one window showed at one load, whoever measured it. throughput in 1/s; utilizations: share of each resource
    in use (0..1) by its name; latencies None where they were not measured."""

    load: float
    throughput: float
    latency_p95_ms: float | None = None
    latency_mean_ms: float | None = None
    utilizations: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observations:
    """Windows at several loads; several at one load are blocks.

    name: where they come from. axis: what grows. servers: how many equal servers a resource consists of (1 where it is
    not there). ceilings: resources that are part of another one or hold it, so that their time must not be added to
    it: they bound the throughput, and no more.
    """

    name: str
    rows: tuple[Observation, ...]
    axis: str = "load"
    servers: Mapping[str, float] = field(default_factory=dict)
    ceilings: frozenset[str] = frozenset()

    @property
    def loads(self) -> tuple[float, ...]:
        """Every load once, ascending."""
        return tuple(sorted({row.load for row in self.rows}))

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources whose utilisation is known in every row, in the order of the first."""
        names = self.rows[0].utilizations if self.rows else ()
        return tuple(name for name in names if all(name in row.utilizations for row in self.rows))


# --- curve and comparison -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Throughput (1/s, with its 95 % interval) and p95 latency at one level."""

    load: float
    throughput: float
    throughput_low: float
    throughput_high: float
    latency_p95_ms: float | None
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Peak:
    load: float
    throughput: float


@dataclass(frozen=True, slots=True)
class LoadInterval:
    """A value on the load axis with its interval."""

    load: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cliff:
    """Where throughput falls: still held at `from_load`, lost at `to_load`; kept = ratio of the two throughputs."""

    from_load: float
    to_load: float
    throughput_kept: float


@dataclass(frozen=True, slots=True)
class Scalability:
    """Universal Scalability Law X = lambda N / (1 + sigma (N-1) + kappa N (N-1)), kappa >= 0; 95 % intervals."""

    lambda_: float
    sigma: float
    kappa: float
    lambda_interval: tuple[float, float]
    sigma_interval: tuple[float, float]
    kappa_interval: tuple[float, float]
    peak_load: float | None


Shape = Literal["linear", "plateau", "decline", "cliff"]


@dataclass(frozen=True, slots=True)
class Curve:
    """Throughput and latency over the levels, and what its shape says. closed_loop: whether a request began when the
    one before had ended; None where nobody knows."""

    axis: str
    treatment: str
    points: tuple[CurvePoint, ...]
    shape: Shape
    peak: Peak
    knee: LoadInterval | None
    cliff: Cliff | None
    capacity: LoadInterval | None
    usl: Scalability | None
    warnings: tuple[str, ...] = ()
    closed_loop: bool | None = None


Decision = Literal["better", "worse", "no-proven-difference"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The statistical answer on two treatments: ratio after / before with its interval, and the decision.

    block_ratios: the ratio in each block, in order, so that the reader sees what the interval is made of.
    levels: the levels on which the ratio was taken.
    """

    ratio: float
    low: float
    high: float
    decision: Decision
    blocks: int
    method: str
    block_ratios: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()


# --- capacity -------------------------------------------------------------------------------------------------------


LevelClass = Literal["meets", "misses", "undecided"]

CapacityEnd = Literal["found", "undecided", "above-range", "below-range"]
"""found: bracketed as narrowly as was asked for. undecided: the budget ended first. above-range: the highest level
still meets. below-range: the lowest one misses."""


@dataclass(frozen=True, slots=True)
class CapacityLevel:
    """What trials say of one level. seconds: of load in them; error_probability: that its class is wrong (of an
    undecided level: that the likelier one would be)."""

    load: float
    trials: int
    met: int
    seconds: float
    classified: LevelClass
    error_probability: float


@dataclass(frozen=True, slots=True)
class CapacityTrial:
    """One trial of a search. step: its number in the run, 0 where the target failed in it; seconds: for which it loaded
    the target. missed: what of the objective it missed, in words; "" where it met. offered: requests per second that
    should have begun; None in a closed loop. ended_early: it was over before its time, as it could only miss. counted:
    False where it says nothing of the level, and why, in words, in `note`."""

    step: int
    load: float
    seconds: float
    missed: str
    throughput: float
    offered: float | None
    latency_p95_ms: float
    ended_early: bool
    counted: bool
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether it met the objective."""
        return not self.missed


@dataclass(frozen=True, slots=True)
class CapacityObjective:
    """What a level must meet: shares of requests that may be lost (0..1), p95 latency in ms; None: not asked for."""

    loss_ratio: float | None = None
    latency_p95_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest load that meets an objective. low: the highest level shown to meet it, high: the lowest one shown to
    miss it; None where there is none. load: the best estimate between them, None where even the lowest level misses.
    error_probability: that the capacity lies outside of low..high. precision: how close they had to be. held_s: for how
    long in all loads at `low` or above met. load_seconds: all time under load; seconds_above_share: of it the share
    above `load`. open_loop: whether latencies count from the intended start of each request."""

    axis: str
    axis_unit: str
    objective: CapacityObjective
    end: CapacityEnd
    load: float | None
    low: float | None
    high: float | None
    error_probability: float
    precision: float
    held_s: float
    load_seconds: float
    seconds_above_share: float
    open_loop: bool
    levels: tuple[CapacityLevel, ...]
    trials: tuple[CapacityTrial, ...]
    run: str = ""
    warnings: tuple[str, ...] = ()


# --- limits, findings, remedies -------------------------------------------------------------------------------------


LimitStatus = Literal["reached", "near", "free", "unlimited", ""]
"""Where a use stands against its ceiling; "" where nobody judged it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Something finite. ceiling, use, headroom in the limit's own unit; headroom = ceiling - use.

    configured is what was asked for (None: nothing was), effective what the running system really uses.
    exhausted_at: the load at which use crosses the ceiling, None where use does not grow with load.
    loud: reaching it gives errors; silent (False): reaching it only makes things slow.
    chain: the ids of limits below that cap this one. thrash_metric: the metric that must rise once it is reached.
    title: what it is, in words, as the subject of a sentence.
    near: the share of the ceiling from which on its source calls it near. harm: thrash_metric as it is now; None where
    it was not read. An infinite ceiling: the machine sets none.
    """

    id: str
    layer: str
    ceiling: float
    configured: float | None
    effective: float
    use: float
    headroom: float
    loud: bool
    source: str
    exhausted_at: LoadInterval | None
    unit: str = ""
    chain: tuple[str, ...] = ()
    use_metric: str = ""
    thrash_metric: str = ""
    title: str = ""
    near: float | None = None
    harm: float | None = None
    status: LimitStatus = ""

    @property
    def costs_nothing(self) -> bool:
        """Whether it is a silent limit that is reached while its counter of harm stands still: a warm cache is full."""
        return self.status == "reached" and not self.loud and self.harm == 0


@dataclass(frozen=True, slots=True)
class UnreadLimit:
    """A limit that exists here and could not be read, and why."""

    id: str
    layer: str
    title: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class LedgerNow:
    """The ledger at this moment, the most urgent limit first.

    subject: whose limits, in words. watched_s: the time between the first and the last reading, readings of them;
    `exhausted_at` of a limit is in seconds from the last reading. unread: what could not be read. silent_cuts: settings
    whose effective value is less than the configured one, in words.
    """

    subject: str
    watched_s: float
    readings: int
    limits: tuple[Limit, ...]
    unread: tuple[UnreadLimit, ...]
    silent_cuts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact for a finding: a metric's value in a window, compared with a threshold."""

    metric: str
    value: float
    comparison: str
    threshold: float
    window: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A cause that was looked for and is not it, and the counter that says so."""

    id: str
    because: str


FindingStatus = Literal["suspected", "confirmed", "refuted"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause with evidence. Only an intervention that moved the curve makes it confirmed (or refuted).

    reached_at: the load at which it begins to act. score: 0..1, how well the evidence explains the bend.
    """

    id: str
    status: FindingStatus
    title: str
    reached_at: LoadInterval | None
    evidence: tuple[Evidence, ...]
    ruled_out: tuple[RuledOut, ...]
    score: float
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting in one layer. before is what was in effect, after what is asked for; needed says whether the change
    is needed or the link of the chain already suffices (then before == after)."""

    layer: Layer
    setting: str
    before: SettingValue | None
    after: SettingValue
    needed: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """What a remedy costs. durability: what may be lost, in words, None where nothing is given up.

    memory_before_bytes / memory_after_bytes: resident memory of the target, measured under load.
    """

    durability: str | None = None
    memory_before_bytes: float | None = None
    memory_after_bytes: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """An ordered chain of changes that should lift the limits behind `addresses` (finding ids)."""

    id: str
    title: str
    addresses: tuple[str, ...]
    changes: tuple[Change, ...]
    price: Price
    source: str = ""


@dataclass(frozen=True, slots=True)
class LevelRatio:
    """After / before at one level, from the proof's blocks."""

    load: float
    before: float
    after: float
    ratio: float


@dataclass(frozen=True, slots=True)
class OperationTimes:
    """What one kind of request took at one level, before and after a change: means over all its requests."""

    load: float
    name: str
    before_ms: float
    after_ms: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A remedy that was tried, its verdict against the state before, and what became of it.

    effective: what the target really used after the change, for every setting that the remedy named. operations: what
    each kind of request took, by level.
    """

    remedy: Remedy
    verdict: Verdict
    kept: bool
    levels: tuple[LevelRatio, ...]
    effective: Mapping[str, SettingValue]
    treatment_before: str = ""
    treatment_after: str = ""
    note: str = ""
    operations: tuple[OperationTimes, ...] = ()


@dataclass(frozen=True, slots=True)
class UntriedRemedy:
    """A remedy that was shown, not tried, and why."""

    remedy: Remedy
    because: str


# --- forecasts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that was worked out, with its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """What one window at this load should show: throughput in 1/s, and p95 latency where latencies were measured."""

    load: float
    throughput: Estimate
    latency_p95_ms: Estimate | None


@dataclass(frozen=True, slots=True)
class ForecastCapacity:
    """The highest throughput (1/s) that the resources allow, and the load at which the first of them saturates."""

    throughput: Estimate
    load: Estimate
    limited_by: str


@dataclass(frozen=True, slots=True)
class Saturation:
    """One resource. demand_s: seconds of one of its servers per request, at the highest load measured, with its
    interval; growth: the demand at its saturation, as a ratio to that at the lowest load. utilization: at the highest
    load measured. at_load: where it saturates; None where that is out of sight."""

    resource: str
    demand_s: float
    demand_low_s: float
    demand_high_s: float
    servers: float
    utilization: float
    growth: Estimate | None
    at_load: Estimate | None


@dataclass(frozen=True, slots=True)
class Scored:
    """A forecast throughput beside the measured one; inside: within the interval."""

    load: float
    predicted: float
    low: float
    high: float
    actual: float
    inside: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """All forecasts that were ever scored on this machine: of `count`, `inside` were within their interval of 90 %;
    median_error: of |predicted / actual - 1|."""

    inside: int
    count: int
    median_error: float


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of a forecast, once its loads were measured. throughput: the highest, 1/s, at_load. saturated_at: where
    the line through the lowest load reaches it; None where the curve does not bend and nothing is used up. limited_by:
    the resource that was used most there, of those that were forecast, and how much (0..1). load_inside,
    throughput_inside: whether the forecast's intervals of saturation hold them; None without saturation."""

    at_load: float
    throughput: float
    limited_by: str
    utilization: float
    saturated_at: float | None = None
    load_inside: bool | None = None
    throughput_inside: bool | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a system will do at loads that were not measured, or why that cannot be told.

    source: where the measurements come from; measured: their loads. kind: the load is clients that wait for their
    answers (closed), or a rate that is offered. saturation: the first to saturate first. exhaustion: limits of the
    ledger with the load at which they run out, the first first. refused: the reason, then there is nothing else but
    exhaustion. notes: what a reader must know, in sentences. scored, reached: what was measured later.
    """

    source: str
    axis: str
    kind: Literal["closed", "rate"]
    measured: tuple[float, ...]
    at: tuple[ForecastPoint, ...] = ()
    capacity: ForecastCapacity | None = None
    saturation: tuple[Saturation, ...] = ()
    exhaustion: tuple[Limit, ...] = ()
    refused: str | None = None
    scored: tuple[Scored, ...] = ()
    notes: tuple[str, ...] = ()
    reached: Reached | None = None


# --- profiles -------------------------------------------------------------------------------------------------------


ProfileKind = Literal["cpu", "threads"]
"""cpu: which functions ran, sampled by time on the CPU. threads: what all threads were doing, at each look."""

ProfilePlace = Literal["below", "past", "lowest", "highest"]
"""Below or past the bend; where nothing bends, the lowest and the highest level."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What a thread was in, from the outermost frame to the innermost, and how many samples found it there. Frames of
    the kernel end with `_[k]`; a function without a name is its file in brackets, `[mariadbd]`."""

    frames: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """One file of collapsed stacks. component: target, driver, or rest (everything else on the machine).

    rate: cpu: samples per second of CPU time; threads: looks in the window. seconds: of the window in which was sampled
    (perf takes a moment to begin). lost: samples that did not arrive or could not be read.
    """

    kind: ProfileKind
    component: str
    file: str
    samples: int
    rate: float
    seconds: float
    lost: int = 0


@dataclass(frozen=True, slots=True)
class ProfiledStep:
    """An extra step, taken for its profile alone: it is in no curve and no verdict. seconds: of its window; requests:
    done in it; missing: what could not be sampled, and how to get it."""

    place: ProfilePlace
    treatment: str
    level: float
    seconds: float
    requests: int
    throughput: float
    sources: tuple[ProfileSource, ...]
    missing: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassShare:
    """What one class of functions (analysis/stacks.py) took. share: of all samples, with its 95 % interval. amount:
    CPU-seconds per second, or threads on average. demand_ms: CPU time per request; None for threads. change: that,
    against the baseline's; None where there is no baseline or no proven difference."""

    id: str
    title: str
    share: float
    low: float
    high: float
    amount: float
    demand_ms: float | None
    change: float | None = None


@dataclass(frozen=True, slots=True)
class FunctionShare:
    """What one function took by itself, without those that it called."""

    name: str
    class_id: str
    share: float


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """A box of a flame graph. depth: 0 is the outermost frame. start, width: as shares of all samples. class_id: of
    what runs in it, where most of it is of one class. change: its CPU time per request against the baseline's (2.0:
    twice as much); None where there is no baseline or no proven difference."""

    name: str
    depth: int
    start: float
    width: float
    class_id: str
    change: float | None = None


@dataclass(frozen=True, slots=True)
class ProfileBaseline:
    """What a flame graph's changes are against: another profiled step."""

    place: ProfilePlace
    treatment: str
    level: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of one component went in one step. kernel_share: samples in the kernel; unresolved_share: whose
    innermost function has no name; truncated_share: whose outermost frames are missing."""

    kind: ProfileKind
    component: str
    place: ProfilePlace
    treatment: str
    level: float
    throughput: float
    samples: int
    lost: int
    seconds: float
    kernel_share: float
    unresolved_share: float
    truncated_share: float
    classes: tuple[ClassShare, ...]
    hottest: tuple[FunctionShare, ...]
    flame: tuple[FlameFrame, ...]
    against: ProfileBaseline | None = None


Answer = Literal["proven-worse", "proven-not-worse", "cannot-tell"]


@dataclass(frozen=True, slots=True)
class Margin:
    """Whether the second side is worse by more than the share `allowed` (0..1)."""

    allowed: float
    answer: Answer


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict on `after` against `before` (names), outside an investigation. what: the thing compared, in words.

    lower_is_better: then the verdict's "better" is a ratio below 1. margin: where one was asked for. notes: what a
    reader must know to trust it, in sentences. run: the run folder that was made for it; "" where none was.
    """

    before: str
    after: str
    verdict: Verdict
    what: str = "throughput"
    lower_is_better: bool = False
    margin: Margin | None = None
    levels: tuple[LevelRatio, ...] = ()
    notes: tuple[str, ...] = ()
    run: str = ""
    axis_unit: str = ""


# --- the whole investigation ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """Measure, name, change, prove: once around the loop. silent_cuts: settings whose effective value differs from
    the configured one, in words. ruled_out: the causes that were looked for and are not it."""

    number: int
    treatment: str
    state: TargetState
    effective: Mapping[str, SettingValue]
    curve: Curve
    limits: tuple[Limit, ...]
    findings: tuple[Finding, ...]
    tried: tuple[Trial, ...]
    untried: tuple[UntriedRemedy, ...]
    silent_cuts: tuple[str, ...] = ()
    footprint: tuple[Mapping[str, float], ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()


@dataclass(frozen=True, slots=True)
class NextLimit:
    """What gives next: the finding or limit, and the load at which it runs out (None: not within what was tested)."""

    id: str
    load: float | None
    title: str
    because: str


OutcomeKind = Literal[
    "gained",
    "cpu-saturated",
    "driver-limited",
    "no-limit-reached",
    "limit-without-remedy",
    "no-proven-gain",
    "interrupted",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: OutcomeKind
    text: str


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One kept change and its share (in logarithms) of the whole gain."""

    change: str
    ratio: float
    low: float
    high: float
    share: float
    gives_up: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """The machine, as far as it matters for the numbers. facts: further lines for the report, name -> text."""

    hostname: str
    kernel: str
    cpu_model: str
    cpus: int
    memory_bytes: int
    virtualisation: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StudySummary:
    """What a report needs to know of the study."""

    name: str
    question: str
    target_kind: str
    target_version: str
    workload_kind: str
    axis: str
    axis_unit: str
    levels: tuple[float, ...]
    objective: str
    durability: Literal["keep", "relax"]
    cage: Mapping[str, str]
    story: str = ""


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the run went: what a reader needs in order to trust it.

    flags: how many steps carried each flag. recorder_cpu_share: CPU-seconds of the recorder per second (1.0 = one
    core). late_ticks of ticks came late or were missing. seconds: from the first step's preparation to the last step.
    """

    steps: int
    repeated: int
    flags: Mapping[str, int]
    recorder_cpu_share: float
    recorder_rss_bytes: float
    ticks: int
    late_ticks: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The curve before or after, in two numbers."""

    peak: Peak
    knee: LoadInterval | None


@dataclass(frozen=True, slots=True)
class Investigation:
    """The whole loop: what was asked, measured, found, changed and proved. The report is made from this alone."""

    run: str
    report: str
    started_at: str
    seconds: float
    study: StudySummary
    host: Host
    rounds: tuple[Round, ...]
    before: StateSummary | None
    after: StateSummary | None
    gain: Verdict | None
    gain_durability_kept: Verdict | None
    ladder: tuple[LadderStep, ...]
    next_limit: NextLimit | None
    outcome: Outcome
    conduct: Conduct
    warnings: tuple[str, ...] = ()
    profiles: tuple[Profile, ...] = ()
    profile_missing: tuple[Requirement, ...] = ()
    forecast: Forecast | None = None
