"""The whole investigation: rounds, outcome, the machine, and the run quality.

A field with an `alias` has that key in run folders and in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import Curve, LoadInterval, Peak
from loadframe.model.finding import Finding, RuledOut, Trial, UntriedRemedy, Variant
from loadframe.model.fleet import FleetDrivers, FleetLimit
from loadframe.model.forecast import Forecast
from loadframe.model.limit import Limit, NextLimit
from loadframe.model.profile import Profile
from loadframe.model.step import Beside, Influence, LatencyDistribution
from loadframe.model.target import Requirement, SettingValue, TargetState
from loadframe.model.verdict import WORK, Compared, Verdict


@dataclass(frozen=True, slots=True)
class Round:
    """Measure, name, change, prove: once around the loop. clamped: settings whose effective value differs from
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
    clamped: tuple[str, ...] = field(default=(), metadata={"alias": "silent_cuts"})
    footprint: tuple[Mapping[str, float], ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()

    def interval_of(self, limit: "NextLimit") -> LoadInterval | None:
        """With which its limits, its findings or its bend give the load of what limits next."""
        listed: list[LoadInterval | None] = [each.exhausted_at for each in self.limits if each.id == limit.id]
        listed += [finding.reached_at for finding in self.findings if finding.id == limit.id]
        listed.append(self.curve.knee)
        return next((interval for interval in listed if interval and interval.load == limit.load), None)


@dataclass(frozen=True, slots=True)
class Witness:
    """A metric on both sides, at the highest level that both were measured at: medians over the steps."""

    metric: str
    level: float
    target: float
    alternative: float


@dataclass(frozen=True, slots=True)
class Alternative(Compared):
    """Another server, or other settings, measured side by side with the study's target in the same blocks. round: its
    state, curve, limits and causes. verdict: it against the target; by_level: at each level, all at once.
    divergence: the load at which the ratio of the two begins to change; None where it does not. witnesses: metrics
    that tell them apart. cold: as by_level, of steps that begin with nothing cached; empty where none were taken.
    version: of another kind of target; empty for other settings of the study's own."""

    name: str
    target_kind: str
    round: Round
    by_level: tuple[Verdict, ...]
    divergence: LoadInterval | None = field(metadata={"alias": "parting"})
    witnesses: tuple[Witness, ...] = ()
    cold: tuple[Verdict, ...] = ()
    version: str = ""


Ending = Literal["a clean stop", "SIGKILL"]


@dataclass(frozen=True, slots=True)
class WarmRestart:
    """What a cache still had after it was ended so and started again: of the objects that it was asked for, those that
    its origin was not asked for. kept: None where that is not known, as it did not come back; error says why."""

    treatment: str
    target_kind: str
    how: Ending
    asked: int
    kept: int | None
    error: str = ""


OutcomeKind = Literal[
    "gained",
    "cpu-saturated",
    "driver-limited",
    "link-full",
    "no-limit-reached",
    "limit-not-seen",
    "limit-without-remedy",
    "no-proven-gain",
    "stopped-answering",
    "interrupted",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: OutcomeKind
    text: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A change that gained in each of its blocks, which are too few to prove it. more_s: of measuring would decide, by
    `command`."""

    remedy: str
    told: Verdict
    more_s: float
    command: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The target fell under a load: it died, or it refused or was silent after a step, until the run gave up. step: the
    number of that; 0 where it has none, as the target died in it; level, treatment: what it was measured at. state:
    what that treatment is called, "" for the one that the study declares. path, status: what the target was asked for,
    and how it answered; 0 where it did not, with what was seen (why). waited_s: for how long it was asked again,
    without other load. died: how its process ended; full: what had run out, in words; "" where that is not known.
    log: its last lines. went_on: it was started again, and lower loads were measured. It is what was seen; why it was
    so is not known."""

    step: int
    level: float
    treatment: str
    path: str
    status: int
    waited_s: float
    state: str = ""
    why: str = ""
    died: str = ""
    full: str = ""
    log: tuple[str, ...] = ()
    went_on: bool = False


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One kept change: its ratio with the interval, and its share (in logarithms) of the whole gain; None where the
    whole is not decided. gives_up: durability, in words."""

    change: str
    ratio: float
    low: float
    high: float
    share: float | None
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
    work_unit: str = WORK
    """What the workload does one of at a time, and throughput counts."""


@dataclass(frozen=True, slots=True)
class UnrevertedChange:
    """A setting of the machine, or of an attached server, that could not be put back when the run ended, or is not
    known to have been. of: whose, in words. before: what it was. after: what the run has set. None where a host that
    is lost does not tell. because: why it stands, in words. host: of the fleet, "" for this machine."""

    setting: str
    of: str
    before: SettingValue | None
    after: SettingValue | None
    because: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class BlindCounter:
    """A counter that was blind. steps: the number of steps; because: in words, as it was in the first of them."""

    counter: str
    steps: int
    because: str


@dataclass(frozen=True, slots=True)
class RunQuality:
    """How the run went: what a reader needs in order to trust it.

    flags: how many steps carried each flag. recorder_cpu_share: CPU-seconds of the recorder per second (1.0 = one
    core). late_ticks of ticks came late or were missing. seconds: from the first step's preparation to the last step.
    not_reverted: changes that could not be reverted at the end. blind: the counters that contradicted others, each
    once, with the number of steps in which they did. influences: what took something from steps besides the study.
    beside: the programs that work for the target.
    """

    steps: int
    repeated: int
    flags: Mapping[str, int]
    recorder_cpu_share: float
    recorder_rss_bytes: float
    ticks: int
    late_ticks: int
    seconds: float = 0.0
    not_reverted: tuple[UnrevertedChange, ...] = field(default=(), metadata={"alias": "standing"})
    blind: tuple[BlindCounter, ...] = ()
    influences: tuple[Influence, ...] = ()
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True, slots=True)
class Bend:
    """A bend that a limit explains. load: where the limit begins to act; curve: where the curve alone bends; limit: its
    id."""

    load: LoadInterval
    curve: LoadInterval
    limit: str


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The curve before or after, in two numbers. bend: where a limit explains the knee."""

    peak: Peak
    knee: LoadInterval | None
    bend: Bend | None = None


@dataclass(frozen=True, slots=True)
class AnswerCompared:
    """One answer, a number of bytes or of entries: of the target and of the other program. differences: single entries
    that only one of them has, in words."""

    answer: str
    target: int
    other: int
    differences: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both gave the same."""
        return self.target == self.other and not self.differences


@dataclass(frozen=True, slots=True)
class AnswersCompared:
    """All answers on one thing. of: that thing, in words. load: the level of the load axis at which it was asked about.
    beside: the other programs. missing: why there is no answer to compare, "" where there is."""

    of: str
    load: float
    beside: str
    answers: tuple[AnswerCompared, ...] = ()
    missing: str = ""

    @property
    def equal(self) -> bool | None:
        """Whether all are the same; None where there was nothing to compare."""
        return all(one.equal for one in self.answers) if self.answers else None


@dataclass(frozen=True, slots=True)
class Investigation:
    """The whole loop: what was asked, measured, found, changed and proved. The report is made from this alone.

    latencies: of all requests at one level, in the first state and, where a change was kept, in the last one; empty in
    runs that have no histograms. answers: of the target, beside programs that tell the same. drivers: all hosts that
    drove beside fewer of them, in the first state. fleet_limits: of each host of a fleet, and of its links, in the
    first state. stop: what ended it, where the target did not recover from a step. variants: what can be done, the one
    that gives nothing up first. unfinished: what gained most of what the budget did not finish. rules: the version of
    the rules by which it was concluded; a record of an earlier one is concluded again from its steps.
    """

    run: str
    report: str
    started_at: str
    seconds: float
    study: StudySummary
    host: Host
    rounds: tuple[Round, ...]
    before: StateSummary | None
    after: StateSummary | None
    ladder: tuple[LadderStep, ...]
    next_limit: NextLimit | None
    outcome: Outcome
    quality: RunQuality = field(metadata={"alias": "conduct"})
    warnings: tuple[str, ...] = ()
    profiles: tuple[Profile, ...] = ()
    profile_missing: tuple[Requirement, ...] = ()
    forecast: Forecast | None = None
    alternatives: tuple[Alternative, ...] = ()
    warm_restarts: tuple[WarmRestart, ...] = field(default=(), metadata={"alias": "survivals"})
    latencies: tuple[LatencyDistribution, ...] = ()
    answers: tuple[AnswersCompared, ...] = ()
    drivers: FleetDrivers | None = None
    fleet_limits: tuple[FleetLimit, ...] = ()
    stop: Stop | None = None
    variants: tuple[Variant, ...] = ()
    unfinished: Unfinished | None = None
    rules: int = 0

    @property
    def gain(self) -> Verdict | None:
        """Of the last state against the first, over the loads that it was judged at; None where nothing was kept."""
        return self.variants[-1].told if self.variants else None
