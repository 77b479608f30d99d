"""The sources of a service's counters. While a load runs, only the bytes of an answer are kept, with the time at which
it began."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.connections.address import decide, joined
from loadframe.connections.bounds import MIB, shown
from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.errors import StudyError, UserError
from loadframe.formats.exposition import Exposed, Pick, read_json, read_lines, read_prometheus
from loadframe.formats.said import why, words
from loadframe.host.environment import NO_FOLDER, passed_on
from loadframe.host.processes import Allowance, runnable, spawn
from loadframe.host.to_its_end import until_end
from loadframe.study.exposed_tables import LOG, PORT, Address, MetricsTable

ANSWER_BYTES, ANSWER_S = 8 * MIB, 2.0
Port = Callable[[], int]
"""Where the target is loaded now: another one after each start."""
Who = Callable[[], Allowance]
Environment = Callable[[], Mapping[str, str]]


class UnreadError(Exception):
    """Why a source did not answer, or not with counters."""


@dataclass(frozen=True, slots=True)
class Taken:
    """at_s: CLOCK_MONOTONIC when the answer began. after: asked once the load had ended, so that its levels are not
    those of the load."""

    at_s: float
    data: bytes
    content_type: str = ""
    after: bool = False


class HttpSource:
    """words: its name in messages, with the port of its last reading. pick: the wanted counters. Each reading opens a
    connection: one kept open could occupy a worker of the service."""

    def __init__(self, table: MetricsTable, address: Address, pick: Pick, port: Port) -> None:
        self.words = self._text = table.prometheus or table.json_address or ""
        self.pick = pick
        self._address, self._prometheus, self._port = address, table.prometheus is not None, port

    def take(self) -> Taken:
        """UnreadError."""
        number = self._port() if self._address.port is None else self._address.port
        self.words = self._text.replace(PORT, str(number))
        try:
            place = decide(self._address.host, number)
        except StudyError as error:
            raise UnreadError(words(error.fact)) from error
        named, where = joined(place.host, place.port), joined(place.number, place.port)
        connection = Connection(where, host=named, most_bytes=ANSWER_BYTES, within_s=ANSWER_S, silent_s=ANSWER_S)
        try:
            with contextlib.closing(connection):
                answer = connection.get(self._address.path)
                at_s = time.monotonic()
                if answer.status != 200:
                    raise UnreadError(f"it answered {answer.status} {words(answer.reason, 40)}".rstrip())
                return Taken(at_s, body(answer), words(answer.getheader("Content-Type", ""), 100).lower())
        except TimeoutError as error:
            raise UnreadError(f"no answer ended within {ANSWER_S:g} s") from error
        except ERRORS as error:
            raise UnreadError(why(error)) from error

    def read(self, taken: Taken) -> Exposed:
        """ExpositionError."""
        if self._prometheus:
            return read_prometheus(taken.data, self.pick, content_type=taken.content_type)
        return read_json(taken.data, self.pick)


class CommandSource:
    """Killed, with its whole session, once it has answered or its time is over."""

    def __init__(self, command: Sequence[str], pick: Pick, port: Port, who: Who, env: Environment) -> None:
        self.words = _told(command)
        self.pick = pick
        self._command, self._port, self._who, self._env = tuple(command), port, who, env

    def take(self) -> Taken:
        at_s = time.monotonic()
        command = [word.replace(PORT, str(self._port())) if PORT in word else word for word in self._command]
        self.words = _told(command)
        try:
            allowance = self._who()
            program = command[0] if "/" in command[0] else runnable(command[0], allowance.user) or command[0]
            command = [program, *command[1:]]
            process = spawn(
                command, allowance, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=NO_FOLDER, env=self._env()
            )
        except (UserError, OSError) as error:
            raise UnreadError(words(error.fact if isinstance(error, UserError) else error)) from error
        assert process.stdout is not None
        try:
            data = until_end(process.stdout, at_s + ANSWER_S, ANSWER_BYTES)
            if len(data) > ANSWER_BYTES:
                raise UnreadError(f"its answer is longer than {shown(ANSWER_BYTES)}")
            code = process.wait(timeout=max(0.1, ANSWER_S - (time.monotonic() - at_s)))
        except subprocess.TimeoutExpired as error:
            raise UnreadError(f"it did not end within {ANSWER_S:g} s") from error
        except OSError as error:
            raise UnreadError(words(error)) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its session is its own (spawn)
            process.wait()
            process.stdout.close()
        if code != 0:
            raise UnreadError(f"it ended with exit code {code}" if code > 0 else f"it was ended by signal {-code}")
        return Taken((at_s + time.monotonic()) / 2, data)

    def read(self, taken: Taken) -> Exposed:
        return read_lines(taken.data, self.pick)


Source = HttpSource | CommandSource


def _told(command: Sequence[str]) -> str:
    return f"the command {words(' '.join(command), 80)}"


def sources_of(
    tables: Sequence[MetricsTable], first: Sequence[str], port: Port, who: Who, env: Environment = passed_on
) -> list[Source]:
    """first: names that are kept before others. who, env: for commands; TargetError where they are not known."""
    sources: list[Source] = []
    for table in (table for table in tables if table.stages is None):
        pick = Pick(tuple(table.select), tuple(table.counters), (*first, *table.requests))
        if table.address is not None:
            sources.append(HttpSource(table, table.address, pick, port))
        else:
            sources.append(CommandSource(table.command or (), pick, port, who, env))
    return sources


def stage_files(tables: Sequence[MetricsTable], log: Path | None = None) -> tuple[Path, ...]:
    named = (table.stages for table in tables if table.stages is not None)
    return tuple(path for name in named if (path := log if name == LOG else Path(name)) is not None)
