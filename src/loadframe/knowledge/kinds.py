"""The rows of all kinds of server, of which the central tables are made. A page is a module `kinds/NAME/PAGE.py`, or
rows in `kinds/NAME/PAGE.toml` (of metrics: `metrics.txt`). A module is pure, and is found by its name, as a central
table cannot import the kinds that it is made of. Pages of other distributions' kinds come after ours (outside.py)."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from loadframe.entry_points import Flaw
from loadframe.knowledge import outside
from loadframe.knowledge.outside import IN_FILES
from loadframe.knowledge.outside import Page as Page

FOLDER = Path(__file__).parents[1] / "kinds"

Row = TypeVar("Row")


@cache
def _own(page: Page, name: str) -> Mapping[str, object]:
    """By their folders."""
    if (page, name) in IN_FILES:
        file_name, read = IN_FILES[page, name]
        return {file.parent.name: read(file) for file in sorted(FOLDER.glob(f"*/{file_name}"))}
    there = sorted(path.parent.name for path in FOLDER.glob(f"*/{page}.py"))
    modules = {kind: import_module(f"loadframe.kinds.{kind}.{page}") for kind in there}
    return {kind: getattr(module, name) for kind, module in modules.items() if hasattr(module, name)}


_outside = cache(outside.homes)


def tables(page: Page, name: str, form: type[Row]) -> dict[str, Row]:
    """In alphabetical order: ours by folder, others by their first kind. TypeError for another form."""
    by_kind: dict[str, Row] = {}
    for kind, table in _own(page, name).items():
        if not isinstance(table, form):
            raise TypeError(f"kinds.{kind}.{page}.{name} is a {type(table).__name__}, not a {form.__name__}")
        by_kind[kind] = table
    for home in _outside():
        if (page, name) in home.tables:
            by_kind[home.kinds[0]] = home.tables[page, name]
    return dict(sorted(by_kind.items()))


def rows(page: Page, name: str, form: type[Row]) -> dict[str, tuple[Row, ...]]:
    """As `tables`, of tuples of rows of this form."""
    by_kind = tables(page, name, tuple)
    for kind, table in by_kind.items():
        if wrong := [row for row in table if not isinstance(row, form)]:
            raise TypeError(f"kinds.{kind}.{page}.{name} has {wrong[0]!r}, which is not a {form.__name__}")
    return by_kind


def rows_of(kind: str) -> str:
    """The key in `tables`: the first of the kinds that its distribution registers; else itself."""
    return next((home.kinds[0] for home in _outside() if kind in home.kinds), kind)


def flaw(kind: str) -> Flaw | None:
    """Why the pages of another distribution's kind are not used."""
    return next((home.flaw for home in _outside() if kind in home.kinds), None)
