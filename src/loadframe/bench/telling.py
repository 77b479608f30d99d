"""What a run tells of itself while it is measured, for whoever watches it (runs/progress_log.py)."""

from loadframe.bench.budget import Budget
from loadframe.progress import FollowsRun, Progress
from loadframe.recording.control import Recorder
from loadframe.runs.folder import RunFolder
from loadframe.runs.progress_log import Told


class TellsRun:
    """Progress that is also told by the run, each phase with what is left of the budget. Of steps the bookkeeping tells
    it."""

    def __init__(self, run: RunFolder, to: Progress, budget: Budget) -> None:
        self._run = run
        self._to = to
        self._budget = budget
        if isinstance(to, FollowsRun):
            to.follow(run.path)

    def phase(self, words: str, steps: int) -> None:
        words = "; ".join(part for part in (words, self._budget.left_words(steps)) if part)
        self._run.tell(Told("phase", words, steps))
        self._to.phase(words, steps)

    def step(self, words: str) -> None:
        self._to.step(words)

    def say(self, words: str) -> None:
        self._run.tell(Told("say", words))
        self._to.say(words)


def tell_cost(run: RunFolder, recorder: Recorder) -> None:
    """What recording has cost until its last flush; nothing before that."""
    if (cost := recorder.cost_so_far) is not None:
        share = cost.cpu_s / max(cost.elapsed_s, 1e-9)
        run.tell(Told("recorder", cpu_share=share, rss_bytes=cost.rss_bytes, late_ticks=cost.late_ticks))
