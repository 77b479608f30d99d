"""What a config.ini of MySQL Cluster (NDB) makes, and what is wrong with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NdbSeverity = Literal["error", "warning", "note"]
"""error: the cluster refuses it, or cannot have it; warning: it costs speed or safety; note: worth a trial."""


@dataclass(frozen=True, slots=True)
class NdbFinding:
    """rule: which one says so. line: of the file, counted from 1; None where it is about the whole."""

    rule: str
    severity: NdbSeverity
    file: str
    line: int | None
    fact: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True)
class NdbThreads:
    """Threads of one kind of a data node. cpus: those they are bound to, None where they run anywhere. shared: they
    have them together, instead of one each."""

    kind: str
    count: int
    cpus: frozenset[int] | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class NdbDataNode:
    """threads: None where they cannot be told. memory_bytes: what its settings take at least. redo_bytes: its redo log
    on disk. line: of its heading."""

    node_id: int
    host: str
    line: int
    threads: tuple[NdbThreads, ...] | None
    memory_bytes: int
    redo_bytes: int


@dataclass(frozen=True, slots=True)
class NdbServer:
    """A MySQL server, by its option file. connections: its connection pool, each of them takes an API slot."""

    file: str
    connections: int


@dataclass(frozen=True, slots=True)
class NdbStartedNode:
    """A data node as it ran. memory_bytes: what it took once it was started. threads: with the CPUs that the kernel
    has for them."""

    node_id: int
    memory_bytes: int
    threads: tuple[NdbThreads, ...]


@dataclass(frozen=True, slots=True)
class NdbStart:
    """A trial of a config.ini: a private cluster with its nodes on this machine, which is ended at once.

    seconds: until all data nodes were started, None where that failed. refused: why it failed, "" where it did not;
    words: of the program that refused it, its log's last lines. left_out: settings that have no place in it.
    """

    version: str
    seconds: float | None
    nodes: tuple[NdbStartedNode, ...]
    left_out: tuple[str, ...]
    refused: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class NdbReport:
    """A config.ini, checked. not_checked: what was not, and why. programs: a cluster's, and where they are here. start:
    how a cluster started with it, None where that was not tried."""

    file: str
    data_nodes: tuple[NdbDataNode, ...]
    management_nodes: int
    api_slots: int
    servers: tuple[NdbServer, ...]
    findings: tuple[NdbFinding, ...]
    not_checked: tuple[str, ...]
    programs: dict[str, str | None]
    start: NdbStart | None = None

    @property
    def refused(self) -> bool:
        """Whether there is an error among the findings, or no cluster started with it."""
        started = self.start is None or not self.start.refused
        return not started or any(finding.severity == "error" for finding in self.findings)


def cpu_list(cpus: Iterable[int]) -> str:
    """CPU numbers as the kernel lists them (cpuset(7)): "0-3,6"."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][-1] + 1:
            spans[-1][1:] = [cpu]
        else:
            spans.append([cpu])
    return ",".join("-".join(map(str, span)) for span in spans)
