"""The effective value of a setting, read as the study says; and whether a started service is ready."""

import http.client
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from loadframe.connections import address
from loadframe.connections.address import accepts, joined, parted
from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.errors import StudyError, TargetError
from loadframe.formats.said import why, words
from loadframe.kinds.own_counts import LogCounts
from loadframe.kinds.service import file_settings
from loadframe.kinds.service.placeholders import filled
from loadframe.model import SettingValue
from loadframe.study.exposed_tables import address_of
from loadframe.study.service_tables import ReadBackTable, ReadyTable

MOST_BYTES, WITHIN_S = 1 << 20, 10.0
FORM = "For example http://127.0.0.1:{port}/config."
TOO_HIGH = 500
LOOK_S = 2.0


def get(url: str, *, within_s: float = WITHIN_S) -> tuple[int, bytes]:
    """A GET, only to this machine: a study may come from someone else. ERRORS, StudyError."""
    try:
        asked = address_of(url)
    except ValueError as error:
        raise StudyError(str(error), remedy=FORM) from error
    place = here(asked.host, asked.port or http.client.HTTP_PORT)
    where, named = joined(place.number, place.port), joined(place.host, place.port)
    connection = Connection(where, host=named, most_bytes=MOST_BYTES, within_s=within_s, silent_s=within_s)
    with closing(connection):
        answer = connection.get(asked.path)
        return answer.status, body(answer)


def here(host: str, port: int) -> address.Place:
    """StudyError for another machine."""
    place = address.decide(host, port)
    if not place.here:
        raise StudyError(f"{host} is not this machine", remedy="A service of this machine is asked on 127.0.0.1.")
    return place


def read(
    name: str,
    table: ReadBackTable,
    values: Mapping[str, str],
    run: Callable[[Sequence[str]], str],
    text_of: Callable[[Path], str],
) -> SettingValue:
    """values: for names in braces; text_of: reads a file as the service. TargetError."""
    if table.command:
        command = [filled(word, values) for word in table.command]
        said = run(command).strip()
        if not said or len(said) > 1000 or len(said.splitlines()) > 1:
            raise _unread(name, f"`{words(' '.join(command), 200)}` printed {words(repr(said), 80)}")
        return words(said)
    if table.file:
        place, key = filled(table.file, values), table.key
        text = text_of(Path(place))
    else:
        place, key = filled(table.json_, values), table.field
        text = _answer(name, place)
    try:
        format_ = "json" if not table.file else table.format or file_settings.of_name(Path(place).name)
        value = file_settings.found(text, format_, key)
    except ValueError as error:
        no_json = f"{place} answers with what is no JSON ({words(error)})"
        raise _unread(name, f"{place}: {error}" if table.file else no_json) from error
    if value is None:
        raise _unread(name, f"{place} has no single value at {key}")
    return words(value) if isinstance(value, str) else value


def _answer(name: str, url: str) -> str:
    try:
        status, text = get(url)
    except ERRORS as error:
        raise _unread(name, f"{url} gave no answer ({why(error)})") from error
    if status != http.client.OK:
        raise _unread(name, f"{url} answers with status {status}")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise _unread(name, f"{url} answers with what is no JSON ({words(error)})") from error


def _unread(name: str, fact: str) -> TargetError:
    return TargetError(
        f"target.setting.{name}.read_back: {fact}", remedy="Correct it, or omit it: then the value is not read back."
    )


class Readiness:
    """missing: what was not there at the last look, in words that follow a colon."""

    def __init__(
        self, table: ReadyTable, values: Mapping[str, str], log: Path, run: Callable[[Sequence[str]], int]
    ) -> None:
        """values: for names in braces. log: its output; only new lines count. run: the exit status of a command."""
        self._port = int(values["port"])
        self._http, self._tcp, said = (filled(text, values) for text in (table.http, table.tcp, table.log))
        self._command = [filled(word, values) for word in table.command]
        self._said, self._run = said, run
        self._log = LogCounts(log, (said.encode(),)) if said else None
        self._before = self._log.read() if self._log is not None else {}
        self.missing = ""

    def look(self) -> bool:
        """StudyError where another machine would be asked."""
        self.missing = self._lacking()
        return not self.missing

    def _lacking(self) -> str:
        if self._log is not None and self._log.read() == self._before:
            return f"no line of its output has the words {self._said!r}"
        missing = _unanswered(self._http) if self._http else ""
        if not missing and self._tcp:
            host, port = parted(self._tcp, "80")
            missing = "" if accepts(here(host, int(port)).number, int(port)) else f"{self._tcp} accepts no connection"
        missing = missing or (self._failed() if self._command else "")
        return missing or ("" if accepts("127.0.0.1", self._port) else f"port {self._port} accepts no connection")

    def _failed(self) -> str:
        status, said = self._run(self._command), f"`{words(' '.join(self._command), 200)}`"
        if status < 0:  # our time is over; how it ended before says more
            return self.missing or f"{said} has not ended with 0"
        return f"{said} ended with exit status {status}" if status else ""


def _unanswered(url: str) -> str:
    try:
        status, _ = get(url, within_s=LOOK_S)
    except TimeoutError:
        return f"{url} gave no answer within {LOOK_S:g} s"
    except ERRORS as error:
        return f"{url} gave no answer ({why(error)})"
    return f"{url} answers with status {status}" if status >= TOO_HIGH else ""
