"""Short records that only a run folder has: the states of the target, and what the bench found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loadframe.model import NOT_RECOVERED, WORK, AnswersCompared, Round, SettingValue, Step, Stop, TargetState


@dataclass(frozen=True, slots=True)
class Treatment:
    """A state of the target under a short name ("A", "B", ...). kind: of the target, "" in runs of one target. cold_of:
    the treatment of which this is the cold one, "" for none."""

    name: str
    title: str
    state: TargetState
    kind: str = ""
    cold_of: str = ""


@dataclass(frozen=True, slots=True)
class Effective:
    """What the target really used in a state, as it was read back."""

    treatment: str
    values: Mapping[str, SettingValue]


@dataclass(frozen=True, slots=True)
class BenchFacts:
    """version: of the target. axis_unit, work_unit: what the load axis and throughput count, in words. seed: of the
    random order. distributions: the others that registered the study's kinds of target, or its workload. notes: what
    its targets have found out, and what of a recorded load is sent, in sentences; of a run that was killed only the
    latter. answers: of the target beside programs that tell the same; none of a run that was killed. versions: of all
    kinds of target, where the study names several."""

    version: str = ""
    axis_unit: str = ""
    seed: int = 0
    distributions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    work_unit: str = WORK
    answers: tuple[AnswersCompared, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of an investigation as far as they went."""

    rounds: tuple[Round, ...]


def flagged(steps: Sequence[Step], stops: Sequence[Stop]) -> list[Step]:
    """The steps, with those flagged after which the target had fallen: when their lines were written, that was not
    known."""
    after = {stop.step for stop in stops}
    return [
        replace(step, flags=tuple(dict.fromkeys((*step.flags, NOT_RECOVERED)))) if step.number in after else step
        for step in steps
    ]
