"""What a MySQL Cluster counts."""

from __future__ import annotations

from operator import truediv

from loadframe.knowledge.metric import Derived, connections, requests

THREADS = ("main", "rep", "ldm", "tc", "query", "recover", "recv")
"""The kinds of a data node's threads whose time threadstat counts, as ndbinfo calls them."""
SQL_NODES = ("sql1", "sql2", "sql3", "sql4")
IN_FRONT = ("management", *SQL_NODES)

ROWS = """
ndb.transactions                  | 1/s   | transactions begun
ndb.commits                       | 1/s   | transactions committed
ndb.aborts                        | 1/s   | transactions aborted
ndb.reads                         | 1/s   | reads by key that a transaction coordinator was asked for
ndb.writes                        | 1/s   | writes by key that a transaction coordinator was asked for
ndb.operations                    | 1/s   | operations on rows, in each copy of the data
ndb.table_scans                   | 1/s   | scans of tables
ndb.range_scans                   | 1/s   | scans of ordered indexes
ndb.overload_refusals             | 1/s   | operations refused because a node's send buffer was overloaded
ndb.lock_waits                    | 1/s   | operations that waited for the lock of a row
ndb.lock_wait                     | s/s   | operations that wait for the lock of a row, told once the wait has ended
ndb.preemptions                   | 1/s   | times a thread of a data node was taken off its CPU
ndb.send_overloads                | 1/s   | times a link between nodes became slow or overloaded
ndb.bytes_sent                    | bytes/s | bytes that data nodes sent
ndb.main_cpu                      | s/s   | CPU time of a main thread, average over the data nodes
ndb.rep_cpu                       | s/s   | CPU time of a replication thread, average over the data nodes
ndb.ldm_cpu                       | s/s   | CPU time of a data thread (ldm), average over all of them
ndb.tc_cpu                        | s/s   | CPU time of a transaction coordinator (tc), average over all of them
ndb.query_cpu                     | s/s   | CPU time of a query thread, average over all of them
ndb.recover_cpu                   | s/s   | CPU time of a recovery thread, average over all of them
ndb.recv_cpu                      | s/s   | CPU time of a receive thread, average over all of them
ndb.send_cpu                      | s/s   | CPU time of a send thread, average over all of them
ndb.data_memory_used              | bytes | DataMemory in use, of the fullest data node
ndb.data_memory                   | bytes | DataMemory (effective), less what is kept for restarts
ndb.redo_log_used                 | bytes | redo log that is still needed, of the fullest part
ndb.redo_log                      | bytes | redo log of a part, less what it never uses
ndb.redo_buffer_used              | bytes | redo log that is not written yet, of the fullest part
ndb.redo_buffer                   | bytes | buffer of a part's redo log
ndb.redo_fill                     | share | redo log that is still needed, of all of it
ndb.transaction_memory_used       | bytes | memory for what is in work, in use, of the fullest data node
ndb.transaction_memory            | bytes | memory that this may take, SharedGlobalMemory included
ndb.transactions_open             | count | transactions under way, of the data node that has most
ndb.most_transactions             | count | MaxNoOfConcurrentTransactions (effective)
ndb.operations_open               | count | operations of these, of the transaction coordinator that has most
ndb.most_operations               | count | MaxNoOfConcurrentOperations (effective)
ndb.largest_transaction           | count | operations of the largest transaction under way
ndb.most_changes                  | count | rows that one transaction may change (effective)
ndb.send_buffers_used             | bytes | send buffers in use, of the fullest data node
ndb.send_buffers                  | bytes | send buffers of a data node
ndb.api_nodes                     | count | API nodes connected, Loadframe's own included
ndb.api_slots                     | count | API nodes that the configuration has
ndb.data_nodes                    | count | data nodes that answer
ndb.sql.nodes                     | count | SQL nodes that are read
ndb.sql.cpu                       | share | CPUs that a SQL node may use, in use; of the busiest one
ndb.sql.cores                     | cores | CPU time of all SQL nodes
ndb.sql.statements                | 1/s   | statements that the SQL nodes were given
ndb.sql.connections               | count | client connections of the SQL nodes
ndb.sql.max_connections           | count | client connections that the SQL nodes allow (effective)
ndb.sql.threads_running           | count | threads of the SQL nodes that work on a statement
ndb.sql.data_nodes                | count | data nodes that a SQL node is connected to; of the one with fewest
ndb.sql.pool                      | count | connections of the SQL nodes to the cluster (effective)
ndb.sql.receive_from              | count | waiting threads of a connection from which on one thread receives for them
ndb.sql.shared_by                 | count | threads that wait for data nodes on each connection
ndb.sql.receive_slots             | count | threads that the connections serve before one receives for all on each
ndb.sql.wait                      | s/s   | threads of the SQL nodes that wait for data nodes, their own included
ndb.sql.waiting                   | s/s   | threads that serve clients and wait for data nodes
ndb.sql.waits_for_operations      | 1/s   | times a thread of a SQL node waited for operations on rows
ndb.sql.waits_for_scans           | 1/s   | times a thread of a SQL node waited for rows of a scan
ndb.sql.bytes_sent                | bytes/s | bytes that SQL nodes sent to data nodes
ndb.sql.bytes_received            | bytes/s | bytes that SQL nodes received from data nodes
ndb.sql.commits                   | 1/s   | transactions that SQL nodes committed in the cluster
ndb.sql.aborts                    | 1/s   | transactions that SQL nodes aborted in the cluster
ndb.sql.reads_by_key              | 1/s   | operations by primary key of the SQL nodes
ndb.sql.range_scans               | 1/s   | scans of ordered indexes by SQL nodes
ndb.sql.sends_forced              | 1/s   | sends of SQL nodes at once
ndb.sql.sends_deferred            | 1/s   | sends that SQL nodes left to a later moment
"""
"""name | unit | what."""

OWN_WAITS = 1.0
"""Of each SQL node: without any client 1.003 threads waited on average in one of 9.7.4, its ndb_binlog always."""


def _clients_alone(wait: float, nodes: float) -> float:
    return max(0.0, wait - nodes * OWN_WAITS)


def _on_each(wait: float, nodes: float, pool: float) -> float:
    return _clients_alone(wait, nodes) / pool


def _slots(pool: float, receive_from: float) -> float:
    """With 0 that thread receives from the first one on."""
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
