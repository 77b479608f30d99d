"""bulk-ingest: pipelines, the driver, read files, parse them and have them loaded into database shards (targets:
bulk-loader). After each step every row is accounted for."""

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loadframe.errors import TargetError, WorkloadError
from loadframe.host.environment import importing, python_package
from loadframe.host.privilege import Privilege, make_private
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import step_files
from loadframe.workloads.base import STAGES_FILE
from loadframe.workloads.common import Common, registration
from loadframe.workloads.driving import ProcessDriver, start_together
from loadframe.workloads.forking import Worker
from loadframe.workloads.options import whole
from loadframe_bulk import store
from loadframe_bulk.client import valid_rows
from loadframe_bulk.store import NOTHING, Content
from loadframe_bulk.target import shards_of

MOST_PIPELINES = 256
SMALLEST_FILE_KB, LARGEST_FILE_KB = 4, 1 << 20
KB_PER_GIB = 1 << 20
FILES_PER_PIPELINE = 2
FILES_PER_STEP = 1 << 40
"""File numbers differ from step to step: what a killed client had sent may still arrive."""
MOST_TOLD = 5


@dataclass(frozen=True)
class BulkIngestOptions:
    file_size_kb: int = whole(1024, SMALLEST_FILE_KB, LARGEST_FILE_KB, "size of each file in KiB")
    pipelines: int = whole(1, 1, MOST_PIPELINES, "files that are loaded at once, where their size is the axis")
    source_ms: int = whole(0, 0, 10_000, "what the source of a pipeline needs for each block of 64 KiB")


class BulkIngest(Common[BulkIngestOptions]):
    kind = "bulk-ingest"
    target_kinds = frozenset({"sharded bulk-loader"})
    axes = frozenset({"pipelines"})
    axis_unit = "pipelines"
    operations: tuple[str, ...] = ("block", "file")
    judged: tuple[str, ...] = ("block",)
    model = BulkIngestOptions
    levels = (1, MOST_PIPELINES)

    def set_up(self) -> None:
        self._input: dict[tuple[int, int], tuple[InputFile, ...]] = {}
        self._pipelines: tuple[_Pipeline, ...] = ()
        self._steps = 0

    def trials(self) -> Sequence[Sequence[str]]:
        return (importing("loadframe_bulk.client"), importing("loadframe_bulk.server"))

    def install(self, endpoint: Endpoint) -> None:
        with _explained():
            store.create(shards_of(endpoint))

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        self.check_level(level)
        with _explained():
            store.empty(shards_of(endpoint))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        folder = folder.resolve()
        count, size_kb = self._shape(level)
        self._steps += 1
        first = self._steps * FILES_PER_STEP
        remedy = "Lower file_size_kb or the level, or set LOADFRAME_SCRATCH to another place."
        wanted = FILES_PER_PIPELINE * count * (size_kb << 10)  # what is there already is counted again, for the shards
        step_files.check_room(folder, wanted, "The input of this step takes", remedy, WorkloadError)
        self._pipelines = tuple(
            _Pipeline(number, count, first, self._files(folder.parent, size_kb, number), folder)
            for number in range(count)
        )
        begun = random.random()  # where in its file the first pipeline is when the step begins
        workers = [
            pipeline.client(endpoint.address, duration_s, self.options.source_ms, begun) for pipeline in self._pipelines
        ]
        return start_together(self.kind, workers, self.allowance, duration_s)

    def after_step(self, endpoint: Endpoint) -> None:
        """WorkloadError if a row is lost or duplicated."""
        shards = shards_of(endpoint)
        with _explained():
            wrong = store.wrong(
                shards, self._content, [file for pipeline in self._pipelines for file in pipeline.committed()]
            )
        if wrong:
            raise WorkloadError(
                f"What was loaded is not what was sent: {wrong[0]}.",
                remedy="The loader or the database lost or repeated rows; its log may say why.",
                details="\n".join(wrong[:MOST_TOLD]),
            )

    def remove(self, endpoint: Endpoint) -> None:
        with _explained():
            store.drop(shards_of(endpoint))

    def _shape(self, level: float) -> tuple[int, int]:
        return self.check_level(level), self.options.file_size_kb

    def _files(self, folder: Path, size_kb: int, pipeline: int) -> "tuple[InputFile, ...]":
        """Made when first needed; they are removed with the folder."""
        key = (size_kb, pipeline)
        if key not in self._input:
            folder, owner = folder / "input", self.allowance.user
            try:
                if not folder.exists():
                    make_private(folder, self.allowance.user)
                self._input[key] = tuple(
                    make_file(folder / f"{size_kb}-{pipeline}-{turn}.csv", size_kb << 10, pipeline + turn, owner)
                    for turn in range(FILES_PER_PIPELINE)
                )
            except OSError as error:
                raise WorkloadError(
                    f"The input cannot be written to {folder}: {error.strerror}.",
                    remedy="Make room, lower file_size_kb, or set LOADFRAME_SCRATCH to another place.",
                ) from error
        return self._input[key]

    def _content(self, file: int) -> Content | None:
        """None if a client of an earlier step sent the file."""
        first = self._steps * FILES_PER_STEP
        return None if file < first else self._pipelines[(file - first) % len(self._pipelines)].content(file)


class BulkIngestBySize(BulkIngest):
    """Ever smaller files: the smaller, the more of them for the same rows."""

    axes = frozenset({"files_per_gib"})
    axis_unit = "files per GiB"
    levels = (1, KB_PER_GIB // SMALLEST_FILE_KB)

    def _shape(self, level: float) -> tuple[int, int]:
        return self.options.pipelines, KB_PER_GIB // self.check_level(level)


@dataclass(frozen=True, slots=True)
class _Pipeline:
    """Its files are first + number, first + number + count, ... in turn."""

    number: int
    count: int
    first: int
    files: "tuple[InputFile, ...]"
    folder: Path

    @property
    def _loaded(self) -> Path:
        return self.folder / f"loaded-{self.number}.txt"

    def client(self, loader: str, duration_s: float, source_ms: int, begun: float) -> Worker:
        """begun: the share of its first file that the first pipeline has behind it; the others are spread evenly."""
        log = self.folder / f"requests-{self.number}.log"
        phase = (begun + self.number / self.count) % 1
        arguments = [loader, str(log), str(self._loaded), repr(float(duration_s)), repr(source_ms / 1000)]
        arguments += [repr(1 - phase), str(self.folder / STAGES_FILE), str(self.first + self.number), str(self.count)]
        arguments += [str(file.path) for file in self.files]
        return Worker("loadframe_bulk.client", arguments, log, self.folder / f"client-{self.number}.txt")

    def content(self, file: int) -> Content:
        return self.files[(file - self.first) // self.count % len(self.files)].content

    def committed(self) -> list[int]:
        """The files that the loader reported as committed; a killed client may have noted one fewer."""
        return [int(line) for line in step_files.text(self._loaded).splitlines()]


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (python_package(kind, "psycopg", "postgres"),)


@contextmanager
def _explained() -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise TargetError(
            f"A shard refused: {str(error).strip()}", remedy="Check that it runs and that its disk has space left."
        ) from error


KIND = registration(BulkIngest, requirements, other_axes={"files_per_gib": BulkIngestBySize})


PIECE_BYTES = 1 << 20
PIECES = 4
"""Different pieces that files are put together from: random rows cost more to make than to load."""
BROKEN_EVERY = 500
"""One in this many lines is not a row, as in real files; the client leaves it out."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """content: what of it should arrive."""

    path: Path
    content: Content


def make_file(path: Path, size_bytes: int, seed: int, owner: Privilege) -> InputFile:
    """Up to one row smaller, readable by its owner alone; written to the disk, so that it can leave the cache."""
    content, left, turn = NOTHING, size_bytes, seed
    with step_files.create(path, owner) as file:
        while left > 0:
            piece = _piece(turn % PIECES)
            piece = piece if len(piece) <= left else piece[: piece.rfind(b"\n", 0, left) + 1]
            if not piece:
                break
            step_files.write_whole(file, piece)
            content += _content(piece)
            left, turn = left - len(piece), turn + 1
        os.fdatasync(file.fileno())
    return InputFile(path, content)


@cache
def _piece(seed: int) -> bytes:
    numbers = random.Random(seed)
    lines: list[str] = []
    size = 0
    while True:
        line = f"{numbers.getrandbits(64):016x},{numbers.randrange(10**9)},{numbers.randrange(10**6)},"
        line = "broken\n" if not (len(lines) + 1) % BROKEN_EVERY else f"{line}{numbers.getrandbits(200):050x}\n"
        size += len(line)
        if size > PIECE_BYTES:
            return "".join(lines).encode()
        lines.append(line)


@cache
def _content(piece: bytes) -> Content:
    _, rows, amount = valid_rows(piece)
    return Content(rows, amount)
