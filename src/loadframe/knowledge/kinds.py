"""What the kinds of server bring: each has its rows in its own folder, and the central tables are put together from
these.

A page is a module `kinds/NAME/PAGE.py`. It only knows and touches nothing: it imports the forms beside this file, and
what is as pure. It is found by its name: a table at the bottom cannot import the kinds that it is made of. Pages of
kinds that other distributions register come after ours (outside.py).
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from loadframe.entry_points import Flaw
from loadframe.knowledge import outside
from loadframe.knowledge.outside import Page as Page

FOLDER = Path(__file__).parents[1] / "kinds"

AT_HOME_ELSEWHERE = frozenset({"mariadb"})
"""Kinds whose rows are in the folder of another one: those of MariaDB stand beside MySQL's."""

Row = TypeVar("Row")


@cache
def _pages(page: Page) -> Mapping[str, ModuleType]:
    there = sorted(path.parent.name for path in FOLDER.glob(f"*/{page}.py"))
    return {kind: import_module(f"loadframe.kinds.{kind}.{page}") for kind in there}


_outside = cache(outside.homes)


def tables(page: Page, name: str, form: type[Row]) -> dict[str, Row]:
    """What each page has under this name; those without it are left out. First by the kind's folder, in alphabetical
    order, then of other distributions, by the first kind of each. TypeError for what has not this form."""
    found: dict[str, Row] = {}
    for kind, module in _pages(page).items():
        table = getattr(module, name, None)
        if table is None:
            continue
        if not isinstance(table, form):
            raise TypeError(f"{module.__name__}.{name} is a {type(table).__name__}, not a {form.__name__}")
        found[kind] = table
    for home in _outside():
        if (page, name) in home.tables:
            found[home.kinds[0]] = home.tables[page, name]
    return found


def rows(page: Page, name: str, form: type[Row]) -> dict[str, tuple[Row, ...]]:
    """As `tables`, of tuples of rows of this form."""
    found = tables(page, name, tuple)
    for kind, table in found.items():
        if wrong := [row for row in table if not isinstance(row, form)]:
            raise TypeError(f"kinds.{kind}.{page}.{name} has {wrong[0]!r}, which is not a {form.__name__}")
    return found


def rows_of(kind: str) -> str:
    """The name under which `tables` has what a kind's pages have, where another distribution registers several; else
    the kind itself."""
    return next((home.kinds[0] for home in _outside() if kind in home.kinds), kind)


def flaw(kind: str) -> Flaw | None:
    """Why the pages of a kind that another distribution registers are not used; None where they are, or where it has
    none."""
    return next((home.flaw for home in _outside() if kind in home.kinds), None)
