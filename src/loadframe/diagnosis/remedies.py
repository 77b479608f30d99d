"""Remedies: ordered chains of changes that should lift a limit, sized from what was measured.

Each is a small function from the situation to a chain, registered under the finding ids that it addresses. A chain
names every link that has to hold, in the order in which they must be raised; a link that already suffices is named
too, with `needed` false. Remedies without a price come before those that give something up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from loadframe.model import Change, Finding, Layer, Price, Remedy, SettingValue, TargetState
from loadframe.units import IN_FRONT, show

OTHER_FILES = 100
"""Files besides connections and cached tables. mysqld's arithmetic takes 10 for itself; MariaDB 10.11 was seen to take
31 (12,000 tables asked for under 20,000 files and 151 connections: 9,909 given), and logs and temporary tables come
on top. In the render-farm story: 65,000 files for 30,000 tables, "leave room for overhead"."""
RESERVE = 1.2
"""A raised ceiling covers the use expected at the highest level asked for, and a fifth more."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a remedy is made from. effective: settings and process limits as the target uses them now.

    demands: limit id -> the use expected at the highest level if nothing capped it (None: not estimable).
    ceilings: limit id -> the ceiling in effect. most_open_files: what this machine lets a process have at most.
    """

    target_kind: str
    state: TargetState
    effective: Mapping[str, SettingValue]
    demands: Mapping[str, float | None]
    ceilings: Mapping[str, float]
    most_open_files: int = 2**31 - 1


Builder = Callable[[Situation], Remedy | None]


def propose(findings: Sequence[Finding], situation: Situation) -> tuple[Remedy, ...]:
    """Remedies for these findings, those of the first finding first; among one finding's, the free ones first."""
    chosen: dict[str, Remedy] = {}
    for finding in findings:
        remedies = [remedy for build in BUILDERS.get(finding.id, ()) if (remedy := build(situation)) is not None]
        for remedy in sorted(remedies, key=lambda remedy: remedy.price.durability is not None):
            chosen.setdefault(remedy.id, remedy)
    return tuple(chosen.values())


def resized(remedy: Remedy, situation: Situation, limit: str, demand: float) -> Remedy | None:
    """The same remedy made for another demand on a limit that it addresses; None where there is none for that."""
    other = replace(situation, demands={**situation.demands, limit: demand})
    made = [build(other) for build in BUILDERS.get(limit, ())]
    return next((one for one in made if one is not None and one.id == remedy.id), None)


# --- MariaDB --------------------------------------------------------------------------------------------------------


def _raise_table_open_cache(situation: Situation) -> Remedy | None:
    size = _raised(situation, "mariadb.table_open_cache", "table_open_cache")
    if size is None:
        return None
    others = OTHER_FILES + _whole(situation.effective, "max_connections", 151)
    most = (situation.most_open_files - others) // 2
    if most <= situation.ceilings["mariadb.table_open_cache"]:
        return None  # the machine allows no more files: the chain ends at its hard limit
    note = "each open table takes memory and, for most engines, two file descriptors"
    if size > most:
        note += (
            f"; {size:,} tables are wanted, the {situation.most_open_files:,} files this machine allows hold {most:,}"
        )
        size = most
    files = others + 2 * size
    return Remedy(
        id="mariadb.table_open_cache.raise",
        title=f"let the table cache hold {size:,} tables",
        addresses=("mariadb.table_open_cache",),
        changes=(
            *_file_chain(situation, files, "expect two files per cached table, and one for each connection"),
            _server_change(
                situation, "table_open_cache", size, "the tables that the highest level keeps in use, and a fifth more"
            ),
        ),
        price=Price(note=note),
        source="mysqld's start-up arithmetic: files = max_connections + 2 x table_open_cache, and room for others",
    )


def _raise_table_definition_cache(situation: Situation) -> Remedy | None:
    return _raised_alone(
        situation,
        "mariadb.table_definition_cache",
        "let the table definition cache hold {} definitions",
        "the tables in use at the highest level, and a fifth more",
        "each cached definition takes memory",
        "MariaDB documentation, table_definition_cache",
    )


def _raise_max_connections(situation: Situation) -> Remedy | None:
    size = _raised(situation, "mariadb.max_connections", "max_connections")
    if size is None:
        return None
    files = max(OTHER_FILES + size + 2 * _whole(situation.effective, "table_open_cache", 2000), 5 * size)
    return Remedy(
        id="mariadb.max_connections.raise",
        title=f"allow {size:,} connections",
        addresses=("mariadb.max_connections",),
        changes=(
            *_file_chain(situation, files, "each connection needs a descriptor besides the cached tables"),
            _server_change(
                situation, "max_connections", size, "the connections that the highest level opens, and a fifth more"
            ),
        ),
        price=Price(note="each connection takes a thread and its buffers"),
        source="mysqld's start-up arithmetic: files = max(10 + C + 2 T, 5 C)",
    )


def _raise_open_files(situation: Situation) -> Remedy | None:
    files = _raised(situation, "process.open_files", "RLIMIT_NOFILE")
    if files is None or situation.target_kind != "mariadb":
        return None
    files = min(files, situation.most_open_files)
    if files <= situation.ceilings["process.open_files"]:
        return None  # the machine allows no more
    return Remedy(
        id="process.open_files.raise",
        title=f"let the target open {files:,} files",
        addresses=("process.open_files", "mariadb.open_files_limit"),
        changes=_file_chain(situation, files, "the files open at the highest level, and a fifth more"),
        price=Price(note="kernel memory for each open file"),
        source="getrlimit(2), RLIMIT_NOFILE",
    )


def _raise_buffer_pool(situation: Situation) -> Remedy | None:
    return _enlarged(
        situation,
        "innodb_buffer_pool_size",
        "mariadb.buffer_pool",
        "give the buffer pool {}",
        "pages that are asked for again stay in memory",
        "memory, which the server takes as it is filled",
    )


def _raise_redo_log(situation: Situation) -> Remedy | None:
    return _enlarged(
        situation,
        "innodb_log_file_size",
        "mariadb.redo_log",
        "let the redo log hold {}",
        "pages are written less often before the log can go on",
        "disk space, and a longer recovery after a crash",
    )


ENLARGE = 8
"""How much of these is needed shows only once there is enough: a factor that is felt, and small against a machine."""
DOCUMENTATION = {"mariadb": "MariaDB documentation", "postgres": "PostgreSQL documentation"}
MEMORY_SHARE = 0.5
"""No more than half of the memory that there is: connections, caches and the rest of the machine need the other."""


def _enlarged(
    situation: Situation,
    setting: str,
    cause: str,
    title: str,
    why: str,
    note: str,
    *,
    kind: str = "mariadb",
    factor: int = ENLARGE,
) -> Remedy | None:
    """Several times as much of a setting in bytes, within half of the memory that the machine or the cage has."""
    size = _whole(situation.effective, setting, 0)
    if situation.target_kind != kind or not size:
        return None
    memory = min(situation.ceilings.get(name, math.inf) for name in ("system.memory", "cage.memory"))
    after = int(min(factor * size, MEMORY_SHARE * memory)) >> 20 << 20
    if after <= size:
        return None
    return Remedy(
        id=f"{cause}.raise",
        title=title.format(f"{after >> 20:,} MiB"),
        addresses=(cause,),
        changes=(_server_change(situation, setting, after, why),),
        price=Price(note=note),
        source=f"{DOCUMENTATION[kind]}, {setting}",
    )


def _flush_log_each_second(situation: Situation) -> Remedy | None:
    if situation.target_kind != "mariadb" or _text(situation.effective, "innodb_flush_log_at_trx_commit") != "1":
        return None
    return Remedy(
        id="mariadb.flush_log_each_second",
        title="flush the redo log once a second instead of at each commit",
        addresses=("disk.fsync",),
        changes=(
            _server_change(situation, "innodb_flush_log_at_trx_commit", 2, "commits no longer wait for the disk"),
        ),
        price=Price(
            durability="about the last second of commits may be lost when the machine loses power; "
            "a crash of the server alone loses nothing"
        ),
        source="MariaDB documentation, innodb_flush_log_at_trx_commit",
    )


def _file_chain(situation: Situation, files: int, why: str) -> tuple[Change, ...]:
    """The two links below every setting of MariaDB that costs descriptors, in the order in which they are raised."""
    return (
        _link(situation, "process", "RLIMIT_NOFILE", files, f"the server can have no more than the process: {why}"),
        _link(situation, "server", "open_files_limit", files, f"the server cuts its caches to this silently: {why}"),
    )


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


def _raise_postgres_connections(situation: Situation) -> Remedy | None:
    return _raised_alone(
        situation,
        "postgres.max_connections",
        "allow {} connections",
        "the connections that the highest level opens, and a fifth more",
        "each connection is a process with memory of its own; needs a restart",
        "PostgreSQL documentation, max_connections",
    )


def _raise_shared_buffers(situation: Situation) -> Remedy | None:
    return _enlarged(
        situation,
        "shared_buffers",
        "postgres.shared_buffers",
        "give the shared buffers {}",
        "pages that are asked for again stay in memory",
        "memory, which the server takes as it is filled; needs a restart",
        kind="postgres",
    )


def _raise_max_wal_size(situation: Situation) -> Remedy | None:
    return _enlarged(
        situation,
        "max_wal_size",
        "postgres.checkpoints",
        "let the write-ahead log grow to {}",
        "checkpoints come less often, so fewer pages go whole into the log",
        "disk space, and a longer recovery after a crash",
        kind="postgres",
        factor=32,
    )


def _commit_without_waiting(situation: Situation) -> Remedy | None:
    asks = _text(situation.effective, "synchronous_commit")
    if situation.target_kind != "postgres" or asks == "off" or _text(situation.effective, "fsync") == "false":
        return None
    return Remedy(
        id="postgres.synchronous_commit.off",
        title="let commits not wait for the disk",
        addresses=("disk.fsync",),
        changes=(_server_change(situation, "synchronous_commit", "off", "commits no longer wait for the disk"),),
        price=Price(
            durability="the last commits, of up to three times wal_writer_delay (0.6 s), may be lost when the server "
            "or the machine dies; the database stays sound"
        ),
        source="PostgreSQL documentation, Asynchronous Commit",
    )


# --- nginx ----------------------------------------------------------------------------------------------------------

NGINX = ("nginx", "nginx-cache")
"""As a web server, and as a cache."""

FILES_PER_CONNECTION = 2
"""A client's connection, and a file or an origin's connection for it."""


def _raise_worker_connections(situation: Situation) -> Remedy | None:
    limit, workers = "nginx.worker_connections", _whole(situation.effective, "worker_processes", 1)
    ceiling = situation.ceilings.get(limit)
    if situation.target_kind not in NGINX or ceiling is None:
        return None
    wanted = max(RESERVE * (situation.demands.get(limit) or 4 * ceiling), 2 * ceiling)
    each = _round_up(OTHER_CONNECTIONS + wanted / workers)
    files = OTHER_FILES + FILES_PER_CONNECTION * each
    return Remedy(
        id=f"{limit}.raise",
        title=f"let each worker have {each:,} connections",
        addresses=(limit,),
        changes=(
            *_worker_files(situation, files, "a descriptor for each connection, and one for its file"),
            _server_change(
                situation, "worker_connections", each, "the connections of the highest level, and a fifth more"
            ),
        ),
        price=Price(note="memory for each connection in every worker, from the start"),
        source="nginx documentation, worker_connections: it cannot exceed the limit on open files",
    )


OTHER_CONNECTIONS = 10
"""What nginx listens on, the channel to its master, and somebody who looks."""


def _raise_worker_files(situation: Situation) -> Remedy | None:
    if situation.target_kind not in NGINX:
        return None
    connections = _whole(situation.effective, "worker_connections", 512)
    files = max(
        OTHER_FILES + FILES_PER_CONNECTION * connections, 2 * _whole(situation.effective, "worker_rlimit_nofile", 0)
    )
    files = min(_round_up(files), situation.most_open_files)
    if files <= _whole(situation.effective, "worker_rlimit_nofile", 0):
        return None  # the machine allows no more
    return Remedy(
        id="nginx.worker_rlimit_nofile.raise",
        title=f"let each worker open {files:,} files",
        addresses=("nginx.worker_rlimit_nofile", "process.open_files"),
        changes=_worker_files(situation, files, "two for each connection of a worker, and others"),
        price=Price(note="kernel memory for each open file"),
        source="nginx-proxy/nginx-proxy, issue 2387: at least twice worker_connections",
    )


def _worker_files(situation: Situation, files: int, why: str) -> tuple[Change, ...]:
    """The links below what costs nginx descriptors, in the order in which they are raised."""
    return (
        _link(situation, "process", "RLIMIT_NOFILE", files, f"a worker can have no more than the process: {why}"),
        _link(situation, "server", "worker_rlimit_nofile", files, why),
    )


def _more_workers(situation: Situation) -> Remedy | None:
    limits = ("process.cpus", "cage.cpu_quota", "cpu.saturated")
    allowed = min(situation.ceilings.get(name, math.inf) for name in limits)
    now = _whole(situation.effective, "worker_processes", 1)
    if situation.target_kind not in NGINX or not now < allowed < math.inf:
        return None
    cpus = math.ceil(allowed)
    return Remedy(
        id="nginx.worker_processes.raise",
        title=f"start {cpus} workers",
        addresses=("nginx.worker_processes",),
        changes=(_server_change(situation, "worker_processes", cpus, "one for each CPU that it may use"),),
        price=Price(note="the CPUs are nobody else's meanwhile"),
        source="nginx documentation, worker_processes",
    )


def _read_in_threads(situation: Situation) -> Remedy | None:
    if situation.target_kind not in NGINX or _text(situation.effective, "aio") == "threads":
        return None
    return Remedy(
        id="nginx.aio.threads",
        title="read files in threads of their own",
        addresses=("nginx.blocked_workers",),
        changes=(_server_change(situation, "aio", "threads", "a worker serves others while the disk is read"),),
        price=Price(note="32 threads in each worker; a file that is in memory takes a little longer"),
        source="nginx documentation, aio: threads",
    )


def _keep_connections(situation: Situation) -> Remedy | None:
    if situation.target_kind not in NGINX:
        return None
    defaults = {"keepalive_timeout": 75, "keepalive_requests": 1000}
    changes = tuple(
        _server_change(situation, name, value, "the default: clients ask again over the same connection")
        for name, value in defaults.items()
        if _whole(situation.effective, name, value) < value
    )
    if not changes:
        return None  # it is the clients that do not keep them
    return Remedy(
        id="nginx.keepalive.raise",
        title="keep connections open for the next request",
        addresses=("nginx.keepalive",),
        changes=changes,
        price=Price(note="idle clients keep a connection of a worker"),
        source="nginx documentation, keepalive_requests, keepalive_timeout",
    )


# --- SQLite ---------------------------------------------------------------------------------------------------------


def _write_ahead_log(situation: Situation) -> Remedy | None:
    if situation.target_kind != "sqlite" or _text(situation.effective, "journal_mode") in ("wal", "memory", "off"):
        return None
    return Remedy(
        id="sqlite.journal_mode.wal",
        title="commit to a write-ahead log",
        addresses=("disk.fsync", "lock.writer"),
        changes=(
            _server_change(situation, "journal_mode", "WAL", "one append and one flush per commit instead of several"),
        ),
        price=Price(note="two more files beside the database; every process that uses it must be on this machine"),
        source="SQLite, Write-Ahead Logging",
    )


def _synchronous_normal(situation: Situation) -> Remedy | None:
    full = _text(situation.effective, "synchronous") in ("full", "2", "extra", "3")
    if situation.target_kind != "sqlite" or not full or _text(situation.effective, "journal_mode") != "wal":
        return None
    return Remedy(
        id="sqlite.synchronous.normal",
        title="flush at checkpoints only",
        addresses=("disk.fsync", "lock.writer"),
        changes=(_server_change(situation, "synchronous", "NORMAL", "commits no longer wait for the disk"),),
        price=Price(
            durability="the last commits may be lost when the machine loses power; "
            "the database is never corrupted by it"
        ),
        source="SQLite, PRAGMA synchronous: with WAL, NORMAL is consistent but not durable across power loss",
    )


LOADERS = 16
"""Processes that stay: each loads one file at a time, and one that waits for a file costs only its connections."""


def _pool_of_loaders(situation: Situation) -> Remedy | None:
    if situation.target_kind != "bulk-loader" or _whole(situation.effective, "pool", 0) > 0:
        return None
    return Remedy(
        id="bulk_loader.pool",
        title=f"keep {LOADERS} processes that load one file after the other",
        addresses=("spawn.per_file",),
        changes=(_server_change(situation, "pool", LOADERS, "no process and no connection is made for a file"),),
        price=Price(note=f"{LOADERS} connections to each shard stay open; no more files than that are loaded at once"),
        source="Start Small and Predict (bulk-ingest story): process creation dominates the loading of small files",
    )


def _busy_timeout(situation: Situation) -> Remedy | None:
    waits = _whole(situation.effective, "busy_timeout", 0)
    if situation.target_kind != "sqlite" or waits >= 5000:
        return None
    return Remedy(
        id="sqlite.busy_timeout.raise",
        title="let a request wait for the lock",
        addresses=("lock.busy_errors",),
        changes=(_server_change(situation, "busy_timeout", 5000, "wait for the lock instead of failing at once"),),
        price=Price(note="a request may take up to five seconds before it fails"),
        source="SQLite, PRAGMA busy_timeout",
    )


# --- the cage -------------------------------------------------------------------------------------------------------

MIB = 1 << 20
QUOTA_PERIOD_US = 100_000
"""cpu.max is CPU time per period of this length."""


@dataclass(frozen=True, slots=True)
class CageLimit:
    """A limit of the private cage: its name in version 2, how many of its units are one of the ledger's, and the
    ledger's limit that ends it (a cage cannot give more than the machine has). rate: what would be used of it without
    the limit is not known; of what is held at once (memory, processes) it can be estimated."""

    setting: str
    words: str
    scale: float = 1.0
    ends_at: str | None = None
    rate: bool = True
    whose: str = "the cage"


OF_THE_TARGET: Mapping[str, CageLimit] = {
    "cage.cpu_quota": CageLimit("cpu.max", "{:,.3g} CPUs' worth of time", QUOTA_PERIOD_US, "cpu.saturated"),
    "cage.memory": CageLimit("memory.max", "{} of memory", ends_at="system.memory", rate=False),
    "cage.pids": CageLimit("pids.max", "{:,.0f} processes and threads", rate=False),
    "cage.read_bytes": CageLimit("io.rbps", "{:,.0f} bytes/s read"),
    "cage.write_bytes": CageLimit("io.wbps", "{:,.0f} bytes/s written"),
    "cage.reads": CageLimit("io.riops", "{:,.0f} disk reads/s"),
    "cage.writes": CageLimit("io.wiops", "{:,.0f} disk writes/s"),
}
CAGE: Mapping[str, CageLimit] = {
    **OF_THE_TARGET,
    **{
        limit.replace("cage.", f"cage.{name}."): replace(
            row, setting=f"{name}.{row.setting}", whose=f"the {name}'s cage"
        )
        for name in IN_FRONT
        for limit, row in OF_THE_TARGET.items()
    },
}
"""The driver's cage is the study's question, not a limit of what is studied: nothing raises it."""


def _raise_cage(limit: str, *reached_by: str) -> Builder:
    """Raise one limit of the private cage, as far as the machine goes. reached_by: causes that this lifts too."""

    def build(situation: Situation) -> Remedy | None:
        row = CAGE[limit]
        raised, of_memory = _raised(situation, limit, row.setting), row.setting.endswith("memory.max")
        if raised is None:
            return None
        wanted = 4 * situation.ceilings[limit] if row.rate else float(raised)
        wanted = math.ceil(wanted / MIB) * MIB if of_memory else wanted  # whole pages: the kernel cuts what is not
        wanted = min(wanted, situation.ceilings.get(row.ends_at or "", math.inf))
        after = _whole(situation.effective, row.setting, 0)
        if round(wanted * row.scale) <= after:
            return None  # the machine has no more
        allowed = row.words.format(show(wanted, "bytes") if of_memory else wanted)
        return Remedy(
            id=f"{limit}.raise",
            title=f"let {row.whose} give {allowed}",
            addresses=(limit, *reached_by),
            changes=(
                Change("process", row.setting, after, round(wanted * row.scale), why="what the cage allows is used up"),
            ),
            price=Price(note="the machine gives it to the target, and to nobody else"),
            source="Linux, Documentation/admin-guide/cgroup-v2.rst",
        )

    return build


BUILDERS: Mapping[str, tuple[Builder, ...]] = {
    **{limit: (_raise_cage(limit),) for limit in CAGE},
    "memory.mmap_page_faults": (_raise_cage("cage.memory", "memory.mmap_page_faults"),),
    "mariadb.table_open_cache": (_raise_table_open_cache,),
    "mariadb.table_definition_cache": (_raise_table_definition_cache,),
    "mariadb.max_connections": (_raise_max_connections,),
    "mariadb.open_files_limit": (_raise_open_files,),
    "process.open_files": (_raise_open_files, _raise_worker_files),
    "nginx.worker_connections": (_raise_worker_connections,),
    "nginx.worker_rlimit_nofile": (_raise_worker_files,),
    "nginx.worker_processes": (_more_workers,),
    "nginx.blocked_workers": (_read_in_threads,),
    "nginx.keepalive": (_keep_connections,),
    "mariadb.buffer_pool": (_raise_buffer_pool,),
    "mariadb.redo_log": (_raise_redo_log,),
    "postgres.max_connections": (_raise_postgres_connections,),
    "postgres.shared_buffers": (_raise_shared_buffers,),
    "postgres.checkpoints": (_raise_max_wal_size,),
    "disk.fsync": (_write_ahead_log, _synchronous_normal, _flush_log_each_second, _commit_without_waiting),
    "lock.writer": (_write_ahead_log, _synchronous_normal),
    "lock.busy_errors": (_busy_timeout,),
    "spawn.per_file": (_pool_of_loaders,),
}


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _raised_alone(situation: Situation, limit: str, title: str, why: str, note: str, source: str) -> Remedy | None:
    """A limit that one setting of its own name raises, with no other behind it."""
    setting = limit.partition(".")[2]
    size = _raised(situation, limit, setting)
    if size is None:
        return None
    return Remedy(
        id=f"{limit}.raise",
        title=title.format(f"{size:,}"),
        addresses=(limit,),
        changes=(_server_change(situation, setting, size, why),),
        price=Price(note=note),
        source=source,
    )


def _raised(situation: Situation, limit: str, setting: str) -> int | None:
    """The ceiling to ask for: what the highest level needs and a fifth more, at least twice today's; None where the
    limit was not read. Where the need cannot be estimated, four times today's."""
    ceiling = situation.ceilings.get(limit)
    if ceiling is None or setting not in situation.effective:
        return None
    demand = situation.demands.get(limit)
    wanted = RESERVE * demand if demand is not None else 4 * ceiling
    return _round_up(max(wanted, 2 * ceiling))


def _round_up(value: float) -> int:
    """To two significant digits, because people read and copy it."""
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step) * step)


def _link(situation: Situation, layer: Layer, setting: str, least: int, why: str) -> Change:
    """A link of a chain: raised to `least` where it is below."""
    now = situation.effective.get(setting)
    have = _whole(situation.effective, setting, 0)
    if have >= least and now is not None:
        return Change(layer, setting, now, now, needed=False, why=f"already enough: {least:,} are needed")
    return Change(layer, setting, now, least, needed=True, why=why)


def _server_change(situation: Situation, setting: str, after: SettingValue, why: str) -> Change:
    return Change("server", setting, situation.effective.get(setting), after, needed=True, why=why)


def _whole(effective: Mapping[str, SettingValue], setting: str, default: int) -> int:
    try:
        return int(float(effective.get(setting, default)))
    except ValueError:
        return default


def _text(effective: Mapping[str, SettingValue], setting: str) -> str:
    return str(effective.get(setting, "")).strip().lower()


def state_after(state: TargetState, remedy: Remedy) -> TargetState:
    """The target's state once every needed change of the remedy is made."""
    settings, limits = dict(state.settings), dict(state.limits)
    for change in remedy.changes:
        if not change.needed:
            continue
        if change.layer == "process":
            limits[change.setting] = int(change.after)
        else:
            settings[change.setting] = change.after
    return TargetState(settings, limits)
