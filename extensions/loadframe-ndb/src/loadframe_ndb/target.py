"""A private MySQL Cluster: a management server, data nodes, which are its shards, and the kind's SQL nodes. With two
copies of the data it goes on while a data node is gone; the step is flagged, and the node is started again."""

import time
from collections.abc import Mapping

from loadframe.host.leases import Lease, filesystem
from loadframe.host.processes import Resources
from loadframe.kinds.private_server import NOFILE, do_all, soft_nofile
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe_ndb.metrics import IN_FRONT, SQL_NODES
from loadframe_ndb.ndbinfo import NdbinfoExposure, NdbinfoProgram, ceilings_of
from loadframe_ndb.nodes import LOADED
from loadframe_ndb.own_settings import MOST_CONNECTIONS, SQL, SQL_KIND, checked_with_sql, parted, shape_of
from loadframe_ndb.private_cluster import MANAGER, PrivateCluster
from loadframe_ndb.sql_node import COUNTERS, SqlNode, added_up, in_front

_ENDED = {
    True: "in a step while the cluster went on, and was started again after it: requests that failed meanwhile are "
    "counted as errors, and the step is flagged part-lost.",
    False: "while the cluster was not loaded, and was started again before the next step.",
}
API_SLOTS = 16
"""API nodes besides those of SQL nodes: for the reader of ndbinfo and for load drivers."""


class NdbTarget:
    """See kinds.base.Target. Components are "management", "sql1", "sql2", ... and the data nodes. SQL nodes have the
    same settings; they start after the data nodes, end before them, and restart one after the other, also with data
    nodes: otherwise they would find unknown nodes."""

    kind = "ndb"
    embedded = False
    counter_specs: tuple[CounterSpec, ...] = ()
    """Counters of SQL nodes; those of ndbinfo are read at its own pace: see `exposure`."""

    def __init__(self, lease: Lease, resources: Mapping[str, Resources]) -> None:
        """resources: of "management", of each SQL node, and of each data node in order."""
        self._lease = lease
        nodes = [name for name in resources if name not in IN_FRONT]
        fronts = [name for name in resources if name in SQL_NODES]
        slots = API_SLOTS + len(fronts) * MOST_CONNECTIONS
        self._cluster = PrivateCluster(lease, resources, shape_of(len(nodes), slots))
        self._reads_as = resources[MANAGER].run_by(lease.account("mysql"))
        self._ndbinfo = NdbinfoProgram(lease, self._reads_as.user)
        self.exposure = NdbinfoExposure(self._ndbinfo, frozenset(self._cluster.shape.api))
        self._sql: dict[str, SqlNode] = {}
        for name in fronts:
            account = self._sql[SQL_NODES[0]].workload_account if self._sql else None
            self._sql[name] = SqlNode(lease, resources[name], self._cluster.management, name, account)
        self._first = self._sql.get(SQL_NODES[0])
        self._state = TargetState()
        self._effective: dict[str, SettingValue] = {}
        self._lost: list[tuple[str, bool]] = []
        """Data nodes that have ended, and whether that was in a step; otherwise it was left alone meanwhile."""
        self._seen_lost: set[str] = set()
        self._reported_lost = 0

    def create(self) -> None:
        self._cluster.create()
        self._ndbinfo.create()
        for node in self._sql.values():
            node.create()

    def check(self, state: TargetState) -> None:
        wanted, sql = self._parted(state)
        self._cluster.check(wanted.settings)
        if self._first is not None:
            self._first.check(sql)

    def start(self, state: TargetState) -> None:
        wanted, sql = self._parted(state)
        self._start(wanted)
        self._entered(wanted, sql)

    def apply(self, state: TargetState) -> None:
        """Rolling restarts where the settings allow them; other resource limits restart all of it."""
        wanted, sql = self._parted(state)
        self._cluster.check_alive()
        if wanted == self._state:
            for node in self._sql.values():
                node.apply(sql)
            return
        do_all(node.stop for node in self._sql.values())
        self._heal()  # a node that has ended could not be commanded to restart
        self._ndbinfo.kill()
        if wanted.limits != self._state.limits:
            self._cluster.stop()
            self._start(wanted)
        else:
            self._cluster.apply(wanted.settings)
        self._entered(wanted, sql)

    def reset(self) -> None:
        """Data nodes that have ended are started again. TargetError where no copy of their data is left."""
        self._heal()
        if self._ndbinfo.died() is not None:
            self._read()
        for node in self._sql.values():
            node.reset()

    def stop(self) -> None:
        self._ndbinfo.kill()
        try:
            do_all(node.stop for node in self._sql.values())
        finally:
            self._cluster.stop()

    def destroy(self) -> None:
        for node in self._sql.values():
            node.destroy()
        self._ndbinfo.destroy()
        self._cluster.destroy()

    def effective(self) -> dict[str, SettingValue]:
        """As the management server gives the settings to the nodes; limits of the first data node; the first SQL node's
        settings."""
        self._cluster.check_alive()
        first = next(pid for name, pids in self._cluster.processes().items() if name != MANAGER for pid in pids)
        sql = {} if self._first is None else self._first.effective()
        of_sql = {f"{SQL}{name}": value for name, value in sql.items() if name != NOFILE}
        return {**self._effective, NOFILE: soft_nofile(first), **of_sql}

    def counters(self) -> dict[str, float]:
        """Sums over the SQL nodes. TargetError where a part of the data has no node any more."""
        self._cluster.check_alive()
        dead = self._cluster.dead()
        self._seen_lost.update(dead)
        self.exposure.saw(time.monotonic(), len(dead))
        return added_up([node.counters() for node in self._sql.values()])

    def pids(self) -> tuple[int, ...]:
        return tuple(pid for pids in self.processes().values() for pid in pids)

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """The reader of ndbinfo counts as part of the management server."""
        reader = () if self._ndbinfo.pid is None else (self._ndbinfo.pid,)
        nodes = self._cluster.processes()
        sql = {name: node.pids() for name, node in self._sql.items()}
        return {MANAGER: (*nodes.pop(MANAGER), *reader), **sql, **nodes}

    def endpoint(self) -> Endpoint:
        """The SQL nodes', whose connections drivers share out; without any, the connect string for the NDB API."""
        return in_front(node.endpoint() for node in self._sql.values()) or Endpoint(self.kind, self.connect_string)

    @property
    def connect_string(self) -> str:
        return self._cluster.management.address

    def healthy(self) -> bool:
        """True also with fewer data nodes than it has, as long as it answers."""
        return self._cluster.answers() and all(node.healthy() for node in self._sql.values())

    def version(self) -> str:
        sql = "" if self._first is None else f", SQL node {self._first.version()}"
        return f"ndb {LOADED.version().rpartition(' ')[2]}{sql}"

    def log_tail(self, lines: int = 20) -> str:
        tails = [f"{name}:\n{node.log_tail(lines)}" for name, node in self._sql.items()]
        return "\n".join([self._cluster.log_tail(lines), *tails])

    def describe(self) -> Mapping[str, str]:
        first = next(iter(self._cluster.data.values()))
        count = len(self._sql)
        sql = "without SQL nodes" if not count else f"and {'one SQL node' if count == 1 else f'{count} SQL nodes'}"
        return {
            "data": f"in memory; logs and checkpoints in {first.data} and so on, on {filesystem(self._lease.folder)}",
            "user": str(self._reads_as.user),
            "started": " ".join(first.command),
            "data nodes": f"{len(self._cluster.data)}, {sql}",
            **({} if self._first is None else {"SQL node": self._first.describe()["started"]}),
        }

    def notes(self) -> tuple[str, ...]:
        ended = (
            f"Data node {name} ended {_times(self._lost.count((name, in_step)))} {_ENDED[in_step]}"
            for name, in_step in dict.fromkeys(self._lost)
        )
        emptied = (
            f"The data nodes began {_times(self._cluster.lost_data)} with empty file systems, and the load made its "
            "data again: with more DataMemory there were more rows than fit into less.",
        )
        return (*ended, *(emptied if self._cluster.lost_data else ()))

    def has_lost_data(self) -> bool:
        before, self._reported_lost = self._reported_lost, self._cluster.lost_data
        return self._reported_lost > before

    def _parted(self, state: TargetState) -> tuple[TargetState, TargetState]:
        """The cluster's state and the SQL nodes', which have no resource limits of a state. StudyError."""
        own, sql = parted(checked_with_sql(state.settings)) if self._sql else (state.settings, {})
        return TargetState(self._cluster.wanted(own), dict(state.limits)), TargetState(sql)

    def _start(self, wanted: TargetState) -> None:
        self._cluster.allow(wanted.limits)
        self._cluster.start(wanted.settings)

    def _heal(self) -> None:
        self._lost += [(name, name in self._seen_lost) for name in self._cluster.heal()]
        self._seen_lost.clear()

    def _entered(self, state: TargetState, sql: TargetState) -> None:
        self._state = state
        self._effective = self._cluster.check(state.settings)
        self._read()
        for node in self._sql.values():
            node.start(sql)

    def _read(self) -> None:
        self._ndbinfo.kill()
        self._ndbinfo.start(self._cluster.management, self._reads_as)
        self.exposure.begin(ceilings_of(self._effective))


class NdbSqlTarget(NdbTarget):
    """As NdbTarget, with SQL nodes: for sysbench and every other client of MySQL."""

    kind = SQL_KIND
    counter_specs = COUNTERS


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
