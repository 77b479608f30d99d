"""Of several remedies of which nothing is known but that they may be for a cause, the one to prove first: a look at
each, until one shows a gain. A proof of one that does nothing costs the time of ten looks.

A look decides nothing but the order: what is kept is proved in blocks of its own, of which these steps are none.
"""

from collections.abc import Callable, Sequence

from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis.remedies import state_after
from loadframe.experiments.examination import Examined
from loadframe.experiments.sizing import UNFIT
from loadframe.model import Remedy, StepRequest

SHOWS = 1.2
"""Times the throughput, in one step: more than single steps of one state differ by on a machine that is quiet."""


def promising_first(
    book: Bookkeeping,
    examined: Examined,
    remedies: Sequence[Remedy],
    levels: Sequence[float],
    why_not: Callable[[Remedy], str | None],
) -> tuple[Remedy, ...]:
    """The same remedies; of the guessed ones for the first cause that one comes first that is the first to show a gain,
    at the highest of these levels. As they are where one that is known to be for the cause is the first, where fewer
    than two may be tried, or the budget has no room for a look and a proof. why_not: why one may not be tried, else
    None. The target is in the round's state again."""
    guessed = [one for one in remedies if one.guessed and one.addresses == remedies[0].addresses]
    may = [one for one in guessed if why_not(one) is None]
    before = next((point.throughput for point in examined.round.curve.points if point.load == levels[-1]), 0.0)
    if not remedies or not remedies[0].guessed or len(may) < 2 or before <= 0:
        return tuple(remedies)
    found: Remedy | None = None
    proof_s = book.budget.cost_s(2 * FEWEST_BLOCKS * list(levels))
    book.progress.phase(f"a look at up to {len(may)} remedies", len(may))
    for one in may:
        if not book.budget.affords([levels[-1]], proof_s):
            break
        if _shows(book, examined, one, levels[-1], before):
            found = one
            break
    book.bench.use(examined.round.treatment)
    if found is None:
        return tuple(remedies)
    return (found, *(one for one in remedies if one is not found))


def _shows(book: Bookkeeping, examined: Examined, remedy: Remedy, level: float, before: float) -> bool:
    one = examined.round
    state = state_after(one.state, remedy)
    name = book.next_treatment(remedy.title, state, remedy=remedy)
    try:
        book.bench.use(name)
        step = book.take(StepRequest(name, level, one.number, purpose="sizing"))
    except UNFIT:
        book.bench.recover(one.treatment)
        return False
    return step.throughput >= SHOWS * before
