"""Make a remedy large enough before it is judged: else the raised limit is full again at the highest load, and the
trial would judge the size, not the cause."""

from dataclasses import dataclass

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.diagnosis.findings import is_overrun
from loadframe.diagnosis.remedies import resized, state_after
from loadframe.errors import CageError, StudyError, TargetError, WorkloadError
from loadframe.experiments.examination import Examined
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import rules_for
from loadframe.model import Limit, Remedy, StepRequest, TargetState

FURTHER = 4.0
"""A limit that is full again is raised to four times its ceiling."""
MOST_SIZES = 4
"""After 4^3 times the first estimate, size is not the cause."""
UNFIT = (TargetError, CageError, StudyError, WorkloadError)
"""Errors that show that the target cannot work in a state."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A remedy as applied. full: the limit that it raises and the load still overruns."""

    remedy: Remedy
    treatment: str
    state: TargetState
    full: Limit | None


def apply(book: Bookkeeping, examined: Examined, remedy: Remedy, level: float) -> Applied:
    """Bring the target to the state after the remedy. A raised silent limit is tested by a step at `level`, and raised
    further while it is full again and requests pay for it. Raises one of UNFIT, leaving the state unknown."""
    round_ = examined.round
    silent = {limit.id for limit in round_.limits if limit.thrash_metric and not limit.loud}
    applied: Applied | None = None
    for _ in range(MOST_SIZES):
        state = state_after(round_.state, remedy)
        name = book.next_treatment(remedy.title, state, remedy=remedy)
        try:
            book.bench.use(name)
            raises_a_cache = bool(silent.intersection(remedy.addresses))
            full = _full_again(book, round_.number, remedy, name, state, level) if raises_a_cache else None
        except UNFIT:
            if applied is None:
                raise
            book.bench.recover(applied.treatment)
            break
        applied = Applied(remedy, name, state, full)
        larger = resized(remedy, examined.situation, full.id, FURTHER * full.ceiling) if full is not None else None
        if larger is None or larger.changes == remedy.changes:
            break
        remedy = larger
    assert applied is not None, "the first size is applied, or raises"
    return applied


def _full_again(
    book: Bookkeeping, round_number: int, remedy: Remedy, name: str, state: TargetState, level: float
) -> Limit | None:
    """None where the raised limit is large enough."""
    step = book.take(StepRequest(name, level, round_number, purpose="sizing"))
    rules = rules_for(book.bench.study.target.limit, [step])
    limits = [series.limit for series in read_limits([step], state, book.bench.use(name), rules)]
    return next((limit for limit in limits if limit.id in remedy.addresses and is_overrun(limit, step)), None)
