"""SQLite as data: its settings (PRAGMAs) and its counters. Bounds and defaults: https://www.sqlite.org/pragma.html."""

from __future__ import annotations

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.kinds.tunable import MB, Tunable
from loadframe.model import CounterSpec

PRAGMAS = "https://www.sqlite.org/pragma.html"
_SYNCHRONOUS = (
    "NORMAL with journal_mode WAL: the last commits may be lost at power loss, the database stays sound; "
    "OFF: it may be corrupt"
)
_JOURNAL = "MEMORY and OFF: the database may be corrupt after a crash"


def _integer(name: str, low: int, high: int, default: int) -> SettingSpec:
    return SettingSpec(name, "integer", True, low, high, (), default, source=f"{PRAGMAS}#pragma_{name}")


def _choice(
    name: str, choices: tuple[str, ...], default: str, gives_up: str | None = None, safe: tuple[str, ...] = ()
) -> SettingSpec:
    source = f"{PRAGMAS}#pragma_{name}"
    return SettingSpec(name, "text", True, None, None, choices, default, gives_up, source=source, safe=safe)


JOURNAL_MODES = ("DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL", "OFF")
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")
TEMP_STORES = ("DEFAULT", "FILE", "MEMORY")
PAGE_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)

CATALOGUE = Catalogue(
    kind="sqlite",
    source=f"The settings are PRAGMAs, see {PRAGMAS}",
    specs=(
        # in the order in which a connection sets them: first how long it waits, then how it locks
        _integer("busy_timeout", 0, 2**31 - 1, 5000),
        _choice("locking_mode", ("NORMAL", "EXCLUSIVE"), "NORMAL"),
        SettingSpec("page_size", "integer", True, 512, 65536, PAGE_SIZES, 4096, source=f"{PRAGMAS}#pragma_page_size"),
        _choice("journal_mode", JOURNAL_MODES, "DELETE", _JOURNAL, ("DELETE", "TRUNCATE", "PERSIST", "WAL")),
        _choice("synchronous", SYNCHRONOUS, "FULL", _SYNCHRONOUS, ("FULL", "EXTRA")),
        _integer("cache_size", -(2**31), 2**31 - 1, -2000),
        _integer("mmap_size", 0, 2**40, 0),
        _integer("wal_autocheckpoint", 0, 2**31 - 1, 1000),
        _choice("temp_store", TEMP_STORES, "DEFAULT"),
    ),
)
"""The default of busy_timeout is that of Python's sqlite3.connect (5 s), which Loadframe's own workers use."""

NUMBERED = {"synchronous": SYNCHRONOUS, "temp_store": TEMP_STORES}
"""PRAGMAs that answer with the position of the word they were given."""

IN_THE_FILE = frozenset({"page_size"})
"""Kept by the file alone; no connection has to set it."""

PERSISTENT_JOURNAL_MODES = frozenset({"WAL", "DELETE"})
"""What the file itself remembers: WAL, or not WAL, which a new connection reads as DELETE."""

COUNTERS = (
    CounterSpec("database_bytes", "sqlite.database_bytes", cumulative=False),
    CounterSpec("wal_bytes", "sqlite.wal_bytes", cumulative=False),
)

TUNABLES = (
    Tunable("journal_mode", values=("DELETE", "TRUNCATE", "PERSIST", "WAL"), relaxed=("MEMORY",)),
    Tunable("synchronous", values=("FULL",), relaxed=("NORMAL",)),
    Tunable("wal_autocheckpoint", values=(100, 300, 1000, 3000, 10_000)),
    Tunable("cache_size", values=(-64_000, -16_000, -4_000, -2_000), unit_bytes=-1024, per="connection"),
    Tunable("mmap_size", values=(0, 64 * MB, 256 * MB)),
    Tunable("temp_store", values=("DEFAULT", "MEMORY")),
)
"""cache_size is in KiB where it is negative (https://www.sqlite.org/pragma.html#pragma_cache_size)."""
"""What a search may vary, and how far; the most promising first."""
