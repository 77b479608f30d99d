"""loadframe compare: the verdict on two runs, two CSV samples, or a study's alternatives."""

import re
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, is_folder, opened
from loadframe.cli.terminal import emit
from loadframe.errors import UsageError

FAILED, CANNOT_TELL = 3, 4


def compare(
    first: Annotated[str, typer.Argument(metavar="A|STUDY", help="A run folder, a CSV file, or a study; - is stdin.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="What is compared with A; omit it for a study.")
    ] = None,
    fail_if_worse: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Exit 3 where B is proven to be worse than A by more than this, 4 where the data cannot tell.",
        ),
    ] = None,
    lower_is_better: Annotated[
        bool,
        typer.Option(
            "--lower-is-better/--higher-is-better", help="For CSV files: whether lower or higher values are better."
        ),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="QUANTITY",
            help="For CSV files: the statistic that decides: mean, p50, p90, p95, p99, p99.9, max or typical. The mean "
            "where the lower are better, else typical, which single outliers hardly move.",
        ),
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="In GitHub Actions: also write a job summary and an annotation.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the verdicts as JUnit XML.")] = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Say better, worse, no proven difference or cannot tell, of B against A or of a study's alternatives."""
    with command(as_json, measures=second is None):
        from loadframe.cli import comparing

        allowed = None
        if fail_if_worse is not None:
            match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", fail_if_worse)
            allowed = float(match[1]) / 100 if match else 1.0
            if allowed >= 1:
                fact = f"--fail-if-worse {fail_if_worse!r} is not a percentage"
                raise UsageError(fact, remedy="For example --fail-if-worse 3%.")
        wanted = comparing.asked(github, junit)
        if second is None:
            _refuse_direction(lower_is_better, by)
            comparisons = comparing.of_study(first, overrides or [], allowed, runs, as_json)
        elif overrides:
            raise UsageError("--set changes a study, and no study was given", remedy="Omit it.")
        elif is_folder(first) or is_folder(second):
            _refuse_direction(lower_is_better, by)
            comparisons = [loadframe.compare_runs(opened(Path(first)), opened(Path(second)))]
        else:
            comparisons = [comparing.files(first, second, lower_is_better=lower_is_better, by=by)]
        comparisons = [comparing.with_margin(comparison, allowed) for comparison in comparisons]
        if as_json:
            emit(loadframe.comparison_json(comparisons), run=comparisons[0].run)
        else:
            wanted.tell("\n\n".join(map(loadframe.render_comparison, comparisons)), comparisons[0].run)
        wanted.leave(comparisons)
        answers = {comparison.margin.answer for comparison in comparisons if comparison.margin is not None}
        if "proven-worse" in answers:
            raise typer.Exit(FAILED)
        if "cannot-tell" in answers:
            raise typer.Exit(CANNOT_TELL)


def _refuse_direction(lower_is_better: bool, by: str | None) -> None:
    if lower_is_better or by is not None:
        raise UsageError(
            f"{'--lower-is-better' if lower_is_better else '--by'} is for CSV files",
            remedy="Runs and studies are compared by their throughput.",
        )
