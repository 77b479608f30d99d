"""A comparison of two CSV samples: how they were taken, and the verdict on each of their quantities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from loadframe.analysis import quantity, samples
from loadframe.analysis.samples import taken_in_turns
from loadframe.formats.csv_tables import Sample
from loadframe.model import Quantity, Verdict
from loadframe.progress import counted

APART = (
    "Without blocks or times, a change of the machine between the two samples counts as a difference where it is "
    "larger than what two sessions differ by."
)
NOT_IN_TURNS = (
    "By their times the two samples were not taken in turns: a change of the machine between them counts as a "
    "difference where it is larger than what two sessions differ by."
)


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

    def table(self, but: str) -> tuple[Quantity, ...]:
        """Those shown next to the one that decides."""
        return tuple(self._row(name) for name in quantity.SHOWN if name != but)

    def _row(self, name: str) -> Quantity:
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
    pairs = tuple(((one,), (other,)) for one, other in zip(before.values, after.values, strict=False))
    return Arranged(before, after, pairs, tuple(notes))
