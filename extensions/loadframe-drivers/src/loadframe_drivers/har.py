"""The requests that a browser sent to one origin, as it recorded them in an HTTP Archive (HAR 1.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from loadframe.connections.http_words import REFUSED, SECRET, wrong_header, wrong_path
from loadframe.errors import StudyError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.named_files import read_up_to
from loadframe.formats.plain_numbers import is_number
from loadframe.workloads.common import AtRate, registration, thinking
from loadframe.workloads.http_driver import MOST_CONNECTIONS, Ask, Order, requirements
from loadframe.workloads.options import choice, switch, text, whole
from loadframe_drivers.recorded import Recorded, http_parts, left_out_sentences

LARGEST_BODY = 1 << 20
THOUGHT_S = 0.5
"""A pause with nothing under way for this long is the user's, not the browser's."""
LONGEST_THINK_S = 60.0
"""A longer pause: the user was away."""
MOST_OPERATIONS = 30
OTHERS = "others"
CREDENTIALS = frozenset({"cookie", "authorization"})


@dataclass(frozen=True)
class HarOptions:
    file: str = text("", "path of the HAR, as a browser saves it")
    origin: str = text("", "whose requests are sent (https://shop.example); without it that of the first one")
    think: str = choice("recorded", ("recorded", "none"), "axis sessions: pauses of the user as recorded, or none")
    keep_cookies: bool = switch(False, "the recorded headers Cookie and Authorization are sent")
    keep_alive: bool = switch(True, "connections stay open; false: a new one for each request")
    writes: bool = switch(False, "methods that change data are sent too, with their bodies")
    connections: int = whole(32, 1, MOST_CONNECTIONS, "axis rate: number of client connections")


@dataclass(frozen=True, slots=True)
class _Session:
    """left_out, dropped: reason or header -> number of requests."""

    recalled: tuple[Ask, ...]
    operations: tuple[str, ...]
    origin: str
    left_out: Mapping[str, int]
    dropped: Mapping[str, int]


class Har(Recorded[HarOptions]):
    kind = "har"
    axes = frozenset({"sessions"})
    axis_unit = "sessions"
    model = HarOptions
    order: Order = "walk"

    def set_up(self) -> None:
        super().set_up()
        self._think = self.options.think == "recorded"
        if self.options.keep_cookies and self.declared.login is not None:
            raise StudyError(
                "workload.options.keep_cookies and [workload.login]: a session comes from one of them.",
                remedy="Leave one of them out.",
            )

    @property
    def operations(self) -> tuple[str, ...]:
        """The recorded paths, each with its method; beyond MOST_OPERATIONS they share one name."""
        return self._session.operations if self.options.file else (OTHERS,)

    def think_s(self) -> float:
        if self.order != "walk":
            return 0.0
        recalled = self.recalled()
        return sum(request.think_s for request in recalled) / len(recalled)

    def recalled(self) -> Sequence[Ask]:
        return self._session.recalled

    def unchecked(self, target_kind: str) -> str:
        return "Of the answers to the recorded requests no more than the status was checked: below 400."

    def notes(self) -> tuple[str, ...]:
        session = self._session
        dropped = " and ".join(f"{name} of {count:,}" for name, count in sorted(session.dropped.items()))
        think_s = self.think_s()
        return (
            f"har: {len(session.recalled):,} requests to {session.origin} are sent, "
            + ("one after the other on one connection" if self.order == "walk" else "in any order"),
            *(f"har: {sentence}" for sentence in left_out_sentences(session.left_out)),
            *((f"har: secrets were dropped: {dropped} requests (workload.options.keep_cookies)",) if dropped else ()),
            *((thinking(think_s),) if think_s else ()),
        )

    @cached_property
    def _session(self) -> _Session:
        try:
            content = read_up_to(self.file, LARGEST_BYTES)
            if len(content) > LARGEST_BYTES:
                raise HarError(f"it has more than {LARGEST_BYTES >> 20} MiB")
            entries, strange = parse_har(content)
            if not entries:
                raise HarError("it has no request of HTTP with a time")
        except (OSError, HarError) as error:
            raise StudyError(
                f"The HAR {str(self.file)!r} cannot be used: {getattr(error, 'strerror', None) or error}.",
                remedy="Save it from a browser's network panel (HAR 1.2; workload.options.file).",
            ) from error
        origin = self.options.origin.rstrip("/") or entries[0].origin
        left_out: Counter[str] = Counter({"no request of HTTP with a time": strange} if strange else {})
        dropped: Counter[str] = Counter()
        recalled: list[Ask] = []
        names: list[str] = []
        ended_s = float("inf")
        for entry in entries:
            if why := self._why_not(entry, origin):
                left_out[why] += 1
                continue
            pause_s = entry.started_s - ended_s
            think_s = min(pause_s, LONGEST_THINK_S) if self._think and pause_s >= THOUGHT_S else 0.0
            ended_s = max(entry.ended_s, ended_s) if recalled else entry.ended_s
            names.append(f"{entry.method} {entry.path.partition('?')[0]}"[:63])
            headers, body = tuple(self._kept(entry, dropped)), entry.body.encode() if entry.method != "GET" else b""
            recalled.append(Ask(entry.method, entry.path, headers, body, highest=399, think_s=think_s))
        if not recalled:
            raise StudyError(
                f"The HAR {str(self.file)!r} has no request to {origin} that can be sent"
                f"{''.join(f'; {sentence}' for sentence in left_out_sentences(left_out))}.",
                remedy="Name another one with workload.options.origin.",
            )
        frequent = [name for name, _ in Counter(names).most_common(MOST_OPERATIONS)]
        operations = (*frequent, *([OTHERS] if len(set(names)) > len(frequent) else []))
        numbers = [frequent.index(name) if name in frequent else len(frequent) for name in names]
        requests = tuple(replace(ask, operation=number) for ask, number in zip(recalled, numbers, strict=True))
        return _Session(requests, operations, origin, left_out, dropped)

    def _why_not(self, entry: Entry, origin: str) -> str:
        if entry.origin != origin:
            return "to another origin"
        if entry.status in (0, 101):
            return "the browser had no answer of the server, or a web socket"
        if entry.status >= 400:
            return "the recorded answer was an error"
        if wrong_path(entry.path) is not None:
            return "a path that cannot be sent as it stands"
        if len(entry.body) > LARGEST_BODY:
            return f"a body of more than {LARGEST_BODY >> 20} MiB"
        return self.not_sent(entry.method)

    def _kept(self, entry: Entry, dropped: Counter[str]) -> Iterator[tuple[str, str]]:
        """Headers to send; secrets that are not sent are counted by name."""
        seen: set[str] = set()
        for name, value in entry.headers:
            known = name.lower()
            if known in SECRET and not (self.options.keep_cookies and known in CREDENTIALS):
                dropped[name.capitalize()] += 1
            elif known not in REFUSED and known not in seen and wrong_header(name, value) is None:
                seen.add(known)
                yield name, value


class HarAtRate(AtRate, Har):
    order: Order = "draw"


KIND = registration(Har, requirements, other_axes={"rate": HarAtRate}, tables=frozenset({"login"}), required=("file",))


LARGEST_BYTES = 128 << 20
"""A session of minutes has some MiB, most of them the contents of answers."""
MOST_ENTRIES = 20_000


class HarError(ValueError): ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. started_s: seconds since 1970; ended_s: when its answer had come. origin: scheme, host and port.
    path: with its query. status: of the recorded answer; 0 without one."""

    started_s: float
    ended_s: float
    origin: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int


def parse_har(text: bytes) -> tuple[tuple[Entry, ...], int]:
    """The entries by start, and the number of those without an HTTP address or a time. HarError."""
    try:
        document = parse_json(text)
    except JsonError as error:
        raise HarError(f"it is no JSON that can be read: {error}") from error
    given = _at(document, "log", "entries")
    if not isinstance(given, list):
        raise HarError("it has no log.entries")
    if len(given) > MOST_ENTRIES:
        raise HarError(f"it has {len(given):,} entries, more than {MOST_ENTRIES:,}")
    entries = [entry for recorded in given if (entry := _entry(recorded)) is not None]
    return tuple(sorted(entries, key=lambda entry: entry.started_s)), len(given) - len(entries)


def _entry(given: Any) -> Entry | None:
    address, method = _address(_at(given, "request", "url")), _at(given, "request", "method")
    started_s, response = _moment(_at(given, "startedDateTime")), _at(given, "response")
    if address is None or started_s is None or not isinstance(method, str) or not isinstance(response, dict):
        return None
    headers, text = _at(given, "request", "headers"), _at(given, "request", "postData", "text")
    status, taken_ms = response.get("status"), given.get("time")
    listed = headers if isinstance(headers, list) else []
    named = ((_at(header, "name"), _at(header, "value")) for header in listed)
    return Entry(
        started_s=started_s,
        ended_s=started_s + (max(0.0, taken_ms) / 1000 if is_number(taken_ms) else 0.0),
        origin=address[0],
        method=method.upper(),
        path=address[1],
        headers=tuple((name, value) for name, value in named if isinstance(name, str) and isinstance(value, str)),
        body=text if isinstance(text, str) else "",
        status=int(status) if is_number(status) and 0 <= status <= 599 else 0,
    )


def _at(given: Any, *names: str) -> Any:
    for name in names:
        given = given.get(name) if isinstance(given, dict) else None
    return given


def _address(url: object) -> tuple[str, str] | None:
    if not isinstance(url, str) or (address := http_parts(url)) is None:
        return None
    parts, path = address
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host:
        return None
    usual = {"http": 80, "https": 443}[parts.scheme]
    place = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{place}" + (f":{port}" if port not in (None, usual) else "")
    return origin, path


def _moment(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
