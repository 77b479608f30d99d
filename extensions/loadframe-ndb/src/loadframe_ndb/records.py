"""What a config.ini of MySQL Cluster (NDB) makes, and what is wrong with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NdbSeverity = Literal["error", "warning", "note"]
"""error: the cluster refuses it, or cannot have it; warning: it costs speed or safety; note: worth a trial."""


@dataclass(frozen=True, slots=True)
class NdbFinding:
    """rule: its id. line: of the file, counted from 1; None where it is about the whole."""

    rule: str
    severity: NdbSeverity
    file: str
    line: int | None
    fact: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True)
class NdbThreads:
    """cpus: that they are bound to, or None. shared: together, not one each."""

    kind: str
    count: int
    cpus: frozenset[int] | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class NdbDataNode:
    """threads: None if unknown. memory_bytes: the least that its settings take. redo_bytes: of redo log. line: of its
    heading."""

    node_id: int
    host: str
    line: int
    threads: tuple[NdbThreads, ...] | None
    memory_bytes: int
    redo_bytes: int


@dataclass(frozen=True, slots=True)
class NdbServer:
    """connections: its connection pool; each takes an API slot."""

    file: str
    connections: int


@dataclass(frozen=True, slots=True)
class NdbStartedNode:
    """memory_bytes: after its start. threads: with their CPUs from the kernel."""

    node_id: int
    memory_bytes: int
    threads: tuple[NdbThreads, ...]


@dataclass(frozen=True, slots=True)
class NdbStart:
    """A private cluster with the nodes of a config.ini, ended at once. seconds: until all data nodes were started, None
    where that failed (refused; words: its log). left_out: settings without a place there."""

    version: str
    seconds: float | None
    nodes: tuple[NdbStartedNode, ...]
    left_out: tuple[str, ...]
    refused: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class NdbReport:
    """not_checked: what was not, and why. programs: a cluster's, and where they are."""

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
        """Whether a finding is an error, or no cluster started with it."""
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
