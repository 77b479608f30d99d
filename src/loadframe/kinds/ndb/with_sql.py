"""A private MySQL Cluster with SQL nodes: what sysbench and every other client of MySQL can load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.ndb.metrics import IN_FRONT
from loadframe.kinds.ndb.private_cluster import MANAGER
from loadframe.kinds.ndb.sql_node import COUNTERS, SQL_NODE, SqlNode, added_up
from loadframe.kinds.ndb.sql_settings import KIND, MOST_CONNECTIONS, SQL, checked, parted
from loadframe.kinds.ndb.target import API_SLOTS, NdbTarget
from loadframe.kinds.private_target import NOFILE
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState

BEFORE = (MANAGER, SQL_NODE)
MORE_BEFORE = tuple(name for name in IN_FRONT if name not in BEFORE)


class NdbSqlTarget(NdbTarget):
    """See targets.base.Target. Its components are "management", "sql1", "sql2", ... and the data nodes.

    All SQL nodes have the same settings. They are started after the data nodes and end before them. They restart where
    their own settings need it, one after the other, and with data nodes that restart for theirs: they would find other
    nodes than they know, some of them with errors for their clients.
    """

    kind = KIND
    counter_specs: tuple[CounterSpec, ...] = COUNTERS

    def __init__(self, lease: Lease, resources: Mapping[str, Resources]) -> None:
        """resources: of "management", of each SQL node, and of each data node in order."""
        names = [name for name in resources if name in IN_FRONT and name != MANAGER]
        self.api_slots = len(names) * MOST_CONNECTIONS + API_SLOTS
        super().__init__(lease, {name: one for name, one in resources.items() if name not in names})
        management = self._cluster.management
        first = SqlNode(lease, resources[names[0]], management, names[0], None)
        others = {name: SqlNode(lease, resources[name], management, name, first.account) for name in names[1:]}
        self._sql = {names[0]: first, **others}

    # --- life -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        super().create()
        for node in self._sql.values():
            node.create()

    def check(self, state: TargetState) -> None:
        cluster, sql = _parted(state)
        super().check(cluster)
        self._first.check(sql)

    def start(self, state: TargetState) -> None:
        cluster, sql = _parted(state)
        super().start(cluster)
        self._start_sql(sql)

    def apply(self, state: TargetState) -> None:
        cluster, sql = _parted(state)
        self._running()
        if self._wanted(cluster) == self._state:
            for node in self._sql.values():
                node.apply(sql)
            return
        self._stop_sql()
        super().apply(cluster)
        self._start_sql(sql)

    def reset(self) -> None:
        super().reset()
        for node in self._sql.values():
            node.reset()

    def stop(self) -> None:
        try:
            self._stop_sql()
        finally:
            super().stop()

    def destroy(self) -> None:
        for node in self._sql.values():
            node.destroy()
        super().destroy()

    # --- what it is and does now ------------------------------------------------------------------------------------

    def effective(self) -> dict[str, SettingValue]:
        """Resource limits are those of the data nodes; all SQL nodes were asked for the same, this is the first's."""
        sql = {f"{SQL}{name}": value for name, value in self._first.effective().items() if name != NOFILE}
        return {**super().effective(), **sql}

    def counters(self) -> dict[str, float]:
        """Those of the SQL nodes together."""
        return {**super().counters(), **added_up([node.counters() for node in self._sql.values()])}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        of = super().processes()
        return {MANAGER: of[MANAGER], **{name: node.pids() for name, node in self._sql.items()}, **of}

    def endpoint(self) -> Endpoint:
        """That of the first SQL node; where there are more, with those of all: drivers share their connections out."""
        first, *others = (node.endpoint() for node in self._sql.values())
        return replace(first, fronts=(first, *others)) if others else first

    def healthy(self) -> bool:
        return super().healthy() and all(node.healthy() for node in self._sql.values())

    def version(self) -> str:
        return f"{super().version()}, SQL node {self._first.version()}"

    def log_tail(self, lines: int = 20) -> str:
        tails = [f"{name}:\n{node.log_tail(lines)}" for name, node in self._sql.items()]
        return "\n".join([super().log_tail(lines), *tails])

    def describe(self) -> Mapping[str, str]:
        found = super().describe()
        nodes, count = found["data nodes"].partition(",")[0], len(self._sql)
        sql = "one SQL node" if count == 1 else f"{count} SQL nodes"
        return {**found, "data nodes": f"{nodes}, and {sql}", "SQL node": self._first.describe()["started"]}

    # --- inside -----------------------------------------------------------------------------------------------------

    @property
    def _first(self) -> SqlNode:
        return self._sql[SQL_NODE]

    def _start_sql(self, state: TargetState) -> None:
        for node in self._sql.values():
            node.start(state)

    def _stop_sql(self) -> None:
        """All of them, whatever becomes of one."""
        errors = []
        for node in self._sql.values():
            try:
                node.stop()
            except TargetError as error:
                errors.append(error)
        if errors:
            raise errors[0]


def _parted(state: TargetState) -> tuple[TargetState, TargetState]:
    """The cluster's state and the SQL nodes', which have no resource limits of a state. StudyError."""
    cluster, sql = parted(checked(state.settings))
    return TargetState(cluster, state.limits), TargetState(sql)
