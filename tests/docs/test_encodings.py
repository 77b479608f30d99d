"""Text is read and written in UTF-8, whatever the locale; what others wrote is read also where it is not UTF-8."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from sources import modules

PROGRAMS = frozenset({"run", "Popen", "check_output"})
OURS = frozenset({"_files", "self", "RunFolder", "place"})
"""Whose `open` is a method of ours, not Path's."""


def unnamed(text: str) -> Iterator[tuple[int, str]]:
    """The line of each call that reads or writes text, and what it does not name."""
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call):
            continue
        named = {each.arg for each in call.keywords}
        if (reads := _reads_text(call, named)) is None:
            continue
        if "encoding" not in named:
            yield call.lineno, "encoding"
        elif reads and "errors" not in named and "resources" not in ast.unparse(call):
            yield call.lineno, "errors"


def _reads_text(call: ast.Call, named: set[str | None]) -> bool | None:
    """Whether a call reads text (True) or writes it (False); None for any other."""
    name = ast.unparse(call.func).rpartition(".")[2]
    owner = ast.unparse(call.func).rpartition(".")[0].rpartition(".")[2]
    if name in PROGRAMS:
        return True if named & {"text", "universal_newlines", "encoding"} else None
    if name == "read_text":
        return None if call.args else True
    if name == "write_text":
        return None if len(call.args) > 1 else False
    if name not in ("open", "fdopen") or owner in OURS or (name, owner) == ("open", "os"):
        return None
    place = 0 if owner and name == "open" else 1
    modes = [each.value for each in call.keywords if each.arg == "mode"] + call.args[place : place + 1]
    mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "r"
    return None if "b" in str(mode) else "r" in str(mode)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("path.read_text()", "encoding"),
        ("path.read_text(encoding='utf-8')", "errors"),
        ("path.write_text(text)", "encoding"),
        ("os.fdopen(descriptor, 'w')", "encoding"),
        ("self.log.open()", "encoding"),
        ("open(name, 'a')", "encoding"),
        ("subprocess.run(command, text=True)", "encoding"),
    ],
)
def test_what_names_nothing_is_seen(text: str, missing: str) -> None:
    assert list(unnamed(text)) == [(1, missing)]


@pytest.mark.parametrize(
    "text",
    [
        "path.read_text(encoding='utf-8', errors='replace')",
        "path.open('rb')",
        "os.fdopen(descriptor, 'wb')",
        "os.open(path, flags)",
        "run.write_text(name, text)",
        "subprocess.run(command)",
    ],
)
def test_what_names_all_of_it_or_is_no_text_is_not(text: str) -> None:
    assert not list(unnamed(text))


@pytest.mark.long
def test_every_text_names_its_encoding() -> None:
    found = [
        f"{name}:{line}: names no {missing}"
        for name, path in modules()
        if not name.startswith("testing/")
        for line, missing in unnamed(path.read_text(encoding="utf-8"))
    ]
    assert found == []
