"""A target that goes on to refuse after a step: the step is flagged, what was seen is kept as evidence, and an
investigation concludes on what it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import NotRecovered, TooFewRequests
from loadframe.model import NOT_RECOVERED, Stop
from loadframe.runs.folder import RunFolder


@contextmanager
def kept_of_a_stop(book: Bookkeeping, run: RunFolder) -> Iterator[None]:
    """Where the target does not recover within, that is kept in the run, and raised on."""
    try:
        yield
    except NotRecovered as error:
        note(book, run, error)
        raise


@contextmanager
def concluding(book: Bookkeeping, run: RunFolder) -> Iterator[None]:
    """Where the target does not recover within, or a state is so slow that no window of it decides anything, what is
    within ends there, and what was measured is concluded from. NotRecovered and TooFewRequests where no step of the
    state that the study declares counts."""
    try:
        yield
    except NotRecovered as error:
        if not book.of("A"):
            raise
        note(book, run, error)
        book.progress.say(f"{error.fact}. Nothing more is measured; this is concluded from the steps before.")
    except TooFewRequests as error:
        if not book.of("A"):
            raise
        book.progress.say(f"{error.fact}. {error.remedy} This is concluded from the steps before.")


def note(book: Bookkeeping, run: RunFolder, error: NotRecovered) -> None:
    """Keep after which step it was, and flag that step; nothing where none was taken, or it is kept already."""
    if not book.steps or run.stop() is not None:
        return
    last = book.steps[-1]
    first = next(iter(states := run.treatments()), last.treatment)
    state = "" if last.treatment == first else states[last.treatment].title
    stop = Stop(last.number, last.level, last.treatment, error.path, error.status, error.waited_s, state, error.why)
    run.write_record("stop.json", "stop", stop)
    book.steps[-1] = replace(last, flags=tuple(dict.fromkeys((*last.flags, NOT_RECOVERED))))
