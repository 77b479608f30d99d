"""The machine and one process at a moment: texts of files, and what was counted. Two snapshots give the numbers: a
gauge from the later one, a rate from both. All paths are below a root, so that a recorded tree can be read like a
machine."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadframe.errors import RecordingError
from loadframe.recording.derivation import Derivation, Metrics, growth

NOT_IN_THIS_KERNEL = "this kernel does not have it"


@dataclass(frozen=True, slots=True)
class Place:
    """no_process: why there is no pid. others: further processes of the same server."""

    root: Path = Path("/")
    pid: int | None = None
    no_process: str = "no process was named"
    others: tuple[int, ...] = ()

    def path(self, name: str) -> Path:
        """{pid}: the process, or ourselves without one."""
        return self.root / name.format(pid="self" if self.pid is None else self.pid)

    def text(self, name: str) -> bytes:
        return self.path(name).read_bytes()


@dataclass(frozen=True, slots=True)
class Pair:
    """Of one source, at two moments elapsed_s apart."""

    first: Any
    last: Any
    elapsed_s: float

    def rate(self, first: float, last: float) -> float:
        """RecordingError if there are not two moments, or the counter was reset."""
        if self.elapsed_s <= 0:
            raise RecordingError("A rate needs two readings.")
        return growth(first, last) / self.elapsed_s


def below(*files: str) -> Callable[[Place, str], dict[str, list[bytes]]]:
    return lambda place, path: each_below(place.path(path), *files)


def each_below(folder: Path, *files: str) -> dict[str, list[bytes]]:
    """The texts of these files, by the name of each folder that has all of them."""
    texts = {}
    for subfolder in sorted(folder.iterdir()):
        try:
            texts[subfolder.name] = [(subfolder / file).read_bytes() for file in files]
        except PermissionError:
            raise
        except OSError:  # it has none, refuses, or has just ended
            continue
    return texts


@dataclass(frozen=True, slots=True)
class Source:
    """name: in a snapshot. path: below the root; default: the name. parse: the metrics of two moments; `absent`
    explains those that it leaves out. fetch: OSError or, with the reason as its fact, RecordingError. of_process:
    meaningless without a process. together: parse also takes further processes of the server; else the first one stands
    for them. ended: it also gets those that ended between the two moments, without a `last`."""

    name: str
    metrics: tuple[str, ...]
    parse: Callable[..., Mapping[str, float]]
    fetch: Callable[[Place, str], Any] = Place.text
    absent: str = NOT_IN_THIS_KERNEL
    of_process: bool = False
    path: str = ""
    together: bool = False
    ended: bool = False

    @property
    def where(self) -> str:
        return self.path or self.name


def derived(row: Derivation, *metrics: str, absent: str = NOT_IN_THIS_KERNEL, path: str = "") -> Source:
    """The source of two looks at a file that recordings also have. path: by default where they read it."""

    def parse(pair: Pair) -> Metrics:
        values, reasons = row.looks({row.source: pair.first}, {row.source: pair.last}, pair.elapsed_s)
        wanted = {metric: float(values[metric]) for metric in metrics if metric in values}
        if reasons and not wanted:
            raise reasons[0]
        return wanted

    where = path or row.source.removeprefix("system:/")
    return Source(where, metrics, parse, absent=absent)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """at_s: CLOCK_MONOTONIC. contents, refused (why not): by the source's name. others: by source and process."""

    at_s: float
    contents: Mapping[str, Any]
    refused: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Readings:
    """values: infinite if the machine sets no limit. missing: why others are missing."""

    values: Mapping[str, float]
    missing: Mapping[str, str]


def take(place: Place, sources: Sequence[Source], clock: Callable[[], float] = time.monotonic) -> Snapshot:
    contents: dict[str, Any] = {}
    refused: dict[str, str] = {}
    at_s = clock()
    for source in sources:
        if source.of_process and place.pid is None:
            refused[source.name] = place.no_process
            continue
        try:
            contents[source.name] = source.fetch(place, source.where)
        except RecordingError as error:
            refused[source.name] = error.fact
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            refused[source.name] = source.absent
        except PermissionError:
            path = place.path(source.where)
            refused[source.name] = f"not permitted to read {path}; run as root, or as the user of the process"
        except OSError as error:
            refused[source.name] = f"{place.path(source.where)}: {error.strerror}"
    others: dict[str, dict[int, Any]] = {source.name: {} for source in sources if source.together}
    for source in (source for source in sources if source.together):
        for pid in place.others:
            with suppress(RecordingError, OSError):
                others[source.name][pid] = source.fetch(replace(place, pid=pid), source.where)
    return Snapshot(at_s, contents, refused, others)


def read(first: Snapshot, last: Snapshot, sources: Sequence[Source]) -> Readings:
    """A source that is damaged or was reset gives reasons only."""
    values: Metrics = {}
    missing: dict[str, str] = {}
    elapsed_s = last.at_s - first.at_s
    for source in sources:
        measured: Mapping[str, float] = {}
        reason = source.absent
        if source.name in first.contents and source.name in last.contents:
            before, after = first.others.get(source.name, {}), last.others.get(source.name, {})
            pairs = [Pair(first.contents[source.name], last.contents[source.name], elapsed_s)]
            stayed = (pid for pid in before if pid in after or source.ended)
            pairs += [Pair(before[pid], after.get(pid), elapsed_s) for pid in stayed]
            try:
                measured = source.parse(*pairs)
            except RecordingError as error:
                reason = error.fact
        else:
            reason = last.refused.get(source.name) or first.refused.get(source.name) or source.absent
        values.update(measured)
        missing.update({metric: reason for metric in source.metrics if metric not in measured})
    return Readings(values, {metric: reason for metric, reason in missing.items() if metric not in values})
