"""The lab's side of the recorder process."""

import errno
import json
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from loadframe.errors import RecordingError
from loadframe.formats.json_text import write_json
from loadframe.host.environment import NO_FOLDER, own_environment, python
from loadframe.host.processes import marked
from loadframe.host.signals import stopped_by_signal, undisturbed

ANSWER_TIMEOUT_S = 30.0
"""An fsync on a busy disk takes seconds, not half a minute."""

LACKING = {
    errno.ENOSPC: "Free some space or choose another place with --runs; run it again.",
    errno.EMFILE: "Raise the limit of open files (`ulimit -n 1024`); run it again.",
    errno.ENFILE: "Raise the kernel's limit of open files (fs.file-max); run it again.",
    errno.ENOMEM: "Give it more memory (`ulimit -v`, the container's limit); run it again.",
    errno.EIO: "Look at the disk (the kernel's log says what is wrong with it); run it again.",
}
"""errno -> what to do if a recorder ends with that error's message."""


@dataclass(frozen=True, slots=True)
class RecorderCost:
    """cpu_s: with the process's start. rss_bytes: peak. late_ticks: over half an interval late, or missed."""

    cpu_s: float
    elapsed_s: float
    rss_bytes: int
    ticks: int
    late_ticks: int


class Recorder:
    """A recorder process that writes to `path`, which must not exist yet, or to an open file of that name, whose
    `descriptor` it takes over. Methods may be called from several threads; they raise RecordingError, with what the
    recorder printed, once the process has died."""

    def __init__(self, path: Path, *, interval_s: float = 0.1, descriptor: int | None = None) -> None:
        self.path = path
        self._descriptor = descriptor
        self.interval_s = interval_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._cost: RecorderCost | None = None
        self.cost_so_far: RecorderCost | None = None  # until the last flush
        self._killed = False
        self._unsent = b""  # of interrupted commands, sent before the next one
        self._answers = b""
        self._questions = 0
        self._stop: int | None = None
        self._last_words = ""
        self._silence: RecordingError | None = None
        self._sending = threading.Lock()
        self._asking = threading.Lock()

    def start(self) -> None:
        if self._process is not None:
            raise RecordingError(f"The recorder of {self.path} was started already.", remedy="Use a new Recorder.")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        words = [str(self.path.absolute()), "--interval", str(self.interval_s)]
        given = [] if self._descriptor is None else [self._descriptor]
        words += [f"--descriptor={descriptor}" for descriptor in given]
        # Its own session: Ctrl-C in the terminal is for the lab, which stops the recorder after it has reverted.
        try:
            self._process = subprocess.Popen(
                python("loadframe.recording.recorder", *words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
                cwd=NO_FOLDER,
                env=marked(own_environment()),
                pass_fds=given,
            )
        finally:
            for descriptor in given:
                os.close(descriptor)
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)  # a recorder that does not read must not block us
        with self._asking:
            self._await_answer("start", self._questions)

    @property
    def pid(self) -> int:
        return self._running().pid

    def check(self) -> None:
        if self._running().poll() is not None:
            raise self._died()

    def follow(self, component: str, pids: Sequence[int]) -> None:
        """These processes of `component`, and no others, from now on."""
        self._send({"do": "follow", "component": component, "pids": list(pids)})

    def follow_cgroup(self, component: str, folders: Sequence[Path]) -> None:
        """As `follow`; with version 1 a folder per controller."""
        self._send({"do": "follow-cgroup", "component": component, "folders": [str(folder) for folder in folders]})

    def note(self, source: str, text: str, at_s: float | None = None) -> None:
        """A text of another program (a server's counters), of its own CLOCK_MONOTONIC time; None: now."""
        self._send({"do": "note", "source": source, "text": text, "at_s": time.monotonic() if at_s is None else at_s})

    def mark(self, kind: str, **fields: str | float | bool | None) -> None:
        self._send({**fields, "do": "mark", "kind": kind, "at_s": time.monotonic()})

    def flush(self) -> None:
        """Returns once every tick, note and mark up to now is on the disk."""
        with self._asking:
            number = self._number()
            self._send({"do": "flush", "number": number})
            self.cost_so_far = RecorderCost(**self._await_answer("flush", number)["cost"])

    def stop(self) -> RecorderCost:
        """Repeatable: the recorder is asked once."""
        with self._asking:
            if self._cost is None:
                with undisturbed():
                    if self._stop is None:
                        self._stop = self._number()
                        self._put({"do": "stop", "number": self._stop})
                self._push("stop")
                self._cost = RecorderCost(**self._await_answer("stop", self._stop)["cost"])
                self._end()
        return self._cost

    def kill(self) -> None:
        """What it had written stays readable. Idempotent."""
        if self._process is not None:
            self._killed = True
            self._process.kill()
            self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._process is None or self._killed:
            return
        try:
            self.stop()
        except RecordingError:
            self.kill()
            # An error of the lab must not be hidden by one of the recorder's.
            if kind is None:
                raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RecordingError(f"The recorder of {self.path} does not run.", remedy="Call start() first.")
        return self._process

    def _number(self) -> int:
        self._questions += 1
        return self._questions

    def _send(self, command: dict[str, Any]) -> None:
        if not (component := command.get("component", "target")) or ":" in component:
            raise RecordingError(f"A component is named by a word without a colon, not {component!r}.")
        self._put(command)
        self._push(command["do"])

    def _put(self, command: dict[str, Any]) -> None:
        with self._sending:
            self._unsent += write_json(command).encode() + b"\n"

    def _push(self, what: str) -> None:
        with self._sending:
            process = self._running()
            assert process.stdin is not None
            deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
            while self._unsent:
                if process.poll() is not None or process.stdin.closed:
                    raise self._died()
                try:
                    with undisturbed():
                        self._unsent = self._unsent[os.write(process.stdin.fileno(), self._unsent) :]
                except BlockingIOError:
                    self._wait_for(process.stdin, select.POLLOUT, deadline_s, f"take '{what}'")
                except BrokenPipeError as error:
                    raise self._died() from error

    def _await_answer(self, question: str, number: int) -> dict[str, Any]:
        """Skips earlier answers: whoever asked for those was interrupted."""
        process = self._running()
        assert process.stdout is not None
        deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            while b"\n" not in self._answers:
                self._wait_for(process.stdout, select.POLLIN, deadline_s, f"answer '{question}'")
                with undisturbed():
                    data = os.read(process.stdout.fileno(), 4096)
                    self._answers += data
                if not data:
                    raise self._died()
            line, self._answers = self._answers.split(b"\n", 1)
            answer: dict[str, Any] = json.loads(line)
            if answer["number"] == number:
                return answer

    def _wait_for(self, pipe: IO[bytes], event: int, deadline_s: float, what: str) -> None:
        """At the deadline the recorder is ended, so that no further call has to wait as long."""
        if pipe.closed:  # an earlier question was not answered
            raise self._died()
        poller = select.poll()
        poller.register(pipe, event)
        if poller.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
            return
        process = self._running()
        why = stopped_by_signal([process.pid])
        self._silence = RecordingError(
            f"The recorder of {self.path} did not {what} within {ANSWER_TIMEOUT_S:.0f} s{why and ': '}{why}.",
            remedy="What it recorded until then is kept. "
            + ("Find out what stopped it; run it again." if why else "The machine or its disk is stuck: run it again."),
        )
        process.kill()
        self._end()
        raise self._silence from None

    def _died(self) -> RecordingError:
        if self._silence is not None:
            return self._silence
        code = self._running().wait()
        if self._stderr is not None and not self._stderr.closed:
            self._stderr.seek(0)
            self._last_words = self._stderr.read().decode(errors="replace").strip()
        self._end()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if self._cost is not None:
            how = "was stopped already"
        remedies = (remedy for number, remedy in LACKING.items() if os.strerror(number) in self._last_words)
        return RecordingError(
            f"The recorder of {self.path} {how}.",
            remedy=f"What it recorded until then is kept. {next(remedies, 'Run it again.')}",
            details=self._last_words,
        )

    def _end(self) -> None:
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe is not None:
                pipe.close()
        self._process.wait()
