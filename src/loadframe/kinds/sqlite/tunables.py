"""What a search may vary of SQLite, and how far. The most promising come first."""

from __future__ import annotations

from loadframe.kinds.tunable import MB, Tunable

TUNABLES = (
    Tunable("journal_mode", values=("DELETE", "TRUNCATE", "PERSIST", "WAL"), relaxed=("MEMORY",)),
    Tunable("synchronous", values=("FULL",), relaxed=("NORMAL",)),
    Tunable("wal_autocheckpoint", values=(100, 300, 1000, 3000, 10_000)),
    Tunable("cache_size", values=(-64_000, -16_000, -4_000, -2_000), unit_bytes=-1024, per="connection"),
    Tunable("mmap_size", values=(0, 64 * MB, 256 * MB)),
    Tunable("temp_store", values=("DEFAULT", "MEMORY")),
)
"""cache_size is in KiB where it is negative (https://www.sqlite.org/pragma.html#pragma_cache_size)."""
