"""What the rules are given, and what they find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loadframe.formats.plain_numbers import whole
from loadframe.kinds.ndb.cluster import LOCAL, Cluster
from loadframe.kinds.ndb.settings import MANUAL, POOL
from loadframe.model import NdbSeverity

STORY = 'Mikael Ronström, "How to speed up Sysbench on MySQL Cluster by 14x" (2010)'
CONFIG_INFO = "ConfigInfo.cpp of MySQL Cluster"
DATA_NODES = MANUAL + "25.4.3.6"


@dataclass(frozen=True, slots=True)
class Hosts:
    """What is known of data nodes' hosts: cpus and memory_bytes of each, None where unknown. bound: the CPUs that other
    processes there are bound to, by what these are called. names: the hosts of which this is known; None for all."""

    cpus: frozenset[int] | None = None
    memory_bytes: int | None = None
    bound: Mapping[str, frozenset[int]] = field(default_factory=dict)
    names: frozenset[str] | None = frozenset(LOCAL)

    def known(self, host: str) -> bool:
        return self.names is None or host in self.names


@dataclass(frozen=True, slots=True)
class SqlNode:
    """A MySQL server: its option file, and what that says, names with underscores."""

    file: str
    options: Mapping[str, str]

    @property
    def connections(self) -> int:
        """Its connection pool; 1 where none is given, or nothing that is a number."""
        pool = whole(self.options.get(POOL, ""))
        return 1 if pool is None else pool


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster to check. servers: none where nothing is known of them."""

    cluster: Cluster
    hosts: Hosts = Hosts()
    servers: Sequence[SqlNode] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """severity, fact, remedy, source: as in NdbFinding. file: a server's, None for the config.ini."""

    severity: NdbSeverity
    line: int | None
    fact: str
    remedy: str
    source: str
    file: str | None = None
