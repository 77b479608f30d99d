"""What is said of a run above its numbers: the question, the target, what was found so far, how it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from loadframe.errors import UserError
from loadframe.model import (
    Capacity,
    CaseStudy,
    Curve,
    Finding,
    Investigation,
    Ladder,
    RunAnswer,
    RunQuality,
    Trial,
    Tuning,
)
from loadframe.reporting import answers, capacity_report, ladder_report, quality_words, tuning_report, words
from loadframe.runs.folder import REPORT, BenchFacts, RunFolder
from loadframe.runs.record import describe_study
from loadframe.study.exposed_tables import LimitTable

Read = TypeVar("Read")
LISTED = ("name", "study", "question", "target", "started_at", "ended_at", "answer", "has_report", "version")
"""What the list of runs has of it."""


@dataclass(frozen=True, slots=True)
class Reads:
    """How a run is concluded (experiments/reading.py): all that it says, or the answer alone. UserError where that is
    nothing."""

    case: Callable[[RunFolder], CaseStudy]
    answer: Callable[[RunFolder], RunAnswer | None]


class Heading:
    """Of one run. reads: how one that is not in progress is concluded; one that is has what its loop has noted so
    far."""

    def __init__(self, run: RunFolder, reads: Reads | None = None) -> None:
        self._run = run
        self._reads = reads
        self._study: dict[str, Any] | None = None
        self.declared_limits: Sequence[LimitTable] = ()

    def row(self, running: bool) -> dict[str, Any]:
        """What LISTED names. RunError as `read`."""
        answer = None if running or self._reads is None else _unless_refused(self._reads.answer, self._run)
        return self._listed(answer)

    def read(self, running: bool) -> dict[str, Any]:
        """All of it, as plain values. RunError where a file of the run cannot be read."""
        run = self._run
        case = None if running or self._reads is None else _unless_refused(self._reads.case, run)
        rounds = run.rounds() if case is None else case.rounds
        quality = run.quality() if case is None else case.quality
        curves = {one.treatment: one.curve for one in rounds}
        curves |= {} if case is None else {name: state.curve for name, state in case.states.items()}
        return {
            **self._listed(None if case is None else case.answer),
            "treatments": {one.name: one.title for one in run.treatments().values()},
            "curves": {} if case is None else {name: _points(curve) for name, curve in curves.items()},
            "knees": {
                name: [curve.knee.load, curve.knee.low, curve.knee.high]
                for name, curve in curves.items()
                if curve.knee is not None
            },
            "findings": [_finding(one, of.number) for of in rounds for one in of.findings],
            "trials": [_trial(one, of.number) for of in rounds for one in of.tried],
            "quality": [] if quality is None else [words.sentence(each) for each in quality_words.sentences(quality)],
            "recorder": None if quality is None else _recorder(quality),
            "seconds": None if quality is None else quality.seconds,
        }

    def _listed(self, answer: RunAnswer | None) -> dict[str, Any]:
        about = self._run.document("run.json", "run")
        return {
            **self._of_study(self._run.bench()),
            "started_at": str(about.get("started_at", "")),
            "ended_at": str(about.get("ended_at", "")),
            "answer": _words(answer),
            "has_report": self._run.has(REPORT),
        }

    def _of_study(self, bench: BenchFacts) -> dict[str, Any]:
        if self._study is None:
            self._study = self._described()
        return {**self._study, "version": bench.version, "unit": bench.axis_unit, "work": bench.work_unit}

    def _described(self) -> dict[str, Any]:
        """Of a study that this version cannot carry out, as much as any study says."""
        raw = self._run.study()
        found: dict[str, Any] = {
            "name": self._run.path.name,
            "study": _text(raw, "study", "name"),
            "question": _text(raw, "study", "question"),
            "target": _text(raw, "target", "kind"),
            "workload": _text(raw, "workload", "kind"),
            "axis": _text(raw, "load", "axis"),
            "levels": [],
            "objective": "",
            "budget_s": None,
        }
        try:
            study = self._run.declared()
        except UserError:
            return found
        self.declared_limits = study.target.limit
        summary = describe_study(study, version="", axis_unit="", work_unit="")
        return {
            **found,
            "levels": list(summary.levels),
            "objective": summary.objective,
            "budget_s": study.measure.budget,
        }


def _unless_refused(read: Callable[[RunFolder], Read], run: RunFolder) -> Read | None:
    """None for a run of which nothing can be said: what is wrong with it stands in its own lines."""
    try:
        return read(run)
    except UserError:
        return None


def _words(answer: RunAnswer | None) -> str:
    """The outcome in a sentence."""
    match answer:
        case Investigation():
            return answers.answer(answer)
        case Ladder():
            return ladder_report.answer(answer)
        case Tuning():
            return tuning_report.answer(answer)
        case Capacity():
            return capacity_report.answer(answer)
        case None:
            return ""


def _points(curve: Curve) -> list[list[float | None]]:
    return [[point.load, point.throughput, point.latency_p95_ms] for point in curve.points]


def _text(study: dict[str, Any], table: str, key: str) -> str:
    found = study.get(table)
    return str(found.get(key, "")) if isinstance(found, dict) else ""


def _finding(finding: Finding, number: int) -> dict[str, Any]:
    reached = finding.reached_at
    return {
        "round": number,
        "id": finding.id,
        "title": finding.title,
        "status": finding.status,
        "reached_at": None if reached is None else reached.load,
    }


def _trial(trial: Trial, number: int) -> dict[str, Any]:
    verdict = trial.told
    return {
        "round": number,
        "title": trial.remedy.title,
        "decision": verdict.decision,
        "ratio": verdict.ratio,
        "low": verdict.low,
        "high": verdict.high,
        "kept": trial.kept,
    }


def _recorder(quality: RunQuality) -> dict[str, Any]:
    return {
        "cpu_share": quality.recorder_cpu_share,
        "rss_bytes": quality.recorder_rss_bytes,
        "late_ticks": quality.late_ticks,
    }
