"""What a MySQL Cluster counts."""

from __future__ import annotations

from loadframe.knowledge.metric import connections, requests

THREADS = ("main", "rep", "ldm", "tc", "query", "recover", "recv", "send", "io")
"""The kinds of a data node's threads, as ndbinfo calls them."""
IN_FRONT = ("management", "sql1", "sql2", "sql3", "sql4")

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
ndb.io_cpu                        | s/s   | CPU time of an I/O thread, average over all of them
ndb.data_memory_used              | bytes | DataMemory in use, of the fullest data node
ndb.data_memory                   | bytes | DataMemory (effective)
ndb.redo_log_used                 | bytes | redo log that is still needed, of the fullest part
ndb.redo_log                      | bytes | redo log of a part, less what it never uses
ndb.redo_buffer_used              | bytes | redo log that is not written yet, of the fullest part
ndb.redo_buffer                   | bytes | buffer of a part's redo log
ndb.send_buffers_used             | bytes | send buffers in use, of the fullest data node
ndb.send_buffers                  | bytes | send buffers of a data node
ndb.api_nodes                     | count | API nodes connected, Loadframe's own included
ndb.api_slots                     | count | API nodes that the configuration has
ndb.data_nodes                    | count | data nodes that answer
ndb.sql.statements                | 1/s   | statements that the SQL node was given
ndb.sql.connections               | count | client connections of the SQL node
ndb.sql.max_connections           | count | client connections that the SQL node allows (effective)
ndb.sql.threads_running           | count | threads of the SQL node that work on a statement
ndb.sql.data_nodes                | count | data nodes that the SQL node is connected to
ndb.sql.pool                      | count | connections of the SQL node to the cluster (effective)
ndb.sql.wait                      | s/s   | threads of the SQL node that wait for data nodes
ndb.sql.waits_for_operations      | 1/s   | times a thread of the SQL node waited for operations on rows
ndb.sql.waits_for_scans           | 1/s   | times a thread of the SQL node waited for rows of a scan
ndb.sql.bytes_sent                | bytes/s | bytes that the SQL node sent to data nodes
ndb.sql.bytes_received            | bytes/s | bytes that the SQL node received from data nodes
ndb.sql.commits                   | 1/s   | transactions that the SQL node committed in the cluster
ndb.sql.aborts                    | 1/s   | transactions that the SQL node aborted in the cluster
ndb.sql.reads_by_key              | 1/s   | operations by primary key of the SQL node
ndb.sql.range_scans               | 1/s   | scans of ordered indexes by the SQL node
ndb.sql.sends_forced              | 1/s   | sends of the SQL node at once
ndb.sql.sends_deferred            | 1/s   | sends that the SQL node left to a later moment
"""
"""name | unit | what."""

AGREEMENTS = (
    requests("ndb.transactions", also=("ndb.",)),
    requests("ndb.sql.statements", also=("ndb.sql.",)),
    connections("ndb.sql.connections"),
)
