"""What the kinds of server bring: each has its rows in its own folder, and the central tables are put together from
these.

A page is a module `kinds/NAME/PAGE.py`, or rows in `kinds/NAME/PAGE.toml` (of metrics: `metrics.txt`). A module only
knows and touches nothing: it imports the forms beside this file, and what is as pure. It is found by its name: a table
at the bottom cannot import the kinds that it is made of. Pages of kinds that other distributions register come after
ours (outside.py).
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from loadframe.entry_points import Flaw
from loadframe.knowledge import outside
from loadframe.knowledge.frame import frame_rows
from loadframe.knowledge.limit import limit_rules
from loadframe.knowledge.outside import Page as Page
from loadframe.knowledge.rows import metric_rows
from loadframe.knowledge.signature import ruled_out_rows, signature_rows, trace_rows

FOLDER = Path(__file__).parents[1] / "kinds"

Row = TypeVar("Row")


IN_FILES: Mapping[tuple[Page, str], tuple[str, Callable[[Path], object]]] = {
    ("metrics", "ROWS"): ("metrics.txt", metric_rows),
    ("limits", "LIMITS"): ("limits.toml", limit_rules),
    ("signatures", "SIGNATURES"): ("signatures.toml", signature_rows),
    ("signatures", "TRACES"): ("signatures.toml", trace_rows),
    ("signatures", "RULED_OUT_BY"): ("signatures.toml", ruled_out_rows),
    ("frames", "FRAMES"): ("frames.toml", frame_rows),
}
"""Tables that our own kinds have as rows of a file in their folders, and what reads it."""


@cache
def _own(page: Page, name: str) -> Mapping[str, object]:
    """What our own kinds have under this name, by their folders."""
    if (page, name) in IN_FILES:
        file_name, read = IN_FILES[page, name]
        return {file.parent.name: read(file) for file in sorted(FOLDER.glob(f"*/{file_name}"))}
    there = sorted(path.parent.name for path in FOLDER.glob(f"*/{page}.py"))
    modules = {kind: import_module(f"loadframe.kinds.{kind}.{page}") for kind in there}
    return {kind: getattr(module, name) for kind, module in modules.items() if hasattr(module, name)}


_outside = cache(outside.homes)


def tables(page: Page, name: str, form: type[Row]) -> dict[str, Row]:
    """What each page has under this name; those without it are left out. First by the kind's folder, in alphabetical
    order, then of other distributions, by the first kind of each. TypeError for what has not this form."""
    found: dict[str, Row] = {}
    for kind, table in _own(page, name).items():
        if not isinstance(table, form):
            raise TypeError(f"kinds.{kind}.{page}.{name} is a {type(table).__name__}, not a {form.__name__}")
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
