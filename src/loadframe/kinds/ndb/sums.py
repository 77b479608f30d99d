"""Counters of several SQL nodes as those of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LEAST = frozenset({"Ndb_number_of_ready_data_nodes", "ndb_recv_thread_activation_threshold"})
"""Which are not added up: the worst connected SQL node's counts, and the one that first receives for all."""


def added_up(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of all of them together; a counter that one of them does not tell is left out."""
    names = [name for name in each[0] if all(name in one for one in each)] if each else []
    return {name: (min if name in LEAST else sum)(one[name] for one in each) for name in names}
