"""loadframe compare: the verdict on two runs, two CSV samples, or a study's alternatives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.analysis import comparison as verdicts
from loadframe.analysis import samples
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, is_folder
from loadframe.cli.progress import shown
from loadframe.cli.terminal import answer, emit
from loadframe.csv_text import STDIN
from loadframe.errors import SampleError, StudyError
from loadframe.model import Comparison, Margin, Verdict
from loadframe.samples import Sample, read_sample

FAILED = 3
"""Exit code of a verdict that the user asked to fail on."""


def compare(
    first: Annotated[str, typer.Argument(metavar="A|STUDY", help="A run folder, a CSV file, or a study; - is stdin.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="What is held against A; none with a study.")
    ] = None,
    fail_if_worse: Annotated[
        str | None,
        typer.Option(metavar="PERCENT", help="Exit 3 where B is proven to be worse than A by more than this."),
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better/--higher-is-better", help="What better is for the values of CSV files.")
    ] = False,
    overrides: Sets = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Better, worse, or no proven difference: B against A, or a study's alternatives against its target."""
    with command(as_json, measures=second is None):
        allowed = _share(fail_if_worse) if fail_if_worse is not None else None
        if second is None:
            _refuse_direction(lower_is_better)
            found = _alternatives(first, overrides or [], allowed, runs, as_json)
        elif overrides:
            raise StudyError("--set changes a study, and none was given", remedy="Leave it out.")
        elif is_folder(first) or is_folder(second):
            _refuse_direction(lower_is_better)
            found = [loadframe.compare_runs(loadframe.open_run(Path(first)), loadframe.open_run(Path(second)))]
        else:
            found = [_csv(first, second, lower_is_better=lower_is_better)]
        found = [_with_margin(each, allowed) for each in found]
        if as_json:
            emit(loadframe.comparison_json(found), run=found[0].run)
        else:
            answer("\n\n".join(loadframe.render_comparison(each) for each in found), run=found[0].run)
        if any(each.margin is not None and each.margin.answer == "proven-worse" for each in found):
            raise typer.Exit(FAILED)


def _alternatives(path: str, overrides: list[str], allowed: float | None, runs: Path, quiet: bool) -> list[Comparison]:
    if path == STDIN or is_folder(path) or path.endswith(".csv"):
        raise StudyError(f"{path} alone cannot be compared", remedy="Give a second run or CSV file, or one study.")
    study = loadframe.load_study(Path(path), overrides)
    with shown(quiet=quiet) as progress:
        if allowed is None:
            return list(loadframe.compare(study, runs, progress=progress))
        return list(loadframe.compare(study, runs, enough=_answers(allowed), progress=progress))


def _answers(allowed: float) -> Callable[[Verdict], bool]:
    """A proof may end once it is known whether more than the allowed share is lost."""
    return lambda verdict: verdicts.margin(verdict, allowed) != "cannot-tell"


def _csv(first: str, second: str, *, lower_is_better: bool) -> Comparison:
    if first == second == STDIN:
        raise SampleError("standard input was given twice", remedy="Give one of the two as a file.")
    before, after = read_sample(first), read_sample(second)
    notes: list[str] = []
    try:
        verdict = _verdict(before, after, notes)
    except ValueError as error:
        raise SampleError(f"{before.name} and {after.name}: {error}", remedy="Measure more, or differently.") from error
    return Comparison(
        before=before.name,
        after=after.name,
        verdict=verdicts.turned(verdict) if lower_is_better else verdict,
        what="value",
        lower_is_better=lower_is_better,
        notes=tuple(notes),
    )


def _verdict(before: Sample, after: Sample, notes: list[str]) -> Verdict:
    """By blocks where both samples have them, else as two samples; adds to the notes what a reader must know."""
    if before.blocks is None or after.blocks is None:
        if (before.blocks is None) != (after.blocks is None):
            notes.append("Only one sample has blocks, so they were not used.")
        notes.append("Without blocks, a change of the machine between the two samples counts as a difference.")
        return samples.unpaired(before.values, after.values)
    one, two = before.by_block(), after.by_block()
    common = [block for block in one if block in two]
    if not common:
        raise ValueError("they have no block in common")
    if left := len({*one, *two}) - len(common):
        notes.append(f"{left} blocks are in one sample only and were left out.")
    return samples.paired([one[block] for block in common], [two[block] for block in common])


def _with_margin(found: Comparison, allowed: float | None) -> Comparison:
    if allowed is None:
        return found
    answer = verdicts.margin(found.verdict, allowed, lower_is_better=found.lower_is_better)
    return replace(found, margin=Margin(allowed, answer))


def _refuse_direction(lower_is_better: bool) -> None:
    if lower_is_better:
        raise SampleError(
            "--lower-is-better is for CSV files", remedy="Runs and studies are compared by their throughput."
        )


def _share(text: str) -> float:
    """0.03 from "3%"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not match or not 0 <= float(match[1]) < 100:
        raise SampleError(f"--fail-if-worse {text!r} is no percentage", remedy="For instance --fail-if-worse 3%.")
    return float(match[1]) / 100
