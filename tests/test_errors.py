"""Every error that a user can meet says what to do."""

from __future__ import annotations

import ast

from loadframe import errors
from sources import modules

INNER = {"RecordingError"}
"""Most of these say why a metric is missing; a reader of them takes the fact alone."""
NAMES = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.UserError)}


def without_remedy(source: str) -> list[int]:
    """The lines in which an error is made without one."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    made = (node for node in calls if isinstance(node.func, ast.Name) and node.func.id in NAMES - INNER)
    return [node.lineno for node in made if not any(each.arg == "remedy" for each in node.keywords)]


def test_the_search_finds_one() -> None:
    assert without_remedy("raise TargetError('gone')\nraise TargetError('gone', remedy='Start it.')") == [1]


def test_every_error_has_a_remedy() -> None:
    found = {name: without_remedy(path.read_text()) for name, path in modules()}
    assert {name: lines for name, lines in found.items() if lines} == {}
