"""What a run folder says, also one that was stopped or killed: everything is computed again from its finished steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadframe.bench import registered
from loadframe.errors import RunError, UserError
from loadframe.experiments import capacity_writing, ladder_writing, tuning_writing
from loadframe.experiments.latencies import with_latencies
from loadframe.experiments.sweep import check_enough, curve_of
from loadframe.experiments.writing import partial, quality_of, renewed, write_down
from loadframe.model import Capacity, Curve, Investigation, Ladder, RunQuality, Step, Tuning
from loadframe.runs.folder import RunFolder
from loadframe.study import validate


def open_run(path: Path) -> RunFolder:
    """An existing run folder. RunError where it is none."""
    return RunFolder.open(path)


def absent(run: RunFolder) -> tuple[str, ...]:
    """What a run needs and what is not available here, in words: kinds that other distributions register."""
    try:
        return registered.absent(run.declared(), run.bench().distributions)
    except UserError:  # whoever needs the study, or what the bench found, says what is wrong with it
        return ()


def conclude(run: RunFolder) -> Investigation:
    """What a run folder says; for a run without a conclusion, what its finished steps say. RunError where there is
    not a single finished step."""
    _check_steps(run, run.steps())
    if (found := run.investigation()) is not None:
        return with_latencies(run, found if found.variants else renewed(run, found))
    return write_down(run, partial(run), interrupted=not run.closed())


def measured_ladder(run: RunFolder) -> Ladder | None:
    """The ladder of a run folder, as far as it went, with its report written again; None for other runs. RunError where
    there is not a single finished step."""
    _check_steps(run, run.steps())
    return ladder_writing.write_down(run) if run.ladder() is not None else None


def measured_tuning(run: RunFolder) -> Tuning | None:
    """What a run's search for settings found, as far as it went, with its report written again; None for other runs.
    RunError where there is not a single finished step."""
    _check_steps(run, run.steps())
    return tuning_writing.write_down(run) if run.tuning() is not None else None


def measured_capacity(run: RunFolder) -> Capacity | None:
    """What a run's search for the capacity found, with its report written again; None for other runs and for one that
    was ended before its search. RunError where there is not a single finished step."""
    _check_steps(run, run.steps())
    found = run.capacity()
    return capacity_writing.write_page(run, found) if found is not None else None


def curves(run: RunFolder, *, within_latency_p95_ms: float | None = None) -> dict[str, Curve]:
    """The curve of every treatment of a run, computed again from its steps; under another objective than its study's
    where one is given. RunError where there are no steps."""
    steps = [step for step in run.steps() if step.purpose != "warming"]
    _check_steps(run, steps)
    if not steps:
        raise RunError(
            f"{run.path} has no finished step", remedy="It was stopped before its first step ended; run it again."
        )
    declared = run.study()
    if within_latency_p95_ms is not None:
        declared["objective"] = {**declared.get("objective", {}), "within": {"latency_p95_ms": within_latency_p95_ms}}
    study = validate(declared, name=str(run.place("study.json")))
    for treatment in (states := {step.treatment for step in steps}):
        check_enough(steps, treatment)
    treatments = sorted(states, key=lambda name: (len(name), name))
    return {name: curve_of(steps, study, name) for name in treatments}


def quality(run: RunFolder) -> RunQuality:
    """How a run went: its steps and their flags, and what recording it cost. RunError where there is no step."""
    steps = run.steps()
    if not steps and run.quality() is None:
        raise RunError(
            f"{run.path} has no finished step", remedy="It was stopped before its first step ended; run it again."
        )
    return quality_of(run, steps)


def _check_steps(run: RunFolder, steps: Sequence[Step]) -> None:
    for step in steps:
        if not (step.level > 0 and 0 <= step.throughput < float("inf")):
            raise RunError(
                f"{run.path}: step {step.number} has level {step.level:g} and throughput {step.throughput:g}",
                remedy="steps.jsonl was damaged or edited.",
            )
