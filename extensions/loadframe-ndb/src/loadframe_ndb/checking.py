"""A config.ini read, changed and checked; whether a cluster starts is tested only on this machine."""

import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.formats.named_files import read_up_to
from loadframe.host.leases import Lease
from loadframe.host.processes import online_cpus
from loadframe.host.state import scratch_directory
from loadframe.kinds.mysql.option_files import parse_options
from loadframe.recording.procfs import parse_meminfo, parse_process_status
from loadframe.runs.lines import read_host
from loadframe.units import show
from loadframe_ndb.config import LOCAL, NODES, Cluster, Config, Node, cluster_of, read_config
from loadframe_ndb.config_rules import Case, Hosts, SqlNode, check
from loadframe_ndb.nodes import PACKAGE, DataNode, grouped, read_threads
from loadframe_ndb.own_settings import as_private
from loadframe_ndb.private_cluster import PrivateCluster
from loadframe_ndb.records import NdbDataNode, NdbReport, NdbServer, NdbStart, NdbStartedNode
from loadframe_ndb.settings import POOL

PROGRAMS = ("ndb_mgmd", "ndbmtd", "ndb_mgm", "ndbd")
LARGEST_BYTES = 1_000_000
"""255 nodes with all of their settings take a tenth of this."""
LONGEST_LINE = 4096
MOST_NODES = 255
"""MySQL 8.4 Reference Manual, 25.2.7.5, Limits Associated with Database Objects in NDB Cluster."""
SERVER_GROUPS = ("mysql_cluster", "mysqld", "server")


def read_ndb_config(path: Path, changes: Sequence[tuple[str, str, str]] = ()) -> Config:
    """changes: heading, name and value of each. TargetError where it cannot be read or changed."""
    text = _text(path)
    if (longest := max(map(len, text.split("\n")))) > LONGEST_LINE:
        raise TargetError(f"{path} has a line of {longest:,} characters", remedy="Give a config.ini.")
    config = read_config(text)
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
    """name: for messages. servers: option files of MySQL servers. cpus, memory_bytes: of each data node's host;
    default: this machine's for nodes on localhost. bound: CPUs that other processes are bound to, by process name.
    TargetError where an option file cannot be read."""
    known = None if cpus is None else frozenset(range(cpus))
    hosts = Hosts(known, memory_bytes, bound or {}, None)
    if cpus is None and memory_bytes is None:
        here = frozenset({*LOCAL, socket.gethostname(), socket.getfqdn()})
        hosts = Hosts(online_cpus(), read_host().memory_bytes or None, bound or {}, here)
    read = [SqlNode(str(path), parse_options(_text(path), SERVER_GROUPS)) for path in servers]
    case = Case(cluster_of(config), hosts, read)
    return NdbReport(
        file=name,
        data_nodes=tuple(map(_data_node, case.cluster.data_nodes)),
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
    with suppress(ValueError):  # reported as a finding
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


# --- started here ---

MOST_STARTED = 4
"""Data nodes on one machine."""


def start_ndb(config: Config) -> NdbStart:
    """A private cluster with the nodes and settings of this file on this machine, ended at once; one that does not
    start is a result, too. TargetError for errors in the file or too little room; MissingTool."""
    for name in PACKAGE.programs:
        PACKAGE.required(name)
    cluster = cluster_of(config)
    _check_room(config, cluster)
    wanted = as_private(cluster)
    with Lease.acquire("a trial of a config.ini") as lease:
        started = PrivateCluster(lease, {}, wanted.shape)
        try:
            started.create()
            begin = time.monotonic()
            try:
                started.start(wanted.settings)
            except TargetError as error:
                return NdbStart(PACKAGE.version(), None, (), wanted.left_out, error.fact, error.details)
            seconds = time.monotonic() - begin
            nodes = tuple(_node(node) for node in started.data.values())
            return NdbStart(PACKAGE.version(), seconds, nodes, wanted.left_out)
        finally:
            started.destroy()


def _check_room(config: Config, cluster: Cluster) -> None:
    here = check_ndb(config, cpus=max(online_cpus()) + 1, memory_bytes=read_host().memory_bytes or None)
    for finding in here.findings:
        if finding.severity == "error":
            raise TargetError(f"It is not started, as on this machine {finding.fact}", remedy=finding.remedy)
    nodes = cluster.data_nodes
    if len(nodes) > MOST_STARTED:
        raise TargetError(
            f"It is not started: it has {len(nodes)} data nodes, and at most {MOST_STARTED} are started on one machine",
            remedy="Try it with fewer [ndbd] sections.",
        )
    there = parse_meminfo(Path("/proc/meminfo").read_bytes())["MemAvailable"]
    free = shutil.disk_usage(scratch_directory()).free
    room = (
        ("memory", sum(node.memory_bytes() for node in nodes), there, "DataMemory=80M"),
        ("disk space for redo logs", sum(node.redo_bytes() for node in nodes), free, "NoOfFragmentLogFiles=4"),
    )
    for what, asked, has, less in room:
        if asked > has:
            raise TargetError(
                f"It is not started: its data nodes take at least {show(asked, 'bytes')} of {what} together, and this "
                f"machine has {show(has, 'bytes')} free",
                remedy=f"Try it with less, for example --set 'ndbd default.{less}'.",
            )


def _node(node: DataNode) -> NdbStartedNode:
    if (error := node.died()) is not None:
        raise error
    pid = node.pid
    assert pid is not None, "it lives"
    status = parse_process_status(Path(f"/proc/{pid}/status").read_bytes())
    threads = grouped(read_threads(pid, node.logged_threads()), frozenset(os.sched_getaffinity(0)))
    return NdbStartedNode(node.number, status.rss_bytes or 0, threads)
