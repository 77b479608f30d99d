"""A private MySQL Cluster with a SQL node: what sysbench and every other client of MySQL can load."""

from __future__ import annotations

from collections.abc import Mapping

from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.ndb.private_cluster import MANAGER
from loadframe.kinds.ndb.sql_node import COUNTERS, SQL_NODE, SqlNode
from loadframe.kinds.ndb.sql_settings import KIND, MOST_CONNECTIONS, SQL, checked, parted
from loadframe.kinds.ndb.target import API_SLOTS, NdbTarget
from loadframe.kinds.private_target import NOFILE
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState

BEFORE = (MANAGER, SQL_NODE)


class NdbSqlTarget(NdbTarget):
    """See targets.base.Target. Its components are "management", "sql1" and the data nodes.

    The SQL node is started after the data nodes and ends before them. It restarts where its own settings need it, and
    with every restart of data nodes: it would find other nodes than it knows, some of them with errors for its clients.
    """

    kind = KIND
    counter_specs: tuple[CounterSpec, ...] = COUNTERS
    api_slots = MOST_CONNECTIONS + API_SLOTS

    def __init__(self, lease: Lease, allowances: Mapping[str, Allowance]) -> None:
        """allowances: of "management", "sql1", and of each data node in order."""
        super().__init__(lease, {name: one for name, one in allowances.items() if name != SQL_NODE})
        self._sql = SqlNode(lease, allowances[SQL_NODE], self._cluster.management)

    # --- life -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        super().create()
        self._sql.create()

    def check(self, state: TargetState) -> None:
        cluster, sql = _parted(state)
        super().check(cluster)
        self._sql.check(sql)

    def start(self, state: TargetState) -> None:
        cluster, sql = _parted(state)
        super().start(cluster)
        self._sql.start(sql)

    def apply(self, state: TargetState) -> None:
        cluster, sql = _parted(state)
        self._running()
        if self._wanted(cluster) == self._state:
            self._sql.apply(sql)
            return
        self._sql.stop()
        super().apply(cluster)
        self._sql.start(sql)

    def reset(self) -> None:
        super().reset()
        self._sql.reset()

    def stop(self) -> None:
        try:
            self._sql.stop()
        finally:
            super().stop()

    def destroy(self) -> None:
        self._sql.destroy()
        super().destroy()

    # --- what it is and does now ------------------------------------------------------------------------------------

    def effective(self) -> dict[str, SettingValue]:
        """Resource limits are those of the data nodes."""
        sql = {f"{SQL}{name}": value for name, value in self._sql.effective().items() if name != NOFILE}
        return {**super().effective(), **sql}

    def counters(self) -> dict[str, float]:
        return {**super().counters(), **self._sql.counters()}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        of = super().processes()
        return {MANAGER: of[MANAGER], SQL_NODE: self._sql.pids(), **of}

    def endpoint(self) -> Endpoint:
        """That of the SQL node."""
        return self._sql.endpoint()

    def healthy(self) -> bool:
        return super().healthy() and self._sql.healthy()

    def version(self) -> str:
        return f"{super().version()}, SQL node {self._sql.version()}"

    def log_tail(self, lines: int = 20) -> str:
        return f"{super().log_tail(lines)}\n{SQL_NODE}:\n{self._sql.log_tail(lines)}"

    def describe(self) -> Mapping[str, str]:
        found = super().describe()
        nodes = found["data nodes"].partition(",")[0]
        return {**found, "data nodes": f"{nodes}, and one SQL node", "SQL node": self._sql.describe()["started"]}


def _parted(state: TargetState) -> tuple[TargetState, TargetState]:
    """The cluster's state and the SQL node's, which has no resource limits of a state. StudyError."""
    cluster, sql = parted(checked(state.settings))
    return TargetState(cluster, state.limits), TargetState(sql)
