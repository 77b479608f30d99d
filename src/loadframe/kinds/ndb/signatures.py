"""Signatures of a MySQL Cluster."""

from __future__ import annotations

from collections.abc import Mapping

from loadframe.knowledge.signature import OWN_CPU_BUSY, Condition, Rank, Signature

HOT = 0.9
WHAT: Mapping[str, str] = {
    "ldm": "the data threads (ldm) of the data nodes",
    "tc": "the transaction coordinators (tc) of the data nodes",
    "recv": "the receive threads of the data nodes",
    "send": "the send threads of the data nodes",
    "main": "the main threads of the data nodes",
}
"""By the kind of thread, in words."""


def _hot(kind: str) -> Signature:
    return Signature(
        id=f"ndb.{kind}_threads",
        rank=Rank.WORKERS,
        title=f"{WHAT[kind]} are at the limit of one CPU each",
        present=(
            Condition(f"ndb.{kind}_cpu", ">=", HOT, "a thread can use one CPU at most; less a tenth, our choice"),
        ),
        absent=(OWN_CPU_BUSY,),
        explanation="The other threads wait for them, and idle CPUs cannot help.",
        explains=("cpu.hot_thread",),
    )


SIGNATURES = (
    *(_hot(kind) for kind in WHAT),
    Signature(
        id="ndb.send_buffers",
        rank=Rank.NETWORK,
        title="links between the cluster's nodes cannot send as fast as they are given work",
        present=(
            Condition(
                "ndb.send_overloads", ">=", 0.2, "one in five seconds: each lasts until the buffer is half empty"
            ),
        ),
        absent=(),
        explanation="Operations that need an overloaded link are refused and tried again by the client, or scans slow "
        "down.",
        explains_falling=True,
    ),
)
