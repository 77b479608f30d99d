"""What a MariaDB is asked. Names and meanings: MariaDB 10.11's SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES."""

from __future__ import annotations

from loadframe.kinds.catalogue import gauge
from loadframe.kinds.mysql_counters import Counting, status_of, variables_of

STATUS = (
    *status_of("mariadb"),
    gauge("mariadb", "Table_open_cache_active_instances", "table_cache_instances"),
    gauge("mariadb", "Innodb_checkpoint_age", "checkpoint_age"),
    gauge("mariadb", "Innodb_checkpoint_max_age", "checkpoint_max_age"),
)
"""MariaDB 10.11 has no Innodb_os_log_fsyncs any more: fsyncs of the redo log count in Innodb_data_fsyncs (seen: 20
single-row commits raise it by 21)."""

COUNTING = Counting("mariadb", STATUS, variables_of("mariadb"), ("Innodb_checkpoint_age", "Innodb_checkpoint_max_age"))
COUNTERS = COUNTING.specs
