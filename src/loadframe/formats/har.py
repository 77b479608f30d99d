"""HTTP Archives (HAR 1.2) of a browser's session: its requests, in their order, with the pauses between them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.plain_numbers import is_number

LARGEST_BYTES = 128 << 20
"""A session of minutes has some MiB, most of them the contents of answers."""
MOST_ENTRIES = 20_000


class HarError(ValueError):
    """Why a text is no HAR, in words."""


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
    """The entries by start, and the number of those without an HTTP address or a time. Raises HarError."""
    try:
        document = parse_json(text)
    except JsonError as error:
        raise HarError(f"it is no JSON that can be read: {error}") from error
    log = document.get("log") if isinstance(document, dict) else None
    given = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(given, list):
        raise HarError("it has no log.entries")
    if len(given) > MOST_ENTRIES:
        raise HarError(f"it has {len(given):,} entries, more than {MOST_ENTRIES:,}")
    entries = [entry for recorded in given if (entry := _entry(recorded)) is not None]
    return tuple(sorted(entries, key=lambda entry: entry.started_s)), len(given) - len(entries)


def _entry(given: Any) -> Entry | None:
    if not isinstance(given, dict):
        return None
    request, response = given.get("request"), given.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return None
    address = _address(request.get("url"))
    started_s = _moment(given.get("startedDateTime"))
    method, status = request.get("method"), response.get("status")
    if address is None or started_s is None or not isinstance(method, str):
        return None
    headers, posted, taken_ms = request.get("headers"), request.get("postData"), given.get("time")
    listed = (header for header in (headers if isinstance(headers, list) else []) if isinstance(header, dict))
    named = ((header.get("name"), header.get("value")) for header in listed)
    text = posted.get("text") if isinstance(posted, dict) else None
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


def _address(url: object) -> tuple[str, str] | None:
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    usual = {"http": 80, "https": 443}[parts.scheme]
    place = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{place}" + (f":{port}" if port not in (None, usual) else "")
    return origin, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _moment(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
