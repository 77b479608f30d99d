"""A search for better settings: its trials, what it recommends, and whether that is proved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.capacity import CapacityObjective
from loadframe.model.investigation import Host, RunQuality, StudySummary
from loadframe.model.target import SettingValue
from loadframe.model.verdict import Compared, FleetHosts, Verdict

TuningEnd = Literal["gained", "no-proven-gain", "nothing-better", "stopped"]
"""gained: proved against the start, within the objective. no-proven-gain: the recommendation was not proved better, was
worse in the fresh blocks after its proof, or missed the objective. nothing-better: within the objective nothing
promised more than the start. stopped: before its proof."""

TrialReason = Literal["start", "diagnosis", "search", "again"]
"""Why settings are tried: the start; proposed for the cause found; the most promising; the best so far, once more."""


@dataclass(frozen=True, slots=True)
class TuningTrial:
    """changes: against the start. throughput: in 1/s, by level; without levels that the first one made hopeless. ratio:
    against the start, over these levels; None where the target would not work (`failed`). steps: their numbers in its
    run. objective_use: largest share used of what the objective allows (above 1: missed), or None. missed: what it
    clearly missed, in words, or "". host: of a fleet, whose start is the reference, or ""."""

    number: int
    reason: TrialReason
    changes: Mapping[str, SettingValue]
    throughput: Mapping[float, float]
    ratio: float | None
    ended_early: bool = False
    failed: str = ""
    steps: tuple[int, ...] = ()
    objective_use: float | None = None
    missed: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class SettingWorth:
    """One value of a setting: throughput over that with the value before, all other settings at their best, after
    shrinkage; low, high: 95 % interval."""

    value: SettingValue
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """before: at the start; values: all candidates; after: the best one, possibly as before. restart: the running
    target does not take it. gives_up: what may be lost then. worth: of the value after, or of a setting that stays its
    most promising other value; None in a stopped run."""

    name: str
    before: SettingValue
    values: tuple[SettingValue, ...]
    after: SettingValue
    restart: bool
    gives_up: str | None = None
    worth: SettingWorth | None = None


@dataclass(frozen=True, slots=True)
class ObjectiveSide:
    """latency_p95_ms: median of blocks, 0 if unknown. lost_share: 0..1."""

    latency_p95_ms: float
    lost_share: float
    met: bool


@dataclass(frozen=True, slots=True)
class ObjectiveLevel:
    load: float
    before: ObjectiveSide
    after: ObjectiveSide | None


@dataclass(frozen=True, slots=True)
class TuningObjective:
    asked: CapacityObjective
    levels: tuple[ObjectiveLevel, ...]

    @property
    def met(self) -> bool:
        return all(level.after is not None and level.after.met for level in self.levels)


@dataclass(frozen=True, slots=True)
class TuningProof(Compared):
    """Settings proved against the start in blocks of their own. changes: against the start. expected: the ratio
    promised before, after shrinkage. objective: of the fresh blocks if there are any; None if none is set."""

    changes: Mapping[str, SettingValue]
    expected: float
    objective: TuningObjective | None = None

    @property
    def held(self) -> bool:
        """Whether a gain is proved, within the objective, and not worse in the fresh blocks."""
        met = self.objective is None or self.objective.met
        return self.verdict.decision == "better" and self.reported.decision != "worse" and met


@dataclass(frozen=True, slots=True)
class Tuning:
    """expected: the ratio to the start that its trials promise, after shrinkage. proof: of the best settings, or the
    first after them that held, or None. failed_proofs: in order. left_out: settings that were not varied, and why.
    hosts: of a fleet, how equal they are, or None. file_name, file_text: the settings in the target's own format; ""
    where nothing is proved. findings: the cause found at the start. objective: besides throughput, or None. study,
    host, quality: None until the run is written down."""

    end: TuningEnd
    axis: str
    axis_unit: str
    target_kind: str
    settings: tuple[TunedSetting, ...]
    trials: tuple[TuningTrial, ...]
    expected: float
    left_out: Mapping[str, str]
    file_name: str
    file_text: str
    findings: tuple[str, ...] = ()
    objective: TuningObjective | None = None
    proof: TuningProof | None = None
    run: str = ""
    resumed_from: str = ""
    warnings: tuple[str, ...] = ()
    report: str = ""
    failed_proofs: tuple[TuningProof, ...] = ()
    study: StudySummary | None = None
    host: Host | None = None
    quality: RunQuality | None = field(default=None, metadata={"alias": "conduct"})
    seconds: float = 0.0
    hosts: FleetHosts | None = None

    @property
    def reported(self) -> Verdict | None:
        return None if self.proof is None else self.proof.reported
