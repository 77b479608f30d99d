"""The agent's side of its worker (worker.py): start it, pass on what it is asked and what it says, clean up after one
that was killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable

from loadframe.fleet.wire import LEASE_S, Closed, Lines, Silent, WireError, read, send
from loadframe.host.environment import environment, python

QUESTIONS = frozenset(
    {"set_up", "prepare", "start", "ended", "cancel", "watch", "mark", "flush", "read", "counted", "waiting"}
    | {"change", "back", "running", "running_read", "running_set", "running_back", "serve", "target"}
)
"""What is the worker's to answer."""
ENDS_WITHIN_S = 25.0
CLEANED_WITHIN_S = 60.0


class Kept:
    """A worker from the first question for it until it is closed, or has ended by itself."""

    def __init__(self, say: Callable[[bytes], None], refuse: Callable[[object, str], None]) -> None:
        """say: passes a line on to the coordinator; refuse: says why a question, by its number, has no answer."""
        self._say = say
        self._refuse = refuse
        self._open: set[object] = set()
        self._closing = False
        self._ended = ""
        self._lock = threading.Lock()
        # A session of its own, and no signal at our end: it is to put everything back, whatever ends us.
        self._process = subprocess.Popen(
            python("loadframe.fleet.worker"), bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._pass_back, daemon=True).start()

    def pass_on(self, line: bytes, number: object = None) -> None:
        """A line of the coordinator's; number: of the question that it is, None for a beat."""
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
                self._process.kill()  # it was stopped, or is stuck: what it leaves is cleaned up

    def close(self) -> None:
        """It puts everything back and ends. Idempotent."""
        self._closing = True
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # then it goes on without us
            if self._process.wait(ENDS_WITHIN_S):  # it had given up: a large file was being written, for instance
                _clean_up()

    def _pass_back(self) -> None:
        assert self._process.stdout is not None
        lines = Lines(self._process.stdout.fileno())
        while True:
            try:
                line = lines.line(3600.0)
                with contextlib.suppress(WireError), self._lock:
                    self._open.discard(read(line).get("id"))
                self._say(line + b"\n")
            except Silent:
                continue
            except (Closed, WireError, OSError):
                break
        code = self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        with self._lock:
            self._ended = f"the worker of its agent has ended by {how}"
            left = list(self._open)
        if self._closing:
            return
        _clean_up()
        for number in left:
            self._refuse(number, self._ended)


def _clean_up() -> None:
    """After a worker that has left something."""
    subprocess.run(
        python("loadframe.fleet.worker", "--clean-up"),
        stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=CLEANED_WITHIN_S, check=False,
    )  # fmt: skip
