"""The form of a rule of the ledger, and how its rows are read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loadframe.knowledge.rows import documents

LAYERS = ("server", "application")
"""Of what the kinds bring, from the uppermost down."""


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One finite thing. unit as in units.py. chain: the ids of the limits below it that cap it.

    use_now: the use at this moment, where steps of a study are judged by another one: the most at once in a server's
    life is what a step reached, but not what is in use now. ceiling: a metric, or "one" for a share.
    near: the share of the ceiling from which on the use is worth a word, and near_use the use itself where the source
    says it so; the source says where they come from. pressure: the use is a share of time or work that tells of a
    shortage, or a demand that settings make, not something that fills up: there is no load or time at which it runs
    out, and steps of a study judge it by signatures. on_harm: the status once thrash or errors are counted, whatever
    the use is at this moment, for what fills and empties between two readings: "reached" where that counter is its own,
    "near" where it counts others too. now_only: why only the ledger at a moment reads it, for what the steps of a study
    do not measure; "" for a rule that both read. most: the ceiling itself, where a study states a number (`ceiling` is
    "" then). waits: whoever needs more of it waits, and nothing counts that: where it is full past a bend and not below
    it, it is suspected.
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
        """The metric that the ledger now reads."""
        return self.use_now or self.use


def limit_rules(file: Path, **words: str) -> tuple[LimitRule, ...]:
    """The rows of a TOML file of ours: a table for each, named by its id. words: filled in for `{word}`. TypeError for
    a column that a rule does not have."""
    found = []
    for kind, tables in documents(file, **words):
        rules = (
            LimitRule(id=name, **{**row, "chain": tuple(row.get("chain", ()))})
            for name, row in tables.items()
            if name != "words"
        )
        found += [rule for rule in rules if rule.id.startswith(kind)]
    return tuple(found)
