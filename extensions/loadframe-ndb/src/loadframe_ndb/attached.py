"""A running MySQL Cluster: read and loaded by way of its SQL nodes, and never changed, stopped or restarted. Data nodes
are read over SQL (ndbinfo), so that no API node of ours joins the cluster."""

import socket as sockets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadframe.connections.address import is_here, joined
from loadframe.errors import TargetError
from loadframe.formats.plain_numbers import whole
from loadframe.formats.said import words
from loadframe.kinds.base import ServerAddress
from loadframe.kinds.behind import comm_of
from loadframe.kinds.mysql.attached import AttachedMysql
from loadframe.kinds.mysql.attached import host_of as host_of_one
from loadframe.kinds.registry import READ_ONLY_REMEDY
from loadframe.model import CounterSpec, Endpoint, SettingValue
from loadframe_ndb.ndbinfo import COLUMNS, SPECS, Row, Totals, ceilings_of, read_block
from loadframe_ndb.own_settings import SQL, SQL_KIND, SQL_NODE, canonical, own_name
from loadframe_ndb.sql_node import COUNTERS, READY, added_up, in_front, read_counters, with_engine

DATA_PROGRAMS = ("ndbmtd", "ndbd")
NAME, FROM_HOST, FROM_PORT = "Ndb_system_name", "Ndb_config_from_host", "Ndb_config_from_port"
SAME = "SELECT @@server_uuid"
"""Identifies a server: its node number differs between the connections of its pool."""
NO_CHANGE = "A MySQL Cluster that Loadframe did not start is read and loaded, and not changed"
MAY_READ = "Its account needs SELECT on ndbinfo.* for the counters of the data nodes."
CONFIGURED = (
    "SELECT p.param_name, v.config_value FROM ndbinfo.config_values v"
    " JOIN ndbinfo.config_params p ON p.param_number = v.config_param ORDER BY v.node_id DESC"
)
API_NODES = "SELECT node_id FROM ndbinfo.config_nodes WHERE node_type = 'API'"
PROCESSES = "SELECT process_id, service_URI FROM ndbinfo.processes"


class AttachedSqlNode(AttachedMysql):
    kind, name = SQL_KIND, "SQL node"
    catalogue = SQL_NODE
    counter_specs = COUNTERS

    def counters(self) -> dict[str, float]:
        return read_counters(self._control)

    def endpoint(self) -> Endpoint:
        """The endpoint with the engine, so that tables are in the cluster and all SQL nodes have them."""
        return with_engine(super().endpoint())

    def values_of(self, *names: str) -> dict[str, str]:
        return self._control.pairs("SHOW GLOBAL STATUS", names)

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._control.ask(statement)]


class AttachedCluster:
    """See kinds.base.Attached. Settings are those of the kind: the data nodes' and the first SQL node's."""

    kind = SQL_KIND
    counter_specs: tuple[CounterSpec, ...] = (*COUNTERS, *SPECS)

    def __init__(self, asked: ServerAddress) -> None:
        """asked: the addresses of its SQL nodes, separated by commas, each as a MySQL's. Raises as AttachedMysql."""
        places = addresses_in(asked.address)
        numbers = asked.number.split(",") if asked.number else [""] * len(places)
        self._nodes: list[AttachedSqlNode] = []
        try:
            for place, decided in zip(places, numbers, strict=True):
                self._nodes.append(AttachedSqlNode(replace(asked, address=place, number=decided)))
            self.management = self._one_cluster()
        except BaseException:
            self.close()
            raise
        self.words = f"the MySQL Cluster of {self.management}, by its SQL nodes at {self.describe()}"
        known = [node.address for node in self._nodes]
        thing, decided = (",".join(address[name] for address in known) for name in ("thing", "number"))
        self.address = asked.written(self.kind, self.describe(), thing, decided)
        self._totals = Totals()
        self._why_not = ""
        api = (whole(str(row[0])) for row in self._of_ndbinfo(API_NODES) or ())
        self._api = frozenset(node for node in api if node is not None)
        self._ceilings = ceilings_of(self._of_data_nodes())

    def _one_cluster(self) -> str:
        """The management server of the first SQL node. TargetError where a SQL node has no cluster, or another one."""
        clusters: dict[str, AttachedSqlNode] = {}
        seen: dict[str, AttachedSqlNode] = {}
        for node in self._nodes:
            status = node.values_of(READY, NAME)
            if (whole(status.get(READY, "")) or 0) < 1:
                raise TargetError(
                    f"What answers at {node.describe()} is a MySQL without a running cluster: it is connected to no "
                    "data node",
                    remedy="Name SQL nodes of a cluster; for a MySQL by itself, kind = mysql.",
                )
            if (other := seen.setdefault(str(node.asked(SAME)), node)) is not node:
                raise TargetError(f"{other.describe()} and {node.describe()} are one SQL node", remedy="Name it once.")
            clusters.setdefault(status.get(NAME, ""), node)
        if len(clusters) > 1:
            described = [f"{node.describe()} of {words(name)}" for name, node in clusters.items()]
            raise TargetError(
                f"These SQL nodes are of different clusters (Ndb_system_name): {', '.join(described)}",
                remedy="Name SQL nodes of one cluster.",
            )
        status = self._nodes[0].values_of(FROM_HOST, FROM_PORT)
        port = status.get(FROM_PORT, "")
        return joined(words(status.get(FROM_HOST, "")), int(port) if port.isdecimal() else 0)

    def counters(self) -> dict[str, float]:
        """Sums over its SQL nodes, and those of ndbinfo where the account may read it."""
        counters = added_up([node.counters() for node in self._nodes])
        tables: dict[str, list[Row]] = {}
        for name, columns in COLUMNS.items():
            rows = self._of_ndbinfo(f"SELECT {', '.join(columns)} FROM ndbinfo.`ndb${name}`")
            if rows is None:
                return counters
            tables[name] = [dict(zip(columns, map(str, row), strict=True)) for row in rows if len(row) == len(columns)]
        reading = read_block(tables, self._api, self._totals, self._ceilings)
        return counters if reading is None else {**counters, **reading[1]}

    def _of_ndbinfo(self, statement: str) -> list[tuple[Any, ...]] | None:
        """None where the account may not read it."""
        try:
            return self._nodes[0].asked(statement)
        except TargetError as error:
            self._why_not = error.fact
            return None

    def effective(self) -> dict[str, SettingValue]:
        sql = {f"{SQL}{name}": value for name, value in self._nodes[0].effective().items()}
        return {**self._of_data_nodes(), **sql}

    def _of_data_nodes(self) -> dict[str, SettingValue]:
        """Of several nodes the first one counts."""
        rows = [row for row in self._of_ndbinfo(CONFIGURED) or () if len(row) == 2]
        named = ((own_name("ndbd", str(name)), str(value)) for name, value in rows)
        return {name: canonical(name, value) for name, value in named if name is not None}

    def read(self, name: str) -> SettingValue:
        settings = self.effective()
        if name not in settings:
            raise TargetError(f"{self.words} has no setting {name}", remedy="Omit it.")
        return settings[name]

    def write(self, name: str, value: SettingValue) -> None:
        raise TargetError(f"{NO_CHANGE}: {name}", remedy=READ_ONLY_REMEDY)

    def settle(self) -> None:
        for node in self._nodes:
            node.settle()

    def configured(self) -> dict[str, SettingValue]:
        """The first SQL node's values: the data nodes' are known to the management server alone."""
        return {f"{SQL}{name}": value for name, value in self._nodes[0].configured().items()}

    def pid(self) -> int | None:
        return self._nodes[0].pid()

    def listener(self) -> int | None:
        return self._nodes[0].listener()

    def pids(self) -> tuple[int, ...]:
        """Processes of SQL nodes, and of data nodes in ndbinfo that run here: another program may have such a pid."""
        pids = [pid for node in self._nodes for pid in node.pids()]
        for number, where in self._of_ndbinfo(PROCESSES) or ():
            host, pid = _host(str(where)), whole(str(number))
            here = host == sockets.gethostname() or (host != "" and is_here(host, afresh=False))
            if here and pid is not None and comm_of(pid) in DATA_PROGRAMS:
                pids.append(pid)
        return tuple(pids)

    def helpers(self) -> Mapping[str, tuple[int, ...]]:
        return {}

    def local(self) -> bool:
        return all(node.local() for node in self._nodes)

    def endpoint(self) -> Endpoint:
        """That of the first SQL node; where there are more, with those of all."""
        endpoint = in_front(node.endpoint() for node in self._nodes)
        assert endpoint is not None, "it has one SQL node at least"
        return endpoint

    def version(self) -> str:
        return f"MySQL Cluster, {self._nodes[0].version()}"

    def describe(self) -> str:
        return ",".join(node.describe() for node in self._nodes)

    def notes(self) -> tuple[str, ...]:
        notes = [f"{NO_CHANGE}. Its management server is {self.management}."]
        if self._why_not:
            unread = "What ndbinfo reports of its data nodes is missing where it could not be read"
            notes.append(f"{unread}: {self._why_not}. {MAY_READ}")
        return tuple(notes)

    def close(self) -> None:
        for node in self._nodes:
            node.close()


def addresses_in(address: str) -> list[str]:
    """The SQL nodes' addresses; "" for one that the option file names."""
    return [part.strip() for part in address.split(",")]


def host_of(address: str, option_file: Path | None) -> str:
    """The first host that is another machine, else the first; "" for sockets. Raises as that of a MySQL."""
    hosts = list(dict.fromkeys(host for part in addresses_in(address) if (host := host_of_one(part, option_file))))
    elsewhere = (host for host in hosts if not is_here(host, afresh=True)) if len(hosts) > 1 else ()
    return next(iter(elsewhere), hosts[0] if hosts else "")


def _host(uri: str) -> str:
    """ "127.0.0.1" of "ndb://127.0.0.1:1186/"; "" of an invalid address."""
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""
