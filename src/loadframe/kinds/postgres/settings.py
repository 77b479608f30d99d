"""PostgreSQL as data: its settings and its counters."""

from functools import partial
from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, count, gauge
from loadframe.kinds.tunable import tunables_in

_FILE = Path(__file__).with_name("settings.toml")
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: a reload is enough; everything else has the context "postmaster"."""

_RESERVED = """
config_file data_directory external_pid_file hba_file ident_file lc_messages listen_addresses log_destination
log_directory log_filename log_line_prefix logging_collector port unix_socket_directories unix_socket_group
unix_socket_permissions
"""
RESERVED = frozenset(_RESERVED.split())
"""Settings that a private instance decides itself."""

_HARMLESS_TEXTS = """
client_encoding cluster_name datestyle default_table_access_method default_text_search_config lc_monetary lc_numeric
lc_time log_timezone search_path syslog_ident timezone timezone_abbreviations
"""
HARMLESS_TEXTS = frozenset(_HARMLESS_TEXTS.split())
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
