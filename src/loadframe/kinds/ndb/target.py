"""A private MySQL Cluster as a target: a management server, and data nodes, which are its shards.

It has no SQL node (with_sql.py has one): programs of the NDB API load it. With two copies of the data it goes on while
a data node is gone; the step is flagged, and the node is started again before the next one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from loadframe.host.leases import Lease, filesystem
from loadframe.host.processes import Resources
from loadframe.kinds.ndb.metrics import IN_FRONT
from loadframe.kinds.ndb.ndbinfo import ceilings_of
from loadframe.kinds.ndb.ndbinfo_reader import NdbinfoExposure, NdbinfoProgram
from loadframe.kinds.ndb.own_settings import shape_of
from loadframe.kinds.ndb.private_cluster import MANAGER, PrivateCluster
from loadframe.kinds.ndb.programs import LOADED
from loadframe.kinds.private_server import soft_nofile
from loadframe.kinds.private_target import NOFILE
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState

_ENDED = {
    True: "in a step while the cluster went on, and was started again after it: requests that failed meanwhile are "
    "counted as errors, and the step is flagged part-lost.",
    False: "while the cluster was not loaded, and was started again before the next step.",
}
API_SLOTS = 16
"""API nodes that the configuration has: the reader of ndbinfo is one, those of load drivers are the others."""


class NdbTarget:
    """See targets.base.Target. Its components are "management" and the data nodes."""

    kind = "ndb"
    embedded = False
    api_slots = API_SLOTS
    counter_specs: tuple[CounterSpec, ...] = ()
    """Its counters are told by ndbinfo at its own pace: see `exposure`."""

    def __init__(self, lease: Lease, resources: Mapping[str, Resources]) -> None:
        """resources: of "management", and of each data node in order."""
        self._lease = lease
        nodes = [name for name in resources if name not in IN_FRONT]
        self._cluster = PrivateCluster(lease, resources, shape_of(len(nodes), self.api_slots))
        self._reads_as = resources[MANAGER].run_by(lease.account("mysql"))
        self._ndbinfo = NdbinfoProgram(lease, self._reads_as.user)
        self.exposure = NdbinfoExposure(self._ndbinfo, frozenset(self._cluster.shape.api))
        self._state = TargetState()
        self._effective: dict[str, SettingValue] = {}
        self._lost: list[tuple[str, bool]] = []
        """Data nodes that have ended, and whether that was in a step: else it was left alone meanwhile."""
        self._seen_lost: set[str] = set()
        self._told_lost = 0

    # --- life -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        for name in LOADED.programs:
            LOADED.required(name)
        self._cluster.create()
        self._ndbinfo.create()

    def check(self, state: TargetState) -> None:
        self._cluster.check(state.settings)

    def start(self, state: TargetState) -> None:
        wanted = self._wanted(state)
        self._cluster.allow(wanted.limits)
        self._cluster.start(wanted.settings)
        self._entered(wanted)

    def apply(self, state: TargetState) -> None:
        """Rolling restarts where the settings allow them; other resource limits restart all of it."""
        wanted = self._wanted(state)
        self._running()
        if wanted == self._state:
            return
        self._heal()  # a node that has ended could not be told to restart
        self._ndbinfo.kill()
        if wanted.limits != self._state.limits:
            self._cluster.stop()
            self._cluster.allow(wanted.limits)
            self._cluster.start(wanted.settings)
        else:
            self._cluster.apply(wanted.settings)
        self._entered(wanted)

    def reset(self) -> None:
        """Data nodes that have ended are started again. TargetError where no copy of their data is left."""
        self._heal()
        if self._ndbinfo.died() is not None:
            self._read()

    def stop(self) -> None:
        self._ndbinfo.kill()
        self._cluster.stop()

    def destroy(self) -> None:
        self._ndbinfo.destroy()
        self._cluster.destroy()

    # --- what it is and does now ------------------------------------------------------------------------------------

    def effective(self) -> dict[str, SettingValue]:
        """As the management server gives them to the nodes, all of which have read them when they started."""
        self._running()
        first = next(pid for name, pids in self._nodes().items() if name != MANAGER for pid in pids)
        return {**self._effective, NOFILE: soft_nofile(first)}

    def counters(self) -> dict[str, float]:
        """None of its own. TargetError where it has ended: a part of its data has no node any more."""
        self._running()
        dead = self._cluster.dead()
        self._seen_lost.update(dead)
        self.exposure.saw(time.monotonic(), len(dead))
        return {}

    def pids(self) -> tuple[int, ...]:
        return tuple(pid for pids in self.processes().values() for pid in pids)

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """The reader of ndbinfo works beside the management server."""
        reader = () if self._ndbinfo.pid is None else (self._ndbinfo.pid,)
        nodes = self._nodes()
        return {**nodes, MANAGER: (*nodes[MANAGER], *reader)}

    def endpoint(self) -> Endpoint:
        """address: the connect string for programs of the NDB API."""
        return Endpoint(self.kind, self._cluster.management.address)

    def healthy(self) -> bool:
        """Whether it answers now, be it with fewer data nodes than it has. Never raises."""
        return self._cluster.answers()

    def version(self) -> str:
        return f"ndb {LOADED.version().rpartition(' ')[2]}"

    def log_tail(self, lines: int = 20) -> str:
        return self._cluster.log_tail(lines)

    def describe(self) -> Mapping[str, str]:
        first = next(iter(self._cluster.data.values()))
        return {
            "data": f"in memory; logs and checkpoints in {first.data} and so on, on {filesystem(self._lease.folder)}",
            "user": str(self._reads_as.user),
            "started": " ".join(first.command),
            "data nodes": f"{len(self._cluster.data)}, without SQL nodes",
        }

    def notes(self) -> tuple[str, ...]:
        """See kinds.base.Noting."""
        emptied = (
            f"The data nodes began {_times(self._cluster.lost_data)} with empty file systems, and the load made its "
            "data again: with more DataMemory there were more rows than fit into less.",
        )
        return (*self._notes_of_nodes(), *(emptied if self._cluster.lost_data else ()))

    def has_lost_data(self) -> bool:
        """See kinds.base.Losing."""
        before, self._told_lost = self._told_lost, self._cluster.lost_data
        return self._told_lost > before

    def _notes_of_nodes(self) -> tuple[str, ...]:
        return tuple(
            f"Data node {name} ended {_times(self._lost.count((name, in_step)))} {_ENDED[in_step]}"
            for name, in_step in dict.fromkeys(self._lost)
        )

    # --- inside -----------------------------------------------------------------------------------------------------

    def _heal(self) -> None:
        self._lost += [(name, name in self._seen_lost) for name in self._cluster.heal()]
        self._seen_lost.clear()

    def _wanted(self, state: TargetState) -> TargetState:
        return TargetState(self._cluster.wanted(state.settings), dict(state.limits))

    def _running(self) -> None:
        """TargetError where it does not run, or has ended."""
        self._cluster.check_alive()

    def _entered(self, state: TargetState) -> None:
        self._state = state
        self._effective = self._cluster.check(state.settings)
        self._read()

    def _read(self) -> None:
        self._ndbinfo.kill()
        self._ndbinfo.start(self._cluster.management, self._reads_as)
        self.exposure.begin(ceilings_of(self._effective))

    def _nodes(self) -> dict[str, tuple[int, ...]]:
        return self._cluster.processes()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
