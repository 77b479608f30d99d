"""A target that dies or hangs under a load. A private one is measured further below that load; the run of an attached
one is concluded from the steps before."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import CageError, NotRecovered, StudyError, TargetError, TooFewRequests, WorkloadError
from loadframe.model import NOT_RECOVERED, Stop

LOG_LINES = 6
UNFIT = (TargetError, CageError, StudyError, WorkloadError)


@contextmanager
def concluding(book: Bookkeeping) -> Iterator[None]:
    """Leave the block where the target does not recover, or no window of a state decides anything; raised on only where
    no step of the first state counts."""
    try:
        yield
    except NotRecovered as error:
        note_fall(book, error)
        if not book.of("A"):
            raise
        book.progress.say(f"{error.fact}. Nothing more is measured; this is concluded from the steps before.")
    except TooFewRequests as error:
        if not book.of("A"):
            raise
        book.progress.say(f"{error.fact}. {error.remedy} This is concluded from the steps before.")


def go_on_below(book: Bookkeeping, error: NotRecovered) -> None:
    """Start the target again. NotRecovered where it is not private, does not start, or failed at the lowest load."""
    treatment, level = fell_in(book, error)
    if book.bench.endpoint.attached or level >= book.fell_at(treatment):
        raise error
    book.fallen[treatment] = level
    if not book.levels(treatment):
        raise error
    try:
        book.bench.recover(treatment)
    except TargetError:
        raise error from None
    note_fall(book, error, went_on=True)
    book.progress.say(f"{error.fact}, at load {level:g}. It is started again, and lower loads are measured.")


def fell_in(book: Bookkeeping, error: NotRecovered) -> tuple[str, float]:
    if error.treatment is not None and error.level is not None:
        return error.treatment, error.level
    if not book.steps:
        raise error
    return book.steps[-1].treatment, book.steps[-1].level


def note_fall(book: Bookkeeping, error: NotRecovered, *, went_on: bool = False) -> None:
    """Record the fall once, with a flag for the step after which it was seen; nothing where it had no load."""
    if error.noted or (error.level is None and not book.steps):
        return
    error.noted = True
    run = book.bench.run
    treatment, level = fell_in(book, error)
    states = run.treatments()
    first = next(iter(states), treatment)
    number = 0
    if error.level is None:
        last = book.steps[-1]
        book.steps[-1] = replace(last, flags=tuple(dict.fromkeys((*last.flags, NOT_RECOVERED))))
        number = last.number
    stop = Stop(
        number,
        level,
        treatment,
        error.path,
        error.status,
        error.waited_s,
        "" if treatment == first else states[treatment].title,
        error.why,
        error.died,
        error.full,
        tuple(error.details.splitlines()[-LOG_LINES:]),
        went_on,
    )
    run.append_line("stops.jsonl", "stop", stop)
