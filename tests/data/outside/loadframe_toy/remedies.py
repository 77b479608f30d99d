"""Remedies of the toy server."""

from __future__ import annotations

from loadframe.knowledge.remedy import Builders, raised_alone

_more_slots = raised_alone(
    "toy.slots",
    "serve {} clients at once",
    "a slot for each client of the highest level, plus a fifth",
    "a thread for each slot",
    "server.py",
)
BUILDERS: Builders = {"toy.slots": (_more_slots,)}
