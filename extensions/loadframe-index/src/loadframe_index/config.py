"""The configuration of the index's programs: one JSON object in a file."""

import errno
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from loadframe.errors import MachineError, RunError
from loadframe.system.files import Folder, Whose
from loadframe_index.board import Shape
from loadframe_index.store import StoreError

BOARD, STATISTICS, RESULT = "board", "stages.jsonl", "result.json"


@dataclass(frozen=True)
class InFolder:
    """tree: its root. folder: for the logs. database: as store.connect."""

    tree: str
    folder: str
    database: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """OSError; ValueError, TypeError for an invalid one."""
        return cls(**json.loads(path.read_text(encoding="utf-8", errors="replace")))

    def text(self) -> str:
        return json.dumps(asdict(self))

    def path(self, name: str) -> Path:
        return Path(self.folder) / name

    def requests(self, process: int = 0) -> Path:
        return self.path(f"requests-{process}.log")

    def write_result(self, result: Mapping[str, object]) -> None:
        """All of it or nothing, even if the writer is killed. OSError."""
        try:
            Folder(Path(self.folder), Whose.NAMED).replace(RESULT, json.dumps(result).encode())
        except RunError as error:
            raise OSError(errno.EIO, error.fact) from error


@dataclass(frozen=True)
class Config(InFolder):
    """scanners: processes, each with the workers of the stages. batch: entries in one. queue: entries that may wait
    before a stage. seconds: how long to go on; 0: for one scan. rewrite: write unchanged entries, too."""

    scanners: int = 1
    scan_threads: int = 1
    info_threads: int = 1
    fs_threads: int = 1
    db_threads: int = 1
    batch: int = 1000
    queue: int = 10_000
    seconds: float = 0.0
    rewrite: bool = False

    @property
    def shape(self) -> Shape:
        return Shape(self.scanners, (self.scan_threads, self.info_threads, self.fs_threads, self.db_threads))

    @property
    def waiting(self) -> int:
        """Batches that may wait before a stage."""
        return max(1, self.queue // self.batch)

    def applied(self, process: int) -> Path:
        """The file of the ids that a process has acknowledged, one after the other."""
        return self.path(f"applied-{process}.ids")


def exit_status(work: Callable[[], None]) -> int:
    """0, or 1 with one line on standard error where something refused."""
    try:
        work()
    except (StoreError, MachineError, OSError, ValueError, TypeError) as error:
        print(f"FATAL {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0
