"""The agent on each host: it answers the coordinator through stdin and stdout (wire.py), and ends with everything that
it does once stdin is closed or silent for LEASE_S. What changes or loads the host is its worker's task (worker.py): the
agent passes messages on, ends a stopped worker, and cleans up after a killed one."""

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.changes import lists
from loadframe.changes.lists import Record
from loadframe.errors import UserError
from loadframe.host.environment import NO_FOLDER, own_environment, python
from loadframe.host.signals import no_core_dumps
from loadframe.host.signals import stopped_by_signal as stopped
from loadframe.host.to_its_end import ended, last_printed
from loadframe.recording.procfs import parse_process_stat
from loadframe.system import kernel
from loadframe_fleet.links import Identity, Listener, measure
from loadframe_fleet.looking import check_is_reached, facts, route, use_of_cpus
from loadframe_fleet.wire import (
    AGENT,
    LEASE_S,
    SILENT_S,
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

CLEANED_WITHIN_S = 60.0
MOST_WORDS = 2000


@dataclass(frozen=True, slots=True)
class Standing:
    """Changes not put back, and how long that may take."""

    words: str = ""
    within_s: float = 0.0


def standing_of(owner: int) -> Standing:
    return _standing(record for record in _lists() if record.owner.pid == owner and record.alive())


def cleaned_up(given: Mapping[str, str] | None = None) -> str:
    """What the clean-up did, or could not put back, in words. given: environment of the process that left it, by
    default ours. Never raises because of what is left."""
    within_s = CLEANED_WITHIN_S + _standing(record for record in _lists() if not record.alive()).within_s
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            python("loadframe_fleet.worker", "--clean-up"), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            cwd=NO_FOLDER, env=own_environment(given), start_new_session=True,
        )  # fmt: skip
        if not ended(process, said, within_s):
            process.kill()
            process.wait()
        words = " ".join(last_printed(said).split())[-MOST_WORDS:]
    if process.returncode < 0:
        late = f"Not all of what it left was put back within {within_s:g} s; the next command there tries again"
        return f"{words} {late}".strip()
    return words


def _standing(records: Iterable[Record]) -> Standing:
    changes = [change for record in records for change in record.changes]
    if not changes:
        return Standing()
    from loadframe.bench.places import places  # imports all kinds

    known = places()
    words = ", ".join(dict.fromkeys(f"{change.setting} of {change.words}" for change in changes))
    kinds = [known[change.place["kind"]] for change in changes if change.place["kind"] in known]
    return Standing(words, sum(kind.longest_s for kind in kinds))


def _lists() -> list[Record]:
    try:
        return lists.read()
    except UserError:  # the state directory's error, reported by whoever puts back
        return []


MOST_SILENT_S = 60.0
"""Limit also for a worker that is kept waiting: a step that does not get ready is void by then."""
WAITING = frozenset("RD")
"""States of threads that run, or wait for a CPU or a disk."""
ENDS_WITHIN_S = 25.0
"""The worker gives up sooner, unless what it puts back takes longer, or it was stopped."""
POLL_S = 0.05


class Kept:
    """A worker, from the first question for it until it is closed, or has ended by itself."""

    def __init__(self, say: Callable[[bytes], None]) -> None:
        self._say = say
        self._open: set[object] = set()
        self._closing = False
        self._ended = self._stopped = ""
        self._lock = threading.Lock()
        # In a session of its own, and not signalled when we end: it must put everything back, whatever ends us.
        self._process = subprocess.Popen(
            python("loadframe_fleet.worker"), bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own_environment(), start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        self._spoke = False
        self._used = (time.monotonic(), 0.0)
        threading.Thread(target=self._pass_back, daemon=True).start()

    def pass_on(self, line: bytes, number: object = None) -> None:
        """number: of the question, None for a beat. Ends a worker that answers no beats."""
        if self._spoke and self._is_silent():
            self._end(f"the worker of its agent has done nothing for {SILENT_S:g} s")
        with self._lock:
            if self._ended:
                if number is not None:
                    self._refuse(number, self._ended)
                return
            if number is not None:
                self._open.add(number)
        with contextlib.suppress(OSError):  # it has ended, which the reading thread reports
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
        """A stopped process never ends: it is not waited for."""
        until = time.monotonic() + within_s
        while self._process.poll() is None:
            if time.monotonic() > until or stopped([self._process.pid]):
                return False
            time.sleep(POLL_S)
        return True

    def _is_silent(self) -> bool:
        """One that is kept waiting has longer, but not one that has a CPU for most of the time."""
        before, (at_s, used_s) = self._used, (time.monotonic(), cpu_s(self._process.pid))
        self._used, spins = (at_s, used_s), used_s - before[1] > (at_s - before[0]) / 2
        if self._lines.unread() or not self._lines.silent_for(SILENT_S):  # in this order: it may be read meanwhile
            return False
        return self._lines.silent_for(MOST_SILENT_S) or spins or not is_kept_waiting(self._process.pid)

    def _end(self, why: str) -> None:
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
        self._process.kill()  # no effect where it has ended
        code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        with self._lock:
            self._ended = self._stopped or f"the worker of its agent has ended by {how_ended(code)}"
            left = list(self._open)
        if self._closing:
            return
        _clean_up()
        for number in left:
            self._refuse(number, self._ended)

    def _refuse(self, number: object, why: str) -> None:
        self._say(written({"id": number, "error": why}))


def how_ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _clean_up() -> None:
    if words := cleaned_up():
        report(words)


def report(words: str) -> None:
    """Write to stderr, which may lead nowhere by now."""
    with contextlib.suppress(OSError):
        os.write(2, f"{words}\n".encode())


def is_kept_waiting(pid: int, root: Path = Path("/")) -> bool:
    """Whether one of its threads waits for a CPU or a disk, or runs (proc_pid_stat(5)). root: for recorded trees."""
    for stat in root.glob(f"proc/{pid}/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if parse_process_stat(stat.read_bytes()).state in WAITING:
                return True
    return False


def cpu_s(pid: int, root: Path = Path("/")) -> float:
    """0 for a process that has ended."""
    try:
        stat = parse_process_stat((root / f"proc/{pid}/stat").read_bytes())
    except OSError:
        return 0.0
    return (stat.user_ticks + stat.system_ticks) / kernel.PER_SECOND


LONGEST_LOOK_S = 60.0
LISTEN_S = 60.0


class Agent:
    def __init__(self, source: int, sink: int) -> None:
        self._lines = Lines(source)
        self._sink = sink
        self._writing = threading.Lock()
        self._unheard = False
        self._listener: Listener | None = None
        self._worker: Kept | None = None
        self._asked: Mapping[str, Callable[[Message], Message]] = {  # the worker has all others
            "doctor": _doctor,
            "cpus": lambda said: use_of_cpus(min(LONGEST_LOOK_S, float(said["seconds"]))),
            "listen": self._listen,
            "listen_no_more": self._listen_no_more,
            "link": lambda said: measure(said["address"], int(said["port"]), _identity(said)),
            "route": lambda said: route(said["address"]),
        }

    def work(self) -> str:
        """Returns why the coordinator is gone."""
        self._say({"schema": AGENT, **facts()})
        while True:
            if self._unheard:
                return f"The coordinator has taken nothing for {LEASE_S:g} s."
            try:
                line = self._lines.line(LEASE_S)
                at = time.time(), time.monotonic()
                message = read(line)
            except Silent:
                if self._lines.silent_for(LEASE_S):
                    return f"The coordinator has said nothing for {LEASE_S:g} s."
                continue
            except (Closed, WireError) as error:
                return str(error)
            if message.get("ask") == "clock":
                self._say({"id": message.get("id"), "answer": {"wall_s": at[0], "monotonic_s": at[1]}})
                continue
            if "beat" in message:
                self._say({"beat": True})
            question = message.get("ask", "")
            if question and question not in self._asked:
                self._worker = self._worker or Kept(self._pass)
                self._worker.pass_on(line, message.get("id"))
            elif self._worker is not None:
                self._worker.pass_on(b'{"beat": true}')
            if question in self._asked:
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()

    def _answer(self, message: Message) -> None:
        number = message.get("id")
        try:
            self._say({"id": number, "answer": self._asked[message["ask"]](message)})
        except Exception as error:  # noqa: BLE001 - whatever it is, the coordinator reports it
            self._say({"id": number, "error": f"{type(error).__name__}: {error}"[:2000]})

    def end(self) -> None:
        if self._worker is not None:
            self._worker.close()

    def _say(self, message: Message) -> None:
        self._pass(written(message))

    def _pass(self, data: bytes) -> None:
        with self._writing, contextlib.suppress(OSError):  # the coordinator is gone, which reading reports
            if not self._unheard:
                self._unheard = not send(self._sink, data, LEASE_S)

    def _listen(self, message: Message) -> Message:
        self._listen_no_more({})
        check_is_reached(message["address"])
        self._listener = Listener(message["address"], _identity(message), LISTEN_S)
        return {"port": self._listener.port}

    def _listen_no_more(self, _message: Message) -> Message:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        return {}


def _doctor(_message: Message) -> Message:
    from loadframe.machine import examine  # imports every kind and workload

    return {"missing": [row.what for row in examine() if not row.present]}


def _identity(message: Message) -> Identity:
    return Identity(message["certificate"], message["key"])


def main() -> None:
    no_core_dumps()
    agent = Agent(0, own_output())
    if why := agent.work():
        report(why)
    agent.end()
    os._exit(0)  # threads may be waiting for a link


if __name__ == "__main__":
    main()
