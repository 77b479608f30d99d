"""config.ini, from which ndb_mgmd gives every node of a cluster its settings; and that cluster. It is read as ndb_mgmd
reads it, without failing: what ndb_mgmd would refuse is in `problems`, and all text is kept. Source: MySQL 8.4
Reference Manual, 25.4.3; InitConfigFileParser.cpp of MySQL Cluster."""

import difflib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

from loadframe.model import SettingValue
from loadframe_ndb import threads
from loadframe_ndb.records import NdbThreads
from loadframe_ndb.settings import MEMORY, PER_PART, SETTINGS, read_cpus

KINDS = {
    "ndbd": "ndbd", "db": "ndbd", "ndb_mgmd": "ndb_mgmd", "mgm": "ndb_mgmd", "mysqld": "mysqld", "api": "mysqld",
    "computer": "computer", "system": "system", "tcp": "tcp", "shm": "shm",
}  # fmt: skip
"""By the word of its heading, in any case."""

HEADING = re.compile(r"\[\s*(?P<kind>\w+)\s*\]|\[(?P<defaults>\w+)\s+default\]", re.I)
VALUE = re.compile(r"([^=:]*[=:][\r\t ]*)[^#]*?([\r\t ]*(?:#.*)?)")
"""What stands before the value, and behind it."""
SETTING = re.compile(r"([^=:]+)[=:]([^#]*)(?:#.*)?")
"""Name and value."""
BLANKS = "\r\t "


@dataclass(frozen=True, slots=True)
class Problem:
    """line: counted from 1."""

    line: int
    fact: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting as it is written, without blanks and comment."""

    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Section:
    """kind: a value of KINDS. default: for all later sections of its kind. line: that of its heading."""

    kind: str
    default: bool
    line: int
    entries: list[Entry] = field(default_factory=list)
    _by_name: dict[str, Entry] = field(default_factory=dict, compare=False, repr=False)

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._by_name.setdefault(entry.name.lower(), entry)

    @property
    def heading(self) -> str:
        return f"[{self.kind} default]" if self.default else f"[{self.kind}]"

    def get(self, name: str) -> Entry | None:
        """Whatever the case of its name; the first where it stands twice."""
        return self._by_name.get(name.lower())


@dataclass(frozen=True, slots=True)
class Config:
    text: str
    sections: Sequence[Section]
    problems: Sequence[Problem]

    def of_kind(self, kind: str, *, default: bool = False) -> list[Section]:
        return [section for section in self.sections if section.kind == kind and section.default is default]

    def changed(self, heading: str, name: str, value: str) -> "Config":
        """Set a value in every section of this heading ("ndbd default", "mysqld"); a missing default section is put
        before all others. ValueError says what is wrong."""
        kind, default = _read_heading(f"[{heading.strip()}]")
        if kind is None:
            raise ValueError(f"a config.ini has no section [{heading}]")
        if not re.fullmatch(r"\w+", name) or not re.fullmatch(r"[^#\r\n]+", value) or value != value.strip(BLANKS):
            raise ValueError(f"{name}={value} is not a setting that config.ini can hold")
        if not (sections := self.of_kind(kind, default=default)):
            if not default:
                raise ValueError(f"there is no section [{heading}] to change")
            return read_config(f"[{kind} default]\n{name}={value}\n\n{self.text}")
        lines = self.text.split("\n")
        for section in reversed(sections):
            if entry := section.get(name):
                before, after = VALUE.fullmatch(lines[entry.line - 1]).groups()  # type: ignore[union-attr]
                lines[entry.line - 1] = f"{before}{value}{after}"
            else:
                ending = "\r" if lines[section.line - 1].endswith("\r") else ""
                lines.insert(section.line, f"{name}={value}{ending}")
        return read_config("\n".join(lines))


def read_config(text: str) -> Config:
    """Reads any text: a broken heading is read as its likely meaning."""
    sections: list[Section] = []
    problems: list[Problem] = []
    open_section: Section | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip(BLANKS)
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            kind, default = _read_heading(line)
            if kind is None:
                kind, default, problem = _guess(line, number)
                problems.append(problem)
            open_section = Section(kind, default, number) if kind else None
            if open_section:
                problems += _check_place(open_section, sections)
                sections.append(open_section)
        elif (setting := SETTING.fullmatch(line)) is None:
            problems.append(Problem(number, f"{line!r} is neither a heading nor a setting", "Write Name=Value."))
        elif open_section:
            entry = Entry(setting[1].strip(BLANKS), setting[2].strip(BLANKS), number)
            if (first := open_section.get(entry.name)) is not None:
                fact = f"{entry.name} appears in {open_section.heading} a second time (first: line {first.line})"
                problems.append(Problem(number, fact, "Remove one of them."))
            open_section.add(entry)
        elif not problems and not sections:
            problems.append(Problem(number, f"{line!r} comes before any section", "Put it under a heading."))
    return Config(text, sections, problems)


def _read_heading(line: str) -> tuple[str | None, bool]:
    """Kind of section, None for none, and whether it is a default one."""
    heading = HEADING.fullmatch(line)
    if heading is None:
        return None, False
    return KINDS.get((heading["kind"] or heading["defaults"]).lower()), heading["defaults"] is not None


def _guess(line: str, number: int) -> tuple[str | None, bool, Problem]:
    heading, comment, _ = line.partition("#")
    kind, default = _read_heading(heading.strip(BLANKS))
    if comment and kind is not None:
        fact = f"a comment follows the heading {heading.strip(BLANKS)}"
        return kind, default, Problem(number, fact, "Give it a line of its own.")
    words = re.findall(r"\w+", heading.lower())
    close = difflib.get_close_matches(words[0], KINDS, n=1) if words else []
    default = len(words) > 1
    meant = f"[{close[0]}{' default' * default}]" if close else ", ".join(f"[{kind}]" for kind in KINDS)
    problem = Problem(
        number, f"{line!r} is not a heading of config.ini", f"Did you mean {meant}?" if close else f"There are {meant}."
    )
    return (KINDS[close[0]] if close else None), default, problem


def _check_place(section: Section, before: Sequence[Section]) -> list[Problem]:
    same = [earlier for earlier in before if earlier.kind == section.kind]
    if not section.default or not same:
        return []
    if any(earlier.default for earlier in same):
        fact = f"{section.heading} appears here a second time (first: line {same[0].line})"
        return [Problem(section.line, fact, "Write all of it into the first one.")]
    fact = f"{section.heading} comes after the [{section.kind}] of line {same[0].line}, so it has no effect on it"
    return [Problem(section.line, fact, f"Put it before the first [{section.kind}].")]


NODES = ("ndbd", "ndb_mgmd", "mysqld")
LOCAL = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its own section, and the default one of its kind (several only where the file is wrong)."""

    node_id: int
    section: Section
    defaults: Sequence[Section]

    def entry(self, name: str) -> Entry | None:
        """None where it is not written."""
        given = (section.get(name) for section in (self.section, *self.defaults))
        return next((entry for entry in given if entry is not None), None)

    def line(self, name: str) -> int:
        """The line of the value, or of the heading."""
        entry = self.entry(name)
        return self.section.line if entry is None else entry.line

    def value(self, name: str) -> SettingValue | None:
        """Its value; the default where none, or an invalid one, is written."""
        setting, entry = SETTINGS[self.section.kind][name.lower()], self.entry(name)
        try:
            return setting.default if entry is None else setting.read(entry.value)
        except ValueError:
            return setting.default

    def number(self, name: str) -> int:
        """Its value of a number or switch; 0 where there is none."""
        value = self.value(name)
        return value if isinstance(value, int) else 0

    def cpus(self, name: str) -> frozenset[int]:
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
        """Threads and CPUs; None where it chooses them itself. ValueError says what ndb_mgmd or ndbmtd refuses."""
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
        """1 where that is unknown."""
        with suppress(ValueError):
            return sum(group.count for group in self.threads() or () if group.kind == "ldm") or 1
        return 1

    def memory_bytes(self) -> int:
        """At least: see MEMORY."""
        plain = sum(self.number(name) * size for name, size in MEMORY.items())
        return plain + self.number(PER_PART) * self.number("NoOfFragmentLogParts")

    def redo_bytes(self) -> int:
        files = self.number("NoOfFragmentLogFiles") * self.number("NoOfFragmentLogParts")
        return files * self.number("FragmentLogFileSize")


@dataclass(frozen=True, slots=True)
class Cluster:
    """nodes: in the order of the file. twice: those with the number of an earlier one."""

    config: Config
    nodes: Sequence[Node]
    twice: Sequence[Node]

    def of_kind(self, kind: str) -> list[Node]:
        return [node for node in self.nodes if node.section.kind == kind]

    @property
    def data_nodes(self) -> list[Node]:
        return self.of_kind("ndbd")


def cluster_of(config: Config) -> Cluster:
    """A node without a number gets the next free one, as ndb_mgmd does it."""
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


def on_hosts(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    by_host: dict[str, list[Node]] = {}
    for node in nodes:
        by_host.setdefault(node.host, []).append(node)
    return by_host
