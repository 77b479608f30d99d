"""The settings of MySQL Cluster as data, by the kind of section of config.ini that has them.

Types, ranges, defaults and kinds of restart are those of the MySQL 8.4 Reference Manual, in the sections that each
table names; where it gives no range, of ConfigInfo.cpp of MySQL Cluster. Where ndb_mgmd 9.7.2 does not take what the
manual says, they are ndb_mgmd's. None can be changed while its node runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from loadframe.kinds.ndb.setting import UNITS, GivenUp, Setting, Type

MANUAL = "MySQL 8.4 Reference Manual, "
MOST = 4294967039
"""0xFFFFFEFF, the largest value of most numbers."""
RESTARTS = {
    "N": "the nodes, in turn",
    "S": "the whole cluster",
    "IN": "the nodes, in turn, each with --initial",
    "IS": "the whole cluster, its data restored from a backup",
    "": "not said",
}
"""What has to be restarted for a new value (manual, table 25.15)."""

MEMORY = {
    "DataMemory": 1,
    "IndexMemory": 1,
    "DiskPageBufferMemory": 1,
    "SharedGlobalMemory": 1,
    "TransactionMemory": 1,
    "TransactionBufferMemory": 1,
    "LongMessageBuffer": 1,
    "BackupLogBufferSize": 1,
    "TotalSendBufferMemory": 1,
    "ExtraSendBufferMemory": 1,
    "MaxNoOfConcurrentOperations": 1024,
    "MaxNoOfTables": 20 * 1024,
    "MaxNoOfOrderedIndexes": 10 * 1024,
    "MaxNoOfUniqueHashIndexes": 15 * 1024,
    "MaxNoOfAttributes": 200,
}
"""Bytes of memory that one of each takes in a data node ("about", says the manual of records and objects)."""
PER_PART = "RedoBuffer"
"""Bytes for each part of the redo log (ndbd.cpp)."""

TAKES = {
    **{name: "this much memory" for name, size in MEMORY.items() if size == 1},
    **{name: f"{size:,} bytes of memory each" for name, size in MEMORY.items() if size > 1},
    "DataMemory": "this much memory, all of it at the start",
    PER_PART: "this much memory for each part of the redo log",
    "MaxNoOfSubscriptions": "108 bytes of memory each",
    "MaxNoOfSubscribers": "16 bytes of memory each",
    "NoOfFragmentLogFiles": "number of files of FragmentLogFileSize on disk, for each of NoOfFragmentLogParts",
    "RecoveryWork": "this much disk space for checkpoints beyond the data",
}

GIVES_UP = {
    "Diskless": GivenUp("nothing is written to disk: no table and no row survives the end of the cluster"),
    "ODirectSyncFlag": GivenUp(
        "with ODirect a write counts as on the disk once it is made, with no fsync: a disk's own cache may lose it"
    ),
    "StartPartitionedTimeout": GivenUp(
        "after so long a cluster starts although it may be cut in two, and may then go on as two"
    ),
    "NoOfReplicas": GivenUp("one copy of the data: the cluster ends with the first data node that fails"),
    "TimeBetweenGlobalCheckpoints": GivenUp(
        "all that was committed for so long is lost when the whole cluster fails", larger_only=True
    ),
    "Arbitration": GivenUp("without an arbitrator of its own a cluster that is cut in two may go on as two"),
    "CrashOnCorruptedTuple": GivenUp("a data node that meets a corrupted row goes on"),
}

FIRST = {
    "NoOfReplicas": "the number of [ndbd] sections is a multiple of it",
    "DataMemory": "the host has this much memory",
    "LockPagesInMainMemory": "RLIMIT_MEMLOCK (ulimit -l), or root",
    "MaxNoOfExecutionThreads": "ndbmtd (ndbd has one thread), CPUs; neither ThreadConfig nor AutomaticThreadConfig",
    "ThreadConfig": "ndbmtd, CPUs; no AutomaticThreadConfig",
    "LockExecuteThreadToCPU": "MaxNoOfExecutionThreads or ThreadConfig; root",
    "LockMaintThreadsToCPU": "root",
    "RealtimeScheduler": "root",
    "NoOfFragmentLogParts": "LDM threads: at most four parts for each",
    "NumCPUs": "AutomaticThreadConfig",
    "PartitionsPerNode": "ClassicFragmentation = false",
    "SchedulerSpinTimer": "no SpinMethod",
    "MaxNoOfConcurrentTransactions": "MaxNoOfConcurrentOperations is as large",
    "TransactionMemory": "none of MaxNoOfConcurrentIndexOperations, MaxNoOfFiredTriggers, MaxNoOfLocalOperations, "
    "MaxNoOfLocalScans",
    "ODirectSyncFlag": "ODirect, InitFragmentLogFiles = FULL",
    "DiskSyncSize": "no ODirect",
    "RecoveryWork": "EnablePartialLcp",
    "InsertRecoveryWork": "EnablePartialLcp",
    "TwoPassInitialNodeRestartCopy": "BuildIndexThreads above 0",
    "MaxStartFailRetries": "StopOnError = 0",
    "StartFailRetryDelay": "StopOnError = 0",
    "EncryptedFileSystem": "a password for each data node when it starts",
}
"""All as the manual's descriptions of the settings say."""


def _table(section: str, source: str, rows: str) -> tuple[Setting, ...]:
    """Rows of name | type, range, unit | default | restart; a "*" behind the name: deprecated."""
    return tuple(_row(section, source, *(cell.strip() for cell in row.split("|"))) for row in rows.strip().splitlines())


def _row(section: str, source: str, name: str, values: str, default: str, restart: str) -> Setting:
    type_, low, high, choices, unit = _VALUES.fullmatch(values).groups()  # type: ignore[union-attr]
    plain = name.rstrip("*")
    of_data_node = section == "ndbd"
    setting = Setting(
        section,
        plain,
        cast(Type, type_),
        _bound(low),
        _bound(high),
        tuple((choices or "").split()),
        unit or "",
        None,
        restart,
        name != plain,
        source,
        TAKES.get(plain, "") if of_data_node else "",
        GIVES_UP.get(plain) if of_data_node else None,
        FIRST.get(plain, "") if of_data_node else "",
    )
    return replace(setting, default=setting.read(default)) if default else setting


_VALUES = re.compile(r"(\w+)(?: (\w+)\.\.(\w+))?(?: {(.*)})?(?: (\w+))?")


def _bound(word: str | None) -> int | None:
    if word is None:
        return None
    return MOST if word == "MOST" else int(word.rstrip("KMG")) * UNITS[word.lstrip("0123456789")]


NDBD = _table(
    "ndbd",
    MANUAL + "25.4.3.6",
    """
NodeId | integer 1..144 | | IS
HostName | text | localhost | N
ExecuteOnComputer* | text | | S
ServerPort | integer 1..64K | | S
TcpBind_INADDR_ANY | boolean | false |
NodeGroup | integer 0..65536 | | IS
LocationDomainId | integer 0..16 | 0 | S
NoOfReplicas | integer 1..4 | 2 | IS
DataDir | text | | IN
FileSystemPath | text | | IN
BackupDataDir | text | | IN
DataMemory | bytes 1M..16384G | 98M | N
IndexMemory* | bytes 1M..1024G | | N
StringMemory | integer 0..MOST | 25 | S
MinFreePct | integer 0..100 percent | 5 | N
MaxNoOfConcurrentTransactions* | integer 32..MOST | 4096 | N
MaxNoOfConcurrentOperations | integer 32..MOST | 32K | N
MaxNoOfLocalOperations* | integer 32..MOST | | N
MaxDMLOperationsPerTransaction | integer 32..4294967295 | 4294967295 | N
MaxNoOfConcurrentIndexOperations* | integer 0..MOST | 8K | N
MaxNoOfFiredTriggers* | integer 0..MOST | 4000 | N
TransactionBufferMemory | bytes 1K..MOST | 1M | N
ReservedConcurrentIndexOperations | integer 0..MOST | 0 | N
ReservedConcurrentOperations | integer 0..MOST | 0 | N
ReservedConcurrentScans | integer 0..500 | 0 | N
ReservedConcurrentTransactions | integer 0..MOST | 0 | N
ReservedFiredTriggers | integer 0..MOST | 0 | N
ReservedLocalScans | integer 0..MOST | 0 | N
ReservedTransactionBufferMemory* | bytes 0..MOST | 0 | N
TransactionMemory | bytes 0..16384G | 0 | N
BatchSizePerLocalScan* | integer 1..992 | 256 | N
LongMessageBuffer | bytes 512K..MOST | 64M | N
MaxFKBuildBatchSize | integer 16..512 | 64 | N
MaxNoOfConcurrentScans | integer 2..500 | 256 | N
MaxNoOfLocalScans* | integer 32..MOST | | N
MaxParallelCopyInstances | integer 0..64 | 0 | N
MaxParallelScansPerFragment | integer 1..MOST | 256 | N
MaxReorgBuildBatchSize | integer 16..512 | 64 | N
MaxUIBuildBatchSize | integer 16..512 | 64 | N
MaxAllocate* | bytes 1M..1G | 32M | N
NodeGroupTransporters | integer 0..32 | 0 | N
DefaultHashMapSize | integer 0..3840 | 240 | N
FragmentLogFileSize | bytes 4M..1G | 16M | IN
InitialNoOfOpenFiles | integer 20..MOST | 27 | N
InitFragmentLogFiles | word {SPARSE FULL} | SPARSE | IN
EnablePartialLcp | boolean | true | N
LcpScanProgressTimeout | integer 0..MOST s | 180 | N
MaxNoOfOpenFiles | integer 20..MOST | | N
MaxNoOfSavedMessages | integer 0..MOST | 25 | N
MaxLCPStartDelay | integer 0..600 s | 0 | N
NoOfFragmentLogFiles | integer 3..MOST | 16 | IN
RecoveryWork | integer 25..100 percent | 60 | N
InsertRecoveryWork | integer 0..70 percent | 40 | N
EnableRedoControl | boolean | true | N
MaxNoOfAttributes | integer 32..MOST | 1000 | N
MaxNoOfTables | integer 8..20320 | 128 | N
MaxNoOfOrderedIndexes | integer 0..MOST | 128 | N
MaxNoOfUniqueHashIndexes | integer 0..MOST | 64 | N
MaxNoOfTriggers | integer 0..MOST | 768 | N
MaxNoOfSubscriptions | integer 0..MOST | 0 | N
MaxNoOfSubscribers | integer 0..MOST | 0 | N
MaxNoOfConcurrentSubOperations | integer 0..MOST | 256 | N
CompressedLCP | boolean | false | N
CrashOnCorruptedTuple | boolean | true | N
Diskless | boolean | false | IS
EncryptedFileSystem | integer 0..1 | 0 | IN
LateAlloc | integer 0..1 | 1 | N
LockPagesInMainMemory | integer 0..2 | 0 | N
ODirect | boolean | false | N
ODirectSyncFlag | boolean | false | N
RequireCertificate | boolean | false | N
RequireTls | boolean | false | N
StopOnError | boolean | 1 | N
UseShm | boolean | false | N
TimeBetweenWatchDogCheck | integer 70..MOST ms | 6000 | N
TimeBetweenWatchDogCheckInitial | integer 70..MOST ms | 6000 | N
StartPartialTimeout | integer 0..MOST ms | 30000 | N
StartPartitionedTimeout | integer 0..MOST ms | 0 | N
StartFailureTimeout | integer 0..MOST ms | 0 | N
StartNoNodeGroupTimeout | integer 0..MOST ms | 15000 | N
HeartbeatIntervalDbDb | integer 10..MOST ms | 5000 | N
HeartbeatIntervalDbApi | integer 100..MOST ms | 1500 | N
HeartbeatOrder | integer 0..65535 | 0 | S
ConnectCheckIntervalDelay | integer 0..MOST ms | 0 | N
TimeBetweenLocalCheckpoints | integer 0..31 | 20 | N
TimeBetweenGlobalCheckpoints | integer 20..32000 ms | 2000 | N
TimeBetweenGlobalCheckpointsTimeout | integer 10..MOST ms | 120000 | N
TimeBetweenEpochs | integer 0..32000 ms | 100 | N
TimeBetweenEpochsTimeout | integer 0..256000 ms | 0 | N
MaxBufferedEpochs | integer 1..100000 | 100 | N
MaxBufferedEpochBytes | bytes 26214400..MOST | 26214400 | N
TimeBetweenInactiveTransactionAbortCheck | integer 1000..MOST ms | 1000 | N
TransactionInactiveTimeout | integer 0..MOST ms | 4294967039 | N
TransactionDeadlockDetectionTimeout | integer 50..MOST ms | 1200 | N
DiskSyncSize | bytes 32K..MOST | 4M | N
MaxDiskWriteSpeed | bytes 1M..1024G | 20M | S
MaxDiskWriteSpeedOtherNodeRestart | bytes 1M..1024G | 50M | S
MaxDiskWriteSpeedOwnRestart | bytes 1M..1024G | 200M | S
MinDiskWriteSpeed | bytes 1M..1024G | 10M | S
ApiFailureHandlingTimeout | integer 0..MOST s | 600 |
ArbitrationTimeout | integer 10..MOST ms | 7500 | N
Arbitration | word {Default Disabled WaitExternal} | Default | N
RestartSubscriberConnectTimeout | integer 0..MOST ms | 12000 | N
KeepAliveSendInterval | integer 0..MOST ms | 60000 | N
UndoIndexBuffer* | bytes 1M..MOST | 2M | N
UndoDataBuffer* | bytes 1M..MOST | 16M | N
RedoBuffer | bytes 1M..MOST | 32M | N
EventLogBufferSize | bytes 0..64K | 8192 | S
LogLevelStartup | integer 0..15 | 1 | N
LogLevelShutdown | integer 0..15 | 0 | N
LogLevelStatistic | integer 0..15 | 0 | N
LogLevelCheckpoint | integer 0..15 | 0 | N
LogLevelNodeRestart | integer 0..15 | 0 | N
LogLevelConnection | integer 0..15 | 0 | N
LogLevelError | integer 0..15 | 0 | N
LogLevelCongestion | integer 0..15 | 0 | N
LogLevelInfo | integer 0..15 | 0 | N
MemReportFrequency | integer 0..MOST s | 0 | N
StartupStatusReportFrequency | integer 0..MOST s | 0 | N
DictTrace | integer 0..100 | | N
WatchDogImmediateKill | boolean | false | N
BackupDataBufferSize* | bytes 512K..MOST | 16M | N
BackupDiskWriteSpeedPct | integer 0..90 percent | 50 | N
BackupLogBufferSize | bytes 2M..MOST | 16M | N
BackupMemory* | bytes 0..MOST | 32M | N
BackupReportFrequency | integer 0..MOST s | 0 | N
BackupWriteSize* | bytes 32K..MOST | 256K | N
BackupMaxWriteSize* | bytes 256K..MOST | 1M | N
CompressedBackup | boolean | false | N
RequireEncryptedBackup | integer 0..1 | 0 | N
BuildIndexThreads | integer 0..128 | 128 | N
LockExecuteThreadToCPU | cpus | | N
LockMaintThreadsToCPU | integer 0..65535 | | N
Numa | integer 0..1 | 1 | N
RealtimeScheduler | boolean | false | N
SchedulerExecutionTimer | integer 0..11000 us | 50 | N
SchedulerResponsiveness | integer 0..10 | 5 | N
SchedulerSpinTimer | integer 0..500 us | 0 | N
SpinMethod | word {StaticSpinning CostBasedSpinning \
LatencyOptimisedSpinning DatabaseMachineSpinning} | StaticSpinning | N
TwoPassInitialNodeRestartCopy | boolean | true | N
AutomaticThreadConfig | boolean | false | IS
ClassicFragmentation | boolean | true | N
EnableMultithreadedBackup | integer 0..1 | 1 | N
MaxNoOfExecutionThreads | integer 2..72 | 2 | S
MaxSendDelay | integer 0..11000 us | 0 | N
NoOfFragmentLogParts | integer {4 6 8 10 12 16 20 24 32} | 4 | IN
NumCPUs | integer 0..1024 | 0 | IS
PartitionsPerNode | integer 1..32 | 2 | N
ThreadConfig | text | | S
DiskPageBufferEntries | integer 1..MOST | 10 | N
DiskPageBufferMemory | bytes 4M..16384G | 64M | N
SharedGlobalMemory | bytes 0..65536G | 128M | N
DiskIOThreadPool | integer 0..MOST | 2 | N
FileSystemPathDD | text | | IN
FileSystemPathDataFiles | text | | IN
FileSystemPathUndoFiles | text | | IN
InitialLogFileGroup | text | | S
InitialTablespace | text | | S
MaxDiskDataLatency | integer 0..8000 ms | 0 | N
DiskDataUsingSameDisk | boolean | true | N
ExtraSendBufferMemory | bytes 0..32G | 0 |
TotalSendBufferMemory | bytes 256K..MOST | |
RedoOverCommitCounter | integer 1..MOST | 3 | N
RedoOverCommitLimit | integer 1..MOST s | 20 | N
StartFailRetryDelay | integer 0..MOST s | 0 | N
MaxStartFailRetries | integer 0..MOST | 3 | N
IndexStatAutoCreate | integer 0..1 | 1 | N
IndexStatAutoUpdate | integer 0..1 | 1 | N
IndexStatSaveSize | bytes 0..MOST | 32768 | IN
IndexStatSaveScale | integer 0..MOST percent | 100 | IN
IndexStatTriggerPct | integer 0..MOST percent | 100 | IN
IndexStatTriggerScale | integer 0..MOST percent | 100 | IN
IndexStatUpdateDelay | integer 0..MOST s | 60 | IN
""",
)

NDB_MGMD = _table(
    "ndb_mgmd",
    MANUAL + "25.4.3.5",
    """
NodeId | integer 1..255 | | IS
Id* | integer 1..255 | | IS
ExecuteOnComputer* | text | | S
HostName | text | localhost | N
PortNumber | integer 0..64K | 1186 | S
PortNumberStats | integer 0..64K | | N
LocationDomainId | integer 0..16 | 0 | S
LogDestination | text | | N
ArbitrationRank | integer 0..2 | 1 | N
ArbitrationDelay | integer 0..MOST ms | 0 | N
DataDir | text | | N
Wan | boolean | false | N
HeartbeatThreadPriority | text | | N
ExtraSendBufferMemory | bytes 0..32G | 0 | N
RequireTls | boolean | false | N
TotalSendBufferMemory | bytes 256K..MOST | | N
HeartbeatIntervalMgmdMgmd | integer 100..MOST ms | 1500 | N
""",
)

MYSQLD = _table(
    "mysqld",
    MANUAL + "25.4.3.7",
    """
NodeId | integer 1..255 | | IS
Id* | integer 1..255 | | IS
ConnectionMap | text | | N
ExecuteOnComputer* | text | | S
HostName | text | | N
LocationDomainId | integer 0..16 | 0 | S
ArbitrationRank | integer 0..2 | 0 | N
ArbitrationDelay | integer 0..MOST ms | 0 | N
BatchByteSize | bytes 1K..1M | 16K | N
BatchSize | integer 1..992 | 256 | N
ExtraSendBufferMemory | bytes 0..MOST | 0 | N
HeartbeatThreadPriority | text | | N
MaxScanBatchSize | bytes 32K..16M | 256K | N
TotalSendBufferMemory | bytes 256K..MOST | | N
AutoReconnect | boolean | false | N
DefaultOperationRedoProblemAction | word {ABORT QUEUE} | QUEUE | N
DefaultHashMapSize | integer {0 240 3840} | 3840 | N
Wan | boolean | false | N
ConnectBackoffMaxTime | integer 0..MOST ms | 0 | N
StartConnectBackoffMaxTime | integer 0..MOST ms | 0 | N
ApiVerbose | integer 0..100 | 0 | N
""",
)

LINKS = """
NodeId1 | text | |
NodeId2 | text | |
NodeIdServer | integer | |
HostName1 | text | |
HostName2 | text | |
Group | integer 0..200 | {group} |
SendSignalId | boolean | |
Checksum | boolean | {checksum} |
PreSendChecksum | boolean | false |
OverloadLimit | bytes 0..MOST | 0 |
SendBufferMemory | bytes 64K..MOST | 2M |
"""
LINKED = MANUAL + "25.4.2.4; ConfigInfo.cpp of MySQL Cluster"
TCP = _table("tcp", LINKED, LINKS.format(group=55, checksum="false")) + _table(
    "tcp",
    LINKED,
    """
AllowUnresolvedHostNames | boolean | false |
PreferIPVersion | integer {4 6} | 4 |
Proxy | text | |
ReceiveBufferMemory | bytes 16K..MOST | 2M |
TcpSpinTime | integer | |
TCP_MAXSEG_SIZE | bytes 0..2G | 0 |
TCP_RCV_BUF_SIZE | bytes 0..2G | 0 |
TCP_SND_BUF_SIZE | bytes 0..2G | 0 |
TcpBind_INADDR_ANY | boolean | false |
""",
)
SHM = _table("shm", LINKED, LINKS.format(group=35, checksum="true")) + _table(
    "shm",
    LINKED,
    """
ShmKey | integer | |
ShmSize | bytes 64K..MOST | 4M |
ShmSpinTime | integer 0..2000 us | 0 |
Signum* | integer | |
""",
)
COMPUTER = _table("computer", MANUAL + "25.4.3.4", "Id | text | | IS\nHostName | text | | N")
SYSTEM = _table(
    "system",
    "ConfigInfo.cpp of MySQL Cluster",
    "Name | text | |\nPrimaryMGMNode | integer 0..MOST | 0 |\nConfigGenerationNumber | integer 0..MOST | 0 |",
)

SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    table[0].section: {setting.name.lower(): setting for setting in table}
    for table in (NDBD, NDB_MGMD, MYSQLD, TCP, SHM, COMPUTER, SYSTEM)
}
"""By kind of section and name in small letters."""

POOL, POOL_MOST = "ndb_cluster_connection_pool", 63
"""A MySQL server's own option, 1 by default: its connections to the cluster, each a node (manual, 25.4.3.9.1)."""
