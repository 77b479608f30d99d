"""The one reader of the runs: what has changed is read once and told to all viewers; without one nothing is read."""

from __future__ import annotations

import asyncio
from typing import Any

from loadframe.live.heading import Reads
from loadframe.live.hub import Hub
from loadframe.live.listing import Listing, View
from loadframe.live.places import Places
from loadframe.live.view import RunView
from loadframe.live.watch_view import WatchView, is_watch

POLL_S = 0.25
"""A finished step is on the page within this time and the time that it takes to read."""
MOST_FOLLOWED = 16
"""Runs in progress, and watches, at once. More are listed, and shown as they were when the page was opened."""
MOST_KEPT = 4
"""Runs that are not in progress whose page is kept in memory."""


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
        """Read what is new, and tell it."""
        async with self._reading:
            await self._look()

    async def _look(self) -> None:
        for kind, data in await asyncio.to_thread(self._changes):
            self._hub.publish(kind, data)

    async def rows(self) -> dict[str, Any]:
        """The list of runs now, and the last event that it knows of."""
        async with self._reading:
            await self._look()
            return {"schema": "loadframe.live-runs/1", "after": self._hub.last_id, "runs": [*self._rows().values()]}

    async def whole(self, run_id: str) -> dict[str, Any]:
        """A run now, and the last event that it knows of. RunError where there is no such run."""
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
            elif isinstance(view, WatchView):  # its row says what it holds now
                view.refresh()
                self._listing.rows[view.id] = view.row()
        for view in tuple(self._followed.values()):
            if change := view.refresh():
                changes.append(("change", change))
            if view.over():
                self._listing.rows[view.id] = view.row()
                self._kept[view.id] = self._followed.pop(view.id)
        rows = self._rows()
        if new := [each for run_id, each in rows.items() if before.get(run_id) != each]:
            changes.append(("runs", {"runs": new}))
        return changes

    def _rows(self) -> dict[str, dict[str, Any]]:
        own = {run_id: view.row() for run_id, view in self._followed.items() if view.heading}
        return {run_id: own.get(run_id, each) for run_id, each in self._listing.rows.items()}

    def _opened(self, run_id: str) -> View:
        """A run that is not followed, with what has changed of it. RunError."""
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
