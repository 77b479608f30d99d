"""Signatures of the toy server, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.signature import OWN_CPU_BUSY, Condition, Rank, Signature, Trace

SIGNATURES = (
    Signature(
        id="toy.slots",
        rank=Rank.WORKERS,
        title="requests wait for a slot",
        present=(Condition("toy.waited", ">=", 0.5, "one request in two waits", per_request=True),),
        absent=(OWN_CPU_BUSY,),
        explanation="Each slot serves one client at a time; the others wait, while the CPUs are idle.",
        explains=("toy.slots",),
    ),
)

TRACES = {"toy.slots": Trace("toy.waited", price=False)}
"""A wait takes longer the more others wait: its price is not constant."""
