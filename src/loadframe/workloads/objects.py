"""Objects that a web server serves, made from a seed, so that every byte of every answer is known without keeping it.
Object n is the stretch of one long random text that begins STRIDE * n bytes into it, modulo SPREAD."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadframe.system.trees import remove_tree

SPREAD = 1 << 20
STRIDE = 61
"""Odd, so that the first SPREAD multiples differ modulo SPREAD."""
MOST_OBJECTS = SPREAD
PER_FOLDER = 1000
RECORD = [("up_to", "<f8"), ("offset", "<u8"), ("size", "<u8")]


@dataclass(frozen=True)
class Objects:
    """smallest, largest: sizes in bytes, spread evenly by their logarithms. exponent: of Zipf's law, 0 for uniform
    popularity; the first object is the most popular."""

    smallest: int
    largest: int
    exponent: float
    seed: int

    @cached_property
    def text(self) -> bytes:
        return np.random.default_rng(self.seed).bytes(self.largest + SPREAD)

    def sizes(self, count: int) -> NDArray[np.int64]:
        """Sizes of the first objects (bytes); a larger count begins with the same ones."""
        drawn = np.random.default_rng([self.seed, 1]).random(count)
        return np.rint(self.smallest * (self.largest / self.smallest) ** drawn).astype(np.int64)

    def table(self, count: int) -> NDArray[np.void]:
        """The first objects in RECORD's form. Weights: 1 / rank ^ exponent (Zipf; Breslau et al., Web Caching and
        Zipf-like Distributions, INFOCOM 1999)."""
        records = np.empty(count, dtype=RECORD)
        records["up_to"] = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -self.exponent)
        records["offset"] = STRIDE * np.arange(count) % SPREAD
        records["size"] = self.sizes(count)
        return records

    def within(self, total: int) -> int:
        """How many of the first objects fit into `total` bytes; at least one."""
        likely = min(MOST_OBJECTS, total // self.smallest + 1)
        return max(1, int(np.searchsorted(np.cumsum(self.sizes(likely)), total, side="right")))

    def content(self, number: int, size: int) -> bytes:
        offset = STRIDE * number % SPREAD
        return self.text[offset : offset + size]


def path_of(number: int) -> str:
    return f"/objects/{number // PER_FOLDER}/{number}"


class Folder:
    """Methods raise OSError if it cannot be written."""

    def __init__(self, path: Path, objects: Objects) -> None:
        self._path, self._objects = path, objects

    @property
    def text(self) -> Path:
        return self._path / ".text"

    def clear(self) -> None:
        """Keep nothing but the text, written again."""
        self.remove()
        self.text.write_bytes(self._objects.text)
        self.text.chmod(0o644)  # the driver reads it, whatever our umask

    def remove(self) -> None:
        remove_tree(self._path / "objects")
        for file in (self._count, self.text):
            file.unlink(missing_ok=True)

    def lacking_bytes(self, count: int) -> int:
        return int(self._objects.sizes(count)[self._made() :].sum()) if count > self._made() else 0

    def fill(self, count: int) -> None:
        """Make the missing objects, on the disk and not in the page cache: the server that reads them caches them."""
        have = self._made()
        for number, size in enumerate(self._objects.sizes(count)[have:].tolist(), start=have):
            file = self._path / path_of(number)[1:]
            if number % PER_FOLDER == 0 or number == have:
                file.parent.mkdir(parents=True, exist_ok=True)
                for folder in (file.parent.parent, file.parent):
                    folder.chmod(0o755)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(self._objects.content(number, size))
                stream.flush()
                os.fdatasync(descriptor)  # unwritten pages would stay in the page cache
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # the server reads them first
            file.chmod(0o644)
        self._count.write_text(str(max(count, have)), encoding="utf-8")

    @property
    def _count(self) -> Path:
        return self._path / ".count"

    def _made(self) -> int:
        return int(self._count.read_text(encoding="utf-8", errors="replace")) if self._count.exists() else 0
