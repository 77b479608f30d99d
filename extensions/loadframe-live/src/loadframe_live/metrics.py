"""/metrics: the newest runs and the watches as OpenMetrics text; a run is evaluated again once it has changed."""

from collections.abc import Callable

from loadframe.errors import UserError
from loadframe.model import CaseStudy
from loadframe.reporting.openmetrics import text
from loadframe.runs.folder import RunFolder
from loadframe_live import openmetrics
from loadframe_live.places import Places
from loadframe_live.watches import WatchMetrics, watches

MOST_RUNS, MOST_WATCHES = 10, 50
"""The newest; a curve's interval takes a moment to compute."""
Export = Callable[[RunFolder], CaseStudy]
State = tuple[tuple[int, int], ...]


class Metrics:
    """Not thread-safe. export: concludes a run; RunError for one without a finished step."""

    def __init__(self, places: Places, export: Export) -> None:
        self._places = places
        self._export = export
        self._known: dict[str, tuple[State, CaseStudy | None]] = {}
        self._watches: dict[str, WatchMetrics] = {}

    def text(self) -> str:
        """The exposition, without runs that have no result yet or cannot be read."""
        ids = sorted(self._places.ids(), key=lambda run_id: run_id.partition("/")[2], reverse=True)
        self._watches = {run_id: watch for run_id in ids if (watch := self._watch(run_id)) is not None}
        runs = [run_id for run_id in ids if run_id not in self._watches][:MOST_RUNS]
        self._known = {run_id: known for run_id in runs if (known := self._of(run_id)) is not None}
        of_runs = (
            sample for _, case in self._known.values() if case is not None for sample in openmetrics.samples_of(case)
        )
        of_watches = (sample for watch in list(self._watches.values())[:MOST_WATCHES] for sample in watch.samples())
        pages = watches()
        families = {**openmetrics.FAMILIES, **({} if pages is None else pages.families)}
        return text([*of_runs, *of_watches], families)

    def _watch(self, run_id: str) -> WatchMetrics | None:
        known, pages = self._watches.get(run_id), watches()
        if known is not None or pages is None:
            return known
        try:
            folder = self._places.folder(run_id)
            return pages.metrics(folder, run_id) if pages.is_watch(folder) else None
        except (UserError, OSError):  # it is being created, or removed
            return None

    def _of(self, run_id: str) -> tuple[State, CaseStudy | None] | None:
        try:
            run = self._places.find(run_id)
            state = tuple(run.state_of(name) for name in ("run.json", "steps.jsonl", "rounds.json", "conduct.json"))
        except UserError:
            return None
        known = self._known.get(run_id)
        if known is not None and known[0] == state:
            return known
        try:
            return state, self._export(run)
        except UserError:
            return state, None
