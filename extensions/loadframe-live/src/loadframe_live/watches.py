"""Watches next to the runs: the extension that watches registers how their folders are read (`loadframe.pages`)."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Protocol

from loadframe.entry_points import PAGES_GROUP, usable
from loadframe.reporting.openmetrics import Sample
from loadframe.system.files import Folder

Change = dict[str, Any]


class WatchView(Protocol):
    """What the page shows of a watch."""

    id: str
    heading: Change

    def over(self) -> bool: ...

    def row(self) -> Change: ...

    def refresh(self) -> Change:
        """Read what is new; the changes of the page, {} for none."""

    def whole(self) -> Change:
        """All that the page shows, as read so far."""


class WatchMetrics(Protocol):
    def samples(self) -> Iterator[Sample]: ...


class Watches(Protocol):
    """The object of an entry point that reads watches. view, metrics: of a folder and its id. families: of the
    samples."""

    is_watch: Callable[[Folder], bool]
    view: Callable[[Folder, str], WatchView]
    metrics: Callable[[Folder, str], WatchMetrics]
    families: Mapping[str, str]


@cache
def watches() -> Watches | None:
    """What reads watches; None where no extension does."""
    return next(iter(usable(PAGES_GROUP, lambda found: hasattr(found, "is_watch"))), None)


def is_watch(storage: Folder) -> bool:
    """Whether a folder holds the days of a watch, and no run."""
    pages = watches()
    return pages is not None and pages.is_watch(storage)
