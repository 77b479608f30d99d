"""TOML that others wrote. The standard parser takes seconds for a key of thousands of parts, and accepts numbers that
are not finite, integers of more than 64 bits, control characters: all refused here."""

import math
import re
import tomllib
from typing import Any

from loadframe.formats.json_text import JsonError, check_depth

DEEPEST = 16
"""Levels of nesting. A study has four."""
LONGEST_KEY = 32
"""Parts of a dotted key: the parser's time grows with their cube."""
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_MORE = rf"(?:[ \t]*+\.[ \t]*+{_PART})"
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}{_MORE}{{{LONGEST_KEY}}}")
"""Linear time: it does not backtrack."""
_NOT_SHOWN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class TomlError(ValueError):
    """key: where, dotted; "" if the text cannot be read so far."""

    def __init__(self, fact: str, key: str = "") -> None:
        super().__init__(fact)
        self.key = key


def parse_toml(text: str) -> dict[str, Any]:
    """TomlError for invalid text, and for what this program cannot carry."""
    if long_key := _LONG_KEY.search(text):
        raise TomlError(f"the key {long_key[0][:40]}... has more than {LONGEST_KEY} parts")
    try:
        tables = tomllib.loads(text)
        check_depth(tables, DEEPEST)
    except RecursionError:
        raise TomlError(f"it is nested deeper than {DEEPEST} levels") from None
    except (tomllib.TOMLDecodeError, JsonError) as error:
        raise TomlError(str(error)) from None
    except ValueError:  # of int(), for more digits than it takes
        raise TomlError("it has a whole number of thousands of digits") from None
    _check_values(tables)
    return tables


def _check_values(tables: dict[str, Any]) -> None:
    waiting: list[tuple[str, Any]] = [("", tables)]
    while waiting:
        key, value = waiting.pop()
        match value:
            case dict():
                check_characters(key, "".join(value))
                waiting += [(f"{key}.{name}" if key else name, item) for name, item in value.items()]
            case list():
                waiting += [(key, item) for item in value]
            case str():
                check_characters(key, value)
            case int():
                if not -(2**63) <= value < 2**63:
                    raise TomlError("it is a whole number of more than 64 bits", key)
            case float():
                if not math.isfinite(value):
                    raise TomlError(f"{value} is not a finite number", key)


def check_characters(key: str, text: str) -> None:
    """TomlError for what can be no file name, cannot be printed, or would control a terminal: control characters other
    than tab and line ends, and halves of surrogate pairs."""
    if bad := _NOT_SHOWN.search(text):
        raise TomlError(f"its text has the character U+{ord(bad[0]):04X}, which cannot be shown", key)
