"""Where the work of an experiment is done: on this machine. fleet/ has the executors that send it to hosts."""

from collections.abc import Callable

from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.checking import check_study
from loadframe.experiments.climbing import LadderStates
from loadframe.experiments.tuning_proof import kept_s
from loadframe.experiments.tuning_trials import Trials
from loadframe.model import Capacity
from loadframe.runs.folder import RunFolder
from loadframe.study import Study


class Executor:
    """This machine, one step after the other; the executors of fleets override its methods."""

    def check_study(self, study: Study) -> None:
        """UserError where the study cannot be carried out."""
        check_study(study)

    def bench(self, study: Study, run: RunFolder, say: Callable[[str], None]) -> RealBench:
        """What takes the steps of a run. say: called with what the user should read at once."""
        return RealBench(study, run, say)

    def trials(self, tuned: Trials, most: int) -> None:
        """Take trials up to that number as far as the budget goes; each is reported to the search and kept."""
        book = tuned.book
        left = max(0, most - len(tuned.done))
        book.progress.phase(f"up to {left} trials of {len(tuned.space.dimensions)} settings", left * len(tuned.levels))
        while len(tuned.done) < most and book.budget.affords(tuned.levels, kept_s(book, tuned.levels)):
            tuned.take(tuned.search.propose(), kept_s=kept_s(book, tuned.levels))

    def begin_blocks(self, book: Bookkeeping, run: RunFolder, states: LadderStates, notes: list[str]) -> None:
        """Before any change of a ladder is tried: set what takes the book's blocks. notes: appended for the reader."""

    def capacities(self, book: Bookkeeping, run: RunFolder, study: Study, here: Capacity) -> Capacity:
        """The capacity found here, completed with those of other settings."""
        return here


HERE = Executor()
