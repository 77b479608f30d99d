"""Reading procfs as cheaply as Python can: files stay open, each tick is one `pread` per file, nothing is parsed.

A file held open also protects from reused pids: after its process is gone it answers ESRCH, never a stranger's numbers.
This module is imported by the recorder process and stays light: the standard library and frames.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from loadframe.recording.frames import TASK, FrameWriter

Entry = tuple[int, bytes]

SYSTEM_FILES = (
    "/proc/stat",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/proc/sys/fs/file-nr",
)
RECORDER_FILES = ("/proc/self/stat", "/proc/self/schedstat")
PROCESS_FILES = ("stat", "status", "schedstat", "io")
TASK_FILES = ("stat", "schedstat", "wchan")

MANY_THREADS = 64
"""Above this the list of threads is read again once per second instead of at each tick."""
MANY_OPEN_FILES = 512
"""Above this, counting open files by listing them (kernels before 6.2) is done once per second."""
SWITCHES_TAIL_BYTES = 256
"""The context switches are the last lines of a thread's status (newer kernels add one or two short lines)."""

_CHUNK = 64 * 1024
_CERTAINLY_WHOLE = 3000
_SPARE_DESCRIPTORS = 64
_GONE = b"gone\n"


class Descriptors:
    """How many files may be held open; beyond that they are opened and closed at each tick."""

    def __init__(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        self.free = allowed - _SPARE_DESCRIPTORS

    def hold(self, path: str, directory: int | None = None) -> int | None:
        """An open descriptor to keep, or None when there are enough already. OSError if the file will not open."""
        if self.free <= 0:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        self.free -= 1
        return descriptor

    def release(self, descriptor: int | None) -> None:
        if descriptor is not None:
            os.close(descriptor)
            self.free += 1


def read_held(descriptor: int) -> bytes:
    """The whole file now. A procfs file of many records gives about a page per read: a long answer is followed up."""
    data = chunk = os.pread(descriptor, _CHUNK, 0)
    while len(chunk) > _CERTAINLY_WHOLE and (chunk := os.pread(descriptor, _CHUNK, len(data))):
        data += chunk
    return data


def read_once(path: str, directory: int) -> bytes:
    """Open, read, close. OSError if the file is gone or forbidden."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return read_held(descriptor)
    finally:
        os.close(descriptor)


def _entries_of(path: str, directory: int) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        with os.scandir(descriptor) as listing:
            return sum(1 for _ in listing)
    finally:
        os.close(descriptor)


class SystemFiles:
    """The files of the whole machine and of the recorder itself; those that the kernel does not have are left out."""

    def __init__(self, root: Path, writer: FrameWriter) -> None:
        self._held: list[tuple[int, int]] = []
        for component, paths in (("system", SYSTEM_FILES), ("recorder", RECORDER_FILES)):
            for path in paths:
                descriptor = _open_if_there(f"{str(root).rstrip('/')}{path}")
                if descriptor is not None:
                    self._held.append((writer.source(f"{component}:{path}"), descriptor))

    def sample(self, entries: list[Entry]) -> None:
        for source, descriptor in self._held:
            try:
                entries.append((source, read_held(descriptor)))
            except OSError:  # /proc/pressure answers EOPNOTSUPP where it is compiled in but switched off
                continue


def _open_if_there(path: str) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    return descriptor


def size_counts_open_files(root: Path) -> bool:
    """Whether the size of /proc/PID/fd is the number of open files (Linux 6.2 and later)."""
    path = root / "proc/self/fd"
    descriptor = _open_if_there(str(path))
    if descriptor is None:
        return False
    try:
        return os.stat(path).st_size == len(os.listdir(descriptor)) > 0  # noqa: PTH116, PTH208 - held open, not by path
    finally:
        os.close(descriptor)


class ProcessFiles:
    """One followed process: its files, its threads, the number of its open files. OSError if it does not exist."""

    def __init__(
        self, root: Path, component: str, pid: int, writer: FrameWriter, descriptors: Descriptors, *, size_counts: bool
    ) -> None:
        self._descriptors = descriptors
        self._size_counts = size_counts
        self._next_second_s = 0.0
        self._many_open_files = False
        self._threads: dict[int, _ThreadFiles] = {}
        self._directory = os.open(root / f"proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._tasks_directory = self._open_tasks()
        names = {name: writer.source(f"{component}:{pid}:/proc/{pid}/{name}") for name in (*PROCESS_FILES, "limits")}
        self._limits = names.pop("limits")
        self._sources = {
            name: writer.source(f"{component}:{pid}:{name}") for name in ("fd", "tasks", "task-status", "gone")
        }
        self._held: list[tuple[int, int]] = []
        for name, source in names.items():
            self._hold(name, source)

    def _open_tasks(self) -> int:
        try:
            return os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._directory)
        except OSError:
            os.close(self._directory)
            raise

    def _hold(self, name: str, source: int) -> None:
        try:
            descriptor = self._descriptors.hold(name, self._directory)
        except OSError:  # no permission for io, or no such file in this kernel: the entry is absent
            return
        if descriptor is not None:
            self._held.append((source, descriptor))

    def sample(self, now_s: float, entries: list[Entry]) -> bool:
        """Append this tick's entries; False (and an entry that says so) once the process is gone."""
        once_per_second = now_s >= self._next_second_s
        if once_per_second:
            self._next_second_s = now_s + 0.95
        for source, descriptor in tuple(self._held):
            try:
                entries.append((source, read_held(descriptor)))
            except ProcessLookupError:
                entries.append((self._sources["gone"], _GONE))
                return False
            except OSError:  # readable when opened, forbidden now (it changed its user): absent from here on
                self._held.remove((source, descriptor))
                self._descriptors.release(descriptor)
        self._sample_open_files(entries, once_per_second)
        self._sample_threads(entries, once_per_second)
        if once_per_second:
            self._sample_limits(entries)
        return True

    def _sample_limits(self, entries: list[Entry]) -> None:
        try:
            entries.append((self._limits, read_once("limits", self._directory)))
        except OSError:  # gone in this very moment; the next tick says so
            return

    def _sample_open_files(self, entries: list[Entry], once_per_second: bool) -> None:
        if self._many_open_files and not once_per_second:
            return
        try:
            if self._size_counts:
                count = os.stat("fd", dir_fd=self._directory).st_size
            else:
                count = _entries_of("fd", self._directory)
                self._many_open_files = count > MANY_OPEN_FILES
        except OSError:  # no permission, or gone
            return
        entries.append((self._sources["fd"], b"%d\n" % count))

    def _sample_threads(self, entries: list[Entry], once_per_second: bool) -> None:
        if once_per_second or len(self._threads) <= MANY_THREADS:
            self._list_threads()
        parts: list[bytes] = []
        for thread, files in tuple(self._threads.items()):
            texts = files.read()
            if texts is None:
                self._threads.pop(thread).close()
            else:
                parts.append(TASK.pack(thread, *map(len, texts)))
                parts += texts
        entries.append((self._sources["tasks"], b"".join(parts)))
        if once_per_second:
            entries.append((self._sources["task-status"], self._thread_statuses()))

    def _list_threads(self) -> None:
        try:
            listed = {int(name) for name in os.listdir(self._tasks_directory)}  # noqa: PTH208 - a held directory
        except OSError:  # gone in this very moment
            return
        for thread in self._threads.keys() - listed:
            self._threads.pop(thread).close()
        for thread in sorted(listed - self._threads.keys()):
            self._threads[thread] = _ThreadFiles(thread, self._tasks_directory, self._descriptors)

    def _thread_statuses(self) -> bytes:
        parts = []
        for thread in self._threads:
            try:
                tail = read_once(f"{thread}/status", self._tasks_directory)[-SWITCHES_TAIL_BYTES:]
            except OSError:  # this thread ended in this very moment
                continue
            parts.append(TASK.pack(thread, len(tail), 0, 0) + tail)
        return b"".join(parts)

    def close(self) -> None:
        for files in self._threads.values():
            files.close()
        for _, descriptor in self._held:
            self._descriptors.release(descriptor)
        os.close(self._tasks_directory)
        os.close(self._directory)


class _ThreadFiles:
    """stat, schedstat and wchan of one thread, held open while descriptors last."""

    __slots__ = ("_descriptors", "_directory", "_held", "_thread")

    def __init__(self, thread: int, tasks_directory: int, descriptors: Descriptors) -> None:
        self._thread = thread
        self._directory = tasks_directory
        self._descriptors = descriptors
        self._held: list[int | None] = []
        for name in TASK_FILES:
            try:
                self._held.append(descriptors.hold(f"{thread}/{name}", tasks_directory))
            except OSError:  # the thread ended, or the kernel has no such file: read() finds out
                self._held.append(None)

    def read(self) -> tuple[bytes, bytes, bytes] | None:
        """Its texts now (empty for a file that is not there), or None once the thread is gone."""
        texts = []
        for name, descriptor in zip(TASK_FILES, self._held, strict=True):
            try:
                if descriptor is None:
                    texts.append(read_once(f"{self._thread}/{name}", self._directory))
                else:
                    texts.append(os.pread(descriptor, 4096, 0))
            except OSError:
                if name == "stat":
                    return None
                texts.append(b"")
        stat, schedstat, wchan = texts
        return stat, schedstat, wchan

    def close(self) -> None:
        for descriptor in self._held:
            self._descriptors.release(descriptor)
