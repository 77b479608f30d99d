"""What a run folder says, also of an unfinished run. `conclude` is the only way from a run folder to an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.analysis.selection import counting, deciding, select
from loadframe.bench import declared
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.windows import explained
from loadframe.errors import RunError, StudyError, UserError
from loadframe.experiments import answer_kinds
from loadframe.experiments.sweep import check_enough, curve_of
from loadframe.experiments.writing import concluded, ended, examined, partial, quality_of, renewed, write_down
from loadframe.model import (
    NOT_RECOVERED,
    CaseStudy,
    Curve,
    Investigation,
    NextLimit,
    Round,
    RunAnswer,
    State,
    Steps,
    of_treatment,
)
from loadframe.reporting.reports import render_page
from loadframe.runs.folder import REPORT, RunFolder
from loadframe.runs.record import describe_study
from loadframe.study import Study, validate


def open_run(path: str | Path) -> RunFolder:
    return RunFolder.open(Path(path))


def absent(run: RunFolder) -> tuple[str, ...]:
    """In words: what a run needs and is not available here."""
    try:
        metrics = {name for step in run.steps() for name in step.metrics}
        return declared.absent(run.declared(), run.bench().distributions, metrics)
    except UserError:  # reported by whatever needs the study or the bench
        return ()


def conclude(run: RunFolder, *, within_latency_p95_ms: float | None = None) -> CaseStudy:
    """All that a run folder says; nothing is written. within_latency_p95_ms: replaces the study's objective. RunError
    without a finished step, and where the target fell in each that might have counted; TooFewRequests where no window
    is enough."""
    steps = run.steps()
    if all(step.purpose == "warming" for step in steps):
        raise RunError(
            f"{run.path} has no finished step", remedy="It was stopped before its first step ended; run it again."
        )
    about, rounds, answer = run.document("run.json", "run"), tuple(run.rounds()), _answer(run, steps)
    if answer is None and not any(step.counts for step in steps):
        if fallen := sorted({step.level for step in steps if NOT_RECOVERED in step.flags}):
            loads = ", ".join(f"{level:g}" for level in fallen)
            raise RunError(
                f"{run.path} has no step that counts: at {loads} the target did not serve again after the load",
                remedy="See the target's log at that time, and measure lower loads.",
            )
        check_enough(steps, steps[-1].treatment)
    if isinstance(answer, Investigation):
        rounds = answer.rounds
    elif not rounds:
        rounds = tuple(partial(run))
    study: Study | None = None
    try:
        study = run.declared()
        summary = describe_study(study, run.bench())
    except StudyError:
        if not isinstance(answer, Investigation):
            raise
        summary = answer.study
    if study is not None and within_latency_p95_ms is not None:
        table = run.study()
        table["objective"] = {**table.get("objective", {}), "within": {"latency_p95_ms": within_latency_p95_ms}}
        study = validate(table, name=str(run.place("study.json")))
    known = {} if within_latency_p95_ms is not None else {round_.treatment: round_.curve for round_ in rounds}
    return CaseStudy(
        name=run.path.resolve().name,
        study=summary,
        started_at=str(about.get("started_at", "")),
        ended=run.closed(),
        steps=tuple(step for step in steps if step.counts),
        states=_states(run, study, steps, known, rounds, answer),
        rounds=rounds,
        quality=quality_of(run, steps),
        answer=answer,
    )


def answer_of(run: RunFolder) -> RunAnswer | None:
    """The answer of `conclude` alone; None where the finished steps show nothing yet."""
    return _answer(run, run.steps())


def _answer(run: RunFolder, steps: Steps) -> RunAnswer | None:
    if (investigation := run.investigation()) is not None:
        return replace(renewed(run, investigation, steps), run=str(run.path), report=str(run.place(REPORT)))
    if (kind := answer_kinds.of_run(run)) is not None and (stored := kind.stored(run)) is not None:
        answer: RunAnswer = kind.completed(run, stored, ended(run, steps)) if steps else stored
        return answer
    rounds = partial(run)
    return concluded(run, rounds, steps, interrupted=not run.closed()) if rounds else None


def write_answer(run: RunFolder, study: CaseStudy) -> RunAnswer:
    """Write the report again, and the tables where the run has no conclusion. RunError."""
    if isinstance(study.answer, Investigation) and run.investigation() is not None:
        run.write_report(render_page(study.answer))
        return study.answer
    if (kind := answer_kinds.of_run(run)) is not None:
        answer: RunAnswer = kind.write(run)
        return answer
    return write_down(run, partial(run), interrupted=not run.closed())


def _states(
    run: RunFolder,
    study: Study | None,
    steps: Steps,
    known: Mapping[str, Curve],
    rounds: Sequence[Round],
    answer: RunAnswer | None,
) -> dict[str, State]:
    decided = deciding(rounds)
    alternatives = answer.alternatives if isinstance(answer, Investigation) else ()
    examinations = {
        round_.treatment: round_ for round_ in (*rounds, *(alternative.round for alternative in alternatives))
    }
    states = {}
    for name in sorted({step.treatment for step in steps if step.counts}, key=lambda name: (len(name), name)):
        mine = of_treatment(steps, name)
        selection = select(mine, decided=decided)
        curve = known.get(name)
        if curve is None and study is not None:
            curve = curve_of(mine, study, name, decided=decided)
        if curve is None or not selection.steps:
            continue
        examination = examinations.get(name)
        if examination is None and study is not None:
            examination = examined(run, study, counting(mine, decided), curve, steps)
        states[name] = State(name, run.treatment(name).title, curve, tuple(selection.steps), selection.left_out)
        if examination is not None:
            first = _first(examination)
            if isinstance(answer, Investigation) and rounds and name == rounds[-1].treatment:
                first = answer.next_limit
            states[name] = _judged(states[name], examination, first)
    return states


def _first(round_: Round) -> NextLimit | None:
    return conclusion.next_limit([replace(round_, tried=())])


def _judged(state: State, round_: Round, first: NextLimit | None) -> State:
    at = None if first is None else round_.interval_of(first)
    return replace(state, curve=explained(round_), limits=round_.limits, first=first, first_from=at)


def state_up_to(run: RunFolder, case: CaseStudy, treatment: str, up_to: float) -> State:
    """The state as if the run had ended at this load."""
    state = case.state(treatment)
    steps = [step for step in state.steps if step.level <= up_to]
    if not steps:
        return replace(state, steps=(), limits=(), first=None, first_from=None)
    study = run.declared()
    examination = examined(run, study, steps, curve_of(steps, study, treatment), case.steps, up_to)
    return _judged(replace(state, steps=tuple(steps)), examination, _first(examination))
