"""The settings of a cluster with a SQL node: those of the cluster by their own names (own_settings.py), and those of
the SQL node with "sql_" before theirs.

Bounds and defaults of what begins with ndb_ were read from performance_schema.variables_metadata and SHOW GLOBAL
VARIABLES of a SQL node of MySQL 9.7.4 (Debian sid), and which of them a running one takes by SET GLOBAL; meanings from
the manual, "MySQL Server Options and Variables for NDB Cluster". The others are MySQL's. Its InnoDB holds the accounts
and the definitions of the tables alone, so that InnoDB's settings are not among them.
"""

from collections.abc import Mapping
from dataclasses import replace

from loadframe.errors import StudyError
from loadframe.kinds.catalogue import Catalogue, specs_from
from loadframe.kinds.mysql.settings import MYSQL_CATALOGUE as MYSQL
from loadframe.kinds.ndb import own_settings
from loadframe.kinds.ndb.setting import read_cpus
from loadframe.kinds.tunable import SWITCH, Tunable
from loadframe.model import SettingValue

KIND = "ndb-sql"
SQL = "sql_"
CPUS = "cpus"
"""Our own: the CPUs that the SQL node's process is bound to, as by taskset."""
MOST_CONNECTIONS = 32
"""Of the pool: as many API nodes the configuration has, and some for others."""
OF_MYSQL = (
    "max_connections", "table_open_cache", "table_open_cache_instances", "table_definition_cache", "thread_cache_size",
    "back_log", "open_files_limit", "thread_handling", "log_bin", "binlog_cache_size", "join_buffer_size",
    "sort_buffer_size", "tmp_table_size", "max_heap_table_size", "max_prepared_stmt_count", "performance_schema",
)  # fmt: skip
_UNLOGGED = "OFF: a change of several rows may end half done"
_row = specs_from("MySQL 9.7.4 performance_schema.variables_metadata, and its manual's part on NDB Cluster")
OF_NDB = (
    _row("ndb_cluster_connection_pool", "integer", False, 1, MOST_CONNECTIONS, 1),
    _row("ndb_force_send", "boolean", True, default=True),
    _row("ndb_batch_size", "bytes", True, 0, 2147483648, 32768),
    _row("ndb_blob_read_batch_bytes", "bytes", True, 0, 4294967295, 65536),
    _row("ndb_blob_write_batch_bytes", "bytes", True, 0, 4294967295, 65536),
    _row("ndb_autoincrement_prefetch_sz", "integer", True, 1, 65535, 512),
    _row("ndb_optimized_node_selection", "integer", True, 0, 3, 3),
    _row("ndb_data_node_neighbour", "integer", True, 0, 145, 0),
    _row("ndb_read_backup", "boolean", True, default=True),
    _row("ndb_join_pushdown", "boolean", True, default=True),
    _row("ndb_index_stat_enable", "boolean", True, default=True),
    _row("ndb_recv_thread_activation_threshold", "integer", True, 0, 16, 8),
    _row("ndb_use_transactions", "boolean", True, default=True, gives_up=_UNLOGGED),
    _row("ndb_eventbuffer_max_alloc", "bytes", True, 0, 2**63 - 1, 0),
    _row("ndb_log_bin", "boolean", False, default=False),
)
NODE = Catalogue(
    KIND,
    (*OF_NDB, *(MYSQL.known(name) for name in OF_MYSQL)),
    "those of a SQL node are shown by `mysqld --verbose --help`",
)
"""Of the SQL node, by its own names."""
_BOUND = replace(_row(CPUS, "text", True), source="sched_setaffinity(2)")
CATALOGUE = Catalogue(
    KIND,
    (*own_settings.CATALOGUE.specs, *(replace(spec, name=SQL + spec.name) for spec in (*NODE.specs, _BOUND))),
    f"{own_settings.CATALOGUE.source}; those of the SQL node with {SQL}",
)

TUNABLES = (
    Tunable("sql_ndb_cluster_connection_pool", values=(1, 2, 4, 8)),
    Tunable("sql_ndb_force_send", values=SWITCH),
    Tunable("sql_ndb_recv_thread_activation_threshold", values=(0, 4, 8, 16)),
    Tunable("sql_ndb_batch_size", low=4096, high=1 << 20),
    *own_settings.TUNABLES,
)


def checked(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """In canonical form. StudyError."""
    own, sql = parted(CATALOGUE.check(settings))
    if (cpus := sql.get(CPUS)) is not None:
        try:
            sql[CPUS] = ",".join(map(str, sorted(read_cpus(str(cpus)))))
        except ValueError as error:
            raise StudyError(
                f"{KIND} does not accept target.settings.{SQL}{CPUS} = {cpus!r}",
                remedy=f"Give {error}. (Source: sched_setaffinity(2))",
            ) from error
    return {**own_settings.checked(own), **{SQL + name: value for name, value in sql.items()}}


def parted(settings: Mapping[str, SettingValue]) -> tuple[dict[str, SettingValue], dict[str, SettingValue]]:
    """The cluster's, and the SQL node's by its own names."""
    sql = {name.removeprefix(SQL): value for name, value in settings.items() if name.startswith(SQL)}
    return {name: value for name, value in settings.items() if not name.startswith(SQL)}, sql
