"""PostgreSQL as data: its settings and its counters."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
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
"""Settings that take any text (type STRING of `postgres --describe-config`) but name no program, library, file or host.
All others are refused, also those of later versions."""

ASKED = tuple(counters_in(_METRICS, "activity", "ceiling", "counted", "wait").values())
"""activity: pg_stat_activity, as it is at this moment; without our own connection, except in `connections`. ceiling:
ceilings that belong next to their use, and uses of shared memory and log. counted: sums over all databases. A
connection reports at most once a second and when it ends (pgstat.c, PGSTAT_MIN_INTERVAL), so in a window of a second or
two these are right to about a fifth; wal_bytes and checkpoints are always exact. wait: seconds that connections waited,
by cause: those waiting at each look, times the time since the look before."""
REFUSALS = tuple(counters_in(_METRICS, "log").values())
"""From the server's log, which only a private instance lets us read."""
