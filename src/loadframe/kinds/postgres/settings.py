"""PostgreSQL as data: its settings and its counters.

Bounds, defaults (boot_val), units and contexts were read from pg_settings of PostgreSQL 15.18 (Debian 12); a test
compares the table with the server that is installed. Sizes are in bytes here, whatever the server's own unit is (8 kB
pages, kB, MB): "128MB" and 134217728 are the same, a bare number of pages is not taken.

What gives up durability was read in the manual: the settings of "Write Ahead Log", "Asynchronous Commit" and "WAL
Configuration", which says that all wal_sync_method of Linux are the same in terms of reliability.
"""

from __future__ import annotations

from functools import partial

from loadframe.kinds.catalogue import Catalogue, count, gauge, specs_from
from loadframe.kinds.tunable import GB, SWITCH, Tunable

PG_SETTINGS = "PostgreSQL 15 pg_settings"
PAGE = 8192
KB = 1024
MB = 1024 * KB
WHOLE = 2**31 - 1
"""Most settings are of 32 bits in the server's own unit."""
MOST_PAGES = 2**30 - 1
REAL = 1.79769e308


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

_row = specs_from(PG_SETTINGS)
CATALOGUE = Catalogue(
    kind="postgres",
    source="The settings are those of `postgres --describe-config`.",
    specs=(
        # connections, workers, locks: shared memory is laid out for them at the start
        _row("max_connections", "integer", False, 1, 262143, 100, takes=_PER_SLOT),
        _row("superuser_reserved_connections", "integer", False, 0, 262143, 3),
        _row("max_locks_per_transaction", "integer", False, 10, WHOLE, 64, takes=_PER_SLOT),
        _row("max_pred_locks_per_transaction", "integer", False, 10, WHOLE, 64, takes=_PER_SLOT),
        _row(
            "max_prepared_transactions", "integer", False, 0, 262143, 0,
            takes="shared memory for each, from the start",
        ),
        _row("max_worker_processes", "integer", False, 0, 262143, 8),
        _row("max_parallel_workers", "integer", True, 0, 1024, 8),
        _row("max_parallel_workers_per_gather", "integer", True, 0, 1024, 2),
        _row("max_parallel_maintenance_workers", "integer", True, 0, 1024, 2),
        _row("max_files_per_process", "integer", False, 64, WHOLE, 1000, takes="open files of each process"),
        _row("max_wal_senders", "integer", False, 0, 262143, 10),
        # memory
        _row(
            "shared_buffers", "bytes", False, 16 * PAGE, MOST_PAGES * PAGE, 16384 * PAGE,
            takes="shared memory, reserved at the start and filled with use",
        ),
        _row("huge_pages", "text", False, default="try", choices=("off", "on", "try")),
        _row(
            "temp_buffers", "bytes", True, 100 * PAGE, MOST_PAGES * PAGE, 1024 * PAGE,
            takes="up to this in each connection",
        ),
        _row("work_mem", "bytes", True, 64 * KB, WHOLE * KB, 4 * MB, takes=_PER_PLACE),
        _row("hash_mem_multiplier", "number", True, 1, 1000, 2),
        _row(
            "maintenance_work_mem", "bytes", True, MB, WHOLE * KB, 64 * MB,
            takes="for each VACUUM, CREATE INDEX or autovacuum worker",
        ),
        _row("autovacuum_work_mem", "bytes", True, -1, WHOLE * KB, -1, takes="for each autovacuum worker"),
        _row("temp_file_limit", "bytes", True, -1, WHOLE * KB, -1, takes="disk space of each connection"),
        _row("effective_cache_size", "bytes", True, PAGE, WHOLE * PAGE, 524288 * PAGE),
        # the write-ahead log and checkpoints
        _row(
            "wal_level", "text", False, default="replica", choices=("minimal", "replica", "logical"), gives_up=_LEVEL,
            safe=("replica", "logical"),
        ),
        _row("fsync", "boolean", True, default=True, gives_up="off: the database may be corrupt after a power loss"),
        _row(
            "synchronous_commit", "text", True, default="on",
            choices=("local", "remote_write", "remote_apply", "on", "off"), gives_up=_COMMITS,
            safe=("on", "remote_apply"),
        ),
        _row(
            "wal_sync_method", "text", True, default="fdatasync",
            choices=("fsync", "fdatasync", "open_sync", "open_datasync"),
        ),
        _row(
            "full_page_writes", "boolean", True, default=True,
            gives_up="off: a page torn by power loss cannot be repaired",
        ),
        _row("wal_compression", "text", True, default="off", choices=("pglz", "lz4", "zstd", "on", "off")),
        _row(
            "wal_buffers", "bytes", False, -1, 262143 * PAGE, -1, sized_at_start=True,
            takes="shared memory, from the start",
        ),
        _row("wal_writer_delay", "duration", True, 1, 10000, 200, gives_up=_DELAY, safe=range(201), unit="ms"),
        _row("wal_writer_flush_after", "bytes", True, 0, WHOLE * PAGE, 128 * PAGE),
        _row("commit_delay", "integer", True, 0, 100000, 0),
        _row("commit_siblings", "integer", True, 0, 1000, 5),
        _row("max_wal_size", "bytes", True, 2 * MB, WHOLE * MB, 1024 * MB, takes="disk space; a longer recovery"),
        _row("min_wal_size", "bytes", True, 2 * MB, WHOLE * MB, 80 * MB, takes="disk space that is kept"),
        _row("checkpoint_timeout", "duration", True, 30, 86400, 300, unit="s"),
        _row("checkpoint_completion_target", "number", True, 0, 1, 0.9),
        _row("checkpoint_flush_after", "bytes", True, 0, 256 * PAGE, 32 * PAGE),
        _row("backend_flush_after", "bytes", True, 0, 256 * PAGE, 0),
        _row("bgwriter_delay", "duration", True, 10, 10000, 200, unit="ms"),
        _row("bgwriter_lru_maxpages", "integer", True, 0, MOST_PAGES, 100),
        _row("bgwriter_lru_multiplier", "number", True, 0, 10, 2),
        # what the planner takes for granted, and how it reads
        _row("random_page_cost", "number", True, 0, REAL, 4),
        _row("seq_page_cost", "number", True, 0, REAL, 1),
        _row("effective_io_concurrency", "integer", True, 0, 1000, 1),
        _row("maintenance_io_concurrency", "integer", True, 0, 1000, 10),
        _row("jit", "boolean", True, default=True),
        # autovacuum
        _row("autovacuum", "boolean", True, default=True),
        _row("autovacuum_max_workers", "integer", False, 1, 262143, 3),
        _row("autovacuum_naptime", "duration", True, 1, 2147483, 60, unit="s"),
        _row("autovacuum_vacuum_threshold", "integer", True, 0, WHOLE, 50),
        _row("autovacuum_vacuum_scale_factor", "number", True, 0, 100, 0.2),
        _row("autovacuum_vacuum_cost_limit", "integer", True, -1, 10000, -1),
        _row("autovacuum_vacuum_cost_delay", "duration", True, -1, 100, 2, unit="ms"),
        # waiting
        _row("deadlock_timeout", "duration", True, 1, WHOLE, 1000, unit="ms"),
        _row("lock_timeout", "duration", True, 0, WHOLE, 0, unit="ms"),
        _row("statement_timeout", "duration", True, 0, WHOLE, 0, unit="ms"),
        _row("idle_in_transaction_session_timeout", "duration", True, 0, WHOLE, 0, unit="ms"),
        # what is measured besides
        _row("track_io_timing", "boolean", True, default=False),
        _row("track_wal_io_timing", "boolean", True, default=False),
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


_gauge, _count = partial(gauge, "postgres"), partial(count, "postgres")
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

TUNABLES = (
    Tunable("shared_buffers", low=16 * MB, high=None, unit_bytes=1),
    Tunable("max_wal_size", low=128 * MB, high=8 * GB),
    Tunable("synchronous_commit", values=("on",), relaxed=("off",)),
    Tunable("wal_buffers", values=(-1, MB, 4 * MB, 16 * MB, 64 * MB), unit_bytes=1),
    Tunable("wal_compression", values=("off", "pglz")),
    Tunable("wal_sync_method", values=("fdatasync", "open_datasync")),
    Tunable("commit_delay", values=(0, 20, 100, 500)),
    Tunable("work_mem", low=MB, high=64 * MB, unit_bytes=1, per="connection"),
    Tunable("random_page_cost", values=(1.1, 2.0, 4.0)),
    Tunable("effective_io_concurrency", values=(0, 1, 16, 64, 256)),
    Tunable("max_parallel_workers_per_gather", values=(0, 1, 2, 4)),
    Tunable("jit", values=SWITCH),
    Tunable("bgwriter_lru_maxpages", values=(0, 100, 400, 1000)),
    Tunable("backend_flush_after", values=(0, 128 << 10, MB)),
)
"""What a search may vary, and how far; the most promising first."""
