"""SQLite as data: its settings (PRAGMAs) and its counters. Bounds and defaults: https://www.sqlite.org/pragma.html."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in

_FILE = Path(__file__).with_name("settings.toml")
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""In the order in which to set them. The default of busy_timeout is that of Python's sqlite3.connect (5 s)."""

NUMBERED = {name: tuple(map(str, CATALOGUE.known(name).choices)) for name in ("synchronous", "temp_store")}
"""PRAGMAs that answer with the index of the word they were set to."""

IN_THE_FILE = frozenset({"page_size"})
"""Kept by the file alone; no connection has to set it."""

PERSISTENT_JOURNAL_MODES = frozenset({"WAL", "DELETE"})
"""What the file itself remembers: WAL, or not WAL, which a new connection reads as DELETE."""

COUNTERS = tuple(counters_in(_FILE.with_name("metrics.txt"), "file").values())
