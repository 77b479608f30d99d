"""The whole investigation. A field's `alias` is its key in run folders and JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import Curve, LoadInterval, Peak
from loadframe.model.finding import Finding, RuledOut, Trial, UntriedRemedy, Variant
from loadframe.model.forecast import Forecast
from loadframe.model.limit import FleetLimit, Limit, NextLimit
from loadframe.model.profile import Profile
from loadframe.model.step import Companion, Influence, LatencyDistribution
from loadframe.model.target import Requirement, SettingValue, TargetState
from loadframe.model.verdict import WORK, Compared, FleetDrivers, LevelRatio, Verdict


@dataclass(frozen=True, slots=True)
class Round:
    """Once around the loop. clamped: settings that were reduced, in words."""

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
        listed: list[LoadInterval | None] = [
            candidate.exhausted_at for candidate in self.limits if candidate.id == limit.id
        ]
        listed += [finding.reached_at for finding in self.findings if finding.id == limit.id]
        listed.append(self.curve.knee)
        return next((interval for interval in listed if interval and interval.load == limit.load), None)


@dataclass(frozen=True, slots=True)
class Witness:
    metric: str
    level: float
    target: float
    alternative: float


@dataclass(frozen=True, slots=True)
class Alternative(Compared):
    """Measured in the same blocks as the study's target. by_level: simultaneously. divergence: the load where their
    ratio begins to change. witnesses: metrics in which they differ. cold: for steps that begin with nothing cached.
    version: of another kind of target."""

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
    """kept: requested objects not fetched from the origin; None where the cache did not come back (error)."""

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
    """It gained in each of its too few blocks. more_s: measuring time that would decide, by `command`."""

    remedy: str
    verdict: Verdict = field(metadata={"alias": "told"})
    more_s: float
    command: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The target died, or refused or did not answer after a step (0: it died in it), until the run gave up. state:
    title of the treatment. path, status: last request and answer, 0 for none (why). waited_s: of retries. died: how its
    process ended; full: what had run out. log: last lines. went_on: restarted for lower loads."""

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
    """share: of the whole gain, in logarithms; None where not decided. gives_up: durability."""

    change: str
    ratio: float
    low: float
    high: float
    share: float | None
    gives_up: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """facts: further lines for the report."""

    hostname: str
    kernel: str
    cpu_model: str
    cpus: int
    memory_bytes: int
    virtualisation: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StudySummary:
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

    @property
    def load_unit(self) -> str:
        return self.axis_unit or self.axis.replace("_", " ")


@dataclass(frozen=True, slots=True)
class UnrevertedChange:
    """Not surely reverted when the run ended. before, after: the first and the run's value; None where a lost host does
    not report it."""

    setting: str
    of: str
    before: SettingValue | None
    after: SettingValue | None
    because: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class BlindCounter:
    counter: str
    steps: int
    because: str


@dataclass(frozen=True, slots=True)
class RunQuality:
    """flags: number of steps by flag. recorder_cpu_share: CPU-seconds per second. late_ticks: late or missing. seconds:
    from the first step's preparation to the last step. blind: counters that contradicted others. influences: what else
    affected steps. companions: programs that work for the target."""

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
    companions: tuple[Companion, ...] = field(default=(), metadata={"alias": "beside"})


@dataclass(frozen=True, slots=True)
class Bend:
    """load: where a limit begins to act; curve: the bend of the curve alone."""

    load: LoadInterval
    curve: LoadInterval
    limit: str


@dataclass(frozen=True, slots=True)
class StateSummary:
    peak: Peak
    knee: LoadInterval | None
    bend: Bend | None = None


@dataclass(frozen=True, slots=True)
class AnswerCompared:
    """In bytes or entries. differences: entries that only one side has."""

    answer: str
    target: int
    other: int
    differences: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return self.target == self.other and not self.differences


@dataclass(frozen=True, slots=True)
class AnswersCompared:
    """All answers about `of` at a level. others: the other programs."""

    of: str
    load: float
    others: str = field(metadata={"alias": "beside"})
    answers: tuple[AnswerCompared, ...] = ()
    missing: str = ""

    @property
    def equal(self) -> bool | None:
        return all(answer.equal for answer in self.answers) if self.answers else None


@dataclass(frozen=True, slots=True)
class Investigation:
    """The report is made from this alone. latencies: at one level, in the first state and the last kept one. answers:
    of the target and of comparable programs. drivers, fleet_limits: in the first state. variants: sets of changes, the
    one that gives nothing up first. unfinished: the best change that the budget did not prove. rules: version of the
    concluding rules; an older record is concluded again from its steps."""

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
        """The gain of the last state to the first, over the loads that it was judged at."""
        return self.variants[-1].reported if self.variants else None

    @property
    def reported(self) -> LevelRatio | Verdict | None:
        """The gain at the load of the answer."""
        return self.variants[-1].gain if self.variants else None


@dataclass(frozen=True, slots=True)
class HostsOfRun:
    """rounds: with the host of each finding. others: the findings about links, which the first round has, too."""

    rounds: tuple[Round, ...] = ()
    limits: tuple[FleetLimit, ...] = ()
    others: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
