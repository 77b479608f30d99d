"""Remedies of Squid."""

from loadframe.knowledge.remedy import (
    OTHER_FILES,
    Builders,
    Situation,
    enlarged,
    link,
    raised,
    raised_alone,
    server_change,
    whole,
)
from loadframe.model import Price, Remedy

DOCUMENTED = "squid.conf.documented"
RESERVED = 100
"""Descriptors that it keeps for work in progress, at most (mgr:info)."""


def _more_connections(situation: Situation) -> Remedy | None:
    if whole(situation.effective, "client_ip_max_connections", -1) < 0:
        return None
    return raised_alone(
        "squid.client_ip_max_connections",
        "allow {} connections per client",
        "a connection for each client of the highest level, plus a fifth",
        "descriptors for each connection",
        f"{DOCUMENTED}, client_ip_max_connections",
    )(situation)


def _more_descriptors(situation: Situation) -> Remedy | None:
    limit = "squid.max_filedescriptors"
    wanted = raised(situation, limit, "max_filedescriptors")
    if wanted is None:
        return None
    files = min(wanted + RESERVED + OTHER_FILES, situation.most_open_files)
    if files <= whole(situation.effective, "max_filedescriptors", 0):
        return None
    return Remedy(
        id=f"{limit}.raise",
        title=f"allow {files:,} descriptors",
        addresses=(limit,),
        changes=(
            link(situation, "process", "RLIMIT_NOFILE", files, "max_filedescriptors cannot exceed it"),
            server_change(
                situation, "max_filedescriptors", files, "a client's connection, and a file or an origin's for it"
            ),
        ),
        price=Price(note="memory for a table of descriptors"),
        source=f"{DOCUMENTED}, max_filedescriptors",
    )


_more_memory = enlarged(
    "cache_mem",
    "squid.cache_mem",
    "keep up to {} of objects in memory",
    "objects requested again are neither read nor fetched again",
    "memory",
    "squid",
    documentation=DOCUMENTED,
)
_more_disk = enlarged(
    "cache_dir_size",
    "squid.cache_dir_size",
    "store up to {}",
    "objects requested again are not fetched again",
    "disk space; the cache starts empty where cache_dir_kind is rock",
    "squid",
    documentation=DOCUMENTED,
    on_disk=True,
)
BUILDERS: Builders = {
    "squid.client_ip_max_connections": (_more_connections,),
    "squid.max_filedescriptors": (_more_descriptors,),
    "squid.cache_mem": (_more_memory,),
    "squid.cache_dir_size": (_more_disk,),
}
