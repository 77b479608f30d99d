"""The list of runs and watches: one row for each, read again only if there may be more to read."""

from __future__ import annotations

import time
from typing import Any

from loadframe.errors import UserError
from loadframe.live.heading import LISTED, Heading, Reads
from loadframe.live.places import Places
from loadframe.live.view import RunView
from loadframe.live.watch_view import WatchView, is_watch
from loadframe.runs.folder import RunFolder

View = RunView | WatchView
YOUNG_NS = 10_000_000_000
"""A folder that cannot be read yet is looked at again for so long after its last change: a run is being made."""


def row(run: RunFolder, run_id: str, reads: Reads | None = None) -> dict[str, Any]:
    """A run in the list, as plain values. A run that cannot be read says why, in `error`."""
    found: dict[str, Any] = {"id": run_id, "name": run.path.name}
    try:
        running = run.in_progress() and not run.closed()
        status = "running" if running else "finished" if run.closed() else "stopped"
        heading = Heading(run, reads).row(running)
    except UserError as error:
        return {**found, "status": "unreadable", "error": str(error)}
    return {**found, "status": status, **{name: heading[name] for name in LISTED}}


class Listing:
    """All runs and watches, as they were at the last look."""

    def __init__(self, places: Places, reads: Reads | None = None) -> None:
        self._places = places
        self._reads = reads
        self._changed: tuple[int, ...] = ()
        self._young = False
        self.rows: dict[str, dict[str, Any]] = {}

    def look(self) -> list[View]:
        """What is to be followed and has come since the last look; its row is made by whoever follows it."""
        changed = self._places.changed_ns()
        if changed == self._changed and not self._young:
            return []
        self._changed, self._young = changed, False
        known, self.rows = self.rows, {}
        begun = [self._new(run_id) for run_id in self._places.ids() if not self._keep(run_id, known)]
        return [view for view in begun if view is not None]

    def _keep(self, run_id: str, known: dict[str, dict[str, Any]]) -> bool:
        if run_id in known:
            self.rows[run_id] = known[run_id]
        return run_id in known

    def _new(self, run_id: str) -> View | None:
        try:
            folder = self._places.folder(run_id)
            if is_watch(folder):
                watch = WatchView(folder, run_id)
                self.rows[run_id] = watch.row()
                return watch
            young = time.time_ns() - folder.changed_ns() < YOUNG_NS
            found = row(run := self._places.find(run_id), run_id, self._reads)
        except (UserError, OSError):  # a folder of something else, or a run that is being made
            self._young |= self._is_young(run_id)
            return None
        if found["status"] == "unreadable" and young:
            self._young = True
            return None
        self.rows[run_id] = found
        return RunView(run, run_id, self._reads) if found["status"] == "running" else None

    def _is_young(self, run_id: str) -> bool:
        try:
            return time.time_ns() - self._places.folder(run_id).changed_ns() < YOUNG_NS
        except (UserError, OSError):
            return False
