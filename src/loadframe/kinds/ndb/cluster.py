"""A cluster as its config.ini describes it: the nodes, and the values in effect for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from loadframe.kinds.ndb import threads
from loadframe.kinds.ndb.config import Config, Entry, Section
from loadframe.kinds.ndb.setting import NodeValue, read_cpus
from loadframe.kinds.ndb.settings import MEMORY, PER_PART, SETTINGS
from loadframe.model import NdbThreads

NODES = ("ndbd", "ndb_mgmd", "mysqld")
LOCAL = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its own section, and the default one of its kind (several only where the file is wrong)."""

    node_id: int
    section: Section
    defaults: Sequence[Section]

    def entry(self, name: str) -> Entry | None:
        """Where its value of a setting is written, None where nowhere."""
        given = (section.get(name) for section in (self.section, *self.defaults))
        return next((entry for entry in given if entry is not None), None)

    def line(self, name: str) -> int:
        """The line that gives a value, or that of its heading."""
        entry = self.entry(name)
        return self.section.line if entry is None else entry.line

    def value(self, name: str) -> NodeValue | None:
        """Its value of a setting; the default where none is written, or none that can be read."""
        setting, entry = SETTINGS[self.section.kind][name.lower()], self.entry(name)
        try:
            return setting.default if entry is None else setting.read(entry.value)
        except ValueError:
            return setting.default

    def number(self, name: str) -> int:
        """The same of a number or a switch; 0 where there is none."""
        value = self.value(name)
        return value if isinstance(value, int) else 0

    def cpus(self, name: str) -> frozenset[int]:
        """The same of CPUs; none where there is none."""
        value = self.value(name)
        return frozenset() if value is None else read_cpus(str(value))

    @property
    def host(self) -> str:
        host = str(self.value("HostName") or "")
        return "localhost" if host in LOCAL else host

    @property
    def words(self) -> str:
        return f"data node {self.node_id}"

    def threads(self) -> tuple[NdbThreads, ...] | None:
        """Its threads and their CPUs; None where it chooses them itself (AutomaticThreadConfig).

        ValueError says what ndb_mgmd or ndbmtd would refuse."""
        if self.number("AutomaticThreadConfig"):
            return None
        config = self.entry("ThreadConfig")
        if config is not None and config.value:
            groups = threads.by_config(config.value)
        else:
            groups = threads.by_number(self.number("MaxNoOfExecutionThreads"))
        keeping = self.cpus("LockMaintThreadsToCPU")
        if keeping:
            others = (group for group in groups if group.kind not in threads.KEEPING)
            groups = (*others, *(NdbThreads(kind, 1, keeping) for kind in threads.KEEPING))
        threads.check_apart(groups)
        return threads.bound(groups, self.cpus("LockExecuteThreadToCPU"))

    def ldm_threads(self) -> int:
        """How many there are; 1 where they cannot be told."""
        try:
            groups = self.threads() or ()
        except ValueError:
            groups = ()
        return sum(group.count for group in groups if group.kind == "ldm") or 1

    def memory_bytes(self) -> int:
        """What its settings take at least: see MEMORY."""
        plain = sum(self.number(name) * size for name, size in MEMORY.items())
        return plain + self.number(PER_PART) * self.number("NoOfFragmentLogParts")

    def redo_bytes(self) -> int:
        """Its redo log on disk."""
        files = self.number("NoOfFragmentLogFiles") * self.number("NoOfFragmentLogParts")
        return files * self.number("FragmentLogFileSize")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A config.ini and its nodes, in the order of the file. twice: nodes whose number another one has."""

    config: Config
    nodes: Sequence[Node]
    twice: Sequence[Node]

    def of_kind(self, kind: str) -> list[Node]:
        return [node for node in self.nodes if node.section.kind == kind]

    @property
    def data_nodes(self) -> list[Node]:
        return self.of_kind("ndbd")


def cluster_of(config: Config) -> Cluster:
    """The nodes with their numbers. One that has none gets the next free one, as ndb_mgmd does it."""
    nodes, twice = list[Node](), list[Node]()
    defaults = {kind: config.of_kind(kind, default=True) for kind in NODES}
    taken, following = set[int](), 1
    for section in config.sections:
        if section.kind not in NODES or section.default:
            continue
        unnumbered = Node(0, section, defaults[section.kind])
        number = unnumbered.number("NodeId") or next(free for free in count(following) if free not in taken)
        node = replace(unnumbered, node_id=number)
        nodes.append(node)
        twice += [node] if number in taken else []
        taken.add(number)
        following = number + 1
    return Cluster(config, nodes, twice)


def on_hosts(nodes: Sequence[Node]) -> Iterator[tuple[str, list[Node]]]:
    """The nodes by the host they run on."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.host, []).append(node)
    yield from found.items()
