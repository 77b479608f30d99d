"""Metrics of a MySQL Cluster that follow from its counters."""

from operator import truediv

from loadframe.knowledge.metric import Derived, connections, derived, requests

THREADS = ("main", "rep", "ldm", "tc", "query", "recover", "recv")
"""Kinds of threads whose time threadstat counts, as ndbinfo calls them."""
SQL_NODES = ("sql1", "sql2", "sql3", "sql4")
IN_FRONT = ("management", *SQL_NODES)

OWN_WAITS = 1.0
"""Waits of each SQL node without clients: 1.003 threads waited on average in 9.7.4, its ndb_binlog always."""


def _clients_alone(wait: float, nodes: float) -> float:
    return max(0.0, wait - nodes * OWN_WAITS)


DERIVED = (
    derived("ndb.redo_fill", "redo_log_used redo_log", truediv),
    derived("ndb.sql.waiting", "sql.wait sql.nodes", _clients_alone),
    derived(
        "ndb.sql.shared_by", "sql.wait sql.nodes sql.pool", lambda wait, nodes, pool: _clients_alone(wait, nodes) / pool
    ),
    # with a threshold of 0 the receiving thread receives from the first connection on
    derived("ndb.sql.receive_slots", "sql.pool sql.receive_from", lambda pool, least: pool * max(1.0, least)),
    Derived("ndb.sql.cpu", tuple(f"{name}.cpu.utilization" for name in SQL_NODES), max, either=True),
    Derived("ndb.sql.cores", tuple(f"{name}.cpu.cores" for name in SQL_NODES), sum, either=True),
)

AGREEMENTS = (
    requests("ndb.transactions", "ndb.table_scans", "ndb.range_scans", also=("ndb.",)),
    requests("ndb.sql.statements", also=("ndb.sql.",)),
    connections("ndb.sql.connections"),
)
