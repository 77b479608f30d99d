"""Schema names and versions of the files in a run folder, and the upgrade of older ones on reading.

Every JSON document and every JSON line begins with {"schema": "loadframe.NAME/VERSION"}. A newer version than this
program knows is refused; an older one goes through UPGRADES, one version at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from loadframe.errors import RunError

NAMES = (
    "run study bench host treatment effective step change conduct rounds investigation-record findings verdicts "
    "profile forecasts score capacity-record forecast-record survival ladder-record tuning-trial tuning-record"
)
VERSIONS = dict.fromkeys(NAMES.split(), 1)

UPGRADES: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""(name, from version) -> the body in the next version. Empty while every format is at its first version."""

OPEN_ENDED = frozenset({"forecast-record"})
"""Here an interval may have no upper end, which JSON can only write as null."""

Record = TypeVar("Record")


_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(record_type: Any) -> TypeAdapter[Any]:
    """Building one costs milliseconds: each type once."""
    if record_type not in _adapters:
        _adapters[record_type] = TypeAdapter(record_type)
    return _adapters[record_type]


def encode(name: str, record: object) -> bytes:
    """One line of JSON: the schema, then the record's fields. Numbers that are not finite become null."""
    body = _adapter(type(record)).dump_json(record)
    head = f'{{"schema":"loadframe.{name}/{VERSIONS[name]}"'.encode()
    return head + (b"," + body[1:] if body != b"{}" else b"}")


def decode(name: str, data: bytes | str, record_type: type[Record], *, where: str) -> Record:
    """The record again. RunError where the data are of another kind, of a newer version, or torn."""
    try:
        body = json.loads(data)
    except ValueError as error:
        raise RunError(f"{where} is not valid JSON: {error}", remedy="The file was damaged or cut off.") from error
    try:
        today = upgrade(name, body, where=where)
        record: Record = _adapter(record_type).validate_python(_open(today) if name in OPEN_ENDED else today)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RunError(f"{where}: {place}: {first['msg']}", remedy="The file was damaged or edited.") from error
    return record


def _open(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: math.inf if key == "high" and item is None else _open(item) for key, item in value.items()}
    return [_open(item) for item in value] if isinstance(value, list) else value


def upgrade(name: str, body: Any, *, where: str) -> dict[str, Any]:
    """The body in today's version, without its schema key."""
    schema = body.pop("schema", None) if isinstance(body, dict) else None
    prefix = f"loadframe.{name}/"
    if not isinstance(schema, str) or not schema.startswith(prefix) or not schema[len(prefix) :].isdigit():
        raise RunError(f"{where} has the schema {schema!r}, not {prefix}N", remedy="It is not a file of this kind.")
    version = int(schema[len(prefix) :])
    if version > VERSIONS[name]:
        raise RunError(
            f"{where} was written by a newer Loadframe ({schema}; this one reads up to version {VERSIONS[name]})",
            remedy="Read it with the newer version.",
        )
    while version < VERSIONS[name]:
        body = UPGRADES[name, version](body)
        version += 1
    return dict(body)
