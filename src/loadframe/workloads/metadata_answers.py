"""What the database of metadata-index answers, beside du and find on the same tree: once for each tree that was scanned
whole."""

from __future__ import annotations

from pathlib import Path

from loadframe.errors import MissingTool
from loadframe.indexing import comparing
from loadframe.indexing.answers import Wanted
from loadframe.indexing.comparing import Compared
from loadframe.indexing.store import Store

LARGE_BYTES = 1 << 20
"""What find looks for by its size."""
WANTED = (Wanted(type="d"), Wanted(type="f", larger_than=LARGE_BYTES))


def agreement(store: Store, tree: Path) -> tuple[tuple[Compared, ...], str]:
    """Each answer with that of du or find, and all of it in a sentence for the report. MissingTool, WorkloadError,
    StoreError."""
    try:
        found = [*comparing.compare_usage(store, tree)]
        for wanted in WANTED:
            found += comparing.compare_find(store, tree, wanted)
    except MissingTool as error:
        return (), f"The answers of the database were not compared with du and find: {error.fact}."
    disk, _, entries = found[:3]
    if all(one.equal for one in found):
        return tuple(found), (
            f"The database answers as du and find do: {entries.ours:,} entries, {disk.ours:,} bytes on the disk, "
            f"{found[5].ours:,} files of more than 1 MiB with {found[6].ours:,} bytes."
        )
    return tuple(found), "; ".join(differing(found))


def differing(found: list[Compared] | tuple[Compared, ...]) -> list[str]:
    """What is not the same, in words."""
    return [
        f"{one.answer}: the database says {one.ours:,}, du or find {one.theirs:,}"
        + (f" ({one.differences[0]})" if one.differences else "")
        for one in found
        if not one.equal
    ]
