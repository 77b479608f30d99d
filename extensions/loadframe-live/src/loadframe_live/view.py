"""What the page shows of one run, in progress or finished, read incrementally."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from loadframe.errors import RunError, UserError
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import rules_for
from loadframe.model import FLAGS, REACHED, CaseStudy, Finding, Limit, RunAnswer, Step, TargetState
from loadframe.reporting import quality_words, verdict_words, words
from loadframe.reporting.reports import form_of
from loadframe.runs.folder import REPORT, RunFolder
from loadframe.runs.formats import decode
from loadframe.runs.lines import PROGRESS, BenchFacts, Told
from loadframe.runs.record import describe_study
from loadframe.study.exposed_tables import LimitTable
from loadframe.units import show

RUN = "loadframe.live-run/1"
Read = TypeVar("Read")
Status = Literal["running", "finished", "stopped"]
Change = dict[str, Any]
TEXTS = (
    ("study", "study", "name"), ("question", "study", "question"), ("target", "target", "kind"),
    ("workload", "workload", "kind"), ("axis", "load", "axis"),
)  # fmt: skip
"""Texts of the heading, by table and key of the study."""
LISTED = ("name", "study", "question", "target", "started_at", "ended_at", "answer", "has_report", "version")


@dataclass(frozen=True, slots=True)
class Reads:
    """How a run is concluded (experiments/reading.py): completely, or only its answer. UserError without a result."""

    case: Callable[[RunFolder], CaseStudy]
    answer: Callable[[RunFolder], RunAnswer | None]


def _unless_refused(read: Callable[[RunFolder], Read], run: RunFolder) -> Read | None:
    """The run's own lines report what is wrong with it."""
    try:
        return read(run)
    except UserError:
        return None


def _cost(cpu_share: float | None, rss_bytes: float | None, late_ticks: int | None) -> Change:
    return {"cpu_share": cpu_share, "rss_bytes": rss_bytes, "late_ticks": late_ticks}


def _findings(findings: Iterable[Finding], unit: str) -> list[Change]:
    """Each cause once per status that it had: a confirmed one may be suspected again in the last state."""
    return [
        {
            "title": finding.title,
            "status": finding.status,
            "from": "" if finding.reached_at is None else f"from {words.about_load(finding.reached_at, unit)} on",
        }
        for finding in {(finding.id, finding.status): finding for finding in findings}.values()
    ]


STEPS = "steps.jsonl"
DOCUMENTS = ("run.json", "bench.json", "treatments.jsonl", "rounds.json", "conduct.json", "report.html")
"""Sources of the heading, besides study.json: an answer is written with its report."""
PIECE_BYTES = 1 << 20
MOST_STEPS, MOST_LINES = 5000, 1000
OF_A_STEP = "at", "treatment", "level", "seconds", "purpose"
OF_THE_PAGE = "id", "heading", "limits", "steps", "lines", "now", "recorder", "error"
OF_A_LINE = "at", "event", "words", "steps"
SMALLEST_SHARE = 0.005
"""A limit with less use has no bar."""


class RunView:
    """reads: concludes a run that is not in progress; a run in progress has its loop's notes so far."""

    def __init__(self, run: RunFolder, run_id: str, reads: Reads | None = None) -> None:
        self.id = run_id
        self.run = run
        self._reads = reads
        self._study: Change | None = None
        self._declared_limits: Sequence[LimitTable] = ()
        self.heading: Change = {}
        self.steps: list[Change] = []
        self.lines: list[Change] = []
        self.lines_read = 0
        self.now: Change | None = None
        self.recorder: Change | None = None
        self.limits: dict[str, Change] = {}
        self._read = {STEPS: 0, PROGRESS: 0}
        self._states: dict[str, tuple[int, int]] = {}
        self.status: Status = "running"
        self.error = ""

    def over(self) -> bool:
        return self.status != "running" and not self.run.in_progress()

    def row(self) -> Change:
        return self._row(self.status, self.heading)

    def unopened(self) -> Change:
        """Read for the list alone. For an unreadable run the reason is in `error`."""
        try:
            status = self._status()
            answer = _unless_refused(self._reads.answer, self.run) if self._reads and status != "running" else None
            return self._row(status, self._listed(answer))
        except UserError as error:
            return {**self._row("unreadable", {}), "error": str(error)}

    def _row(self, status: Status | Literal["unreadable"], heading: Change) -> Change:
        listed = {name: value for name, value in heading.items() if name in LISTED}
        return {"id": self.id, "name": self.run.path.name, "status": status, **listed}

    def refresh(self) -> Change:
        """The changes of the page, {} for none. An unreadable file is reported in `error`."""
        change: Change = {}
        for part in (self._new_heading, self._new_steps, self._new_lines):
            try:
                change |= part()
            except UserError as error:
                change |= self._failed(error)
        return {"id": self.id, **change} if change else {}

    def _failed(self, error: UserError) -> Change:
        """Only the first error is reported; later ones often follow from it."""
        if self.error:
            return {}
        self.error = str(error)
        return {"error": self.error}

    def whole(self) -> Change:
        return {"schema": RUN, **{name: getattr(self, name) for name in OF_THE_PAGE}}

    # --- documents ---

    def _new_heading(self) -> Change:
        states = {name: self.run.state_of(name) for name in DOCUMENTS}
        status = self._status()
        if states == self._states and status == self.status and self.heading:
            return {}
        self._states, self.status = states, status
        self.heading = {"status": status, **self._read_heading()}
        if status != "running":
            self.now = None
        return {"heading": self.heading, "now": self.now}

    def _status(self) -> Status:
        if self.run.closed():
            return "finished"
        return "running" if self.run.in_progress() else "stopped"

    def _read_heading(self) -> Change:
        run = self.run
        case = None if self.status == "running" or self._reads is None else _unless_refused(self._reads.case, run)
        rounds = run.rounds() if case is None else case.rounds
        quality = run.quality() if case is None else case.quality
        curves = {round_.treatment: round_.curve for round_ in rounds}
        concluded = {} if case is None else curves | {name: state.curve for name, state in case.states.items()}
        listed = self._listed(None if case is None else case.answer)
        unit = listed["unit"] or listed["axis"].replace("_", " ")
        return {
            **listed,
            "treatments": {treatment.name: treatment.title for treatment in run.treatments().values()},
            "curves": {
                name: [[point.load, point.throughput, point.latency_p95_ms] for point in curve.points]
                for name, curve in concluded.items()
            },
            "knees": {
                name: [curve.knee.load, curve.knee.low, curve.knee.high]
                for name, curve in (concluded or curves).items()
                if curve.knee is not None
            },
            "findings": _findings((finding for of in rounds for finding in of.findings), unit),
            "trials": [
                {"title": trial.remedy.title, "told": verdict_words.ratio_words(trial.reported), "kept": trial.kept}
                for of in rounds
                for trial in of.tried
            ],
            "quality": [] if quality is None else list(map(words.sentence, quality_words.sentences(quality))),
            "recorder": quality and _cost(quality.recorder_cpu_share, quality.recorder_rss_bytes, quality.late_ticks),
            "seconds": quality and quality.seconds,
        }

    def _listed(self, answer: RunAnswer | None) -> Change:
        about, bench = self.run.document("run.json", "run"), self.run.bench()
        if self._study is None:
            self._study = self._described()
        return {
            **self._study,
            "version": bench.version,
            "unit": bench.axis_unit,
            "work": bench.work_unit,
            "started_at": str(about.get("started_at", "")),
            "ended_at": str(about.get("ended_at", "")),
            "answer": "" if answer is None else form_of(answer).line(answer),
            "has_report": self.run.has(REPORT),
        }

    def _described(self) -> Change:
        """For a study that this version cannot carry out, only what any study has."""
        raw = self.run.study()
        described: Change = {"name": self.run.path.name}
        for name, table, key in TEXTS:
            section = raw.get(table)
            described[name] = str(section.get(key, "")) if isinstance(section, dict) else ""
        try:
            study = self.run.declared()
        except UserError:
            return {**described, "levels": [], "objective": "", "budget_s": None}
        self._declared_limits = study.target.limit
        summary = describe_study(study, BenchFacts(work_unit=""))
        levels, budget_s = list(summary.levels), study.measure.budget
        return {**described, "levels": levels, "objective": summary.objective, "budget_s": budget_s}

    # --- lines ---

    def _new_steps(self) -> Change:
        known, shapes = set(self.limits), []
        change: Change = {}
        try:
            for line in self._new(STEPS):
                shapes.append(self._step(decode("step", line, Step, where=str(self.run.place(STEPS)))))  # noqa: PERF401
        except UserError as error:
            change |= self._failed(error)
        if shapes:
            change["steps"] = shapes
            self.steps = [*self.steps, *shapes][-MOST_STEPS:]
        if added := {name: limit for name, limit in self.limits.items() if name not in known}:
            change["limits"] = added
        return change

    def _step(self, step: Step) -> Change:
        rules = rules_for(self._declared_limits, [step])
        limits = [series.limit for series in read_limits([step], TargetState(), {}, rules)]
        return {
            "number": step.number,
            "treatment": step.treatment,
            "level": step.level,
            "block": step.block,
            "purpose": step.purpose,
            "counts": step.counts,
            "throughput": step.throughput,
            "p95_ms": step.latency.p95_ms if step.latency_known else None,
            "errors": step.errors,
            "flags": [FLAGS.get(flag, flag) for flag in step.flags],
            "uses": {limit.id: use for limit in limits if (use := self._use(limit)) is not None},
        }

    def _use(self, limit: Limit) -> list[Any] | None:
        """The share in use, use and ceiling in words, and if reached; None for too small a share."""
        share = limit.use / limit.ceiling
        if not math.isfinite(share) or share < SMALLEST_SHARE:
            return None
        title = limit.title or limit.id
        self.limits.setdefault(limit.id, {"title": title, "layer": limit.layer, "loud": limit.loud})
        return [round(share, 4), _words(limit), share >= REACHED]

    def _new_lines(self) -> Change:
        lines = [decode("progress", line, Told, where=f"{self.run.place(PROGRESS)}") for line in self._new(PROGRESS)]
        change: Change = {}
        for line in lines:
            if line.event == "step":
                self.now = change["now"] = {name: getattr(line, name) for name in OF_A_STEP}
            elif line.event == "recorder":
                self.recorder = change["recorder"] = _cost(line.cpu_share, line.rss_bytes, line.late_ticks)
            else:
                change.setdefault("lines", []).append({name: getattr(line, name) for name in OF_A_LINE})
        new = change.get("lines", ())
        self.lines = [*self.lines, *new][-MOST_LINES:]
        self.lines_read += len(new)
        if self.status != "running":
            self.now = None
            change.pop("now", None)
        return change

    def _new(self, name: str) -> Iterator[bytes]:
        """The complete lines after those read before. RunError, after them, for one that is too long."""
        while piece := self.run.lines_from(name, self._read[name], PIECE_BYTES):
            self._read[name] += sum(len(line) + 1 for line in piece)
            yield from piece
        if self.run.state_of(name)[0] - self._read[name] > PIECE_BYTES:
            raise RunError(
                f"{self.run.place(name)} has a line of more than {PIECE_BYTES >> 20} MiB",
                remedy="No line of a run is that long: the file was damaged or edited.",
            )


def _words(limit: Limit) -> str:
    """ "61 of 64", "0.93 of 1 cores", "97 %" for a share."""
    use, ceiling = show(limit.use, limit.unit), show(limit.ceiling, limit.unit)
    if limit.unit == "share" and limit.ceiling == 1.0:
        return use
    unit = f" {limit.unit}"
    both = f"{use.removesuffix(unit) if ceiling.endswith(unit) else use} of {ceiling}"
    return both.removesuffix("s") if limit.ceiling == 1 and ceiling.endswith(unit) else both
