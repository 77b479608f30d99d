"""The one reader and the one writer of JSON. Refused is what the rest cannot carry: the standard parser accepts NaN,
numbers beyond a float, integers of thousands of digits (or raises), and nesting up to the interpreter's stack."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

DEEPEST = 64
"""Levels of nesting. Our own deepest document, an investigation's, has 12."""
MOST_DIGITS = 20
"""An unsigned 64-bit integer has 20."""
FREE_CONTAINERS, CHARACTERS_OF_ONE = 300_000, 8
"""An empty container takes 72 bytes of memory: beyond FREE_CONTAINERS, the text must have CHARACTERS_OF_ONE characters
for each."""
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
MOST_NAMES = 10_000


class JsonError(ValueError):
    """Why the text cannot be used."""


def parse_json(text: str | bytes) -> Any:
    """JsonError for invalid text, nesting beyond DEEPEST, numbers that are not finite or have more than MOST_DIGITS, a
    NUL or half a surrogate pair."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        if text.count("{") + text.count("[") > FREE_CONTAINERS + len(text) // CHARACTERS_OF_ONE:
            raise JsonError("it has too many objects and lists for its length")
        value = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_no_number)
    except RecursionError:
        raise JsonError(f"it is nested deeper than {DEEPEST} levels") from None
    except ValueError as error:  # json.JSONDecodeError, UnicodeDecodeError, JsonError
        raise JsonError(str(error)) from error
    check_depth(value)
    for part in parts(value) if "\\u" in text else ():
        if isinstance(part, str) and (bad := _NO_CHARACTER.search(part)):
            raise JsonError(f"a string has the character U+{ord(bad[0]):04X}")
    return value


def write_json(value: Any, *, indent: int | None = None) -> str:
    """JSON text in ASCII; null for a number that is not finite; paths as text. TypeError for what JSON does not
    have."""
    encoder = _ON_ONE_LINE if indent is None else json.JSONEncoder(allow_nan=False, indent=indent, default=_path)
    try:
        return encoder.encode(value)
    except ValueError:
        return encoder.encode(_with_null(value))


def write_numbers(values: Mapping[str, float]) -> str:
    """With six digits: measurements are not more precise."""
    words = []
    for name, value in values.items():
        text = f"{value:.6g}"
        if "." not in text and "e" not in text:
            text = "null" if "n" in text else f"{text}.0"  # nan, inf; a whole one is read as a float, too
        words.append(f"{_encoded(name)}: {text}")
    return f"{{{', '.join(words)}}}"


def _path(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"JSON has nothing for {value!r}")


_ON_ONE_LINE = json.JSONEncoder(allow_nan=False, default=_path)
_encoded = lru_cache(MOST_NAMES)(_ON_ONE_LINE.encode)


def _with_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_null(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_with_null(child) for child in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_depth(value: Any, deepest: int = DEEPEST) -> None:
    """JsonError beyond `deepest` levels. Not recursive."""
    layer = [value]
    for _ in range(deepest):
        layer = [item for container in layer for item in _within(container) if isinstance(item, dict | list)]
        if not layer:
            return
    raise JsonError(f"it is nested deeper than {deepest} levels")


def parts(value: Any) -> Iterator[Any]:
    """A value, and every key and value in it. Not recursive."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += [*part, *part.values()] if isinstance(part, dict) else _within(part)


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise JsonError(f"{text[:MOST_DIGITS]}... has {len(text.lstrip('-')):,} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"{text[:40]} is beyond what a number can be")
    return value


def _no_number(word: str) -> float:
    raise JsonError(f"{word} is not a number in JSON")
