"""A MySQL that runs already."""

from __future__ import annotations

from types import MappingProxyType

from loadframe.kinds.mysql.counters import COUNTERS, COUNTING
from loadframe.kinds.mysql.settings import CATALOGUE
from loadframe.kinds.mysql_attached import AttachedFamily


class AttachedMysql(AttachedFamily):
    """See kinds.base.Attached. What performance_schema tells of waits needs SELECT there; without it these counters are
    missing."""

    kind, name = "mysql", "MySQL"
    names = ("mysqld",)
    files = "SELECT DISTINCT VARIABLE_PATH FROM performance_schema.variables_info WHERE VARIABLE_PATH > ''"
    catalogue, counting = CATALOGUE, COUNTING
    counter_specs = COUNTERS
    followed = MappingProxyType({"innodb_redo_log_capacity": "Innodb_redo_log_capacity_resized"})
