"""A private cluster's SQL node: a mysqld with NDB as its default engine, connected by a pool of API nodes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources, available_cpus, bind, bound_to
from loadframe.kinds.mysql.attached import Control
from loadframe.kinds.mysql.counters import counting
from loadframe.kinds.mysql.kind import MYSQL_PACKAGE, MysqlTarget, known_options
from loadframe.kinds.private_server import Account
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe_ndb.nodes import Management
from loadframe_ndb.own_settings import CPUS, SQL_KIND, SQL_NODE

ENGINE = {"storage_engine": "ndbcluster", "request_errors": "1114,1296,1297"}
"""Options of the endpoint for drivers: the engine that tables must name, and errors that end a request but not its
client, by MySQL's numbers: "table is full" (NDB's 827), a temporary error (a data node that ended, full logs or
buffers), any other (a transaction that is too large)."""
WAITS_S = 60
"""How long it waits for the cluster before it accepts clients."""
READY = "Ndb_number_of_ready_data_nodes"
WAITED = "Ndb_api_wait_nanos_count"
NANOSECONDS = 1e9
SQL = counting(Path(__file__).with_name("metrics.txt"), "ndb")
"""Manual, "NDB Cluster Status Variables" and "NDB API Statistics Counters"."""
ITSELF = "sql_nodes"
"""1 for each; the sum is how many there are."""
COUNTERS: tuple[CounterSpec, ...] = (*SQL.specs, CounterSpec(ITSELF, "ndb.sql.nodes", cumulative=False))


def _with_ndb(name: str) -> str | None:
    """A mysqld that has NDB: MySQL's plain packages have none."""
    program = MYSQL_PACKAGE.program(name)
    return program if program is not None and "ndb_cluster_connection_pool" in known_options(program) else None


PACKAGE = replace(
    MYSQL_PACKAGE,
    install="MySQL's own package mysql-cluster-community-server (MariaDB's and mysql-community-server have no NDB), or "
    "scripts/unpack-mysql FOLDER and FOLDER/bin first in PATH (Debian 12 has no package)",
    find=_with_ndb,
)


class SqlNode(MysqlTarget):
    """See kinds.base.Target; the cluster has to run before it is started. Settings: own_settings.SQL_NODE, and CPUS."""

    kind = SQL_KIND
    package, catalogue, counter_specs = PACKAGE, SQL_NODE, COUNTERS

    def __init__(
        self, lease: Lease, resources: Resources, management: Management, component: str, account: Account | None
    ) -> None:
        """component: its name in studies, also that of its folder. account: of the load driver; None: a new one."""
        super().__init__(lease, resources, folder=component)
        self.name = f"the cluster's SQL node {component}"
        self._management = management
        self.workload_account = account or self.workload_account
        self._own_cpus = frozenset(self._allowance.cpus or os.sched_getaffinity(0))

    def own_options(self) -> Sequence[str]:
        return [
            *super().own_options(),
            "--ndbcluster",
            f"--ndb-connectstring={self._management.address}",
            f"--ndb-wait-connected={WAITS_S}",
            f"--ndb-wait-setup={WAITS_S}",
            f"--default-storage-engine={ENGINE['storage_engine']}",
        ]

    def workload_grants(self) -> Sequence[str]:
        return (*super().workload_grants(), "SELECT ON ndbinfo.*")

    def check(self, state: TargetState) -> None:
        own, cpus = _without_cpus(state)
        if cpus is not None:
            available_cpus(cpus)
        super().check(own)

    def start(self, state: TargetState) -> None:
        own, cpus = _without_cpus(state)
        super().start(own)
        self._bind(cpus)

    def apply(self, state: TargetState) -> None:
        """Other CPUs take no restart."""
        own, cpus = _without_cpus(state)
        super().apply(own)
        self._bind(cpus)

    def effective(self) -> dict[str, SettingValue]:
        settings = super().effective()
        cpus = None if self.pid is None else bound_to(self.pid)
        return settings if cpus is None else {**settings, CPUS: cpus}

    def counters(self) -> dict[str, float]:
        return read_counters(self._talk())

    def endpoint(self) -> Endpoint:
        return with_engine(super().endpoint())

    def _ready(self) -> bool:
        """It accepts clients before all of it is connected, and refuses their tables then."""
        assert self._control is not None, "it is asked from its start on"
        try:
            return float(self._control.pairs("SHOW GLOBAL STATUS", [READY]).get(READY, 0)) > 0
        except (TargetError, ValueError):
            return False

    def _bind(self, cpus: str | None) -> None:
        bind(self.pids(), self._own_cpus if cpus is None else available_cpus(cpus))


def read_counters(control: Control) -> dict[str, float]:
    """Two SHOW statements on the kept connection; times in seconds."""
    counters = SQL.read(control)
    return {ITSELF: 1.0, **counters} | ({WAITED: counters[WAITED] / NANOSECONDS} if WAITED in counters else {})


def with_engine(endpoint: Endpoint) -> Endpoint:
    return replace(endpoint, options={**endpoint.options, **ENGINE})


def _without_cpus(state: TargetState) -> tuple[TargetState, str | None]:
    settings = dict(state.settings)
    cpus = settings.pop(CPUS, None)
    return TargetState(settings, state.limits), None if cpus is None else str(cpus)


def in_front(endpoints: Iterable[Endpoint]) -> Endpoint | None:
    """The endpoint of the first SQL node; where there are more, with those of all."""
    fronts = tuple(endpoints)
    return replace(fronts[0], fronts=fronts) if len(fronts) > 1 else fronts[0] if fronts else None


LEAST = frozenset({READY, "ndb_recv_thread_activation_threshold"})
"""Counters that are not added up: the count of the worst connected SQL node, and the smallest activation threshold."""


def added_up(nodes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """A counter that one of them lacks is left out."""
    names = [name for name in nodes[0] if all(name in counters for counters in nodes)] if nodes else []
    return {name: (min if name in LEAST else sum)(counters[name] for counters in nodes) for name in names}
