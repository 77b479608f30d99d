"""The records in the state directory: JSON objects with a schema, read strictly. A file that this version cannot use is
reported with the reason, and left as it is."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.host.identity import Identity
from loadframe.host.state import Damaged, read_file

MOST_PID = 2**22
"""PID_MAX_LIMIT of 64-bit kernels (linux/threads.h)."""
MOST_TICKS = 2**63 - 1


def read_record(file: Path, kind: str, newest: int) -> tuple[int, dict[str, Any]]:
    """The version and the fields of a record "loadframe.KIND/VERSION". Raises FileNotFoundError, Damaged."""
    try:
        data = parse_json(read_file(file))
    except JsonError as error:
        raise Damaged(f"it is not JSON that can be used: {error}") from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    name, _, number = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    if name != f"loadframe.{kind}" or not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Damaged(f"its schema is not loadframe.{kind}/1 to /{newest}")
    if not 1 <= int(number) <= newest:
        raise Damaged(f"it is of version {int(number)}, and this Loadframe knows versions up to {newest}")
    return int(number), data


def check_keys(data: object, needed: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    """An object with exactly these keys. Raises Damaged."""
    if not isinstance(data, dict):
        raise Damaged(f"{str(data)[:40]!r} stands where an object belongs")
    if missing := sorted(needed - data.keys()):
        raise Damaged(f"{missing[0]!r} is missing")
    if unknown := sorted(data.keys() - needed - optional):
        raise Damaged(f"{unknown[0][:40]!r} is not a key that this version knows")
    return data


def text_of(data: Mapping[str, Any], key: str) -> str:
    """A string. Raises Damaged."""
    value = data[key]
    if not isinstance(value, str):
        raise Damaged(f"{key!r} is not text")
    return value


def folder_of(data: Mapping[str, Any], key: str) -> Path:
    """An absolute path. Raises Damaged."""
    path = Path(text_of(data, key))
    if not path.is_absolute() or ".." in path.parts:
        raise Damaged(f"{key!r} is not an absolute path")
    return path


def list_of(data: Mapping[str, Any], key: str) -> list[Any]:
    """A list, empty if missing. Raises Damaged."""
    value = data.get(key, [])
    if not isinstance(value, list):
        raise Damaged(f"{key!r} is not a list")
    return value


def texts_of(data: Mapping[str, Any], key: str) -> dict[str, str]:
    """An object of strings. Raises Damaged."""
    value = data[key]
    if not isinstance(value, dict):
        raise Damaged(f"{key!r} is not an object")
    return {name: text_of(value, name) for name in value}


def identity_of(data: object) -> Identity:
    """A process. Raises Damaged."""
    fields = check_keys(data, {"pid", "started_ticks"}, {"namespace"})
    pid, ticks = fields["pid"], fields["started_ticks"]
    for value, most in ((pid, MOST_PID), (ticks, MOST_TICKS)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise Damaged("a process has no pid and start as processes have them")
    if pid == 0:
        raise Damaged("a process has the pid 0")
    return Identity(pid, ticks, text_of(fields, "namespace") if "namespace" in fields else "")
