"""A config.ini of MySQL Cluster read, changed and checked, with what is known of its hosts and its servers.

No cluster is started: what is said of one comes from its configuration alone.
"""

import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.formats.named_files import read_up_to
from loadframe.host.processes import online_cpus
from loadframe.kinds.mysql.options import parse_options
from loadframe.kinds.ndb.config import LOCAL, NODES, Cluster, Config, Node, cluster_of, read_config
from loadframe.kinds.ndb.config_rules import Case, Hosts, SqlNode
from loadframe.kinds.ndb.rules import check
from loadframe.kinds.ndb.settings import POOL
from loadframe.model import NdbDataNode, NdbReport, NdbServer
from loadframe.runs.host import read_host

PROGRAMS = ("ndb_mgmd", "ndbmtd", "ndb_mgm", "ndbd")
LARGEST_BYTES = 1_000_000
"""255 nodes with all of their settings take a tenth of this."""
LONGEST_LINE = 4096
MOST_NODES = 255
"""MySQL 8.4 Reference Manual, 25.2.7.5, Limits Associated with Database Objects in NDB Cluster."""
SERVER_GROUPS = ("mysql_cluster", "mysqld", "server")


def read_ndb_config(path: Path, changes: Sequence[tuple[str, str, str]] = ()) -> Config:
    """A config.ini with changes: heading, name and value of each. TargetError where it cannot be read or changed."""
    text = _text(path)
    if (longest := max(map(len, text.split("\n")))) > LONGEST_LINE:
        raise TargetError(f"{path} has a line of {longest:,} characters", remedy="Give a config.ini.")
    config = read_config(text)
    # whatever else is wrong with them does not matter then
    if (nodes := sum(section.kind in NODES and not section.default for section in config.sections)) > MOST_NODES:
        raise TargetError(
            f"{path} has {nodes:,} nodes; a MySQL Cluster has at most {MOST_NODES}", remedy="Omit the others."
        )
    for heading, name, value in changes:
        try:
            config = config.changed(heading, name, value)
        except ValueError as error:
            raise TargetError(
                f"{path}: {error}", remedy='Name a section and a setting, for example "ndbd default.DataMemory=1G".'
            ) from error
    return config


def check_ndb(
    config: Config,
    name: str = "config.ini",
    *,
    servers: Sequence[Path] = (),
    cpus: int | None = None,
    memory_bytes: int | None = None,
    bound: Mapping[str, frozenset[int]] | None = None,
) -> NdbReport:
    """What this makes of a cluster, and what is wrong with it.

    name: of the config.ini, for messages. servers: the option files of MySQL servers. cpus, memory_bytes: of each data
    node's host; where neither is given, this machine's are taken for nodes on localhost. bound: CPUs that other
    processes on these hosts are bound to, by what they are called. TargetError where an option file cannot be read.
    """
    known = None if cpus is None else frozenset(range(cpus))
    hosts = Hosts(known, memory_bytes, bound or {}, None)
    if cpus is None and memory_bytes is None:
        here = frozenset({*LOCAL, socket.gethostname(), socket.getfqdn()})
        hosts = Hosts(online_cpus(), read_host().memory_bytes or None, bound or {}, here)
    read = [SqlNode(str(path), parse_options(_text(path), SERVER_GROUPS)) for path in servers]
    case = Case(cluster_of(config), hosts, read)
    return NdbReport(
        file=name,
        data_nodes=tuple(_data_node(node) for node in case.cluster.data_nodes),
        management_nodes=len(case.cluster.of_kind("ndb_mgmd")),
        api_slots=len(case.cluster.of_kind("mysqld")),
        servers=tuple(NdbServer(server.file, server.connections) for server in read),
        findings=check(case, name),
        not_checked=tuple(_not_checked(case.cluster, hosts, read)),
        programs={program: shutil.which(program) for program in PROGRAMS},
    )


def _text(path: Path) -> str:
    try:
        data = read_up_to(path, LARGEST_BYTES)
        if len(data) > LARGEST_BYTES:
            raise TargetError(f"{path} is larger than {LARGEST_BYTES:,} bytes", remedy="Give an option file.")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}", remedy="Name a text file in UTF-8.") from error


def _data_node(node: Node) -> NdbDataNode:
    threads = None
    with suppress(ValueError):  # it is among the findings
        threads = node.threads()
    return NdbDataNode(node.node_id, node.host, node.section.line, threads, node.memory_bytes(), node.redo_bytes())


def _not_checked(cluster: Cluster, hosts: Hosts, servers: Sequence[SqlNode]) -> Iterator[str]:
    unknown = dict.fromkeys(node.host for node in cluster.data_nodes if not hosts.known(node.host))
    if unknown:
        yield f"CPUs and memory of {', '.join(unknown)}, which are other machines: give --cpus and --memory"
    elif hosts.cpus is None or hosts.memory_bytes is None:
        what, option = ("CPUs", "--cpus") if hosts.cpus is None else ("memory", "--memory")
        yield f"{what} of the data nodes' hosts: give {option}"
    if not servers:
        yield f"the servers' connections ({POOL}): give their option files with --mysqld"
