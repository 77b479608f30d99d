"""What is said of a run above its numbers: the question, the target, what was found so far, how it went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadframe.errors import UserError
from loadframe.model import Finding, Round, RunQuality, Trial
from loadframe.reporting import answers, capacity_report, ladder_report, quality_words, tuning_report, words
from loadframe.runs.folder import REPORT, BenchFacts, RunFolder
from loadframe.runs.record import describe_study
from loadframe.study.exposed_tables import LimitTable

LISTED = ("name", "study", "question", "target", "started_at", "ended_at", "answer", "has_report", "version")
"""What the list of runs has of it."""


class Heading:
    """Of one run; the study and its limits are read once."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._study: dict[str, Any] | None = None
        self.declared_limits: Sequence[LimitTable] = ()

    def read(self, running: bool) -> dict[str, Any]:
        """All of it, as plain values. RunError where a file of the run cannot be read."""
        run = self._run
        about = run.document("run.json", "run")
        bench, quality = run.bench(), run.quality()
        rounds: Sequence[Round] = run.rounds()
        if not rounds and not running and (concluded := run.investigation()) is not None:
            rounds = concluded.rounds  # of a version that kept them there alone
        return {
            **self._of_study(bench),
            "started_at": str(about.get("started_at", "")),
            "ended_at": str(about.get("ended_at", "")),
            "treatments": {one.name: one.title for one in run.treatments().values()},
            "knees": {one.treatment: _knee(one) for one in rounds if one.curve.knee is not None},
            "findings": [_finding(one, of.number) for of in rounds for one in of.findings],
            "trials": [_trial(one, of.number) for of in rounds for one in of.tried],
            "answer": "" if running else self._answer(),
            "quality": [] if quality is None else [words.sentence(each) for each in quality_words.sentences(quality)],
            "recorder": None if quality is None else _recorder(quality),
            "seconds": None if quality is None else quality.seconds,
            "has_report": run.has(REPORT),
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

    def _answer(self) -> str:
        """The outcome in a sentence; "" for a run that has none."""
        run = self._run
        if (found := run.investigation()) is not None:
            return answers.answer(found)
        if (ladder := run.ladder()) is not None:
            return ladder_report.answer(ladder)
        if (tuning := run.tuning()) is not None:
            return tuning_report.answer(tuning)
        capacity = run.capacity()
        return "" if capacity is None else capacity_report.answer(capacity)


def _text(study: dict[str, Any], table: str, key: str) -> str:
    found = study.get(table)
    return str(found.get(key, "")) if isinstance(found, dict) else ""


def _knee(one: Round) -> list[float]:
    assert one.curve.knee is not None, "asked before"
    return [one.curve.knee.load, one.curve.knee.low, one.curve.knee.high]


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
