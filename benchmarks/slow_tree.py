"""A file system that is as slow as it is told to be: files that exist only in their answers, by FUSE (needs root).

For held_out_metadata.py. A network file system or a disk that is old takes its time for each look at an entry, or for
each listing of a directory; which of the two is chosen here. Requests are answered side by side.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENODEV, ENOENT, ENOSYS
from pathlib import Path

LOOKUP, FORGET, GETATTR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR = 1, 2, 3, 17, 26, 27, 28, 29
ACCESS, INTERRUPT, BATCH_FORGET = 34, 36, 42
"""Operations of the kernel's protocol: include/uapi/linux/fuse.h."""
VERSION = (7, 31)
REQUEST, ANSWER = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
ROOT, FIRST = 1, 2
"""Numbers of the root and of its first directory; those of the files follow on its last one."""
KEPT_S = 3600
"""The kernel may keep directories, and looks files up each time."""
MOST_BYTES = 1 << 17
PAGE_BYTES = 4096
"""Of a listing whose pages take time, however much the kernel asks for: 128 names."""
SIDE_BY_SIDE = 1 << 18
"""FUSE_PARALLEL_DIROPS: a look at a file does not wait until a page of its directory is there."""
LAZILY = 2
"""MNT_DETACH of umount2(2)."""


@dataclass(frozen=True, slots=True)
class SlowTree:
    """directories: in the root, each with so many files. look_s, list_s: what a look at a file and the listing of a
    directory take; page_s: each page of a listing. at_once: answered side by side."""

    directories: int
    files: int
    look_s: float = 0.0
    list_s: float = 0.0
    page_s: float = 0.0
    at_once: int = 8

    def answer(self, operation: int, node: int, body: bytes) -> bytes | int | None:
        """What the kernel is told: an answer, an error number, or nothing."""
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if operation == INIT:
            return struct.pack("<IIIIHHIIHH", *VERSION, 0, SIDE_BY_SIDE, 64, 48, MOST_BYTES, 1, 0, 0) + bytes(32)
        if operation == LOOKUP:
            return self._looked_up(node, body.rstrip(b"\0"))
        if operation == GETATTR:
            return struct.pack("<QII", KEPT_S if node < self._files_from else 0, 0, 0) + self._attributes(node)
        if operation == READDIR:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self._listed(node, offset, size)
        if operation == STATFS:
            return struct.pack("<5Q4I", 0, 0, 0, self.directories * self.files, 0, 4096, 255, 4096, 0) + bytes(24)
        return {OPENDIR: bytes(16), RELEASEDIR: b"", ACCESS: b""}.get(operation, ENOSYS)

    @property
    def _files_from(self) -> int:
        return FIRST + self.directories

    def _looked_up(self, node: int, name: bytes) -> bytes | int:
        with suppress(ValueError):
            number = int(name[1:])
            if node == ROOT and name == b"d%d" % number and 0 <= number < self.directories:
                return self._entry(FIRST + number, KEPT_S)
            if FIRST <= node < self._files_from and name == b"f%d" % number and 0 <= number < self.files:
                time.sleep(self.look_s)
                return self._entry(self._files_from + (node - FIRST) * self.files + number, 0)
        return ENOENT

    def _entry(self, node: int, kept_s: int) -> bytes:
        return struct.pack("<QQQQII", node, 0, kept_s, kept_s, 0, 0) + self._attributes(node)

    def _attributes(self, node: int) -> bytes:
        kind = stat.S_IFDIR | 0o755 if node < self._files_from else stat.S_IFREG | 0o644
        return ATTRIBUTES.pack(node, 4096, 8, *[1_700_000_000] * 3, 0, 0, 0, kind, 1, 0, 0, 0, 4096, 0)

    def _listed(self, node: int, offset: int, size: int) -> bytes:
        letter, first, count = (
            (b"d", FIRST, self.directories) if node == ROOT
            else (b"f", self._files_from + (node - FIRST) * self.files, self.files)
        )  # fmt: skip
        kind = (stat.S_IFDIR if node == ROOT else stat.S_IFREG) >> 12
        if not offset and node != ROOT:
            time.sleep(self.list_s)
        if node != ROOT and self.page_s:
            time.sleep(self.page_s)
            size = min(size, PAGE_BYTES)
        listed = bytearray()
        for number in range(offset, count):
            name = letter + b"%d" % number
            row = struct.pack("<QQII", first + number, number + 1, len(name), kind) + name
            row += bytes(-len(row) % 8)
            if len(listed) + len(row) > size:
                break
            listed += row
        return bytes(listed)


def _serve(device: int, tree: SlowTree) -> None:
    """Until it is no longer mounted (ENODEV)."""
    while True:
        try:
            asked = os.read(device, MOST_BYTES + 4096)
        except OSError as error:
            if error.errno == ENOENT:  # the request was taken back
                continue
            if error.errno == ENODEV:
                return
            raise
        _, operation, unique, node, *_ = REQUEST.unpack_from(asked)
        answer = tree.answer(operation, node, asked[REQUEST.size :])
        if answer is None:
            continue
        body, code = (b"", -answer) if isinstance(answer, int) else (answer, 0)
        with suppress(FileNotFoundError):  # who asked has been ended
            os.write(device, ANSWER.pack(ANSWER.size + len(body), code, unique) + body)


@contextmanager
def mounted(tree: SlowTree, at: Path) -> Iterator[None]:
    """For all users, read only. OSError where that is not permitted."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        system = ctypes.CDLL(None, use_errno=True)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        read_only = 1
        if system.mount(b"slow-tree", os.fsencode(at), b"fuse", read_only, options):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(at))
        threads = [threading.Thread(target=_serve, args=(device, tree), daemon=True) for _ in range(tree.at_once)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            system.umount2(os.fsencode(at), LAZILY)
            for thread in threads:
                thread.join(5.0)
    finally:
        os.close(device)
