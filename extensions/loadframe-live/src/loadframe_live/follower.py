"""The only reader of the runs: changes are read once and sent to all viewers; without viewers nothing is read."""

import asyncio
import time
from collections.abc import Callable
from itertools import chain
from typing import Any

from loadframe.errors import UserError
from loadframe.model import CaseStudy
from loadframe.reporting.openmetrics import text
from loadframe.runs.folder import RunFolder
from loadframe_live.hub import Hub
from loadframe_live.openmetrics import FAMILIES, samples_of
from loadframe_live.shown import Places, WatchMetrics, WatchView, watches
from loadframe_live.view import Reads, RunView

View = RunView | WatchView
YOUNG_NS = 10_000_000_000
"""So long after its last change an unreadable folder is read again: a run is being created."""


def opened(places: Places, run_id: str, reads: Reads | None) -> View:
    """Nothing of it is read yet. RunError for anything else than a run or a watch."""
    folder, pages = places.folder(run_id), watches()
    if pages is not None and pages.is_watch(folder):
        return pages.view(folder, run_id)
    return RunView(places.find(run_id), run_id, reads)


class Listing:
    def __init__(self, places: Places, reads: Reads | None = None) -> None:
        self._places = places
        self._reads = reads
        self._changed: tuple[int, ...] = ()
        self._young = False
        self.rows: dict[str, dict[str, Any]] = {}

    def look(self) -> list[View]:
        """New runs and watches to follow since the last look; the follower makes their rows."""
        changed = self._places.changed_ns()
        if changed == self._changed and not self._young:
            return []
        self._changed, self._young = changed, False
        known, self.rows = self.rows, {}
        begun = []
        for run_id in self._places.ids():
            if run_id in known:
                self.rows[run_id] = known[run_id]
            elif (view := self._new(run_id)) is not None:
                begun.append(view)
        return begun

    def _new(self, run_id: str) -> View | None:
        young = False
        try:
            young = time.time_ns() - self._places.folder(run_id).changed_ns() < YOUNG_NS
            view = opened(self._places, run_id, self._reads)
            entry = view.unopened() if isinstance(view, RunView) else view.row()
        except (UserError, OSError):  # a folder of something else, or a run that is being created
            self._young |= young
            return None
        if entry["status"] == "unreadable" and young:
            self._young = True
            return None
        self.rows[run_id] = entry
        return view if entry["status"] in ("running", "watching") else None


POLL_S = 0.25
"""A finished step is on the page within this time plus the time to read it."""
MOST_FOLLOWED = 16
"""Runs in progress and watches. Further ones are listed, and shown as of the opening of their page."""
MOST_KEPT = 4
"""Runs not in progress whose page is kept in memory."""


class Follower:
    """Belongs to one event loop; files are read in a thread, so that a slow disk does not keep others waiting."""

    def __init__(self, places: Places, hub: Hub, reads: Reads | None = None) -> None:
        self._places = places
        self._reads = reads
        self._hub = hub
        self._listing = Listing(places, reads)
        self._followed: dict[str, View] = {}
        self._kept: dict[str, View] = {}
        self._reading = asyncio.Lock()

    async def follow(self) -> None:
        while True:
            if self._hub.subscribers:
                await self.look()
            await asyncio.sleep(POLL_S)

    async def look(self) -> None:
        async with self._reading:
            await self._look()

    async def _look(self) -> None:
        for kind, data in await asyncio.to_thread(self._changes):
            self._hub.publish(kind, data)

    async def rows(self) -> dict[str, Any]:
        """With the id of the last event included."""
        async with self._reading:
            await self._look()
            return {"schema": "loadframe.live-runs/1", "after": self._hub.last_id, "runs": [*self._rows().values()]}

    async def whole(self, run_id: str) -> dict[str, Any]:
        """As `rows`, of one run. RunError where there is no such run."""
        async with self._reading:
            await self._look()
            view = self._followed.get(run_id)
            if view is None:
                view = await asyncio.to_thread(self._opened, run_id)
            return {"after": self._hub.last_id, **view.whole()}

    # --- in a thread, one at a time ---

    def _changes(self) -> list[tuple[str, dict[str, Any]]]:
        changes: list[tuple[str, dict[str, Any]]] = []
        before = self._rows()
        for view in self._listing.look():
            if len(self._followed) < MOST_FOLLOWED:
                self._followed[view.id] = view
            elif not isinstance(view, RunView):  # its row shows its current state
                view.refresh()
                self._listing.rows[view.id] = view.row()
        for view in tuple(self._followed.values()):
            if change := view.refresh():
                changes.append(("change", change))
            if view.over():
                self._listing.rows[view.id] = view.row()
                self._kept[view.id] = self._followed.pop(view.id)
        rows = self._rows()
        if new := [entry for run_id, entry in rows.items() if before.get(run_id) != entry]:
            changes.append(("runs", {"runs": new}))
        return changes

    def _rows(self) -> dict[str, dict[str, Any]]:
        own = {run_id: view.row() for run_id, view in self._followed.items() if view.heading}
        return {run_id: own.get(run_id, entry) for run_id, entry in self._listing.rows.items()}

    def _opened(self, run_id: str) -> View:
        view = self._kept.pop(run_id, None) or opened(self._places, run_id, self._reads)
        view.refresh()
        self._kept[run_id] = view
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return view


MOST_MEASURED, MOST_WATCHES = 10, 50
"""The newest; a curve's interval takes a moment to compute."""
State = tuple[tuple[int, int], ...]


class Metrics:
    """/metrics: the newest runs and the watches as OpenMetrics text; a run is evaluated again once it has changed. Not
    thread-safe."""

    def __init__(self, places: Places, export: Callable[[RunFolder], CaseStudy]) -> None:
        """export: concludes a run; RunError for one without a finished step."""
        self._places = places
        self._export = export
        self._known: dict[str, tuple[State, CaseStudy | None]] = {}
        self._watches: dict[str, WatchMetrics] = {}

    def text(self) -> str:
        """Without runs that have no result yet or cannot be read."""
        ids = sorted(self._places.ids(), key=lambda run_id: run_id.partition("/")[2], reverse=True)
        self._watches = {run_id: watch for run_id in ids if (watch := self._watch(run_id)) is not None}
        runs = [run_id for run_id in ids if run_id not in self._watches][:MOST_MEASURED]
        self._known = {run_id: known for run_id in runs if (known := self._of(run_id)) is not None}
        parts = [samples_of(case) for _, case in self._known.values() if case is not None]
        parts += [watch.samples() for watch in list(self._watches.values())[:MOST_WATCHES]]
        pages = watches()
        return text(chain.from_iterable(parts), {**FAMILIES, **(pages.families if pages else {})})

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
