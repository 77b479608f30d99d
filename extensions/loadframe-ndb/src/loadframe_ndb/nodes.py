"""The processes of a private cluster: ndb_mgmd, and ndbmtd for each data node, none in the background."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance, threads
from loadframe.kinds.private_server import LAST_LINES, STOP_TIMEOUT_S, Package, PrivateServer, ask, write_readable
from loadframe.model import TargetState
from loadframe_ndb.own_settings import HOST
from loadframe_ndb.records import NdbThreads
from loadframe_ndb.threads import MOST

INSTALL = (
    "MySQL's own packages mysql-cluster-community-data-node, -management-server and -client, or "
    "scripts/build-mysql-cluster FOLDER and FOLDER/bin first in PATH (Debian 12 has no package)"
)
DATA_NODE, MANAGEMENT, CLIENT = "ndbmtd", "ndb_mgmd", "ndb_mgm"
PACKAGE = Package("MySQL Cluster", (DATA_NODE, MANAGEMENT, CLIENT), INSTALL, ("--version",), r"ndb-(\d+\.\d+\.\d+)")
NDBINFO = "ndbinfo_select_all"
LOADED = replace(PACKAGE, programs=(*PACKAGE.programs, NDBINFO))
"""What a loaded cluster needs: the last program prints its counters."""


STARTING = re.compile(r"\bthr: \d+ tid: (\d+) \((\w+)\) ")


@dataclass(frozen=True, slots=True)
class NodeThread:
    """cpus: those that it may use."""

    kind: str
    cpus: frozenset[int]


def logged_threads(log: Iterable[str]) -> dict[int, str]:
    """Each thread's kind by its id, also of earlier starts. log: its lines."""
    starts = (start for line in log if (start := STARTING.search(line)) is not None)
    return {int(start[1]): start[2] for start in starts if start[2] in MOST}


def read_threads(pid: int, kinds: Mapping[int, str]) -> tuple[NodeThread, ...]:
    """Empty where it has ended."""
    read = []
    for thread in kinds.keys() & threads(pid):
        with suppress(OSError):  # it has just ended
            read.append(NodeThread(kinds[thread], frozenset(os.sched_getaffinity(thread))))
    return tuple(read)


def grouped(node_threads: Sequence[NodeThread], free: frozenset[int]) -> tuple[NdbThreads, ...]:
    """As configured: how many of each kind, and their CPUs. free: what an unbound thread may use."""
    groups = []
    for kind in MOST:
        alike = [thread for thread in node_threads if thread.kind == kind]
        bound = [thread.cpus for thread in alike if thread.cpus != free]
        cpus = frozenset().union(*bound) if bound else None
        if alike:
            groups.append(NdbThreads(kind, len(alike), cpus, shared=cpus is not None and len(cpus) < len(alike)))
    return tuple(groups)


STATUS = re.compile(r"^Node (\d+): ([a-z][a-z ]*?)(?= ?\(|$)", re.M)
STARTED = "started"
REFUSED = re.compile(r"\b(?:ERROR|Error)\b.*")
PRINTED = re.compile(r"^NodeId=\d", re.M)
PRIVATE = ("--no-defaults",)


class _Node(PrivateServer):
    package = PACKAGE

    def __init__(self, lease: Lease, component: str, user: Privilege, port: int | None) -> None:
        """component: its name in studies, also that of its folder."""
        super().__init__(lease, component, user, port)
        self.data = self.folder / "data"

    def prepare(self) -> None:
        self.make_folders(self.data)


class Management(_Node):
    """It may be killed: asked to end, it takes 5 s."""

    name = "the cluster's management server"

    def __init__(self, lease: Lease, user: Privilege) -> None:
        super().__init__(lease, "management", user, 0)
        self.config = self.folder / "config.ini"

    @property
    def address(self) -> str:
        """Where nodes and clients find it; the port stays the same after the first start."""
        return f"{HOST}:{self.port}"

    def start(self, text: str, number: int, allowance: Allowance) -> None:
        """number: the node's. TargetError where it does not accept it."""
        self.launch(self._command("--nodaemon", self.config, text, number), allowance, lambda: bool(self.states()))

    def check(self, state: TargetState, text: str, number: int, allowance: Allowance) -> str:
        """The whole configuration that the nodes would have. TargetError, in its own words, where it prints none: its
        exit status is 1 in both cases."""
        command = self._command("--print-full-config", self.folder / "check.ini", text, number)
        _, said = self.said_to_its_end(command, allowance)
        if PRINTED.search(said) is None:
            raise self.refusal(state, "\n".join(refusal[0] for refusal in REFUSED.finditer(said)) or said)
        return said

    def states(self) -> dict[int, str]:
        """Each data node's state by its number: "not connected", "starting", "started", ...; empty: unknown."""
        return {int(match[1]): match[2] for match in STATUS.finditer(self._ask("ALL STATUS")[1])}

    def carry_out(self, command: str) -> str:
        """TargetError where that fails."""
        status, said = self._ask(command)
        if status != 0:
            raise self.died() or TargetError(
                f"{self.name} did not do {command}", remedy="Its own words are below.", details=said
            )
        return said

    @property
    def reached_by(self) -> tuple[str, ...]:
        """The first options of a node or a client of it. No option file is read."""
        return (*PRIVATE, f"--ndb-connectstring={self.address}")

    def _command(self, how: str, file: Path, text: str, number: int) -> tuple[str, ...]:
        write_readable(file, text)
        command = (self.required(MANAGEMENT), *PRIVATE, f"--config-file={file}", f"--ndb-nodeid={number}", how)
        return (*command, "--skip-config-cache", f"--configdir={self.data}", f"--bind-address={HOST}")

    def _ask(self, command: str) -> tuple[int, str]:
        done = ask(self.required(CLIENT), *self.reached_by, "--try-reconnect=1", "--execute", command)
        return done.returncode, done.stdout + done.stderr


class DataNode(_Node):
    """It gets its settings from the management server when it starts."""

    def __init__(self, lease: Lease, user: Privilege, component: str, number: int) -> None:
        super().__init__(lease, component, user, None)
        self.name = f"data node {number} ({component})"
        self.number = number

    def start(self, management: Management, allowance: Allowance, *, initial: bool) -> None:
        """It is ready later, and may first wait for other data nodes. initial: with an empty file system."""
        command = (self.required(DATA_NODE), *management.reached_by, f"--ndb-nodeid={self.number}", "--foreground")
        self.launch((*command, "--initial") if initial else command, allowance, lambda: True)

    def logged_threads(self) -> dict[int, str]:
        with self.log.open(encoding="utf-8", errors="replace") as log:
            return logged_threads(log)

    def ended(self, within_s: float = STOP_TIMEOUT_S) -> None:
        """TargetError where it had to be killed."""
        if self._process is None:
            return
        if self._wait(within_s):
            self._process = None
            return
        self.kill()
        raise TargetError(f"{self.name} did not stop within {within_s:.0f} s: killed", remedy=LAST_LINES)
