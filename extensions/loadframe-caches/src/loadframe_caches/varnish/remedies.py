"""Remedies of Varnish."""

from loadframe.knowledge.remedy import Builders, Situation, enlarged, raised, round_up, server_change, text, whole
from loadframe.model import Price, Remedy

DOCUMENTATION = "varnishd(1), -s"


def _more_threads(situation: Situation) -> Remedy | None:
    total = raised(situation, "varnish.threads", "thread_pool_max")
    if total is None:
        return None
    threads = round_up(total / whole(situation.effective, "thread_pools", 2))
    return Remedy(
        id="varnish.thread_pool_max.raise",
        title=f"allow {threads:,} threads per pool",
        addresses=("varnish.threads",),
        changes=(
            server_change(
                situation, "thread_pool_max", threads, "a thread for each client of the highest level, plus a fifth"
            ),
        ),
        price=Price(note="a stack and workspaces for each thread"),
        source="varnishd -x parameter, thread_pool_max; varnish-counters(7), sess_dropped",
    )


def _more_storage(situation: Situation) -> Remedy | None:
    on_disk = text(situation.effective, "storage_kind") == "file"
    return enlarged(
        "storage_size",
        "varnish.storage",
        "store up to {}",
        "objects requested again are not fetched again",
        "disk space, taken at once" if on_disk else "memory",
        "varnish",
        documentation=DOCUMENTATION,
        on_disk=on_disk,
    )(situation)


BUILDERS: Builders = {"varnish.threads": (_more_threads,), "varnish.storage": (_more_storage,)}
