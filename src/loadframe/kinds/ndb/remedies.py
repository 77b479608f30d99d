"""Remedies of a MySQL Cluster. Each says what has to be restarted for it: the target does that when it is given the
setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from loadframe.kinds.ndb.settings import MANUAL, SETTINGS
from loadframe.kinds.ndb.threads import LDM_FROM, by_config
from loadframe.knowledge.remedy import Builder, Builders, Situation, enlarged, raised, server_change, text, whole
from loadframe.model import Price, Remedy

KINDS = ("ndb", "ndb-sql")
CPUS, ROOM = "cpu.saturated", 1024
"""The limit whose ceiling is the number of CPUs; bytes that an operation takes."""
POOL, MOST_CONNECTIONS, CONNECTIONS = "sql_ndb_cluster_connection_pool", 32, 8
"""As far as the API slots go; by how much a pool is multiplied, as in the story."""
EXECUTION, CONFIG, LOCKED = "MaxNoOfExecutionThreads", "ThreadConfig", "LockExecuteThreadToCPU"
RESTARTS: Mapping[str, str] = {
    "N": "the data nodes restart, one after the other where there are two copies of the data",
    "IN": "the data nodes restart one after the other, each with an empty file system",
    "S": "the whole cluster restarts",
    "": "the whole cluster restarts",
}
FEWER_COPIES = 1


def restart_of(name: str) -> str:
    """What has to be restarted for another value of a setting, in words. name: as a study has it."""
    if name.startswith("sql_"):
        return "the SQL node restarts"
    section, plain = ("tcp", name.removeprefix("tcp_")) if name.startswith("tcp_") else ("ndbd", name)
    return RESTARTS[SETTINGS[section][plain.lower()].restart]


def _more_connections(situation: Situation) -> Remedy | None:
    pool = whole(situation.effective, POOL, 0)
    after = min(CONNECTIONS * pool, MOST_CONNECTIONS)
    if situation.target_kind != "ndb-sql" or after <= pool:
        return None
    why = "each connection has a receive thread and send buffers of its own"
    return Remedy(
        id="ndb.sql_pool.raise",
        title=f"connect the SQL node to the cluster {after} times",
        addresses=("ndb.sql_pool",),
        changes=(server_change(situation, POOL, after, why),),
        price=Price(note=f"an API slot and a thread for each connection; {restart_of(POOL)}"),
        source=f"{MANUAL}ndb_cluster_connection_pool; Ronström 2010",
    )


def _more_threads(kind: str) -> Builder:
    """Twice as many of them, within the CPUs that there are."""

    def build(situation: Situation) -> Remedy | None:
        if situation.target_kind not in KINDS:
            return None
        name = CONFIG if text(situation.effective, CONFIG) else EXECUTION
        after = _config(situation, kind) if name == CONFIG else _number(situation, kind)
        if after is None:
            return None
        return Remedy(
            id=f"ndb.{kind}_threads.raise",
            title=f"twice as many threads of kind {kind} in each data node",
            addresses=(f"ndb.{kind}_threads",),
            changes=(server_change(situation, name, after, "these threads are at the limit of one CPU each"),),
            price=Price(note=f"tables stay in as many pieces as they were made in; {restart_of(name)}"),
            source=f"{MANUAL}{name}",
        )

    return build


def _config(situation: Situation, kind: str) -> str | None:
    """ThreadConfig with twice as many of a kind. None where it binds them, or where ndbmtd would not take it, or where
    there are fewer CPUs."""
    before = str(situation.effective[CONFIG])
    entry = re.search(rf"\b{kind}\b(?:\s*=\s*\{{([^}}]*)\}})?", before)
    given = entry[1] if entry is not None and entry[1] else "count=1"
    count = re.fullmatch(r"\s*count\s*=\s*(\d+)\s*", given)
    if count is None:
        return None
    more = f"{kind}={{count={2 * max(int(count[1]), 1)}}}"
    after = f"{before},{more}" if entry is None else before[: entry.start()] + more + before[entry.end() :]
    try:
        groups = by_config(after)
    except ValueError:
        return None
    wanted = sum(group.count for group in groups if group.kind == kind)
    return after if wanted <= situation.ceilings.get(CPUS, wanted) else None


def _number(situation: Situation, kind: str) -> int | None:
    """The number of execution threads from which on there are twice as many data threads; it makes none of the other
    kinds more without them."""
    now = whole(situation.effective, EXECUTION, 2)
    ldm = next(count for start, count in reversed(LDM_FROM.items()) if now >= start)
    if kind != "ldm" or 2 * ldm > situation.ceilings.get(CPUS, 2 * ldm):
        return None
    return next((start for start, count in LDM_FROM.items() if count >= 2 * ldm), None)


def _unbind(situation: Situation) -> Remedy | None:
    """Threads that are bound to fewer CPUs than there are may have all of them."""
    cpus = int(situation.ceilings.get(CPUS, 0))
    before = text(situation.effective, LOCKED)
    if situation.target_kind not in KINDS or not before or cpus < 2:
        return None
    after = f"0-{cpus - 1}"
    if before == after:
        return None
    return Remedy(
        id="ndb.threads_share_cpu.spread",
        title=f"let the execution threads of the data nodes have CPUs {after}",
        addresses=("ndb.threads_share_cpu",),
        changes=(server_change(situation, LOCKED, after, "several of them take turns on one CPU"),),
        price=Price(note=f"the SQL node and the load driver have these CPUs in common with them; {restart_of(LOCKED)}"),
        source=f"{MANUAL}{LOCKED}",
    )


def _raised(cause: str, setting: str, title: str, why: str) -> Builder:
    """A number that takes some memory."""

    def build(situation: Situation) -> Remedy | None:
        size = raised(situation, cause, setting)
        if situation.target_kind not in KINDS or size is None:
            return None
        return Remedy(
            id=f"{cause}.raise",
            title=title.format(f"{size:,}"),
            addresses=(cause,),
            changes=(server_change(situation, setting, size, why),),
            price=Price(note=f"{size * ROOM >> 20:,} MiB of memory in each data node; {restart_of(setting)}"),
            source=f"{MANUAL}{setting}",
        )

    return build


def _enlarged(cause: str, setting: str, title: str, why: str, factor: int) -> Builder:
    """A setting in bytes, within the memory that there is."""

    def build(situation: Situation) -> Remedy | None:
        found = (
            enlarged(
                situation, setting, cause, title, why, f"this much memory in each data node; {restart_of(setting)}",
                kind=kind, documentation=MANUAL, factor=factor,
            )
            for kind in KINDS
        )  # fmt: skip
        return next((one for one in found if one is not None), None)

    return build


def _longer_redo_log(situation: Situation) -> Remedy | None:
    """Files are added only to data nodes that begin with an empty file system, for which a second copy is needed."""
    name, files = "NoOfFragmentLogFiles", whole(situation.effective, "NoOfFragmentLogFiles", 0)
    if situation.target_kind not in KINDS or not files:
        return None
    if whole(situation.effective, "NoOfReplicas", FEWER_COPIES) <= FEWER_COPIES:
        return None
    return Remedy(
        id="ndb.redo_log.raise",
        title=f"{4 * files} files in each part of the redo log",
        addresses=("ndb.redo_log",),
        changes=(server_change(situation, name, 4 * files, "a local checkpoint has more time to free the log"),),
        price=Price(note=f"disk space, and a longer recovery after a crash; {restart_of(name)}"),
        source=f"{MANUAL}{name}",
    )


def _sooner_checkpoints(situation: Situation) -> Remedy | None:
    name, now = "TimeBetweenLocalCheckpoints", whole(situation.effective, "TimeBetweenLocalCheckpoints", 20)
    if situation.target_kind not in KINDS or now <= SOONEST:
        return None
    return Remedy(
        id="ndb.redo_log.free_sooner",
        title="local checkpoints as often as possible",
        addresses=("ndb.redo_log",),
        changes=(server_change(situation, name, SOONEST, "a local checkpoint frees the log"),),
        price=Price(note=f"more writing to the disk; {restart_of(name)}"),
        source=f"{MANUAL}{name}: 6 or less means without a pause",
    )


SOONEST = 6
_SPREADING: Mapping[str, Callable[[Situation], Remedy | None]] = {
    f"ndb.{kind}_threads": _more_threads(kind) for kind in ("ldm", "tc", "recv", "send")
}
OPERATIONS = "MaxNoOfConcurrentOperations"
BUILDERS: Builders = {
    "ndb.sql_pool": (_more_connections,),
    **{cause: (build,) for cause, build in _SPREADING.items()},
    "ndb.threads_share_cpu": (_unbind,),
    "ndb.send_buffers": (
        _enlarged(
            "ndb.send_buffers",
            "tcp_SendBufferMemory",
            "send buffers of {} for each link",
            "more may wait to be sent",
            8,
        ),
    ),
    "ndb.data_memory": (
        _enlarged("ndb.data_memory", "DataMemory", "{} of memory for rows and indexes", "rows need it", 4),
    ),
    "ndb.redo_log": (_longer_redo_log, _sooner_checkpoints),
    "ndb.redo_buffer": (
        _enlarged("ndb.redo_buffer", "RedoBuffer", "{} of redo buffer", "more may wait to be written", 4),
    ),
    "ndb.operations": (
        _raised(
            "ndb.operations", OPERATIONS, "{} operations at once", "what the highest level needs, and a fifth more"
        ),
    ),
    "ndb.transaction_size": (
        _raised(
            "ndb.transaction_size",
            OPERATIONS,
            "{} operations at once, and as many changes in one transaction",
            "a transaction may change as many rows as there may be operations",
        ),
    ),
    "ndb.transactions": (
        _raised(
            "ndb.transactions",
            "MaxNoOfConcurrentTransactions",
            "{} transactions at once",
            "what the highest level needs, and a fifth more",
        ),
    ),
    "ndb.transaction_memory": (
        _enlarged(
            "ndb.transaction_memory", "SharedGlobalMemory", "{} of memory that all share", "operations take it", 4
        ),
    ),
}
