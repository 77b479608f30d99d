"""The coordinator's side of an agent: the process through which it is reached, questions and answers."""

import contextlib
import itertools
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from loadframe.errors import FleetError
from loadframe.host.environment import NO_FOLDER, environment, own_environment, python
from loadframe.host.processes import marked
from loadframe_fleet.clocks import Exchange
from loadframe_fleet.declaration import HostTable
from loadframe_fleet.wire import (
    AGENT,
    BEAT_S,
    SILENT_S,
    Closed,
    LastWords,
    Lines,
    Message,
    Say,
    Silent,
    WireError,
    read,
    send,
    written,
)

GREETED_WITHIN_S = 30.0
"""A login may take its time; ssh itself gives up a connection after CONNECT_S."""
CONNECT_S = 10
ALIVE_EVERY_S, ALIVE_MISSED = 5, 3
"""Seconds between ssh's keep-alive messages, and how many may go unanswered before it ends: TCP alone would keep ssh
running for a quarter of an hour."""
GREETING = b'{"schema"'
MOST_PRINTED = 300
NOT_FOUND = "not found", "No such file or directory"
NOT_INSTALLED = "Install Loadframe on that host, or write its path as `loadframe` in its [[host]] (now: {}). "
MOST_BEFORE_GREETING = 200
"""Lines that a login shell may print on its own."""
ENDS_WITHIN_S = 5.0
EXCHANGED_WITHIN_S = 10.0
LAST_WORDS_S = 0.5
MOST_UNDER_WAY = 1000
PLAIN = ("-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", "ControlMaster=no")
"""Without what a user's configuration has for terminals, such as keys, displays, ports. No master connection is opened,
as it would stay; an existing one is used."""
Answered = Callable[[Message, float], object]
"""Receives the answer to a question, and its time (CLOCK_MONOTONIC, s)."""


def with_last_line(why: str, printed: str) -> str:
    last = printed.strip().rpartition("\n")[2][-300:]
    return f"{why}{last and ': '}{last}"


def command(host: HostTable, ssh_config: Path | None) -> list[str]:
    """The words that start a host's agent; a shell behind ssh reads them, hence the quotes."""
    if host.here:
        return python("loadframe_fleet.agent")
    agent = [host.loadframe, "fleet", "agent"]
    if host.by:
        return [*host.by, *agent]
    options = ["-T", *PLAIN, *STRICT, "-o", f"ConnectTimeout={CONNECT_S}"]
    options += ["-o", f"ServerAliveInterval={ALIVE_EVERY_S}", "-o", f"ServerAliveCountMax={ALIVE_MISSED}"]
    return ["ssh", *_own(ssh_config), *options, "--", host.ssh, shlex.join(agent)]


def _own(ssh_config: Path | None) -> list[str]:
    return ["-F", str(ssh_config)] if ssh_config is not None else []


class Agent:
    """Threads may ask at the same time."""

    def __init__(self, host: HostTable, ssh_config: Path | None = None) -> None:
        """FleetError where it does not greet."""
        self.host = host
        self._own = _own(ssh_config)
        self._said = LastWords()
        try:
            self._process = _started(host, command(host, ssh_config), self._said.sink)
        finally:
            self._said.given()
        self._numbers = itertools.count(1)
        self._writing = threading.Lock()
        self._waiting: dict[int, Answered] = {}
        self._over = threading.Event()
        self._closed = False
        self._why = ""
        self.once_lost: Say = lambda _why: None
        """Called by another thread with why the agent is lost, unless we have closed it."""
        self.say: Say = lambda _words: None
        self._under_way = ""
        self._done = threading.Event()
        self._reading: threading.Thread | None = None
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        try:
            self.facts = self._greeting()
        except BaseException:
            self.close()
            raise
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        threading.Thread(target=self._beat, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, question: str, within_s: float, **values: object) -> Message:
        """FleetError where there is no answer in time, or it is an error."""
        return self._asked(question, within_s, values)[0]

    def exchanges(self, count: int) -> tuple[list[Exchange], list[Exchange]]:
        """Ask for the time, in turn by the wall clock, and by the monotonic one. FleetError."""
        wall: list[Exchange] = []
        monotonic: list[Exchange] = []
        until = time.monotonic() + EXCHANGED_WITHIN_S
        while len(wall) < count and (not wall or time.monotonic() < until):
            sent_wall, sent = time.time(), time.monotonic()
            answer, received = self._asked("clock", EXCHANGED_WITHIN_S, {})
            wall.append(Exchange(sent_wall, float(answer["wall_s"]), sent_wall + (received - sent)))
            monotonic.append(Exchange(sent, float(answer["monotonic_s"]), received))
        return wall, monotonic

    def post(self, question: str, values: Message, answered: Answered) -> int:
        """Does not wait; returns the question's number. answered: called by another thread."""
        number = next(self._numbers)
        self._waiting[number] = answered
        self._write({"id": number, "ask": question, **values})
        return number

    @property
    def lost(self) -> str:
        """Why nothing comes any more; "" where something may still come."""
        if not self._over.is_set():
            return ""
        return with_last_line(self._why or "its agent has gone", self._last_words())

    def close(self) -> None:
        """Close its stdin: it then ends by itself. What it is still putting back after ENDS_WITHIN_S is reported, and
        goes on without us. Idempotent."""
        self._closed = True
        self._over.set()
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._writing:  # held for SILENT_S at most
            self._process.stdin.close()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            if self._under_way:
                left = "It goes on there by itself; `loadframe changes list` on that host says what is left."
                self.say(f"Host {self.host.name}: {self._under_way} {left}")
            else:
                self._process.kill()
                self._process.wait()
        self._done.set()
        if self._reading is not None:
            self._reading.join()  # else it would read from whatever has the number of the descriptor next
        self._process.stdout.close()
        self._said.close()

    def _asked(self, question: str, within_s: float, values: Message) -> tuple[Message, float]:
        mine: queue.Queue[tuple[Message, float]] = queue.Queue()
        number = self.post(question, values, lambda *came: mine.put(came))
        until, host = time.monotonic() + within_s, f"host {self.host.name!r}"
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    message, at = mine.get(timeout=min(1.0, max(0.01, until - time.monotonic())))
                    break
                if self._over.is_set():
                    raise FleetError(
                        f"the agent on {host} has gone",
                        remedy="What it did there has ended with it. See why, and check again.",
                        details=self._last_words(),
                    )
                if time.monotonic() >= until:
                    raise FleetError(
                        f"{host} has not answered {question!r} within {within_s:g} s",
                        remedy="See whether it is overloaded or its link is cut, and check again.",
                    )
        finally:
            self._waiting.pop(number, None)
        if not isinstance(answer := message.get("answer"), dict):
            raise FleetError(
                f"{host} cannot answer {question!r}: {message.get('error', 'no answer is in it')}",
                remedy="Mend that there, and check again.",
            )
        return answer, at

    def _write(self, message: Message) -> None:
        data, why = written(message), ""
        with self._writing:
            if self._over.is_set():  # we may have closed it
                return
            assert self._process.stdin is not None
            try:
                if not send(self._process.stdin.fileno(), data, SILENT_S):
                    why = f"it has taken nothing for {SILENT_S:g} s"
            except OSError:
                why = "its agent has gone"
        if why:
            self._lose(why)

    def _greeting(self) -> Message:
        until, printed = time.monotonic() + GREETED_WITHIN_S, ""
        for _ in range(MOST_BEFORE_GREETING):
            try:
                line = self._lines.line(max(0.0, until - time.monotonic()))
            except Silent:
                raise self._unreached(f"its agent has not greeted within {GREETED_WITHIN_S:g} s", printed) from None
            except Closed:
                raise self._unreached("its agent has not started", printed) from None
            except WireError as error:
                raise self._unreached(f"{error}, and no agent's greeting has come", printed) from None
            try:
                message = read(line[max(0, line.find(GREETING)) :])
            except WireError:  # what a login shell prints; it may not end its last line
                printed = line.decode(errors="replace").strip()[:MOST_PRINTED] or printed
                continue
            if message.get("schema") == AGENT:
                return message
            if str(message.get("schema", "")).startswith("loadframe.agent/"):
                raise self._unreached(f"its Loadframe speaks {message['schema']}, this one {AGENT}")
        raise self._unreached(f"{MOST_BEFORE_GREETING} lines came, and no agent's greeting", printed)

    def _read(self) -> None:
        while not self._done.is_set() and (self._closed or not self._over.is_set()):
            try:
                message, at = self._lines.message(BEAT_S), time.monotonic()
            except Silent:
                if self._lines.silent_for(SILENT_S):
                    self._lose(f"nothing has come from it for {SILENT_S:g} s")
                continue
            except (Closed, OSError, ValueError):
                self._lose("its agent has gone")
                return
            except WireError as error:
                self._lose(f"its agent says something else: {error}")
                return
            self._under_way = str(message.get("under_way", self._under_way))[:MOST_UNDER_WAY]
            number = message.get("id")
            waiting = self._waiting.pop(number, None) if isinstance(number, int) else None
            if waiting is not None and not self._closed:
                waiting(message, at)

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            self._write({"beat": True})

    def _lose(self, why: str) -> None:
        if self._over.is_set():
            return
        self._why = why
        self._over.set()
        if not self._closed:
            self.once_lost(why)

    def _unreached(self, why: str, printed: str = "") -> FleetError:
        words = shlex.join(self._process.args) if isinstance(self._process.args, list) else ""
        said = self._last_words()
        strange = remedy_for(said, self.host.ssh, self._own) if self.host.ssh else ""
        absent = NOT_INSTALLED.format(self.host.loadframe) if any(phrase in said for phrase in NOT_FOUND) else ""
        return FleetError(
            f"host {self.host.name!r} cannot be reached: {'ssh refuses its key' if strange else why}",
            remedy=strange or f"{absent}Try it by hand: {words}",
            details="\n".join(part for part in (printed, said) if part),
        )

    def _last_words(self) -> str:
        try:
            self._process.wait(LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            return self._said.text(0.0)
        return self._said.text(LAST_WORDS_S)


def _started(host: HostTable, words: Sequence[str], said: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True,
            cwd=NO_FOLDER if host.here else host.folder, env=marked(own_environment() if host.here else environment()),
        )  # fmt: skip
    except OSError as error:
        raise FleetError(
            f"host {host.name!r} cannot be reached: {words[0]}: {error.strerror}",
            remedy="Install it (Debian: openssh-client), or correct `by` of that host." if not host.here else "",
        ) from error


STRICT = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
"""Ask nothing, as no one can answer, and accept no unknown key, whatever the user's configuration (ssh_config(5):
options on the command line take precedence)."""
REFUSED = "Host key verification failed"
"""The last words of ssh for an unknown key as well as for a changed one."""
CHANGED = "HOST IDENTIFICATION HAS CHANGED"


def remedy_for(said: str, ssh: str, own: Sequence[str]) -> str:
    """Where ssh has refused a host's key; else "". said: by ssh; own: its options; ssh: [USER@]HOST."""
    if REFUSED not in said:
        return ""
    if CHANGED in said:
        return (
            f"Go no further until the owner of {ssh} says why its key is another one: it may be another machine that "
            "answers. Then remove the old key, as the words of ssh below say, and log in once by hand."
        )
    by_hand = shlex.join(["ssh", *own, ssh])
    return (
        f"Log in once by hand, `{by_hand}`, and compare the fingerprint that it shows with the one that the owner of "
        "the host gives you; Loadframe accepts no key by itself."
    )
