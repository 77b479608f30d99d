"""A search for better settings: its trials, what it recommends, and whether that is proved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.capacity import CapacityObjective
from loadframe.model.fleet import FleetHosts
from loadframe.model.investigation import Host, RunQuality, StudySummary
from loadframe.model.target import SettingValue
from loadframe.model.verdict import Compared, Verdict

TuningEnd = Literal["gained", "no-proven-gain", "nothing-better", "stopped"]
"""gained: proved against the start, within the objective. no-proven-gain: what was recommended was not proved to be
better, was worse in the fresh blocks after its proof, or missed the objective. nothing-better: within the objective
nothing promised more than the start, so there was nothing to prove. stopped: the run was ended before its proof."""

TrialReason = Literal["start", "diagnosis", "search", "again"]
"""Why settings are tried: they are the start; a remedy for the cause found asks for them; they promise most; they are
the best so far, and are made sure of."""


@dataclass(frozen=True, slots=True)
class TuningTrial:
    """One trial. changes: the settings that differ from the start. throughput: in 1/s, by level; levels are left out
    where the first one showed that there is no hope. ratio: against the start, over these levels; None where the target
    would not work, and `failed` says why. steps: their numbers in the run of the trial. objective_use: how much of what
    the objective allows it used, at the level where that is most (above 1: more than allowed); None where nothing is
    asked. missed: what of the objective it clearly missed, in words; "" where it did not. host: of a fleet, on which it
    was measured, and against whose start; "" for this machine."""

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
    """What all trials together say of one value of a setting: throughput with it against that with the value before,
    all other settings as they came out best, after shrinkage; low, high: 95 % interval."""

    value: SettingValue
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """A setting that was varied. before: at the start; values: all that it might have; after: what came out best, the
    same as before where it stays. restart: the running target does not take it. gives_up: what may be lost then. worth:
    of the value after; of a setting that stays, of its most promising other value. None in a run that was stopped."""

    name: str
    before: SettingValue
    values: tuple[SettingValue, ...]
    after: SettingValue
    restart: bool
    gives_up: str | None = None
    worth: SettingWorth | None = None


@dataclass(frozen=True, slots=True)
class ObjectiveSide:
    """What a state used of an objective at a level, the medians of its blocks. latency_p95_ms: of those in which it is
    known; 0 where it is in none. lost_share: of its requests (0..1)."""

    latency_p95_ms: float
    lost_share: float
    met: bool


@dataclass(frozen=True, slots=True)
class ObjectiveLevel:
    """The objective at a judged level: as given, and with the best settings in the proof, None where there was none."""

    load: float
    before: ObjectiveSide
    after: ObjectiveSide | None


@dataclass(frozen=True, slots=True)
class TuningObjective:
    """What the study asks of its settings besides throughput, and what became of it at each judged level."""

    asked: CapacityObjective
    levels: tuple[ObjectiveLevel, ...]

    @property
    def met(self) -> bool:
        """Whether the best settings met it in the proof, at every level."""
        return all(each.after is not None and each.after.met for each in self.levels)


@dataclass(frozen=True, slots=True)
class TuningProof(Compared):
    """Settings that were held against the start in blocks of their own. changes: those that differ from the start.
    expected: the ratio to the start that was promised before, after shrinkage. objective: of the fresh blocks where
    there are any; None where nothing is asked besides throughput."""

    changes: Mapping[str, SettingValue]
    expected: float
    objective: TuningObjective | None = None

    @property
    def held(self) -> bool:
        """Whether a gain is proved, within the objective, and not worse in the fresh blocks."""
        met = self.objective is None or self.objective.met
        return self.verdict.decision == "better" and self.told.decision != "worse" and met


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a search found. expected: the ratio to the start that its trials promise, after shrinkage. proof: of the
    best settings, where those did not hold of the first after them that did; None where nothing was worth one.
    failed_proofs: those that did not hold, in their order. left_out: settings of the target that were not varied, and
    why. hosts: how alike the hosts of a fleet are, on which the trials ran; None for trials on this machine. file_name,
    file_text: the settings as the target's own file has them; empty where nothing is proved. findings: the cause found
    at the start, in words. objective: what the study asks besides throughput; None where it asks for nothing. study,
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
    def told(self) -> Verdict | None:
        """What is reported of the best settings."""
        return None if self.proof is None else self.proof.told
