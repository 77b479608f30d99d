"""How files of rows are read."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar


def toml_rows(file: Path) -> dict[str, Any]:
    """With tuples for lists, as records have them."""
    return _parsed(file.read_text(encoding="utf-8", errors="strict"))


def _parsed(text: str) -> dict[str, Any]:
    return {name: _with_tuples(value) for name, value in tomllib.loads(text).items()}


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_tuples(inner) for name, inner in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def documents(file: Path, **words: str) -> list[tuple[str, dict[str, Any]]]:
    """With `{word}` replaced by `words`. A file that several kinds of server share: once for each, with its
    [words.KIND] and `{kind}` replaced. With each: how the names of its rows begin."""
    text = file.read_text(encoding="utf-8", errors="strict")
    kinds: dict[str, dict[str, str]] = _parsed(text).get("words", {})
    if not kinds:
        return [("", _filled(text, words))]
    return [(f"{kind}.", _filled(text, {"kind": kind, **own})) for kind, own in kinds.items()]


Row = TypeVar("Row")


def row_of(form: Callable[..., Row], name: str, columns: Mapping[str, Any]) -> Row:
    """ValueError, with its name, for one that has an unknown column."""
    try:
        return form(**columns)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


AT_HOME_ELSEWHERE: Mapping[str, str] = {"mariadb": "mysql"}
"""Kinds whose rows are in the folder of another one."""


def metric_rows(file: Path) -> str:
    """name | unit | what | source. Of a file that several kinds of server share, the rows of each."""
    rows, home = file.read_text(encoding="utf-8", errors="strict").splitlines(), file.parent.name
    if home not in AT_HOME_ELSEWHERE.values():
        return "\n".join(rows)
    kinds = (*(kind for kind, other in AT_HOME_ELSEWHERE.items() if other == home), home)
    return "\n".join(row.format(kind=kind) for kind in kinds for row in rows if row.startswith(("{kind}.", f"{kind}.")))


def _filled(text: str, words: Mapping[str, str]) -> dict[str, Any]:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return _parsed(text)
