"""The rules for a config.ini: those of MySQL Cluster itself and of its benchmark. A rule is a function of a Case that
yields its findings, which have its name."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

from loadframe.formats.plain_numbers import whole
from loadframe_ndb.config import LOCAL, NODES, Cluster, Node, Section, on_hosts
from loadframe_ndb.records import NdbFinding, NdbSeverity, NdbThreads, cpu_list
from loadframe_ndb.settings import MANUAL, POOL, POOL_MOST, SETTINGS
from loadframe_ndb.threads import EXECUTION, PASSING, SOURCE

STORY = 'Mikael Ronström, "How to speed up Sysbench on MySQL Cluster by 14x" (2010)'
CONFIG_INFO = "ConfigInfo.cpp of MySQL Cluster"
DATA_NODES = MANUAL + "25.4.3.6"


@dataclass(frozen=True, slots=True)
class Hosts:
    """cpus and memory_bytes of each, None where unknown. bound: CPUs that other processes there are bound to, by name.
    names: the hosts of which this is known; None for all."""

    cpus: frozenset[int] | None = None
    memory_bytes: int | None = None
    bound: Mapping[str, frozenset[int]] = field(default_factory=dict)
    names: frozenset[str] | None = frozenset(LOCAL)

    def known(self, host: str) -> bool:
        return self.names is None or host in self.names


@dataclass(frozen=True, slots=True)
class SqlNode:
    """options: in its option file, names with underscores."""

    file: str
    options: Mapping[str, str]

    @property
    def connections(self) -> int:
        """Its pool; 1 where none, or no number, is given."""
        pool = whole(self.options.get(POOL, ""))
        return 1 if pool is None else pool


@dataclass(frozen=True, slots=True)
class Case:
    """servers: empty where they are unknown."""

    cluster: Cluster
    hosts: Hosts = Hosts()
    servers: Sequence[SqlNode] = ()


SEVERITIES: tuple[NdbSeverity, ...] = ("error", "warning", "note")
Findings = Iterator[NdbFinding]


def finding(severity: NdbSeverity, line: int | None, fact: str, remedy: str, source: str, file: str = "") -> NdbFinding:
    """As a rule knows it: `check` adds the rule's name. file: a server's, "" for the config.ini."""
    return NdbFinding("", severity, file, line, fact, remedy, source)


_error, _warning, _note = (partial(finding, severity) for severity in SEVERITIES)


WITHOUT_TRANSACTION_MEMORY = (
    "MaxNoOfConcurrentIndexOperations", "MaxNoOfFiredTriggers", "MaxNoOfLocalOperations", "MaxNoOfLocalScans",
)  # fmt: skip
SUCCESSORS = {"IndexMemory": "DataMemory", "ExecuteOnComputer": "HostName", "Id": "NodeId"}
CLOSE = 0.75
"""How alike two names are where one may be a misspelling of the other (difflib's ratio)."""


def file(case: Case) -> Findings:
    for problem in case.cluster.config.problems:
        yield _error(problem.line, problem.fact, problem.remedy, MANUAL + "25.4.3.1")


def settings(case: Case) -> Findings:
    for section in case.cluster.config.sections:
        for entry in section.entries:
            setting = SETTINGS[section.kind].get(entry.name.lower())
            if setting is None:
                yield _unknown(section, entry.name, entry.line)
                continue
            try:
                setting.read(entry.value)
            except ValueError as error:
                fact = f"{section.heading} does not accept {entry.name} = {entry.value}"
                yield _error(entry.line, fact, f"Give {error}.", setting.source)
            if setting.deprecated:
                successor = SUCCESSORS.get(setting.name)
                remedy = f"Use {successor} instead." if successor else "Omit it."
                yield _warning(entry.line, f"{entry.name} is deprecated", remedy, setting.source)


def _unknown(section: Section, name: str, line: int) -> NdbFinding:
    known = SETTINGS[section.kind]
    source = next(iter(known.values())).source
    if name.startswith("__"):
        fact = f"{name} is an internal setting that Loadframe does not know"
        return _warning(line, fact, "Omit it unless the makers of MySQL Cluster ask for it.", CONFIG_INFO)
    later = [new for old, new in SUCCESSORS.items() if old.lower() == name.lower() and new.lower() in known]
    alike = difflib.get_close_matches(name.lower(), known, n=2, cutoff=CLOSE)
    close = later or [known[word].name for word in alike]
    others = [f"[{kind}]" for kind, table in SETTINGS.items() if name.lower() in table]
    remedy = f"Did you mean {' or '.join(close)}?" if close else "Omit it."
    if others and not later:
        remedy = f"It belongs in {' or '.join(others)}."
    return _error(line, f"{section.heading} has no setting {name}", remedy, source)


def nodes(case: Case) -> Findings:
    """Missing kinds of node, numbers in use twice, hosts that cannot reach each other."""
    cluster = case.cluster
    for kind in NODES:
        if not cluster.of_kind(kind):
            yield _error(None, f"there is no [{kind}]", "Add one: a cluster needs one of each.", CONFIG_INFO)
    for node in cluster.twice:
        fact = f"two nodes have the number {node.node_id}"
        yield _error(node.line("NodeId"), fact, "Give each a NodeId of its own, or none.", CONFIG_INFO)
    hosts = sorted({node.host for node in cluster.nodes if node.host})
    if "localhost" in hosts and len(hosts) > 1:
        local = next(node for node in cluster.nodes if node.host == "localhost")
        fact = f"a node is on localhost, others are on {', '.join(host for host in hosts if host != 'localhost')}"
        remedy = "Write the name by which the others reach it: HostName."
        yield _error(local.line("HostName"), fact, remedy, CONFIG_INFO)


def replicas(case: Case) -> Findings:
    data_nodes = case.cluster.data_nodes
    copies = sorted({node.number("NoOfReplicas") for node in data_nodes})
    if len(copies) > 1:
        line = next(node.line("NoOfReplicas") for node in data_nodes if node.section.get("NoOfReplicas"))
        fact = f"data nodes differ in NoOfReplicas: {', '.join(map(str, copies))}"
        yield _error(line, fact, "Write it once, in [ndbd default].", DATA_NODES)
    elif data_nodes and not any(node.entry("NodeGroup") for node in data_nodes):
        yield from _groups(sorted(data_nodes, key=lambda node: node.node_id), copies[0])


def _groups(ordered: Sequence[Node], copies: int) -> Findings:
    if len(ordered) % copies:
        given = "" if ordered[0].entry("NoOfReplicas") else " (the default)"
        fact = f"{len(ordered)} [ndbd] cannot hold {copies} copies of all data: NoOfReplicas = {copies}{given}"
        remedy = f"Have a multiple of {copies} of them, or set NoOfReplicas."
        yield _error(ordered[0].line("NoOfReplicas"), fact, remedy, DATA_NODES)
        return
    for at in range(0, len(ordered), copies):
        for node, other in combinations(ordered[at : at + copies], 2):
            if node.host == other.host:
                fact = f"{node.words} and {other.words} have the same data and are both on {node.host}"
                remedy = "Put them on two hosts: with this one all copies of some data are gone."
                yield _warning(other.line("HostName"), fact, remedy, DATA_NODES)


def limits(case: Case) -> Findings:
    """Limits that must be raised in a certain order, and settings that exclude each other."""
    operations, transactions = "MaxNoOfConcurrentOperations", "MaxNoOfConcurrentTransactions"
    for node in case.cluster.data_nodes:
        if node.number(operations) < node.number(transactions):
            fact = f"{transactions} = {node.number(transactions)} is more than {operations} = {node.number(operations)}"
            name = transactions if node.entry(transactions) else operations
            yield _error(node.line(name), fact, f"Raise {operations} first.", DATA_NODES)
        for name in WITHOUT_TRANSACTION_MEMORY if node.number("TransactionMemory") else ():
            if node.entry(name):
                fact = f"{name} and TransactionMemory (line {node.line('TransactionMemory')}) exclude each other"
                yield _error(node.line(name), fact, "Remove one of them.", DATA_NODES)


def durability(case: Case) -> Findings:
    for section in case.cluster.config.sections:
        for entry in section.entries:
            setting = SETTINGS[section.kind].get(entry.name.lower())
            with suppress(ValueError):  # said by `settings`
                if setting is not None and setting.gives_up and setting.weakens(setting.read(entry.value)):
                    default = "" if setting.default is None else setting.show(setting.default)
                    fact = f"{setting.name} = {entry.value} gives up durability ({setting.gives_up})"
                    remedy = f"Keep it only if this is intended; the default is {default}."
                    yield _warning(entry.line, fact, remedy, setting.source)


OPTIONS = MANUAL + "25.4.3.9.1"
STARTING = MANUAL + "25.4.3.2"


def api_slots(case: Case) -> Findings:
    """Connections of servers that find no slot, and how many each has."""
    slots, connections = len(case.cluster.of_kind("mysqld")), [server.connections for server in case.servers]
    wanted, terms = sum(connections), " + ".join(map(str, connections))
    if case.servers and wanted > slots:
        fact = f"the servers want {wanted} connections ({terms}), and there are {slots} API slots"
        remedy = f"Add {wanted - slots} sections [mysqld] first, and one more for tools such as ndb_restore."
        yield _error(None, fact, remedy, OPTIONS)
    elif case.servers and wanted == slots:
        fact = f"the servers take all {slots} API slots ({terms}); tools such as ndb_restore need one, too"
        remedy = "Add a section [mysqld]: an unused one takes its send buffer in each data node."
        yield _warning(None, fact, remedy, STARTING)
    for server in case.servers:
        yield from _server(server, case)


def _server(server: SqlNode, case: Case) -> Findings:
    written = server.options.get(POOL, "")
    pool = whole(written) or 0
    if written and not 1 <= pool <= POOL_MOST:
        fact = f"mysqld does not accept {POOL} = {written}"
        yield _error(None, fact, f"Give a number from 1 to {POOL_MOST}.", OPTIONS, server.file)
        return
    # a server that finds a data node on localhost runs there, too
    with_data = all(node.host == "localhost" for node in case.cluster.data_nodes)
    if server.connections == 1:
        fact = "the server has one connection to the cluster, behind whose lock all its threads wait"
        remedy = f"Try {POOL}: 8 gave twice the throughput with one server; with several, 2 or 3 suffice."
        yield _note(None, fact, remedy, STORY, server.file)
    elif with_data and case.hosts.cpus is not None and pool >= len(case.hosts.cpus):
        fact = f"{POOL} = {pool} is not less than the {len(case.hosts.cpus)} CPUs of localhost"
        remedy = "Lower it: more connections than CPUs are expensive."
        yield _warning(None, fact, remedy, OPTIONS, server.file)
    numbers = [word for word in server.options.get(f"{POOL}_nodeids", "").split(",") if word.strip()]
    if numbers and len(numbers) != server.connections:
        fact = f"{POOL}_nodeids has {len(numbers)} numbers for {server.connections} connections"
        yield _error(None, fact, "Give one number for each connection.", OPTIONS, server.file)
    if pool > 1 and re.search(r"nodeid\s*=", server.options.get("ndb_connectstring", ""), re.I):
        fact = f"ndb_connectstring has a nodeid, and {POOL} = {pool} wants {pool} of them"
        yield _error(None, fact, f"Omit it there; use {POOL}_nodeids.", OPTIONS, server.file)


def memory(case: Case) -> Findings:
    there = case.hosts.memory_bytes
    for host, nodes in on_hosts(case.cluster.data_nodes).items():
        wanted = sum(node.memory_bytes() for node in nodes)
        if there is not None and case.hosts.known(host) and wanted > there:
            largest = max(nodes, key=lambda node: node.number("DataMemory"))
            what = f"{len(nodes)} data nodes take" if len(nodes) > 1 else f"{nodes[0].words} takes"
            fact = f"{what} at least {wanted / 2**30:.1f} GiB of memory, and {host} has {there / 2**30:.1f} GiB"
            remedy = "Lower DataMemory or what else takes it, or give the host more memory first."
            yield _error(largest.line("DataMemory"), fact, remedy, MANUAL + "25.4.3.6")


PARTS_PER_LDM = 4
LOCK, KEEP = "LockExecuteThreadToCPU", "LockMaintThreadsToCPU"
CONFIG, NUMBER = "ThreadConfig", "MaxNoOfExecutionThreads"


def threads(case: Case) -> Findings:
    for node in case.cluster.data_nodes:
        automatic = "AutomaticThreadConfig"
        over = automatic if node.number(automatic) else CONFIG
        for name in (CONFIG, NUMBER) if over == automatic else (NUMBER,) * bool(node.value(CONFIG)):
            if node.entry(name):
                fact = f"{name} has no effect next to {over} (line {node.line(over)})"
                yield _warning(node.line(name), fact, "Remove one of them.", DATA_NODES)
        try:
            groups = node.threads()
        except ValueError as error:
            name = next((name for name in (CONFIG, LOCK, KEEP) if node.entry(name)), NUMBER)
            remedy = "The cluster would not start; correct this."
            yield _error(node.line(name), f"{name}: {error}", remedy, SOURCE)
            continue
        if groups is not None:
            yield from _counts(node, groups, case.hosts)


def _counts(node: Node, groups: Sequence[NdbThreads], hosts: Hosts) -> Findings:
    ldm, parts = node.ldm_threads(), node.number("NoOfFragmentLogParts")
    too_many, too_few = parts > PARTS_PER_LDM * ldm, parts < ldm and node.number("ClassicFragmentation")
    if too_many or too_few:
        fact = f"NoOfFragmentLogParts = {parts} does not fit {ldm} LDM threads"
        line = node.line("NoOfFragmentLogParts")
        remedy = "Make it as many as LDM threads; more than four for each are refused."
        yield finding("error" if too_many else "warning", line, fact, remedy, DATA_NODES)
    running = sum(group.count for group in groups if group.kind in EXECUTION)
    there = len(hosts.cpus) if hosts.cpus is not None and hosts.known(node.host) else None
    if not _chosen(node):
        if there is None or there > running:
            fact = f"{node.words} has one LDM thread, the default"
            remedy = f"Try ndbmtd with {NUMBER}: 8, with the CPUs' power saving off, gave 3.5 times the throughput."
            yield _note(node.section.line, fact, remedy, STORY)
    elif there is not None and running > there:
        fact = f"{node.words} has {running} execution threads for the {there} CPUs of {node.host}"
        name = CONFIG if node.value(CONFIG) else NUMBER
        yield _warning(node.line(name), fact, f"Lower {name}, or give it more CPUs first.", DATA_NODES)
    elif there is not None and not cpus_of(node):
        fact = f"the threads of {node.words} are not bound to CPUs"
        gain = "1.8 times the throughput; with few CPUs it costs."
        remedy = f"Try {LOCK}, with servers and drivers on other CPUs: {gain}"
        yield _note(node.section.line, fact, remedy, STORY)


def _chosen(node: Node) -> bool:
    """Otherwise it may be ndbd, which has only one."""
    return node.entry(NUMBER) is not None or bool(node.value(CONFIG))


def cpus(case: Case) -> Findings:
    """CPUs that do not exist, or that several processes share."""
    for node in case.cluster.data_nodes:
        yield from _lists(node)
    nodes = [node for node in case.cluster.data_nodes if cpus_of(node)]
    for node in nodes:
        yield from _ldm(node)
        there = case.hosts.cpus if case.hosts.known(node.host) else None
        if there is not None and (absent := cpus_of(node) - there):
            fact = f"{node.words} is bound to CPU {cpu_list(absent)}, and {node.host} has {cpu_list(there)}"
            yield _error(_line(node), fact, "Name CPUs that exist.", DATA_NODES)
    for host, together in on_hosts(nodes).items():
        for first, other in combinations(together, 2):
            if common := cpus_of(first) & cpus_of(other):
                fact = f"{first.words} and {other.words}, both on {host}, are bound to CPU {cpu_list(common)}"
                yield _warning(_line(other), fact, "Give each its own CPUs.", STORY)
    yield from _strangers(nodes, case.hosts)


def _lists(node: Node) -> Findings:
    if common := node.cpus(LOCK) & node.cpus(KEEP):
        fact = f"CPU {cpu_list(common)} is both in {LOCK} (line {node.line(LOCK)}) and in {KEEP}"
        remedy = "Give the maintenance threads a CPU that no execution thread has."
        yield _warning(node.line(KEEP), fact, remedy, STORY)
    taken = cpus_of(node)
    if taken and (unused := node.cpus(LOCK) - taken):
        fact = f"{LOCK} names CPU {cpu_list(unused)}, for which {node.words} has no thread"
        yield _warning(node.line(LOCK), fact, "Name as many CPUs as there are execution threads.", DATA_NODES)


def _ldm(node: Node) -> Findings:
    if not _chosen(node):
        return
    groups = [(group.kind, group.cpus) for group in node.threads() or () if group.cpus and group.kind in EXECUTION]
    mine = frozenset(cpu for kind, cpus in groups if kind == "ldm" for cpu in cpus)
    others = [(kind, mine & cpus) for kind, cpus in groups if kind != "ldm" and mine & cpus]
    remedy = "Give each a CPU of its own."
    if others:
        common = frozenset().union(*(cpus for _, cpus in others))
        kinds = ", ".join(dict.fromkeys(kind for kind, _ in others))
        yield _warning(_line(node), f"LDM and {kinds} threads share CPU {cpu_list(common)}", remedy, STORY)
    if mine and len(mine) < node.ldm_threads():
        fact = f"{node.ldm_threads()} LDM threads share CPU {cpu_list(mine)}"
        yield _warning(_line(node), fact, remedy, STORY)


def _strangers(nodes: Sequence[Node], hosts: Hosts) -> Findings:
    """Servers and drivers on CPUs of data nodes, or of each other."""
    for name, theirs in hosts.bound.items():
        for node in nodes:
            if hosts.known(node.host) and (common := cpus_of(node) & theirs):
                fact = f"{name} and {node.words} are both bound to CPU {cpu_list(common)}"
                yield _warning(_line(node), fact, f"Bind {name} to CPUs of its own.", STORY)
    for (name, bound), (other, other_cpus) in combinations(hosts.bound.items(), 2):
        if common := bound & other_cpus:
            fact = f"{name} and {other} are both bound to CPU {cpu_list(common)}"
            yield _warning(None, fact, "Bind each to CPUs of its own.", STORY)


def cpus_of(node: Node) -> frozenset[int]:
    """CPUs to which a node's threads are permanently bound; empty where that is unknown."""
    try:
        groups = node.threads() or ()
    except ValueError:  # said by `threads`
        return frozenset()
    return frozenset(cpu for group in groups if group.kind not in PASSING for cpu in group.cpus or ())


def _line(node: Node) -> int:
    return next(node.line(name) for name in (LOCK, CONFIG, KEEP) if node.entry(name))


RULES: tuple[Callable[[Case], Findings], ...] = (
    file, settings, nodes, replicas, limits, threads, cpus, api_slots, memory, durability,
)  # fmt: skip


def check(case: Case, name: str) -> tuple[NdbFinding, ...]:
    """The findings, errors first, by line, without repetitions. name: of the config.ini."""
    findings = dict.fromkeys(
        replace(problem, rule=rule.__name__, file=problem.file or name) for rule in RULES for problem in rule(case)
    )
    return tuple(sorted(findings, key=lambda problem: (SEVERITIES.index(problem.severity), problem.line or 0)))
