"""Metrics of a MySQL Cluster that follow from its counters."""

from operator import truediv

from loadframe.knowledge.metric import Derived, connections, requests

THREADS = ("main", "rep", "ldm", "tc", "query", "recover", "recv")
"""The kinds of a data node's threads whose time threadstat counts, as ndbinfo calls them."""
SQL_NODES = ("sql1", "sql2", "sql3", "sql4")
IN_FRONT = ("management", *SQL_NODES)

OWN_WAITS = 1.0
"""Waits of each SQL node without clients: 1.003 threads waited on average in 9.7.4, its ndb_binlog always."""


def _clients_alone(wait: float, nodes: float) -> float:
    return max(0.0, wait - nodes * OWN_WAITS)


def _on_each(wait: float, nodes: float, pool: float) -> float:
    return _clients_alone(wait, nodes) / pool


def _slots(pool: float, receive_from: float) -> float:
    """Connections of the pool times the receiving thread's threshold; with 0 it receives from the first one on."""
    return pool * max(1.0, receive_from)


DERIVED = (
    Derived("ndb.redo_fill", ("ndb.redo_log_used", "ndb.redo_log"), truediv),
    Derived("ndb.sql.waiting", ("ndb.sql.wait", "ndb.sql.nodes"), _clients_alone),
    Derived("ndb.sql.shared_by", ("ndb.sql.wait", "ndb.sql.nodes", "ndb.sql.pool"), _on_each),
    Derived("ndb.sql.receive_slots", ("ndb.sql.pool", "ndb.sql.receive_from"), _slots),
    Derived("ndb.sql.cpu", tuple(f"{name}.cpu.utilization" for name in SQL_NODES), max, either=True),
    Derived("ndb.sql.cores", tuple(f"{name}.cpu.cores" for name in SQL_NODES), sum, either=True),
)

AGREEMENTS = (
    requests("ndb.transactions", "ndb.table_scans", "ndb.range_scans", also=("ndb.",)),
    requests("ndb.sql.statements", also=("ndb.sql.",)),
    connections("ndb.sql.connections"),
)
