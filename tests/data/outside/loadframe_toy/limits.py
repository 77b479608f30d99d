"""Limits of the toy server."""

from __future__ import annotations

from loadframe.knowledge.rows import LimitRule

LIMITS = (
    LimitRule(
        id="toy.slots",
        title="the number of clients served at once",
        use="toy.slots_used",
        ceiling="toy.slots",
        source="server.py: a client that finds every slot taken waits for one",
        configured="slots",
        thrash="toy.waited",
    ),
    LimitRule(
        id="toy.waiting",
        title="requests that waited for a slot",
        use="toy.waited_share",
        ceiling="one",
        unit="share",
        source="server.py; near: half, our choice",
        configured="slots",
        near=0.5,
        pressure=True,
    ),
)
