"""The value of a setting that a service really uses, as its study says where to read it."""

import http.client
from collections.abc import Callable, Sequence
from pathlib import Path

from loadframe.connections import address
from loadframe.connections.host_port import joined
from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.errors import StudyError, TargetError
from loadframe.formats.said import words
from loadframe.kinds.service import formats
from loadframe.model import SettingValue
from loadframe.study.exposed_tables import address_of
from loadframe.study.service_tables import ReadBackTable

MOST_BYTES, WITHIN_S = 1 << 20, 10.0
FORM = "For example http://127.0.0.1:{port}/config."
Run = Callable[[Sequence[str]], str]
"""Runs a command as the service's user, and answers what it prints. TargetError."""


def get(url: str, *, within_s: float = WITHIN_S) -> tuple[int, bytes]:
    """One GET to this machine: a study may come from someone else. Status and body. ERRORS, StudyError."""
    try:
        asked = address_of(url)
    except ValueError as error:
        raise StudyError(str(error), remedy=FORM) from error
    place = here(asked.host, asked.port or http.client.HTTP_PORT)
    where, named = joined(place.number, place.port), joined(place.host, place.port)
    connection = Connection(where, host=named, most_bytes=MOST_BYTES, within_s=within_s, silent_s=within_s)
    try:
        answer = connection.get(asked.path)
        return answer.status, body(answer)
    finally:
        connection.close()


def here(host: str, port: int) -> address.Place:
    """Where a service of this machine is. StudyError for another machine."""
    place = address.decide(host, port)
    if not place.here:
        raise StudyError(f"{host} is not this machine", remedy="A service of this machine is asked on 127.0.0.1.")
    return place


def read(
    name: str, table: ReadBackTable, run: Run, fill: Callable[[str], str], text_of: Callable[[Path], str]
) -> SettingValue:
    """The value in use. fill: puts values into what stands in braces. text_of: a file, as the service's user reads it;
    TargetError. TargetError where it cannot be read."""
    if table.command:
        command = [fill(word) for word in table.command]
        said = run(command).strip()
        if not said or len(said) > 1000 or len(said.splitlines()) > 1:
            raise _unread(name, f"`{words(' '.join(command), 200)}` printed {words(repr(said), 80)}")
        return words(said)
    if table.file:
        place, key = fill(table.file), table.key
        text = text_of(Path(place))
    else:
        place, key = fill(table.json_), table.field
        text = _answer(name, place)
    try:
        format_ = "json" if not table.file else table.format or formats.of_name(Path(place).name)
        value = formats.found(text, format_, key)
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
        raise _unread(name, f"{url} gave no answer ({words(error) or type(error).__name__})") from error
    if status != http.client.OK:
        raise _unread(name, f"{url} answers with status {status}")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise _unread(name, f"{url} answers with what is no JSON ({words(error)})") from error


def _unread(name: str, why: str) -> TargetError:
    return TargetError(
        f"target.setting.{name}.read_back: {why}", remedy="Correct it, or omit it: then the value is not read back."
    )
