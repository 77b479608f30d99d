"""What a search leaves in its run folder, how that is read again, and its JSON."""

from dataclasses import replace
from typing import Any

from loadframe.errors import RunError, StudyError
from loadframe.experiments.answer_kinds import KindOfAnswer
from loadframe.experiments.writing import Ended
from loadframe.kinds import registry
from loadframe.reporting.json_shapes import Json, fields_of, json_object, quality_of_run
from loadframe.reporting.reports import Form
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import DAMAGED, Schema, cannot_tell, with_ends
from loadframe_tune import chart, report
from loadframe_tune.model import Tuning, TuningObjective, TuningTrial
from loadframe_tune.proof import with_file
from loadframe_tune.trials import trials_in


def tuning_json(tuning: Tuning) -> Json:
    """loadframe.tuning/1. expected and the trials' ratios: throughput against the start. verdict: loadframe.verdict/1,
    null where nothing was worth a proof. fresh: the same from the fresh blocks after it, null without them."""
    proof = tuning.proof
    return json_object(
        {
            "schema": "loadframe.tuning/1",
            **fields_of(tuning, "study", "host", "quality", "proof"),
            **{name: getattr(proof, name, None) for name in ("verdict", "fresh")},
            "levels": () if proof is None else proof.levels,
            "best": {setting.name: setting.after for setting in report.changed(tuning)},
            "trials": [{**fields_of(trial), "throughput": _throughput(trial)} for trial in tuning.trials],
            "failed_proofs": [
                {**fields_of(failed), "objective": _objective(failed.objective)} for failed in tuning.failed_proofs
            ],
            "objective": _objective(tuning.objective, proved=proof is not None),
            **quality_of_run(tuning.quality),
        }
    )


def _throughput(trial: TuningTrial) -> list[Json]:
    return [{"load": level, "throughput": value} for level, value in trial.throughput.items()]


def _objective(kept: TuningObjective | None, *, proved: bool = True) -> Json | None:
    """latency_p95_ms, loss_ratio: as requested. met: in the proof, at all levels. met, after: null without a proof."""
    if kept is None:
        return None
    return {**fields_of(kept.asked), "met": kept.met if proved else None, "levels": kept.levels}


def _with_one_proof(body: dict[str, Any]) -> dict[str, Any]:
    proof = {name: body.pop(name, None) for name in ("verdict", "fresh", "levels")}
    if isinstance(proof["verdict"], dict):
        overstates = body.get("end") == "gained" and proof["fresh"] is None
        proof["verdict"] = {**proof["verdict"], "may_overstate": overstates}
    shared = {name: body.get(name) for name in ("expected", "objective")}
    return {**body, "proof": proof["verdict"] and {**shared, **proof, "changes": {}}}


def _whole(run: RunFolder, tuning: Tuning, end: Ended) -> Tuning:
    """With run quality, trials and file. RunError for settings that the target cannot have."""
    try:
        study = run.declared()
        tuning = with_file(tuning, registry.of_study(study) if study.target.kind in registry.KINDS else None)
    except StudyError as error:
        raise RunError(f"{run.place(TUNING.file)}: {error.fact}", remedy=DAMAGED) from error
    return replace(
        tuning,
        run=end.run,
        report=end.report,
        study=end.study,
        host=end.host,
        quality=end.quality,
        seconds=end.quality.seconds,
        hosts=run.hosts_alike(),
        warnings=end.after(tuning.warnings),
        trials=tuple(trials_in(run)),
    )


TUNING = KindOfAnswer(
    "tuning",
    Tuning,
    Schema("tuning-record", (_with_one_proof, cannot_tell, with_ends)),
    Form(lambda tuning, *_: report.of(tuning), chart.charts, tuning_json, report.answer),
    _whole,
    files=lambda tuning: {tuning.file_name: tuning.file_text} if tuning.file_name else {},
)


def save(run: RunFolder, tuning: Tuning) -> None:
    """Its trials have a file of their own."""
    TUNING.save(run, replace(tuning, trials=()))
