"""The settings of a cluster with SQL nodes: the cluster's by their own names (own_settings.py), and the SQL nodes' with
the prefix "sql_": those that begin with ndb_, and some of MySQL's."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.kinds.catalogue import Catalogue, SettingSpec, catalogue_in, tunables_in
from loadframe.kinds.mysql.settings import MYSQL_CATALOGUE as MYSQL
from loadframe.kinds.ndb import own_settings
from loadframe.kinds.ndb.settings import read_cpus
from loadframe.model import SettingValue

KIND = "ndb-sql"
SQL = "sql_"
CPUS = "cpus"
"""Our own: the CPUs that the SQL node's process is bound to, as by taskset."""
MOST_CONNECTIONS = 32
"""Of the pool: the configuration has as many API nodes, and some for others."""
OF_MYSQL = (
    "max_connections", "table_open_cache", "table_open_cache_instances", "table_definition_cache", "thread_cache_size",
    "back_log", "open_files_limit", "thread_handling", "log_bin", "binlog_cache_size", "join_buffer_size",
    "sort_buffer_size", "tmp_table_size", "max_heap_table_size", "max_prepared_stmt_count", "performance_schema",
)  # fmt: skip
_FILE = Path(__file__).with_suffix(".toml")
_OF_NDB = catalogue_in(_FILE)
NODE = Catalogue(
    KIND,
    (*_OF_NDB.specs, *(MYSQL.known(name) for name in OF_MYSQL)),
    _OF_NDB.source,
)
"""Of the SQL node, by its own names."""
_BOUND = SettingSpec(CPUS, "text", True, source="sched_setaffinity(2)")
CATALOGUE = Catalogue(
    KIND,
    (*own_settings.CATALOGUE.specs, *(replace(spec, name=SQL + spec.name) for spec in (*NODE.specs, _BOUND))),
    f"{own_settings.CATALOGUE.source}; those of the SQL node with {SQL}",
)

TUNABLES = (*tunables_in(_FILE), *own_settings.TUNABLES)


def checked(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
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
