"""What a search may vary of PostgreSQL, and how far. The most promising come first."""

from __future__ import annotations

from loadframe.kinds.tunable import GB, MB, SWITCH, Tunable

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
