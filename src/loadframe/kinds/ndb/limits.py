"""Limits of a MySQL Cluster, each of the fullest data node or part."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule

MANUAL = "MySQL 8.4 Reference Manual"

LIMITS: tuple[LimitRule, ...] = (
    LimitRule(
        id="ndb.data_memory",
        title="the memory for rows and indexes of a data node (DataMemory)",
        use="ndb.data_memory_used",
        ceiling="ndb.data_memory",
        unit="bytes",
        loud=True,
        source=f"{MANUAL}, DataMemory; ndbinfo.resources, DATA_MEMORY; when it is full, error 827 (out of memory in "
        "Ndb Kernel, table data); near: 80 %, where the node itself first writes it into the cluster log",
        configured="DataMemory",
        chain=("cgroup.memory", "system.memory"),
        near=0.8,
    ),
    LimitRule(
        id="ndb.redo_log",
        title="the redo log between two local checkpoints",
        use="ndb.redo_log_used",
        ceiling="ndb.redo_log",
        unit="bytes",
        loud=True,
        source=f"{MANUAL}, NoOfFragmentLogFiles and FragmentLogFileSize; ndbinfo.logspaces, less 4 MB of each part, "
        "with which error 410 comes (REDO log files overloaded; DblqhMain.cpp); near: 75 %, our choice",
        configured="NoOfFragmentLogFiles",
        near=0.75,
    ),
    LimitRule(
        id="ndb.redo_buffer",
        title="the redo log that waits to be written",
        use="ndb.redo_buffer_used",
        ceiling="ndb.redo_buffer",
        unit="bytes",
        loud=True,
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
)
