"""From rounds to a conclusion on disk: investigation.json, the derived tables, the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadframe import reporting
from loadframe.bench.examination import examine
from loadframe.bench.profiling import profiles_of
from loadframe.bench.sweep import curve_of
from loadframe.diagnosis import conclusion
from loadframe.errors import RunError
from loadframe.model import Conduct, Investigation, Round, Step, Verdict
from loadframe.runs.folder import RunFolder
from loadframe.runs.record import describe_study, footprint
from loadframe.study import Study, validate


def write_down(
    run: RunFolder, rounds: Sequence[Round], *, total: Verdict | None = None, interrupted: bool = False
) -> Investigation:
    """Conclude from the rounds and leave report.html and the JSON files in the run folder. total: the last state proved
    against the first one."""
    if not rounds:
        raise RunError(f"{run.path} has no finished round", remedy="It was stopped too early; run it again.")
    steps = run.steps()
    study = validate(run.study(), name=str(run.path / "study.json"))
    rounds = _from_all_steps(rounds, steps, study)
    run.write_tables(steps, [(one.number, limit) for one in rounds for limit in one.limits])
    bench = run.document("bench.json", "bench")
    conduct = run.conduct() or Conduct(len(steps), 0, {}, 0.0, 0.0, 0, 0)
    last = rounds[-1]
    profiles, profile_missing = profiles_of(run)
    investigation = Investigation(
        run=str(run.path),
        report=str(run.path / "report.html"),
        started_at=str(run.document("run.json", "run").get("started_at", "")),
        seconds=conduct.seconds,
        study=describe_study(study, version=str(bench.get("version", "")), axis_unit=str(bench.get("axis_unit", ""))),
        host=run.host(),
        rounds=tuple(rounds),
        before=conclusion.summary(rounds[0]),
        after=conclusion.summary(last) if len(rounds) > 1 else None,
        gain=conclusion.gain(rounds, total),
        gain_durability_kept=conclusion.gain_durability_kept(rounds),
        ladder=conclusion.ladder(rounds),
        next_limit=conclusion.next_limit(last),
        outcome=conclusion.outcome(rounds, interrupted=interrupted),
        conduct=conduct,
        warnings=tuple(dict.fromkeys(warning for one in rounds for warning in one.curve.warnings)),
        profiles=profiles,
        profile_missing=profile_missing,
    )
    run.write_record("investigation.json", "investigation-record", investigation)
    shapes = reporting.investigation_json(investigation)
    run.write_document("findings.json", "findings", {"rounds": [one["findings"] for one in shapes["rounds"]]})
    run.write_document("verdicts.json", "verdicts", {"rounds": [one["tried"] for one in shapes["rounds"]]})
    reporting.write_page(investigation, run.path / "report.html")
    return investigation


def _from_all_steps(rounds: Sequence[Round], steps: Sequence[Step], study: Study) -> list[Round]:
    """Every round with its curve from all steps of its treatment, those of the proofs and of the blocks beside another
    treatment included, and with a row for each of them. The rows hold the metrics of all rounds' evidence: what was a
    cause in one round can be seen gone in the next."""
    shown = {item.metric for one in rounds for finding in one.findings for item in finding.evidence}
    shown |= {limit.use_metric for one in rounds for limit in one.limits}
    whole = []
    for one in rounds:
        mine = [step for step in steps if step.treatment == one.treatment]
        curve = curve_of(mine, study, one.treatment)
        whole.append(replace(one, curve=curve, footprint=footprint(mine, sorted(shown))))
    return whole


def partial(run: RunFolder) -> list[Round]:
    """Rounds from the finished steps alone: the first treatment, and every one measured at more than one level."""
    steps = run.steps()
    study = validate(run.study(), name=str(run.path / "study.json"))
    rounds: list[Round] = []
    for name, treatment in run.treatments().items():
        mine = [step for step in steps if step.treatment == name]
        if not mine or (rounds and len({step.level for step in mine}) < 2):
            continue
        curve = curve_of(mine, study, name)
        examined = examine(
            mine,
            number=len(rounds) + 1,
            treatment=name,
            state=treatment.state,
            effective={},
            curve=curve,
            target_kind=study.target.kind,
            highest_level=study.levels[-1],
        )
        rounds.append(replace(examined.round, silent_cuts=()))
    return rounds
