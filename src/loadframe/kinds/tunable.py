"""Which settings a search may vary, and how far: the part of each catalogue that decides how fast a target is.

The most promising come first. What a target takes (catalogue.py) reaches further than what is sensible: ranges here go
from a small machine's value to a large one's. To add a setting, add a row; to add a kind, add its rows to TUNABLES.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from loadframe.model import SettingValue

MB, GB = 1 << 20, 1 << 30
Per = Literal["server", "connection"]


@dataclass(frozen=True, slots=True)
class Tunable:
    """How far a setting may be varied: over these values, or from low to high in equal ratios.

    high: None is half of the memory that there is. relaxed: values that give durability up; they belong to the space
    only where the study allows that. unit_bytes: memory that each unit of the value takes, for the server or for each
    connection; 0 where it takes none to speak of.
    """

    name: str
    values: tuple[SettingValue, ...] = ()
    low: float = 0
    high: float | None = 0
    relaxed: tuple[SettingValue, ...] = ()
    unit_bytes: float = 0
    per: Per = "server"


SWITCH = (False, True)
TABLE_BYTES = 20 << 10
"""Of an open table in MariaDB's cache: 5.5 GB at 64,000 tables was seen in the story of the render farm, connections
and buffers included; a fifth of that is the table's own."""

MARIADB = (
    Tunable("innodb_buffer_pool_size", low=32 * MB, high=None, unit_bytes=1),
    Tunable("innodb_log_file_size", low=48 * MB, high=2 * GB),
    Tunable("innodb_flush_log_at_trx_commit", values=(1,), relaxed=(0, 2)),
    Tunable("innodb_flush_method", values=("fsync", "O_DIRECT"), relaxed=("O_DIRECT_NO_FSYNC",)),
    Tunable("table_open_cache", low=200, high=16_000, unit_bytes=TABLE_BYTES),
    Tunable("thread_handling", values=("one-thread-per-connection", "pool-of-threads")),
    Tunable("innodb_io_capacity", low=200, high=20_000),
    Tunable("innodb_adaptive_hash_index", values=SWITCH),
    Tunable("innodb_log_buffer_size", low=4 * MB, high=128 * MB, unit_bytes=1),
    Tunable("innodb_write_io_threads", values=(2, 4, 8, 16)),
    Tunable("innodb_read_io_threads", values=(1, 4, 8, 16)),
    Tunable("table_open_cache_instances", values=(1, 2, 4, 8, 16)),
    Tunable("thread_cache_size", values=(0, 16, 64, 256)),
    Tunable("tmp_table_size", low=4 * MB, high=64 * MB, unit_bytes=1, per="connection"),
    Tunable("sort_buffer_size", low=MB / 4, high=16 * MB, unit_bytes=1, per="connection"),
    Tunable("innodb_doublewrite", values=(True,), relaxed=(False,)),
)
"""O_DIRECT_NO_FSYNC: what the file system keeps of a file that grew may be lost at power loss
(https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_method)."""

POSTGRES = (
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

SQLITE = (
    Tunable("journal_mode", values=("DELETE", "TRUNCATE", "PERSIST", "WAL"), relaxed=("MEMORY",)),
    Tunable("synchronous", values=("FULL",), relaxed=("NORMAL",)),
    Tunable("wal_autocheckpoint", values=(100, 300, 1000, 3000, 10_000)),
    Tunable("cache_size", values=(-64_000, -16_000, -4_000, -2_000), unit_bytes=-1024, per="connection"),
    Tunable("mmap_size", values=(0, 64 * MB, 256 * MB)),
    Tunable("temp_store", values=("DEFAULT", "MEMORY")),
)
"""cache_size is in KiB where it is negative (https://www.sqlite.org/pragma.html#pragma_cache_size)."""

NGINX = (
    Tunable("sendfile", values=SWITCH),
    Tunable("tcp_nopush", values=SWITCH),
    Tunable("multi_accept", values=SWITCH),
    Tunable("keepalive_requests", values=(100, 1000, 10_000, 100_000)),
    Tunable("aio", values=("off", "threads")),
)

VARNISH = (
    Tunable("thread_pools", values=(1, 2, 4)),
    Tunable("thread_pool_min", values=(10, 100, 500, 1000)),
    Tunable("lru_interval", values=(0.0, 2.0, 10.0, 60.0)),
)

SQUID = (
    Tunable("cache_mem", low=8 * MB, high=None, unit_bytes=1),
    Tunable("maximum_object_size_in_memory", low=64 << 10, high=16 * MB),
    Tunable("memory_replacement_policy", values=("lru", "heap GDSF", "heap LFUDA", "heap LRU")),
    Tunable("collapsed_forwarding", values=SWITCH),
    Tunable("memory_pools_limit", low=MB, high=256 * MB, unit_bytes=1),
)

TUNABLES: Mapping[str, tuple[Tunable, ...]] = {
    "mariadb": MARIADB,
    "postgres": POSTGRES,
    "sqlite": SQLITE,
    "nginx": NGINX,
    "nginx-cache": NGINX,
    "squid": SQUID,
    "varnish": VARNISH,
}


def tunable(kind: str, name: str) -> Tunable | None:
    """How far a setting may be varied; None for one that is not in the table."""
    return next((row for row in TUNABLES.get(kind, ()) if row.name == name), None)
