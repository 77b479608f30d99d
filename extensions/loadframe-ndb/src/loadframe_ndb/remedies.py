"""Each remedy says what has to be restarted for it; the target does that with the new setting."""

import re
from collections.abc import Callable, Mapping

from loadframe.knowledge.remedy import Builder, Builders, Situation, enlarged, raised, server_change, text, whole
from loadframe.model import Price, Remedy, SettingValue
from loadframe_ndb.settings import MANUAL, SETTINGS
from loadframe_ndb.threads import LDM_FROM, by_config

KINDS = ("ndb", "ndb-sql")
CPUS, ROOM = "cpu.saturated", 1024
"""The limit whose ceiling is the number of CPUs; bytes that an operation takes."""
POOL, MOST_CONNECTIONS, CONNECTIONS = "sql_ndb_cluster_connection_pool", 32, 8
"""The most by API slots; the factor by which a pool grows, as in the story."""
EXECUTION, CONFIG, LOCKED = "MaxNoOfExecutionThreads", "ThreadConfig", "LockExecuteThreadToCPU"
RESTARTS: Mapping[str, str] = {
    "N": "the data nodes restart, one after the other where there are two copies of the data",
    "IN": "the data nodes restart one after the other, each with an empty file system",
    "S": "the whole cluster restarts",
    "": "the whole cluster restarts",
}
FEWER_COPIES = 1


def restart_of(name: str) -> str:
    if name.startswith("sql_"):
        return "the SQL node restarts"
    section, plain = ("tcp", name.removeprefix("tcp_")) if name.startswith("tcp_") else ("ndbd", name)
    return RESTARTS[SETTINGS[section][plain.lower()].restart]


def _remedy(
    situation: Situation, id_: str, title: str, setting: str, value: SettingValue, why: str, costs: str, more: str = ""
) -> Remedy:
    """id_: of the remedy, its cause before the last dot. more: of the source."""
    return Remedy(
        id=id_,
        title=title,
        addresses=(id_.rpartition(".")[0],),
        changes=(server_change(situation, setting, value, why),),
        price=Price(note=f"{costs}; {restart_of(setting)}"),
        source=f"{MANUAL}{setting.removeprefix('sql_')}{more}",
    )


def _more_connections(situation: Situation) -> Remedy | None:
    pool = whole(situation.effective, POOL, 0)
    after = min(CONNECTIONS * pool, MOST_CONNECTIONS)
    if situation.target_kind != "ndb-sql" or after <= pool:
        return None
    why = "each connection has a receive thread and send buffers of its own"
    title, costs = f"connect the SQL node to the cluster {after} times", "an API slot and a thread for each connection"
    return _remedy(situation, "ndb.sql_pool.raise", title, POOL, after, why, costs, "; Ronström 2010")


def _more_threads(kind: str) -> Builder:
    def build(situation: Situation) -> Remedy | None:
        if situation.target_kind not in KINDS:
            return None
        given = text(situation.state.settings, CONFIG)
        name = CONFIG if given else EXECUTION
        after = _config(given, situation, kind) if given else _number(situation, kind)
        if after is None:
            return None
        title, id_ = f"twice as many threads of kind {kind} in each data node", f"ndb.{kind}_threads.raise"
        why = "these threads are at the limit of one CPU each"
        return _remedy(situation, id_, title, name, after, why, "tables stay in as many pieces as they were made in")

    return build


def _config(before: str, situation: Situation, kind: str) -> str | None:
    """None where the setting binds them, or ndbmtd or the CPUs do not allow it."""
    entries = re.split(r",(?![^{]*\})", before)
    own = [entry for entry in entries if entry.partition("=")[0].strip() == kind]
    counts = [re.fullmatch(r"\w+(?:=\{count=(\d+)\})?", re.sub(r"\s", "", entry)) for entry in own]
    if None in counts:
        return None
    wanted = 2 * max(sum(int(count[1] or 1) for count in counts if count is not None), 1)
    more = f"{kind}={{count={wanted}}}"
    place = entries.index(own[0]) if own else len(entries)
    after = ",".join([*entries[:place], more, *(entry for entry in entries[place:] if entry not in own)])
    try:
        by_config(after)
    except ValueError:
        return None
    return after if wanted <= situation.ceilings.get(CPUS, wanted) else None


def _number(situation: Situation, kind: str) -> int | None:
    """The number of execution threads that gives twice as many data threads; other kinds do not grow without them."""
    now = max(2, whole(situation.effective, EXECUTION, 2))
    ldm = next(count for start, count in reversed(LDM_FROM.items()) if now >= start)
    if kind != "ldm" or 2 * ldm > situation.ceilings.get(CPUS, 2 * ldm):
        return None
    return next((start for start, count in LDM_FROM.items() if count >= 2 * ldm), None)


def _unbind(situation: Situation) -> Remedy | None:
    """Threads that share CPUs may use all of the machine. Several data nodes would bind theirs to the same ones."""
    cpus = int(situation.ceilings.get(CPUS, 0))
    before = text(situation.effective, LOCKED)
    if situation.target_kind not in KINDS or not before or cpus < 2:
        return None
    after = f"0-{cpus - 1}"
    if before == after or whole(situation.effective, "NoOfReplicas", FEWER_COPIES) > FEWER_COPIES:
        return None
    title, why = f"bind the execution threads of the data node to CPUs {after}", "several of them take turns on one CPU"
    costs = "the SQL node and the load driver have these CPUs in common with them"
    return _remedy(situation, "ndb.threads_share_cpu.spread", title, LOCKED, after, why, costs)


def _raised(cause: str, title: str, wanted: Callable[[Situation], Mapping[str, int] | None]) -> Builder:
    """wanted: new values by name, the one that addresses the cause last."""

    def build(situation: Situation) -> Remedy | None:
        sizes = wanted(situation) if situation.target_kind in KINDS else None
        if not sizes:
            return None
        setting, size = list(sizes.items())[-1]
        return Remedy(
            id=f"{cause}.raise",
            title=title.format(f"{size:,}"),
            addresses=(cause,),
            changes=tuple(server_change(situation, name, value, NEEDED) for name, value in sizes.items()),
            price=Price(note=f"{size * ROOM >> 20:,} MiB of memory in each data node; {restart_of(setting)}"),
            source=f"{MANUAL}{setting}",
        )

    return build


def _operations(situation: Situation) -> Mapping[str, int] | None:
    size = raised(situation, "ndb.operations", OPERATIONS)
    return None if size is None else {OPERATIONS: size}


def _changes(situation: Situation) -> Mapping[str, int] | None:
    """The limit's own number, if set, and the number of operations, which it may not exceed."""
    size = raised(situation, "ndb.transaction_size", OPERATIONS)
    operations = whole(situation.effective, OPERATIONS, 0)
    if size is None:
        return None
    more = {OPERATIONS: size} if size > operations else {}
    return {**more, CHANGES: size} if whole(situation.effective, CHANGES, operations) < operations else more


def _transactions(situation: Situation) -> Mapping[str, int] | None:
    """There may not be more of them than operations."""
    size = raised(situation, "ndb.transactions", TRANSACTIONS)
    if size is None:
        return None
    more = {OPERATIONS: size} if size > whole(situation.effective, OPERATIONS, size) else {}
    return {**more, TRANSACTIONS: size}


def _enlarged(
    cause: str, setting: str, title: str, why: str, factor: int, pieces: Callable[[Situation], int], of: str
) -> Builder:
    """A setting in bytes, within the machine's memory. pieces: how many a data node has. of: that in words."""
    note = f"this much memory in each data node{of}; {restart_of(setting)}"
    documentation = MANUAL.removesuffix(", ")
    return enlarged(setting, cause, title, why, note, *KINDS, documentation=documentation, factor=factor, pieces=pieces)


def _longer_redo_log(situation: Situation) -> Remedy | None:
    """Files are only added to data nodes that begin with an empty file system: another must have a copy of the data."""
    name, files = "NoOfFragmentLogFiles", whole(situation.effective, "NoOfFragmentLogFiles", 0)
    if situation.target_kind not in KINDS or not files:
        return None
    if whole(situation.effective, "NoOfReplicas", FEWER_COPIES) <= FEWER_COPIES:
        return None
    title, why = f"{4 * files} files in each part of the redo log", "a local checkpoint has more time to free the log"
    costs = "disk space, and a longer recovery after a crash"
    return _remedy(situation, "ndb.redo_log.raise", title, name, 4 * files, why, costs)


def _sooner_checkpoints(situation: Situation) -> Remedy | None:
    name, now = "TimeBetweenLocalCheckpoints", whole(situation.effective, "TimeBetweenLocalCheckpoints", 20)
    if situation.target_kind not in KINDS or now <= SOONEST:
        return None
    title, why = "local checkpoints as often as possible", "a local checkpoint frees the log"
    costs, more = "more writing to the disk", ": 6 or less means without a pause"
    return _remedy(situation, "ndb.redo_log.free_sooner", title, name, SOONEST, why, costs, more)


SOONEST = 6
OPERATIONS, TRANSACTIONS, CHANGES = (
    "MaxNoOfConcurrentOperations", "MaxNoOfConcurrentTransactions", "MaxDMLOperationsPerTransaction",
)  # fmt: skip
SLOTS, PARTS = 16, 4
"""API slots where they are unknown; parts of the redo log, the default."""
ENLARGED: Mapping[str, tuple[str, str, str, int, Callable[[Situation], int], str]] = {
    "ndb.data_memory": ("DataMemory", "{} of memory for rows and indexes", "rows need it", 4, lambda _: 1, ""),
    "ndb.transaction_memory": (
        "SharedGlobalMemory", "{} of memory that all share", "operations take it", 4, lambda _: 1, "",
    ),
    "ndb.send_buffers": (
        "tcp_SendBufferMemory", "send buffers of {} for each link", "more may wait to be sent", 8,
        # of a data node: to each API slot, and to the management server and the other data nodes, which are few
        lambda situation: int(situation.ceilings.get("ndb.api_slots", SLOTS)) + 2, ", for each of its {} links",
    ),
    "ndb.redo_buffer": (
        "RedoBuffer", "{} of redo buffer", "more may wait to be written", 4,
        lambda situation: whole(situation.effective, "NoOfFragmentLogParts", PARTS),
        ", for each of {} parts of the log",
    ),
}  # fmt: skip
"""What to enlarge, by the cause: see `_enlarged`."""
NEEDED = "what the highest level needs, and a fifth more"
BUILDERS: Builders = {
    "ndb.sql_pool": (_more_connections,),
    **{f"ndb.{kind}_threads": (_more_threads(kind),) for kind in ("ldm", "tc", "recv", "send")},
    **{cause: (_enlarged(cause, *how),) for cause, how in ENLARGED.items()},
    "ndb.threads_share_cpu": (_unbind,),
    "ndb.redo_log": (_longer_redo_log, _sooner_checkpoints),
    "ndb.operations": (_raised("ndb.operations", "{} operations at once", _operations),),
    "ndb.transaction_size": (_raised("ndb.transaction_size", "{} changes in one transaction", _changes),),
    "ndb.transactions": (_raised("ndb.transactions", "{} transactions at once", _transactions),),
}
