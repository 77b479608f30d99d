"""Remedies of the bulk loader."""

from loadframe.knowledge.remedy import Builders, Situation, server_change, whole
from loadframe.model import Price, Remedy

LOADERS = 16
"""Processes that stay: each loads one file at a time; an idle one costs only its connections."""


def _pool_of_loaders(situation: Situation) -> Remedy | None:
    if whole(situation.effective, "pool", 0) > 0:
        return None
    return Remedy(
        id="bulk_loader.pool",
        title=f"keep {LOADERS} processes that load one file after the other",
        addresses=("bulk_loader.spawn_per_file",),
        changes=(server_change(situation, "pool", LOADERS, "no file needs a new process or connection"),),
        price=Price(note=f"{LOADERS} connections to each shard stay open; no more files than that are loaded at once"),
        source="Start Small and Predict (bulk-ingest story): process creation dominates the loading of small files",
    )


BUILDERS: Builders = {"bulk_loader.spawn_per_file": (_pool_of_loaders,)}
