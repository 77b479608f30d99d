"""What the kinds of server bring: each has its rows in its own folder, and the central tables are put together from
these.

A page is a module `kinds/NAME/PAGE.py`. It only knows and touches nothing: it imports the forms beside this file, and
what is as pure. It is found by its name: a table at the bottom cannot import the kinds that it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeVar

Page = Literal["metrics", "limits", "signatures", "remedies", "frames"]
FOLDER = Path(__file__).parents[1] / "kinds"

Row = TypeVar("Row")


@cache
def _pages(page: Page) -> Mapping[str, ModuleType]:
    there = sorted(path.parent.name for path in FOLDER.glob(f"*/{page}.py"))
    return {kind: import_module(f"loadframe.kinds.{kind}.{page}") for kind in there}


def tables(page: Page, name: str, form: type[Row]) -> dict[str, Row]:
    """By the kind's folder, in alphabetical order, what each page has under this name; those without it are left out.
    TypeError for what has not this form."""
    found: dict[str, Row] = {}
    for kind, module in _pages(page).items():
        table = getattr(module, name, None)
        if table is None:
            continue
        if not isinstance(table, form):
            raise TypeError(f"{module.__name__}.{name} is a {type(table).__name__}, not a {form.__name__}")
        found[kind] = table
    return found


def rows(page: Page, name: str, form: type[Row]) -> dict[str, tuple[Row, ...]]:
    """As `tables`, of tuples of rows of this form."""
    found = tables(page, name, tuple)
    for kind, table in found.items():
        if wrong := [row for row in table if not isinstance(row, form)]:
            raise TypeError(f"kinds.{kind}.{page}.{name} has {wrong[0]!r}, which is not a {form.__name__}")
    return found
