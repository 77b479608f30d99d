"""Carries out a host's part for its agent: `python -P -m loadframe_fleet.worker`. Where the agent has ended, or passed
on nothing for LOAD_LEASE_S, it ends the load and puts everything back; where it is killed itself, the agent cleans up.
If both are, the next command there finds leases and journal."""

import contextlib
import functools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.errors import MissingTool, TargetError, UserError, WorkloadError
from loadframe.host import identity
from loadframe.host.leases import mark_of
from loadframe.host.signals import ignore, no_core_dumps
from loadframe.workloads.arrivals import LONGEST_S
from loadframe_fleet.agent import report, standing_of
from loadframe_fleet.part import Part
from loadframe_fleet.wire import (
    LOAD_LEASE_S,
    Closed,
    Lines,
    Message,
    Silent,
    WireError,
    own_output,
    read,
    send,
    written,
)

POLL_S = 0.05
STUCK_S = 1.5
"""Time in which work in progress may notice that it is over; then its processes are ended."""
GIVEN_UP_S = 20.0
"""After this and the time for putting back the process ends as it is; its agent cleans up after it."""


class Over(Exception):  # noqa: N818 - it is an end, not an error
    """There is no coordinator any more."""


class Cancelled(Exception):  # noqa: N818
    """The step was ended before it began."""


class Worker:
    def __init__(self, source: int, sink: int) -> None:
        self._lines = Lines(source)
        self._sink = sink
        self._came: queue.Queue[Message | str] = queue.Queue()
        self._part: Part | None = None
        self._why = self._elsewhere = ""
        self._saying = threading.Lock()
        self._closed = threading.Event()
        self._putting_back = threading.Lock()  # it is not interrupted
        self._preparing: int | None = None
        self._ended: int | None = None
        self._failed: UserError | None = None
        self._asked: Mapping[str, Callable[[Message], Message | None]] = {
            "set_up": self._set_up,
            "prepare": self._prepare,
            "ended": self._note_end,
            "cancel": self._cancel,
            "watch": lambda said: self._mine.watch(said["number"], int(said["port"])),
            "mark": lambda said: self._mine.mark(said),
            "flush": lambda _: {"bytes": self._mine.flushed()},
            "read": lambda said: {"data": self._mine.piece(said["what"], int(said["offset"]), int(said["size"]))},
            "counted": lambda said: self._mine.counted(float(said["from_s"]), float(said["to_s"])),
            "waiting": lambda _: {"waiting": self._mine.waiting()},
            "change": lambda said: self._mine.changing.asked(said),
            "serve": lambda said: self._mine.serve(said["address"]),
            "target": lambda said: self._mine.asked_of_target(said),
            "back": self._put_back,
        }

    def work(self) -> str:
        """Returns why it is over."""
        threading.Thread(target=self._hear, daemon=True).start()
        try:
            while True:
                if (said := self._next(POLL_S if self._busy else 1.0)) is not None:
                    self._obey(said)
                self._look()
        except Over as over:
            self._why = str(over)
            return self._why
        finally:
            self._close()

    def _obey(self, said: Message) -> None:
        number, asked = said.get("id"), self._asked.get(said["ask"])
        try:
            if asked is None:
                raise ValueError(f"this agent has no answer to {said['ask']!r}")
            answer = asked(said)
        except (Over, Cancelled):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the coordinator reports it
            self._refuse(number, error)
        else:
            if answer is not None:
                self._say({"id": number, "answer": answer})

    def _set_up(self, said: Message) -> Message:
        for name, value in dict(said.get("environment") or {}).items():
            os.environ[str(name)] = str(value)  # secrets that the study names: in memory only
        folder, self._elsewhere = str(said.get("folder") or ""), ""
        try:  # where the command was called: the study may name files below it
            os.chdir(folder or ".")
        except OSError as error:
            self._elsewhere = (
                f"What the study names by a relative path was looked for below {Path.cwd()} on that host, as the "
                f"folder in which you called Loadframe cannot be entered there ({folder}: {error.strerror}). Copy it "
                "to there, or write whole paths."
            )
        clean_up()
        self._part = Part(said)
        return {}

    def _prepare(self, said: Message) -> None:
        number, self._failed = int(said["id"]), None
        self._preparing = number

        @functools.cache
        def start_s() -> float:
            self._say({"id": number, "answer": {}})
            self._preparing = None
            return self._awaited()

        try:
            self._mine.start(said, start_s)
            if self._preparing is not None:
                self._mine.cancel()
                raise ValueError(f"the workload {self._mine.study.workload.kind} waits for no common start")
        except Cancelled:
            self._mine.cancel()
        except UserError as error:
            self._mine.cancel()
            if self._preparing is not None:
                raise
            self._failed = error  # reported when its end is asked for
        finally:
            self._preparing = None

    def _awaited(self) -> float:
        until_s = time.monotonic() + LONGEST_S
        while time.monotonic() < until_s:
            if (said := self._next(1.0)) is None:
                continue
            number = said.get("id")
            if said["ask"] == "start":
                late_s = time.monotonic() - float(said["at_s"])
                self._say({"id": number, "answer": {"late_s": late_s}})
                if late_s > 0:
                    raise Cancelled
                return float(said["at_s"])
            if said["ask"] == "cancel":
                self._say({"id": number, "answer": {}})
                raise Cancelled
            self._refuse(number, ValueError("it waits for the start of a step"))
        raise Cancelled

    def _note_end(self, said: Message) -> None:
        self._ended = int(said["id"])

    def _look(self) -> None:
        part = self._part
        if part is None:
            return
        number, self._ended = self._ended, None
        try:
            part.look()
            if number is None or (self._failed is None and not part.over):
                self._ended = number
                return
            if self._failed is not None:
                raise self._failed
            self._say({"id": number, "answer": part.end()})
        except UserError as error:
            if number is not None:
                self._refuse(number, error)

    def _cancel(self, _said: Message) -> Message:
        self._ended, self._failed = None, None
        if self._part is not None:
            self._part.cancel()
        return {}

    def _put_back(self, said: Message) -> Message:
        with self._putting_back:
            return self._mine.changing.asked(said)

    @property
    def _mine(self) -> Part:
        if self._part is None:
            raise ValueError("no study was set up here")
        return self._part

    @property
    def _busy(self) -> bool:
        return self._part is not None and not self._part.over

    def _next(self, within_s: float) -> Message | None:
        try:
            message = self._came.get(timeout=within_s)
        except queue.Empty:
            return None
        if isinstance(message, str):
            raise Over(message)
        return message

    def _hear(self) -> None:
        while not self._why:
            try:
                message = read(self._lines.line(LOAD_LEASE_S))
            except Silent:
                self._why = f"The coordinator has said nothing for {LOAD_LEASE_S:g} s."
            except Closed:
                self._why = "The agent has ended."
            except (WireError, OSError) as error:
                self._why = str(error)
            else:
                if "ask" in message:
                    self._came.put(message)
                    continue
                try:
                    self._say({"beat": True})  # the agent knows then that we are not stopped
                except Over as over:
                    self._why = str(over)
        self._came.put(self._why)
        if not self._closed.wait(STUCK_S):
            standing = standing_of(os.getpid())
            if standing.words:  # a coordinator that has ended the session does not wait for as long as a restart takes
                longest = f" This may take up to {standing.within_s:.0f} s." if standing.within_s else ""
                with contextlib.suppress(Over):
                    self._say({"under_way": f"{standing.words} is being put back.{longest}"[:1000]})
            if self._putting_back.acquire(timeout=GIVEN_UP_S + standing.within_s):
                if (part := self._part) is not None:  # not before: a command that puts back has our mark, too
                    identity.end_all(identity.marked(mark_of(part.lease.id)), 0.0)
                self._putting_back.release()
        if not self._closed.wait(GIVEN_UP_S):
            os._exit(1)

    def _say(self, message: Message) -> None:
        with self._saying, contextlib.suppress(OSError):  # the agent is gone, which reading reports
            if not send(self._sink, written(message), LOAD_LEASE_S):
                raise Over(f"The agent has taken nothing for {LOAD_LEASE_S:g} s.")

    def _refuse(self, number: object, error: Exception) -> None:
        fact = getattr(error, "fact", "") or f"{type(error).__name__}: {error}"
        details, remedy = (str(getattr(error, name, "")) for name in ("details", "remedy"))
        remedy = remedy[:1000]
        if self._elsewhere and isinstance(error, MissingTool | WorkloadError | TargetError):
            remedy = f"{remedy} {self._elsewhere}".strip()
        more = {"kind": type(error).__name__, "remedy": remedy, "details": details[-4000:]}
        self._say({"id": number, "error": fact[:4000], **more})

    def _close(self) -> None:
        """First what harms others, then what was changed, then what was stored. A failure stops none of the others."""
        try:
            if self._part is not None:
                self._tried(self._part.cancel)
                with self._putting_back:
                    self._tried(self._part.changing.close)
                self._tried(self._part.close)
        finally:
            self._closed.set()

    def _tried(self, work: Callable[[], object]) -> None:
        try:
            work()
        except UserError as error:
            report(str(error))


def clean_up() -> None:
    from loadframe.bench.places import revert
    from loadframe.host.leftovers import sweep

    for swept in sweep():
        report(f"An earlier command was killed; cleaned up after it: {swept}")
    for outcome in revert(again=False, before=report):
        report(f"An earlier command was killed; its changes: {outcome}")


def main() -> None:
    import signal

    no_core_dumps()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # it only ends with the pipe
        signal.signal(number, ignore)
    if sys.argv[1:] == ["--clean-up"]:
        try:
            clean_up()
        except UserError as error:
            report(str(error))
            sys.exit(1)
        return
    report(Worker(0, own_output()).work())
    os._exit(0)


if __name__ == "__main__":
    main()
