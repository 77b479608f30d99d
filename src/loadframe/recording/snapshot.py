"""The machine and one process at a moment. A snapshot keeps the texts of files; two snapshots give the numbers: a gauge
from the later one, a rate from both. What could not be read stays in it with the reason. All paths are below a root, so
that a recorded tree can be read like a machine."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadframe.errors import RecordingError
from loadframe.recording.derivation import Derivation, Metrics, growth
from loadframe.system.kernel import kernel_text

NOT_IN_THIS_KERNEL = "this kernel does not have it"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to read. no_process: why there is no pid. others: further processes of the same server."""

    root: Path = Path("/")
    pid: int | None = None
    no_process: str = "no process was named"
    others: tuple[int, ...] = ()

    def path(self, name: str) -> Path:
        """`name` below the root, {pid} replaced by the process, or by ourselves without a process."""
        return self.root / name.format(pid="self" if self.pid is None else self.pid)

    def text(self, name: str) -> bytes:
        return self.path(name).read_bytes()


@dataclass(frozen=True, slots=True)
class Pair:
    """The texts of one source at two moments elapsed_s apart."""

    first: bytes
    last: bytes
    elapsed_s: float

    def rate(self, first: float, last: float) -> float:
        """Growth per second. Raises RecordingError if there are not two moments, or the counter was reset."""
        if self.elapsed_s <= 0:
            raise RecordingError("A rate needs two readings.")
        return growth(first, last) / self.elapsed_s


def lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def below(*files: str) -> Callable[[Place, str], bytes]:
    return lambda place, path: each_below(place.path(path), *files)


def each_below(folder: Path, *files: str) -> bytes:
    """A line for each folder that has all of these files: its name and their texts."""
    rows = []
    for subfolder in sorted(folder.iterdir()):
        try:
            said = [kernel_text(subfolder / file).strip() for file in files]
        except PermissionError:
            raise
        except OSError:  # it has none, refuses, or has just ended
            continue
        rows.append(" ".join([subfolder.name, *said]))
    return lines(rows)


@dataclass(frozen=True, slots=True)
class Source:
    """Metrics of one file, or of several that belong together.

    name: in a snapshot. path: below the root; default: the name. parse: the metrics of two moments; `absent` explains
    those that it leaves out. fetch: raises OSError or, with the reason as its fact, RecordingError. of_process:
    meaningless without a process. together: parse also takes further processes of the server; else the first one stands
    for them. ended: it also gets those that ended between the two moments, with an empty `last`."""

    name: str
    metrics: tuple[str, ...]
    parse: Callable[..., Mapping[str, float]]
    fetch: Callable[[Place, str], bytes] = Place.text
    absent: str = NOT_IN_THIS_KERNEL
    of_process: bool = False
    path: str = ""
    together: bool = False
    ended: bool = False

    @property
    def where(self) -> str:
        return self.path or self.name


def derived(row: Derivation, *metrics: str, absent: str = NOT_IN_THIS_KERNEL, path: str = "") -> Source:
    """Metrics of two looks at a file that recordings also have. path: by default where recordings read it."""

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
    """at_s: CLOCK_MONOTONIC. texts, refused (why not): by the source's name. others: by source and process."""

    at_s: float
    texts: Mapping[str, bytes]
    refused: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Mapping[int, bytes]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Readings:
    """Metrics with their values (infinite if the machine sets no limit). missing: why others are missing."""

    values: Mapping[str, float]
    missing: Mapping[str, str]


def take(place: Place, sources: Sequence[Source], clock: Callable[[], float] = time.monotonic) -> Snapshot:
    """Read every source once; one that cannot be read is in `refused`."""
    texts: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    at_s = clock()
    for source in sources:
        if source.of_process and place.pid is None:
            refused[source.name] = place.no_process
            continue
        try:
            texts[source.name] = source.fetch(place, source.where)
        except RecordingError as error:
            refused[source.name] = error.fact
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            refused[source.name] = source.absent
        except PermissionError:
            path = place.path(source.where)
            refused[source.name] = f"not permitted to read {path}; run as root, or as the user of the process"
        except OSError as error:
            refused[source.name] = f"{place.path(source.where)}: {error.strerror}"
    others: dict[str, dict[int, bytes]] = {source.name: {} for source in sources if source.together}
    for source in (source for source in sources if source.together):
        for pid in place.others:
            with suppress(RecordingError, OSError):
                others[source.name][pid] = source.fetch(replace(place, pid=pid), source.where)
    return Snapshot(at_s, texts, refused, others)


def read(first: Snapshot, last: Snapshot, sources: Sequence[Source]) -> Readings:
    """The metrics between two snapshots of a place. A source that is damaged or was reset gives reasons only."""
    values: Metrics = {}
    missing: dict[str, str] = {}
    elapsed_s = last.at_s - first.at_s
    for source in sources:
        measured: Mapping[str, float] = {}
        reason = source.absent
        if source.name in first.texts and source.name in last.texts:
            before, after = first.others.get(source.name, {}), last.others.get(source.name, {})
            stayed = [pid for pid in before if pid in after or source.ended]
            texts = [(first.texts[source.name], last.texts[source.name])]
            texts += [(before[pid], after.get(pid, b"")) for pid in stayed]
            try:
                measured = source.parse(*(Pair(earlier, later, elapsed_s) for earlier, later in texts))
            except RecordingError as error:
                reason = error.fact
        else:
            reason = last.refused.get(source.name) or first.refused.get(source.name) or source.absent
        values.update(measured)
        missing.update({metric: reason for metric in source.metrics if metric not in measured})
    return Readings(values, {metric: reason for metric, reason in missing.items() if metric not in values})
