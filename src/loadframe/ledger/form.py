"""The form of a rule of the ledger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One finite thing. unit as in units.py. chain: the ids of the limits below it that cap it.

    ceiling: a metric, or "one" for a share. near: the share of the ceiling from which on the use is worth a word, and
    near_use the use itself where the source says it so; the source says where they come from. pressure: the use is a
    share of time or work that tells of a shortage, or a demand that settings make, not something that fills up: there
    is no load or time at which it runs out, and steps of a study judge it by signatures.
    """

    id: str
    title: str
    layer: str
    use: str
    ceiling: str
    unit: str
    loud: bool
    source: str
    configured: str | None = None
    thrash: str | None = None
    errors: str | None = None
    chain: tuple[str, ...] = ()
    near: float | None = None
    near_use: float | None = None
    pressure: bool = False
