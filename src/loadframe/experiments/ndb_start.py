"""Whether a cluster starts with a config.ini: its nodes are started on this machine alone, looked at, and ended."""

import os
import shutil
import time
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.experiments.ndb import check_ndb
from loadframe.host.leases import Lease, scratch_directory
from loadframe.host.processes import online_cpus
from loadframe.kinds.ndb.config import Cluster, Config, cluster_of
from loadframe.kinds.ndb.nodes import PACKAGE, DataNode, grouped, read_threads
from loadframe.kinds.ndb.own_settings import as_private
from loadframe.kinds.ndb.private_cluster import PrivateCluster
from loadframe.model import NdbStart, NdbStartedNode
from loadframe.recording.procfs import parse_meminfo, parse_process_status
from loadframe.runs.host import read_host
from loadframe.units import show

MOST_NODES = 4
"""Data nodes that are started on one machine."""


def start_ndb(config: Config) -> NdbStart:
    """Start a private cluster with the data nodes and the settings of this file, each node on this machine and in a
    folder of ours, and end it. A cluster that does not start is an answer too. TargetError where the file has errors
    on this machine, or asks for more than it has; MissingTool without the programs."""
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
                return NdbStart(started.version(), None, (), wanted.left_out, error.fact, error.details)
            seconds = time.monotonic() - begin
            nodes = tuple(_node(node) for node in started.data.values())
            return NdbStart(started.version(), seconds, nodes, wanted.left_out)
        finally:
            started.destroy()


def _check_room(config: Config, cluster: Cluster) -> None:
    here = check_ndb(config, cpus=max(online_cpus()) + 1, memory_bytes=read_host().memory_bytes or None)
    for finding in here.findings:
        if finding.severity == "error":
            raise TargetError(f"It is not started, as on this machine {finding.fact}", remedy=finding.remedy)
    nodes = cluster.data_nodes
    if len(nodes) > MOST_NODES:
        raise TargetError(
            f"It is not started: it has {len(nodes)} data nodes, and at most {MOST_NODES} are started on one machine",
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
    """TargetError where it has ended."""
    if (error := node.died()) is not None:
        raise error
    pid = node.pid
    assert pid is not None, "it lives"
    status = parse_process_status(Path(f"/proc/{pid}/status").read_bytes())
    threads = grouped(read_threads(pid, node.told_threads()), frozenset(os.sched_getaffinity(0)))
    return NdbStartedNode(node.number, status.rss_bytes or 0, threads)
