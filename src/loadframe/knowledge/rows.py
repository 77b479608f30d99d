"""How files of rows are read."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def documents(file: Path, **words: str) -> list[tuple[str, dict[str, Any]]]:
    """What a TOML file of ours says. words: filled in for `{word}`. Of several kinds of server that share it, once for
    each, with its [words.KIND] and `{kind}` filled in; with what the names of its rows begin with, "" for those of all.
    """
    text = file.read_text(encoding="utf-8", errors="strict")
    kinds: dict[str, dict[str, str]] = tomllib.loads(text).get("words", {})
    if not kinds:
        return [("", _filled(text, words))]
    return [(f"{kind}.", _filled(text, {"kind": kind, **own})) for kind, own in kinds.items()]


def _filled(text: str, words: Mapping[str, str]) -> dict[str, Any]:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return tomllib.loads(text)
