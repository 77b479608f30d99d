"""Of several settings that only may be for a cause, the one that shows a gain at a look is proved first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.sweep import sweep
from loadframe.experiments.trials import promising_first
from loadframe.model import Change, Price, Remedy, TargetState

Simulated = Callable[..., Bookkeeping]


def pool(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    """Four at a time, or as many as the setting says, of 10 ms each."""
    return 100.0 * min(level, float(state.settings.get("senders", 4))), {}


def remedy(name: str, value: int, *, guessed: bool = True) -> Remedy:
    change = Change("server", name, 4, value)
    return Remedy(name, f"{name} = {value}", ("service.parallelism",), (change,), Price(), guessed=guessed)


DECOY, TRUE, OTHER = remedy("digits", 16), remedy("senders", 16), remedy("history", 400)


def examined(book: Bookkeeping) -> Examined:
    curve = sweep(book, "A", round_number=1)
    return examine(
        book.of("A"), number=1, treatment="A", state=book.bench.start_state, effective=book.bench.use("A"),
        curve=curve, target_kind="mariadb", highest_level=32.0,
    )  # fmt: skip


def looked(book: Bookkeeping, remedies: Sequence[Remedy], why_not: str | None = None) -> tuple[list[str], int]:
    """The order, and how many looks it took."""
    found, before = examined(book), len(book.steps)
    order = promising_first(book, found, remedies, lambda one: why_not)
    assert book.bench.use("A") is not None
    taken = [step for step in book.steps[before:] if step.purpose != "warming"]
    assert all(step.purpose == "sizing" and step.level == 32 for step in taken), "no step of a proof"
    return [one.id for one in order], len(taken)


def test_the_first_that_shows_a_gain_comes_first_and_the_looks_end_there(simulated: Simulated) -> None:
    assert looked(simulated(pool), (DECOY, TRUE, OTHER)) == (["senders", "digits", "history"], 2)
    assert looked(simulated(pool), (TRUE, DECOY)) == (["senders", "digits"], 1)


def test_without_a_gain_the_order_is_as_it_was(simulated: Simulated) -> None:
    assert looked(simulated(pool), (OTHER, DECOY)) == (["history", "digits"], 2)


def test_what_is_known_to_be_for_the_cause_needs_no_look(simulated: Simulated) -> None:
    known = remedy("senders", 16, guessed=False)
    assert looked(simulated(pool), (known, DECOY)) == (["senders", "digits"], 0)
    assert looked(simulated(pool), (known, DECOY, OTHER)) == (["senders", "digits", "history"], 0)


def test_no_look_is_taken_without_time_for_a_proof_or_a_choice(simulated: Simulated) -> None:
    assert looked(simulated(pool), (DECOY, TRUE), why_not="not allowed") == (["digits", "senders"], 0)
    poor = simulated(pool, "measure.budget=10s")
    assert looked(poor, (DECOY, TRUE)) == (["digits", "senders"], 0)


def test_what_the_target_does_not_start_with_is_passed(simulated: Simulated) -> None:
    book = simulated(pool, refuses=lambda state: "digits" in state.settings)
    order, _ = looked(book, (DECOY, TRUE))
    assert order == ["senders", "digits"]
