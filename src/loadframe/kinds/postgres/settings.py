"""PostgreSQL as data: its settings and its counters.

Bounds, defaults (boot_val), units and contexts were read from pg_settings of PostgreSQL 15.18 (Debian 12); a test
compares the table with the server that is installed. Sizes are in bytes here, whatever the server's own unit is (8 kB
pages, kB, MB): "128MB" and 134217728 are the same, a bare number of pages is not taken.

What gives up durability was read in the manual: the settings of "Write Ahead Log", "Asynchronous Commit" and "WAL
Configuration", which says that all wal_sync_method of Linux are the same in terms of reliability.
"""

from __future__ import annotations

from collections.abc import Container

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.model import CounterSpec, SettingValue

PG_SETTINGS = "PostgreSQL 15 pg_settings"
PAGE = 8192
KB = 1024
MB = 1024 * KB
WHOLE = 2**31 - 1
"""Most settings are of 32 bits in the server's own unit."""
MOST_PAGES = 2**30 - 1
REAL = 1.79769e308


def _integer(
    name: str,
    dynamic: bool,
    low: int,
    high: int,
    default: int,
    *,
    takes: str | None = None,
) -> SettingSpec:
    return SettingSpec(name, "integer", dynamic, low, high, (), default, source=PG_SETTINGS, takes=takes)


def _number(name: str, low: float, high: float, default: float) -> SettingSpec:
    return SettingSpec(name, "number", True, low, high, (), default, source=PG_SETTINGS)


def _bytes(
    name: str, dynamic: bool, low: int, high: int, default: int, *, takes: str | None = None, sized: bool = False
) -> SettingSpec:
    return SettingSpec(
        name, "bytes", dynamic, low, high, (), default, sized_at_start=sized, source=PG_SETTINGS, takes=takes
    )


def _duration(
    name: str,
    unit: str,
    low: int,
    high: int,
    default: int,
    gives_up: str | None = None,
    safe: Container[SettingValue] = (),
) -> SettingSpec:
    return SettingSpec(
        name, "duration", True, low, high, (), default, gives_up, source=PG_SETTINGS, unit=unit, safe=safe
    )


def _switch(name: str, dynamic: bool, default: bool, gives_up: str | None = None) -> SettingSpec:
    return SettingSpec(name, "boolean", dynamic, default=default, gives_up=gives_up, source=PG_SETTINGS)


def _choice(
    name: str,
    dynamic: bool,
    choices: tuple[str, ...],
    default: str,
    gives_up: str | None = None,
    safe: tuple[str, ...] = (),
) -> SettingSpec:
    return SettingSpec(name, "text", dynamic, None, None, choices, default, gives_up, source=PG_SETTINGS, safe=safe)


_COMMITS = (
    "off: the last commits, of up to three times wal_writer_delay (0.6 s), may be lost when the server or the machine "
    "dies; the database stays consistent. local, remote_write: with synchronous standbys, what these have not on "
    "disk yet, "
    "when one of them takes over"
)
_DELAY = "more than 200 ms: with synchronous_commit off, commits of up to three times that may be lost"
_LEVEL = "minimal: no standby can follow, and no backup be rolled forward to what was committed after it"
_PER_PLACE = "for each sort or hash of each connection that needs it, several times over with parallel workers"
_PER_SLOT = "shared memory for each of max_connections, from the start"

CATALOGUE = Catalogue(
    kind="postgres",
    source="The settings are those of `postgres --describe-config`.",
    specs=(
        # connections, workers, locks: shared memory is laid out for them at the start
        _integer("max_connections", False, 1, 262143, 100, takes=_PER_SLOT),
        _integer("superuser_reserved_connections", False, 0, 262143, 3),
        _integer("max_locks_per_transaction", False, 10, WHOLE, 64, takes=_PER_SLOT),
        _integer("max_pred_locks_per_transaction", False, 10, WHOLE, 64, takes=_PER_SLOT),
        _integer("max_prepared_transactions", False, 0, 262143, 0, takes="shared memory for each, from the start"),
        _integer("max_worker_processes", False, 0, 262143, 8),
        _integer("max_parallel_workers", True, 0, 1024, 8),
        _integer("max_parallel_workers_per_gather", True, 0, 1024, 2),
        _integer("max_parallel_maintenance_workers", True, 0, 1024, 2),
        _integer("max_files_per_process", False, 64, WHOLE, 1000, takes="open files of each process"),
        _integer("max_wal_senders", False, 0, 262143, 10),
        # memory
        _bytes(
            "shared_buffers", False, 16 * PAGE, MOST_PAGES * PAGE, 16384 * PAGE,
            takes="shared memory, reserved at the start and filled with use",
        ),
        _choice("huge_pages", False, ("off", "on", "try"), "try"),
        _bytes("temp_buffers", True, 100 * PAGE, MOST_PAGES * PAGE, 1024 * PAGE, takes="up to this in each connection"),
        _bytes("work_mem", True, 64 * KB, WHOLE * KB, 4 * MB, takes=_PER_PLACE),
        _number("hash_mem_multiplier", 1, 1000, 2),
        _bytes(
            "maintenance_work_mem", True, MB, WHOLE * KB, 64 * MB,
            takes="for each VACUUM, CREATE INDEX or autovacuum worker",
        ),
        _bytes("autovacuum_work_mem", True, -1, WHOLE * KB, -1, takes="for each autovacuum worker"),
        _bytes("temp_file_limit", True, -1, WHOLE * KB, -1, takes="disk space of each connection"),
        _bytes("effective_cache_size", True, PAGE, WHOLE * PAGE, 524288 * PAGE),
        # the write-ahead log and checkpoints
        _choice("wal_level", False, ("minimal", "replica", "logical"), "replica", _LEVEL, ("replica", "logical")),
        _switch("fsync", True, True, "off: the database may be corrupt after a power loss"),
        _choice(
            "synchronous_commit", True, ("local", "remote_write", "remote_apply", "on", "off"), "on", _COMMITS,
            ("on", "remote_apply"),
        ),
        _choice("wal_sync_method", True, ("fsync", "fdatasync", "open_sync", "open_datasync"), "fdatasync"),
        _switch("full_page_writes", True, True, "off: a page torn by power loss cannot be repaired"),
        _choice("wal_compression", True, ("pglz", "lz4", "zstd", "on", "off"), "off"),
        _bytes("wal_buffers", False, -1, 262143 * PAGE, -1, takes="shared memory, from the start", sized=True),
        _duration("wal_writer_delay", "ms", 1, 10000, 200, _DELAY, range(201)),
        _bytes("wal_writer_flush_after", True, 0, WHOLE * PAGE, 128 * PAGE),
        _integer("commit_delay", True, 0, 100000, 0),
        _integer("commit_siblings", True, 0, 1000, 5),
        _bytes("max_wal_size", True, 2 * MB, WHOLE * MB, 1024 * MB, takes="disk space; a longer recovery"),
        _bytes("min_wal_size", True, 2 * MB, WHOLE * MB, 80 * MB, takes="disk space that is kept"),
        _duration("checkpoint_timeout", "s", 30, 86400, 300),
        _number("checkpoint_completion_target", 0, 1, 0.9),
        _bytes("checkpoint_flush_after", True, 0, 256 * PAGE, 32 * PAGE),
        _bytes("backend_flush_after", True, 0, 256 * PAGE, 0),
        _duration("bgwriter_delay", "ms", 10, 10000, 200),
        _integer("bgwriter_lru_maxpages", True, 0, MOST_PAGES, 100),
        _number("bgwriter_lru_multiplier", 0, 10, 2),
        # what the planner takes for granted, and how it reads
        _number("random_page_cost", 0, REAL, 4),
        _number("seq_page_cost", 0, REAL, 1),
        _integer("effective_io_concurrency", True, 0, 1000, 1),
        _integer("maintenance_io_concurrency", True, 0, 1000, 10),
        _switch("jit", True, True),
        # autovacuum
        _switch("autovacuum", True, True),
        _integer("autovacuum_max_workers", False, 1, 262143, 3),
        _duration("autovacuum_naptime", "s", 1, 2147483, 60),
        _integer("autovacuum_vacuum_threshold", True, 0, WHOLE, 50),
        _number("autovacuum_vacuum_scale_factor", 0, 100, 0.2),
        _integer("autovacuum_vacuum_cost_limit", True, -1, 10000, -1),
        _duration("autovacuum_vacuum_cost_delay", "ms", -1, 100, 2),
        # waiting
        _duration("deadlock_timeout", "ms", 1, WHOLE, 1000),
        _duration("lock_timeout", "ms", 0, WHOLE, 0),
        _duration("statement_timeout", "ms", 0, WHOLE, 0),
        _duration("idle_in_transaction_session_timeout", "ms", 0, WHOLE, 0),
        # what is measured besides
        _switch("track_io_timing", True, False),
        _switch("track_wal_io_timing", True, False),
    ),
)  # fmt: skip
"""dynamic: a reload is enough; everything else has the context "postmaster"."""

RESERVED = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "lc_messages",
        "listen_addresses",
        "log_destination",
        "log_directory",
        "log_filename",
        "log_line_prefix",
        "logging_collector",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
        "unix_socket_permissions",
    }
)
"""Settings that a private instance decides itself."""

HARMLESS_TEXTS = frozenset(
    {
        "client_encoding",
        "cluster_name",
        "datestyle",
        "default_table_access_method",
        "default_text_search_config",
        "lc_monetary",
        "lc_numeric",
        "lc_time",
        "log_timezone",
        "search_path",
        "syslog_ident",
        "timezone",
        "timezone_abbreviations",
    }
)
"""Of the settings that take any text (type STRING of `postgres --describe-config`) those that name no program, library,
file or host. All others are refused, also those that a later version brings."""


def _gauge(name: str) -> CounterSpec:
    return CounterSpec(name, f"postgres.{name}", cumulative=False)


def _count(name: str) -> CounterSpec:
    return CounterSpec(name, f"postgres.{name}", cumulative=True)


ACTIVITY = tuple(
    _gauge(name)
    for name in (
        "connections", "active", "idle_in_transaction", "lock_waiters", "autovacuum_workers", "worker_processes",
    )
)  # fmt: skip
"""pg_stat_activity, as it is at this moment; without our own connection, but for `connections`."""

CEILINGS = tuple(
    _gauge(name)
    for name in (
        "max_connections", "connections_allowed", "autovacuum_max_workers", "max_worker_processes", "locks",
        "lock_slots", "wal_since_checkpoint", "checkpoint_distance", "transaction_age", "transaction_age_limit",
    )
)  # fmt: skip
"""Ceilings that belong next to their use, and uses of shared memory and log."""

COUNTED = tuple(
    _count(name)
    for name in (
        "commits", "rollbacks", "sessions", "blocks_hit", "blocks_read", "temp_files", "temp_bytes", "deadlocks",
        "checkpoints_timed", "checkpoints_requested", "checkpoint_buffers", "cleaner_buffers", "cleaner_stops",
        "wal_records", "wal_pages", "wal_buffers_full", "wal_bytes",
    )
)  # fmt: skip
"""Of all databases together. A connection tells what it did at most once a second and when it ends (pgstat.c,
PGSTAT_MIN_INTERVAL), so of a window of a second or two these are right to about a fifth; wal_bytes is the position of
the log, right at every moment, and checkpoints are told when they happen."""

WAITS = tuple(_count(name) for name in ("waiting_lock", "waiting_lwlock", "waiting_io", "waiting_wal"))
"""Seconds that connections waited, by what they waited for: how many waited at each look, over the time since the look
before (as sampled session histories do)."""

REFUSALS = (_count("connections_refused"),)
"""From the server's log, which only a private instance lets us read."""
