"""The results of `loadframe compare`, and output for continuous integration (--github, --junit)."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import loadframe
from loadframe.analysis import comparison as verdicts
from loadframe.analysis import quantity, samples
from loadframe.analysis.samples import taken_in_turns
from loadframe.cli.common import is_folder, progress_of, writing
from loadframe.cli.terminal import answer, say
from loadframe.errors import OutputError, SampleError, UsageError
from loadframe.formats.csv_tables import STDIN, Sample, read_sample
from loadframe.formats.named_files import append_to, write_whole
from loadframe.model import Comparison, Margin, Quantity, Verdict
from loadframe.progress import counted
from loadframe.reporting import comparison_report

APART = (
    "Without blocks or times, a change of the machine between the two samples counts as a difference where it is "
    "larger than what two sessions differ by."
)
NOT_IN_TURNS = (
    "By their times the two samples were not taken in turns: a change of the machine between them counts as a "
    "difference where it is larger than what two sessions differ by."
)
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Arranged:
    """pairs: the values of each block on either side; None without blocks."""

    before: Sample
    after: Sample
    pairs: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] | None
    notes: tuple[str, ...]

    def judged(self, by: str) -> Verdict:
        """ValueError if the samples cannot be compared, TooFewError."""
        if self.pairs is None:
            sessions = [list(side.by(side.sessions).values()) for side in (self.before, self.after)]
            # What two sessions differ by is estimated from the sample that has more of them.
            between = samples.learnt(max(sessions, key=len), by=by, sides=(len(sessions[0]), len(sessions[1])))
            return samples.unpaired(self.before.values, self.after.values, by=by, between=between)
        reduce = partial(quantity.of, quantity=by)
        sides = [[reduce(pair[side]) for pair in self.pairs] for side in (0, 1)]
        return samples.paired(*sides, by=by)

    def row(self, name: str) -> Quantity:
        try:
            verdict = self.judged(name)
            before, after = (quantity.of(side.values, name) for side in (self.before, self.after))
        except quantity.TooFewError as error:
            return Quantity(name, None, None, None, str(error))
        return Quantity(name, before, after, verdict)


def arrange(before: Sample, after: Sample) -> Arranged:
    """By blocks if both have them; if both have times and were taken in turns, their n-th values are a block; else one
    after the other. ValueError if they have no block in common."""
    if before.blocks is not None and after.blocks is not None:
        first, second = before.by(before.blocks), after.by(after.blocks)
        common: Sequence[str] = [block for block in first if block in second]
        if not common:
            raise ValueError("they have no block in common")
        alone = len({*first, *second}) - len(common)
        left_out = (f"{counted(alone, 'block')} in one sample only, left out.",) if alone else ()
        return Arranged(before, after, tuple((first[block], second[block]) for block in common), left_out)
    notes = []
    if (before.blocks is None) != (after.blocks is None):
        notes.append("Only one sample has blocks, so they were not used.")
    if before.times is None or after.times is None:
        return Arranged(before, after, None, (*notes, APART))
    if not taken_in_turns(before.times, after.times):
        return Arranged(before, after, None, (*notes, NOT_IN_TURNS))
    if left := abs(len(before.values) - len(after.values)):
        notes.append(f"The longer sample has {counted(left, 'value')} more at its end, without a partner; left out.")
    pairs = tuple(((value,), (other,)) for value, other in zip(before.values, after.values, strict=False))
    return Arranged(before, after, pairs, tuple(notes))


@dataclass(frozen=True, slots=True)
class Continuous:
    """summary: the file to which a job summary is appended; junit: that of the XML."""

    summary: Path | None
    junit: Path | None

    def tell(self, text: str, run: str) -> None:
        """GitHub's runner obeys lines of it, but not between these two."""
        if self.summary is None:
            answer(text, run=run)
            return
        token = secrets.token_hex(16)
        answer(f"::stop-commands::{token}\n{text}\n::{token}::", run=run)

    def leave(self, comparisons: Sequence[Comparison]) -> None:
        """OutputError where a file cannot be written."""
        remedy = "The verdict above holds. Free it, or name another file."
        if self.junit is not None:
            with writing(self.junit, OutputError, remedy):
                write_whole(self.junit, comparison_report.junit_xml(comparisons))
        if self.summary is not None:
            for line in comparison_report.github_annotations(comparisons):
                say(line)
            with writing(self.summary, OutputError, remedy):
                append_to(self.summary, comparison_report.github_summary(comparisons).encode())


def asked(github: bool, junit: Path | None) -> Continuous:
    """OutputError where a file is not named or cannot be written."""
    named = os.environ.get(SUMMARY, "")
    if github and not named:
        raise OutputError(
            f"--github writes to the file that {SUMMARY} names, and that is not set",
            remedy=f"GitHub Actions sets it. Elsewhere omit --github, or set {SUMMARY} to a file.",
        )
    if junit is not None and not junit.absolute().parent.is_dir():
        raise OutputError(f"--junit {junit}: there is no folder {junit.parent}", remedy="Make it first.")
    return Continuous(Path(named) if github else None, junit)


def of_study(path: str, overrides: list[str], allowed: float | None, runs: Path, quiet: bool) -> list[Comparison]:
    """UsageError for what is no study."""
    if path == STDIN or is_folder(path) or path.endswith(".csv"):
        raise UsageError(f"{path} alone cannot be compared", remedy="Give a second run or CSV file, or one study.")
    study = loadframe.load_study(Path(path), overrides)
    compare = partial(loadframe.compare, study, runs)
    if allowed is not None:  # a proof may end once it is known whether the loss exceeds that
        compare = partial(compare, enough=lambda verdict: verdicts.margin(verdict, allowed) != "cannot-tell")
    with progress_of(quiet) as progress:
        return list(compare(progress=progress))


def files(first: str, second: str, *, lower_is_better: bool, by: str | None) -> Comparison:
    """SampleError where they cannot be compared, UsageError."""
    if first == second == STDIN:
        raise UsageError("standard input was given twice", remedy="Give one of the two as a file.")
    chosen = by or ("mean" if lower_is_better else quantity.TYPICAL)
    if chosen not in quantity.QUANTITIES:
        raise UsageError(f"--by {chosen!r} is not a statistic", remedy=f"One of {', '.join(quantity.QUANTITIES)}.")
    before, after = read_sample(first), read_sample(second)
    try:
        arranged = arrange(before, after)
        verdict = arranged.judged(chosen)
    except ValueError as error:
        raise SampleError(f"{before.name} and {after.name}: {error}", remedy="Give more values.") from error
    turned = verdicts.turned if lower_is_better else (lambda verdict: verdict)
    rows = [arranged.row(name) for name in quantity.SHOWN if name != chosen]
    return Comparison(
        before=before.name,
        after=after.name,
        verdict=turned(verdict),
        what="value" if chosen == quantity.TYPICAL else f"{chosen} of the values",
        lower_is_better=lower_is_better,
        notes=arranged.notes,
        by=chosen,
        quantities=tuple(replace(row, verdict=row.verdict and turned(row.verdict)) for row in rows),
    )


def with_margin(comparison: Comparison, allowed: float | None) -> Comparison:
    """Where the data cannot decide, also how much more is needed."""
    what = "blocks" if comparison.verdict.block_ratios else "values" if comparison.by else "steps"
    if allowed is None:
        needed = None if comparison.verdict.decided else samples.needed(comparison.verdict, what)
        return replace(comparison, needed=needed)
    answer = verdicts.margin(comparison.verdict, allowed, lower_is_better=comparison.lower_is_better)
    edge = 1 + allowed if comparison.lower_is_better else 1 - allowed
    needed = samples.needed(comparison.verdict, what, edge=edge) if answer == "cannot-tell" else None
    return replace(comparison, margin=Margin(allowed, answer), needed=needed)
