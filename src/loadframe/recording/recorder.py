"""The recorder process: `python -P -m loadframe.recording.recorder PATH [--interval 0.1] [--root /] [--descriptor N]`.
It samples procfs on an absolute schedule and takes commands as JSON lines on stdin (docs/recording.md). It ends when
stdin is closed or its parent dies. It runs next to what is measured, so all that it imports is light: the standard
library and zstandard."""

import argparse
import ctypes
import gc
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from loadframe.errors import RecordingError
from loadframe.formats.json_text import write_json
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import MACHINE, UNRECORDED, Facts, peak_rss_bytes
from loadframe.recording.held_files import READ_ONLY, Descriptors, used_up
from loadframe.recording.sampling import GONE, CgroupFiles, ProcessFiles, SystemFiles
from loadframe.recording.socket_sampling import SocketSampler

BLOCK_S = 1.0
"""The most that a kill -9 can lose."""
LOOKS_PER_TICK, MOST_PARENTS = 16, 8
"""Up to LOOKS_PER_TICK processes are all read at every tick. Of more, that many take their turn, or a tenth of them
where that is more (at ticks of 0.1 s), so that each is read at least once per second; of the others a tick records only
that they live, and their CPU time. MOST_PARENTS of those that have children are read at every tick."""
_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _KEPT_BYTES = -1, -3, 4 * 1024 * 1024
_SAME_MOMENT_S = 0.001
_TRIES = 3


def both_clocks() -> tuple[float, float]:
    """Read again after an interruption, which would look as if the wall clock had been set."""
    for _ in range(_TRIES):
        before_s, wall_s, after_s = time.monotonic(), time.time(), time.monotonic()
        if after_s - before_s < _SAME_MOMENT_S:
            break
    return before_s, wall_s


class RecorderProcess:
    """RecordingError if the file cannot be written."""

    def __init__(
        self,
        path: Path,
        interval_s: float,
        root: Path,
        descriptor: int | None = None,
        clocks: Callable[[], tuple[float, float]] = both_clocks,
    ) -> None:
        """clocks: CLOCK_MONOTONIC and the wall clock at one moment."""
        facts = Facts.of_this_machine(interval_s)
        self._clocks = clocks
        self._interval_s = interval_s
        self._root = root
        self._started_s = facts.started_s
        self._next_s = facts.started_s
        self._block_due_s = facts.started_s + BLOCK_S
        self._stopping = False
        self._asked_to_stop: int | None = None
        self._input = b""
        self._followed: dict[tuple[str, int], ProcessFiles] = {}
        self._cgroups: dict[str, CgroupFiles] = {}
        self._ticks = self._late_ticks = 0
        self._writer = FrameWriter(path, facts, descriptor)
        self._descriptors = Descriptors()
        self._ends = select.epoll()
        self._system = SystemFiles(root, self._writer)
        self._machine = self._writer.source(MACHINE), os.uname().machine.encode()
        self.sockets = SocketSampler(root, self._writer, interval_s=interval_s)
        self._status = os.open("/proc/self/status", READ_ONLY)

    def run(self) -> None:
        """Until stop, end of stdin, SIGTERM, or the death of the parent."""
        # The kernel sends SIGUSR1 when the *thread* that started us ends, so it is only a reason to check.
        parent = os.getppid()
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._end_if(True))
        signal.signal(signal.SIGUSR1, lambda _number, _frame: self._end_if(os.getppid() != parent))
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGUSR1), 0, 0, 0)
        _answer({"number": 0, "at_s": self._started_s})
        # glibc returns large pieces to the kernel at once (mallopt(3)); every block would fault its pages in again.
        if mallopt := getattr(libc, "mallopt", None):  # other C libraries have none
            mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
            mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        # Nothing here makes cycles of objects: looking for them would only cost.
        gc.freeze()
        gc.disable()
        while not self._stopping:
            wait_s = max(0.0, self._next_s - time.monotonic())
            # Not poll, which would round the time up to milliseconds; 0 is never too large a descriptor for select.
            if select.select([0], [], [], wait_s)[0]:
                data = os.read(0, 1 << 16)
                self._end_if(not data)
                *lines, self._input = (self._input + data).split(b"\n")
                for line in lines:
                    self.obey(json.loads(line))
            now_s = time.monotonic()
            if now_s >= self._next_s and not self._stopping:
                self.tick(now_s)
        self.close()
        if self._asked_to_stop is not None:
            _answer({"number": self._asked_to_stop, "cost": self.cost()})

    def close(self) -> None:
        self.sockets.close()
        self._system.close()  # frees descriptors, one of which reading the cost needs
        self._event("recorder:cost", write_json(self.cost()).encode(), time.monotonic())
        self._writer.sync()

    def _end_if(self, ends: bool) -> None:
        self._stopping = self._stopping or ends

    def cost(self) -> dict[str, float]:
        return {
            "cpu_s": time.process_time(),
            "elapsed_s": time.monotonic() - self._started_s,
            "rss_bytes": peak_rss_bytes(os.pread(self._status, 1 << 14, 0)),
            "ticks": self._ticks,
            "late_ticks": self._late_ticks,
        }

    def obey(self, command: dict[str, Any]) -> None:
        match command["do"]:
            case "follow":
                self._follow(command["component"], command["pids"])
            case "follow-cgroup":
                self._follow_cgroup(command["component"], command["folders"])
            case "note":
                self._event(f"note:{command['source']}", command["text"].encode(), command["at_s"])
            case "mark":
                fields = {name: value for name, value in command.items() if name not in ("do", "at_s")}
                self._event(f"mark:{command['kind']}", write_json(fields).encode(), command["at_s"])
                match command:  # look at sockets within the windows of steps: one without its length counts as no step
                    case {"kind": "step-start", "warmup_s": float() as warmup_s, "window_s": float() as window_s}:
                        self.sockets.schedule.begin_step(command["at_s"], warmup_s, window_s)
                        for cgroup in self._cgroups.values():
                            cgroup.hasten()  # its limits may be those of another state now
                    case {"kind": "step-end"}:
                        self.sockets.schedule.end_step()
            case "flush":
                self._writer.sync()
                _answer({"number": command["number"], "cost": self.cost()})
            case "stop":
                self._stopping, self._asked_to_stop = True, command["number"]
            case unknown:
                raise ValueError(f"unknown command {unknown!r}")

    def _event(self, source: str, data: bytes, at_s: float) -> None:
        wall_s = time.time() - (time.monotonic() - at_s)
        self._writer.record(at_s, wall_s, [(self._writer.source(source), data)], sample=False)

    def _follow(self, component: str, pids: list[int]) -> None:
        wanted = {(component, pid) for pid in pids}
        for key in [key for key in self._followed if key[0] == component and key not in wanted]:
            self._followed.pop(key).close()
        for key in sorted(wanted - self._followed.keys()):
            try:
                self._followed[key] = ProcessFiles(
                    self._root, *key, self._writer, self._descriptors, interval_s=self._interval_s
                )
                if (end := self._followed[key].end) is not None:
                    self._ends.register(end, select.EPOLLIN)
            except OSError as error:
                if used_up(error):
                    self._report_unrecorded(f"process {key[1]} of the {component}", error)
                else:
                    gone = f"{component}:{key[1]}:gone"
                    self._event(gone, GONE, time.monotonic())
                    self._writer.retire(gone)

    def _report_unrecorded(self, what: str, error: OSError) -> None:
        """It exists but cannot be read, which is neither silence nor an end."""
        self._event(UNRECORDED, f"The {what} could not be recorded: {error.strerror}.".encode(), time.monotonic())

    def _follow_cgroup(self, component: str, folders: list[str]) -> None:
        if component in self._cgroups:
            self._cgroups.pop(component).close()
        if not folders:
            return
        try:
            self._cgroups[component] = CgroupFiles(self._root, component, folders, self._writer)
        except OSError as error:
            self._report_unrecorded(f"control group of the {component}", error)

    def _looked_at(self) -> Collection[ProcessFiles]:
        """Those that were not looked at for longest, and parents always, because they inherit the numbers of children
        that end."""
        followed = self._followed.values()
        if len(followed) <= LOOKS_PER_TICK:
            return followed
        whose = {(files.component, files.parent) for files in followed}
        parents = [self._followed[key] for key in sorted(whose & self._followed.keys())[:MOST_PARENTS]]
        others = sorted((files for files in followed if files not in parents), key=lambda files: files.looked_s)
        ticks_per_s = max(1, int(1 / self._interval_s))
        return {*parents, *others[: max(LOOKS_PER_TICK - len(parents), math.ceil(len(others) / ticks_per_s))]}

    def tick(self, now_s: float) -> None:
        # More than half an interval after its time a tick is late; missed ones count as late, too.
        lateness_s = now_s - self._next_s
        missed = int(lateness_s / self._interval_s)
        self._late_ticks += missed + (lateness_s > self._interval_s / 2)
        self._next_s += (missed + 1) * self._interval_s
        writer = self._writer
        writer.begin(*self._clocks())
        self._system.sample(now_s)
        writer.put(*self._machine)
        for cgroup in self._cgroups.values():
            cgroup.sample(now_s)
        looked_at, ended = self._looked_at(), {None, *(end for end, _ in self._ends.poll(0))}
        for key, files in tuple(self._followed.items()):
            if not (files.sample(now_s) if files in looked_at else files.census(files.end in ended)):
                self._followed.pop(key).close()
        self.sockets.sample(now_s, self._followed.values())
        writer.end_record()
        self._ticks += 1
        if now_s >= self._block_due_s:
            writer.write_block()
            self._block_due_s = now_s + BLOCK_S


def _answer(message: dict[str, Any]) -> None:
    try:
        os.write(1, write_json(message).encode() + b"\n")
    except BrokenPipeError:  # the reader has gone: the end of stdin says so next, and the recording ends in order
        return


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if the recording cannot be written (stderr says why)."""
    parser = argparse.ArgumentParser(description="Record procfs into PATH; commands are JSON lines on stdin.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--interval", type=float, default=0.1, help="seconds between ticks")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where /proc is found")
    parser.add_argument("--descriptor", type=int, help="PATH, which is open already and empty; then it is only a name")
    options = parser.parse_args(arguments)
    if options.interval <= 0:
        parser.error(f"--interval must be positive, not {options.interval}")
    try:
        RecorderProcess(options.path, options.interval, options.root, options.descriptor).run()
    except (RecordingError, OSError) as error:  # the latter if descriptors or threads are used up
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
