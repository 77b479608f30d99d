"""A MariaDB that runs already."""

from __future__ import annotations

from loadframe.kinds.mariadb.counters import COUNTERS, COUNTING
from loadframe.kinds.mariadb.settings import CATALOGUE
from loadframe.kinds.mysql_attached import AttachedFamily


class AttachedMariadb(AttachedFamily):
    """See kinds.base.Attached."""

    kind, name = "mariadb", "MariaDB"
    names = ("mariadbd", "mysqld")
    files = "SELECT DISTINCT GLOBAL_VALUE_PATH FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_PATH > ''"
    catalogue, counting = CATALOGUE, COUNTING
    counter_specs = COUNTERS
