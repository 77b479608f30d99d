"""Limits of a MySQL Cluster, each of the fullest data node or part."""

from __future__ import annotations

from functools import partial

from loadframe.knowledge.limit import LimitRule

MANUAL = "MySQL 8.4 Reference Manual"

_refusing = partial(LimitRule, loud=True, errors="workload.errors")

LIMITS: tuple[LimitRule, ...] = (
    _refusing(
        id="ndb.data_memory",
        title="the memory for rows and indexes of a data node (DataMemory)",
        use="ndb.data_memory_used",
        ceiling="ndb.data_memory",
        unit="bytes",
        source=f"{MANUAL}, DataMemory; ndbinfo.resources, DATA_MEMORY, less its spare pages; when it is full, "
        "error 827 (out of memory in Ndb Kernel, table data); near: 80 %, where the node itself "
        "first writes it into the cluster log",
        configured="DataMemory",
        chain=("cgroup.memory", "system.memory"),
        near=0.8,
    ),
    _refusing(
        id="ndb.redo_log",
        title="the redo log between two local checkpoints",
        use="ndb.redo_log_used",
        ceiling="ndb.redo_log",
        unit="bytes",
        source=f"{MANUAL}, NoOfFragmentLogFiles and FragmentLogFileSize; ndbinfo.logspaces, less 4 MB of each part, "
        "with which error 410 comes (REDO log files overloaded; DblqhMain.cpp); near: 75 %, our choice",
        configured="NoOfFragmentLogFiles",
        near=0.75,
    ),
    _refusing(
        id="ndb.redo_buffer",
        title="the redo log that waits to be written",
        use="ndb.redo_buffer_used",
        ceiling="ndb.redo_buffer",
        unit="bytes",
        source=f"{MANUAL}, RedoBuffer; ndbinfo.logbuffers; when it is full, error 1221 (REDO buffers overloaded); "
        "near: 75 %, our choice",
        configured="RedoBuffer",
        near=0.75,
    ),
    LimitRule(
        id="ndb.send_buffers",
        title="the memory for what waits to be sent to other nodes",
        use="ndb.send_buffers_used",
        ceiling="ndb.send_buffers",
        unit="bytes",
        source=f"{MANUAL}, TotalSendBufferMemory; ndbinfo.resources, TRANSPORTER_BUFFERS, and the slowdowns and "
        "overloads of ndbinfo.transporters; near: 75 %, our choice",
        configured="TotalSendBufferMemory",
        thrash="ndb.send_overloads",
        near=0.75,
    ),
    LimitRule(
        id="ndb.api_slots",
        title="the API nodes that may be connected",
        use="ndb.api_nodes",
        ceiling="ndb.api_slots",
        loud=True,
        source=f"{MANUAL}, [mysqld] and [api] sections; ndbinfo.transporters; one more finds no node id; "
        "near: 90 %, our choice",
        near=0.9,
    ),
    _refusing(
        id="ndb.transaction_memory",
        title="the memory of a data node for transactions and operations under way",
        use="ndb.transaction_memory_used",
        ceiling="ndb.transaction_memory",
        unit="bytes",
        source=f"{MANUAL}, TransactionMemory and SharedGlobalMemory; ndbinfo.resources, TRANSACTION_MEMORY; when both "
        "are used up, error 233 and others (increase SharedGlobalMemory); near: 80 %, our choice",
        configured="SharedGlobalMemory",
        near=0.8,
    ),
    _refusing(
        id="ndb.operations",
        title="the operations of a transaction coordinator at once (MaxNoOfConcurrentOperations)",
        use="ndb.operations_open",
        ceiling="ndb.most_operations",
        source=f"{MANUAL}, MaxNoOfConcurrentOperations; ndbinfo.cluster_transactions, count_operations, once a second, "
        "of each transaction coordinator thread: it refuses more that change or lock rows with error 234 "
        "(Dbtc::execTCKEYREQ in DbtcMain.cpp; seen in 9.7.2); near: 80 %, our choice",
        configured="MaxNoOfConcurrentOperations",
        chain=("ndb.transaction_memory",),
        near=0.8,
    ),
    _refusing(
        id="ndb.transaction_size",
        title="the rows that one transaction changes",
        use="ndb.largest_transaction",
        ceiling="ndb.most_changes",
        source=f"{MANUAL}, MaxDMLOperationsPerTransaction, by default MaxNoOfConcurrentOperations; one more is error "
        "261; ndbinfo.cluster_transactions, count_operations, once a second, reads included; near: 80 %, our choice",
        configured="MaxNoOfConcurrentOperations",
        near=0.8,
    ),
    _refusing(
        id="ndb.transactions",
        title="the transactions of a data node at once (MaxNoOfConcurrentTransactions)",
        use="ndb.transactions_open",
        ceiling="ndb.most_transactions",
        source=f"{MANUAL}, MaxNoOfConcurrentTransactions; ndbinfo.cluster_transactions, once a second. Since 8.0 "
        "memory is reserved for this many, and more take SharedGlobalMemory; near: 80 %, our choice",
        configured="MaxNoOfConcurrentTransactions",
        chain=("ndb.transaction_memory",),
        near=0.8,
    ),
    LimitRule(
        id="ndb.sql_pool",
        title="threads that wait for data nodes, against the connections of the SQL nodes",
        use="ndb.sql.waiting",
        ceiling="ndb.sql.receive_slots",
        source=f"{MANUAL}, ndb_cluster_connection_pool and ndb_recv_thread_activation_threshold: from as many waiting "
        "threads on, one thread receives for all that wait on a connection; Ndb_api_wait_nanos_count; near: as many",
        configured="sql_ndb_cluster_connection_pool",
        near=1.0,
        pressure=True,
    ),
)
