"""The agent's side of its worker (worker.py): start it, pass on what it is asked and what it says, end one that has
stopped, clean up after one that was killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from loadframe.fleet.cleaning import cleaned_up, standing_of
from loadframe.fleet.wire import LEASE_S, SILENT_S, Closed, Lines, Silent, WireError, read, send
from loadframe.host.environment import own_environment, python
from loadframe.host.signals import told as stopped

QUESTIONS = frozenset(
    {"set_up", "prepare", "start", "ended", "cancel", "watch", "mark", "flush", "read", "counted", "waiting"}
    | {"change", "back", "serve", "target"}
)
"""What is the worker's to answer."""
MOST_SILENT_S = 60.0
"""Whatever it waits for: a step that does not get ready is void by then, too."""
WAITING = frozenset("RD")
"""States of threads that run, or wait for a CPU or a disk: of a machine with too much to do."""
ENDS_WITHIN_S = 25.0
"""It gives up sooner, unless what it puts back takes longer, or it was stopped."""
POLL_S = 0.05


class Kept:
    """A worker from the first question for it until it is closed, or has ended by itself."""

    def __init__(self, say: Callable[[bytes], None], refuse: Callable[[object, str], None]) -> None:
        """say: passes a line on to the coordinator; refuse: says why a question, by its number, has no answer."""
        self._say = say
        self._refuse = refuse
        self._open: set[object] = set()
        self._closing = False
        self._ended = self._stopped = ""
        self._lock = threading.Lock()
        # A session of its own, and no signal at our end: it is to put everything back, whatever ends us.
        self._process = subprocess.Popen(
            python("loadframe.fleet.worker"), bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own_environment(), start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        self._spoke = False
        threading.Thread(target=self._pass_back, daemon=True).start()

    def pass_on(self, line: bytes, number: object = None) -> None:
        """A line of the coordinator's; number: of the question that it is, None for a beat. A worker that answers no
        beats any more, which its own thread for that does whatever it is at, is ended: it may have been stopped."""
        if self._spoke and self._is_silent():
            self._end(f"the worker of its agent has done nothing for {SILENT_S:g} s")
        with self._lock:
            if self._ended:
                if number is not None:
                    self._refuse(number, self._ended)
                return
            if number is not None:
                self._open.add(number)
        with contextlib.suppress(OSError):  # it has ended, which reading tells
            assert self._process.stdin is not None
            if not send(self._process.stdin.fileno(), line + b"\n", LEASE_S):
                self._end(f"the worker of its agent has taken nothing for {LEASE_S:g} s")

    def close(self) -> None:
        """It puts everything back and ends. Idempotent."""
        self._closing = True
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        if not self._has_ended(ENDS_WITHIN_S) and not self._has_ended(standing_of(self._process.pid).within_s):
            self._process.kill()
        if self._process.wait():  # not 0: it gave up, for instance amid a large file
            _clean_up()

    def _has_ended(self, within_s: float) -> bool:
        """Whether it has by then. One that was stopped never does: it is not waited for."""
        until = time.monotonic() + within_s
        while self._process.poll() is None:
            if time.monotonic() > until or stopped([self._process.pid]):
                return False
            time.sleep(POLL_S)
        return True

    def _is_silent(self) -> bool:
        """Whether it has said nothing for too long, of its own accord: one that is kept waiting has longer. What waits
        to be read was said: then it is us who are late, as a slow link has our last answer."""
        if not self._lines.silent_for(SILENT_S) or self._lines.unread():
            return False
        return self._lines.silent_for(MOST_SILENT_S) or not is_kept_waiting(self._process.pid)

    def _end(self, why: str) -> None:
        """What it leaves is cleaned up once it has ended."""
        self._stopped = why
        self._process.kill()

    def _pass_back(self) -> None:
        while True:
            try:
                line = self._lines.line(3600.0)
                message = read(line)
            except Silent:
                continue
            except (Closed, WireError, OSError):
                break
            self._spoke = True
            if "beat" in message:
                continue
            with self._lock:
                self._open.discard(message.get("id"))
            self._say(line + b"\n")
        self._process.kill()  # nothing, where it has ended
        code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        with self._lock:
            self._ended = self._stopped or f"the worker of its agent has ended by {how}"
            left = list(self._open)
        if self._closing:
            return
        _clean_up()
        for number in left:
            self._refuse(number, self._ended)


def _clean_up() -> None:
    """After a worker that has left something."""
    if words := cleaned_up():
        with contextlib.suppress(OSError):  # it may lead nowhere by now
            os.write(2, f"{words}\n".encode())


def is_kept_waiting(pid: int, root: Path = Path("/")) -> bool:
    """Whether a thread of it waits for a CPU or a disk, or has one (proc_pid_stat(5)). root: for recorded trees."""
    for stat in root.glob(f"proc/{pid}/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] in WAITING:
                return True
    return False
