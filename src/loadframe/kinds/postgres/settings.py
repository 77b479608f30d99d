"""PostgreSQL as data: its settings and its counters."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in
from loadframe.knowledge.rows import toml_rows

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: a reload is enough; everything else has the context "postmaster"."""

RESERVED, HARMLESS_TEXTS = (frozenset(toml_rows(_FILE)[names]) for names in ("reserved", "harmless_texts"))

ASKED = tuple(counters_in(_METRICS, "activity", "ceiling", "counted", "wait").values())
"""activity: pg_stat_activity, as it is at this moment; without our own connection, except in `connections`. ceiling:
ceilings beside their use, and uses of shared memory and log. counted: sums over all databases. A connection reports
at most once a second and when it ends (pgstat.c, PGSTAT_MIN_INTERVAL), so in a window of a second or two these are
right to about a fifth; wal_bytes and checkpoints are exact. wait: seconds that connections waited, by cause."""
REFUSALS = tuple(counters_in(_METRICS, "log").values())
"""From the server's log, which only a private instance lets us read."""
