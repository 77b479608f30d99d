"""The form of a rule for a limit, and how its rows are read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loadframe.knowledge.rows import documents, row_of

LAYERS = ("server", "application")
"""From the uppermost down."""


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One finite thing. unit: as in units.py. chain: the ids of the limits below it that cap it.

    use_now: the use at this moment, where `use` is not: the most at once in a server's life is what a step reached, but
    not what is in use now. ceiling: a metric, or "one" for a share. near: the share of the ceiling from which on a use
    is reported, and near_use the use itself, both by the source. pressure: the use is a share of time or work that
    indicates a shortage, or a demand by settings, and does not fill up: no load exhausts it, and steps of a study judge
    it by signatures. on_harm: the status once thrash or errors are counted, whatever the use is now, for what fills and
    empties between two readings: "reached" where that counter is its own, "near" where it counts others too. now_only:
    why steps of a study do not measure it; "" where they do. most: the ceiling itself, where a study gives a number
    (`ceiling` is "" then). waits: requests that need more of it wait, which nothing counts: where it is full past a
    knee and not below it, it is suspected.
    """

    id: str
    title: str
    use: str
    ceiling: str
    source: str
    layer: str = "server"
    unit: str = "count"
    loud: bool = False
    use_now: str | None = None
    configured: str | None = None
    thrash: str | None = None
    errors: str | None = None
    chain: tuple[str, ...] = ()
    near: float | None = None
    near_use: float | None = None
    pressure: bool = False
    on_harm: Literal["", "near", "reached"] = ""
    now_only: str = ""
    most: float | None = None
    waits: bool = False

    @property
    def use_at_this_moment(self) -> str:
        return self.use_now or self.use


def limit_rules(file: Path, **words: str) -> tuple[LimitRule, ...]:
    """Each a table named by its id. words: for `{word}`. ValueError for an unknown column."""
    limits = []
    for kind, tables in documents(file, **words):
        rules = (row_of(LimitRule, name, {"id": name, **row}) for name, row in tables.items() if name != "words")
        limits += [rule for rule in rules if rule.id.startswith(kind)]
    return tuple(limits)
