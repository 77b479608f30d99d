"""The only reader of the runs: changes are read once and sent to all viewers; without viewers nothing is read."""

import asyncio
import time
from typing import Any

from loadframe.errors import UserError
from loadframe.live.hub import Hub
from loadframe.live.places import Places
from loadframe.live.view import LISTED, Heading, Reads, RunView
from loadframe.live.watch_view import WatchView, is_watch
from loadframe.runs.folder import RunFolder

View = RunView | WatchView
YOUNG_NS = 10_000_000_000
"""How long after its last change an unreadable folder is read again: a run is being created."""


def row(run: RunFolder, run_id: str, reads: Reads | None = None) -> dict[str, Any]:
    """A run in the list, as plain values. For an unreadable run the reason is in `error`."""
    entry: dict[str, Any] = {"id": run_id, "name": run.path.name}
    try:
        running = run.in_progress() and not run.closed()
        status = "running" if running else "finished" if run.closed() else "stopped"
        heading = Heading(run, reads).row(running)
    except UserError as error:
        return {**entry, "status": "unreadable", "error": str(error)}
    return {**entry, "status": status, **{name: heading[name] for name in LISTED}}


class Listing:
    """All runs and watches, as of the last look."""

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
            entry = row(run := self._places.find(run_id), run_id, self._reads)
        except (UserError, OSError):  # a folder of something else, or a run that is being created
            self._young |= self._is_young(run_id)
            return None
        if entry["status"] == "unreadable" and young:
            self._young = True
            return None
        self.rows[run_id] = entry
        return RunView(run, run_id, self._reads) if entry["status"] == "running" else None

    def _is_young(self, run_id: str) -> bool:
        try:
            return time.time_ns() - self._places.folder(run_id).changed_ns() < YOUNG_NS
        except (UserError, OSError):
            return False


POLL_S = 0.25
"""A finished step is on the page within this time plus the time to read it."""
MOST_FOLLOWED = 16
"""Followed runs in progress and watches. Further ones are listed, and shown as of the opening of their page."""
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
        """Until it is cancelled."""
        while True:
            if self._hub.subscribers:
                await self.look()
            await asyncio.sleep(POLL_S)

    async def look(self) -> None:
        """Read what is new, and publish it."""
        async with self._reading:
            await self._look()

    async def _look(self) -> None:
        for kind, data in await asyncio.to_thread(self._changes):
            self._hub.publish(kind, data)

    async def rows(self) -> dict[str, Any]:
        """The list of runs, and the id of the last event included in it."""
        async with self._reading:
            await self._look()
            return {"schema": "loadframe.live-runs/1", "after": self._hub.last_id, "runs": [*self._rows().values()]}

    async def whole(self, run_id: str) -> dict[str, Any]:
        """A run, and the id of the last event included in it. RunError where there is no such run."""
        async with self._reading:
            await self._look()
            view = self._followed.get(run_id)
            if view is None:
                view = await asyncio.to_thread(self._opened, run_id)
            return {"after": self._hub.last_id, **view.whole()}

    # --- in a thread, one at a time

    def _changes(self) -> list[tuple[str, dict[str, Any]]]:
        changes: list[tuple[str, dict[str, Any]]] = []
        before = self._rows()
        for view in self._listing.look():
            if len(self._followed) < MOST_FOLLOWED:
                self._followed[view.id] = view
            elif isinstance(view, WatchView):  # its row shows its current state
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
        view = self._kept.pop(run_id, None) or self._viewed(run_id)
        view.refresh()
        self._kept[run_id] = view
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return view

    def _viewed(self, run_id: str) -> View:
        folder = self._places.folder(run_id)
        return (
            WatchView(folder, run_id) if is_watch(folder) else RunView(self._places.find(run_id), run_id, self._reads)
        )
