"""Which runs and files the page may show: the runs in the given folders, by their names below a folder held by its
descriptor (a name with a slash or a leading dot, and a link, reach nothing), and the files that reports link to, which
are only data, even from a foreign folder."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from starlette.responses import StreamingResponse

from loadframe.entry_points import PAGES_GROUP, usable
from loadframe.errors import RunError
from loadframe.reporting.openmetrics import Sample
from loadframe.runs.folder import RunFolder
from loadframe.system.files import Folder, Whose

Change = dict[str, Any]


class WatchView(Protocol):
    id: str
    heading: Change

    def over(self) -> bool: ...

    def row(self) -> Change: ...

    def refresh(self) -> Change:
        """The changes of the page."""

    def whole(self) -> Change:
        """As read so far."""


class WatchMetrics(Protocol):
    def samples(self) -> Iterator[Sample]: ...


class Watches(Protocol):
    """What an entry point (`loadframe.pages`) has to read watches. view, metrics: of a folder and its id. families: of
    the samples."""

    is_watch: Callable[[Folder], bool]
    view: Callable[[Folder, str], WatchView]
    metrics: Callable[[Folder, str], WatchMetrics]
    families: Mapping[str, str]


@cache
def watches() -> Watches | None:
    return next(iter(usable(PAGES_GROUP, lambda pages: hasattr(pages, "is_watch"))), None)


def is_watch(storage: Folder) -> bool:
    """Whether a folder holds the days of a watch, and no run."""
    pages = watches()
    return pages is not None and pages.is_watch(storage)


MOST_RUNS = 200
"""The newest of a folder: their names begin with the time."""
ID = re.compile(r"([0-9]{1,3})/([A-Za-z0-9][A-Za-z0-9._-]{0,199})")
"""The number of a run's folder among the given ones, and its name in it."""


@dataclass(frozen=True, slots=True)
class Root:
    """only: the one run that was given; "" for all."""

    storage: Folder
    only: str = ""


class Places:
    """Paths of folders of runs, or of single runs. RunError where one is neither."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._roots = [_root(path) for path in paths]

    def changed_ns(self) -> tuple[int, ...]:
        """Differs when runs come or go."""
        return tuple(root.storage.changed_ns() for root in self._roots)

    def ids(self) -> list[str]:
        """Newest first within each folder, without names that no run has."""
        ids = []
        for number, root in enumerate(self._roots):
            names = [root.only] if root.only else root.storage.folders(MOST_RUNS)[::-1]
            ids += [run_id for name in names if ID.fullmatch(run_id := f"{number}/{name}")]
        return ids

    def find(self, run: str) -> RunFolder:
        """RunError for anything else than a run."""
        root, name = self._place(run)
        return RunFolder.below(root, name)

    def folder(self, run: str) -> Folder:
        """Whatever it holds. RunError where there is none."""
        root, name = self._place(run)
        return root.below(name)

    def _place(self, run: str) -> tuple[Folder, str]:
        number, name = parse(run)
        if number >= len(self._roots) or self._roots[number].only not in ("", name):
            raise RunError(f"there is no run {run!a} here", remedy="Choose one of the list.")
        return self._roots[number].storage, name


def parse(run: str) -> tuple[int, str]:
    """Its folder's number, and its name. RunError for an invalid id."""
    matched = ID.fullmatch(run)
    if matched is None:
        raise RunError(f"{run[:200]!a} is not the id of a run", remedy="Choose one of the list.")
    return int(matched[1]), matched[2]


def _root(path: Path) -> Root:
    path = path.absolute()
    try:
        single = (path / "run.json").exists() or is_watch(Folder(path, Whose.NAMED, what="run folder"))
        if single:
            parse(f"0/{path.name}")
        named = Folder(path.parent if single else path, Whose.NAMED, what="run folder")
        root = Root(named, path.name if single else "")
        root.storage.changed_ns()
    except RunError as error:
        remedy = "Give a folder that holds runs (`--runs` of the command that measured; runs/ by default), or one run."
        raise RunError(f"{path} is not a folder of runs: {error.fact}", remedy=remedy) from error
    return root


FILES = frozenset({
    "steps.jsonl", "trials.jsonl", "fleet-trials.jsonl", "profiles/steps.jsonl", "verdicts.json", "findings.json",
    "forecast.json", "ladder.json", "metrics.parquet", "limits.parquet",
})  # fmt: skip
"""Every name in links of reporting's documents and in its html.FILES."""
PARQUET = ".parquet"
TYPES = {".jsonl": "text/plain", ".json": "application/json", PARQUET: "application/vnd.apache.parquet"}
"""JSON lines are text: a browser shows them."""
POLICY = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
PIECE_BYTES = 1 << 18


def answer(places: Places, run: str, name: str) -> StreamingResponse:
    """What a browser cannot show is offered as a download. RunError for any name but FILES."""
    if name not in FILES:
        raise RunError(f"{name[:200]!a} is not a file that a report links to", remedy="Look into the run folder.")
    places.find(run)
    try:
        descriptor = places.folder(run).descriptor(name)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"{name} of this run cannot be read: {why}", remedy="Look into the run folder.") from error
    size = os.fstat(descriptor).st_size
    headers = {"Content-Security-Policy": POLICY, "Content-Length": f"{size}"}
    suffix = Path(name).suffix
    if suffix == PARQUET:
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return StreamingResponse(_pieces(descriptor, size), media_type=TYPES[suffix], headers=headers)


async def _pieces(descriptor: int, size: int) -> AsyncIterator[bytes]:
    try:
        sent = 0
        while sent < size:
            piece = await asyncio.to_thread(os.pread, descriptor, min(PIECE_BYTES, size - sent), sent)
            if not piece:
                return
            sent += len(piece)
            yield piece
    finally:
        os.close(descriptor)
