"""What a run says, as the formats of other tools need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadframe.model.curve import Curve
from loadframe.model.investigation import Round, RunQuality, StudySummary
from loadframe.model.step import Step
from loadframe.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """One run. name: of its folder. started_at: ISO 8601, "" where unknown. ended: whether it ended as it should; False
    for one that was stopped, killed, or still runs. treatments: the title of each. steps: those that are measurements.
    curves: by treatment. gain: of the last state against the first; None where none was measured."""

    name: str
    study: StudySummary
    started_at: str
    ended: bool
    treatments: Mapping[str, str]
    steps: tuple[Step, ...]
    curves: Mapping[str, Curve]
    rounds: tuple[Round, ...]
    gain: Verdict | None
    quality: RunQuality
