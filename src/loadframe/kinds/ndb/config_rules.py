"""Rules about what is written in config.ini, and about the nodes that this makes."""

import difflib
from collections.abc import Iterator
from itertools import combinations

from loadframe.kinds.ndb.case import CONFIG_INFO, DATA_NODES, Case, Found
from loadframe.kinds.ndb.cluster import NODES, Cluster
from loadframe.kinds.ndb.config import Section
from loadframe.kinds.ndb.settings import MANUAL, SETTINGS

WITHOUT_TRANSACTION_MEMORY = (
    "MaxNoOfConcurrentIndexOperations", "MaxNoOfFiredTriggers", "MaxNoOfLocalOperations", "MaxNoOfLocalScans",
)  # fmt: skip
SUCCESSORS = {"IndexMemory": "DataMemory", "ExecuteOnComputer": "HostName", "Id": "NodeId"}
CLOSE = 0.75
"""How alike two names are that may have been taken for one another (difflib's ratio)."""


def file(case: Case) -> Iterator[Found]:
    """What cannot be read."""
    for problem in case.cluster.config.problems:
        yield Found("error", problem.line, problem.fact, problem.remedy, MANUAL + "25.4.3.1")


def settings(case: Case) -> Iterator[Found]:
    """Names that are not known, values that would not be taken, settings that are deprecated."""
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
                yield Found("error", entry.line, fact, f"Give {error}.", setting.source)
            if setting.deprecated:
                successor = SUCCESSORS.get(setting.name)
                remedy = f"Use {successor} instead." if successor else "Omit it."
                yield Found("warning", entry.line, f"{entry.name} is deprecated", remedy, setting.source)


def _unknown(section: Section, name: str, line: int) -> Found:
    known = SETTINGS[section.kind]
    source = next(iter(known.values())).source
    if name.startswith("__"):
        fact = f"{name} is an internal setting that Loadframe does not know"
        return Found("warning", line, fact, "Omit it unless the makers of MySQL Cluster ask for it.", CONFIG_INFO)
    later = [new for old, new in SUCCESSORS.items() if old.lower() == name.lower() and new.lower() in known]
    alike = difflib.get_close_matches(name.lower(), known, n=2, cutoff=CLOSE)
    close = later or [known[word].name for word in alike]
    others = [f"[{kind}]" for kind, table in SETTINGS.items() if name.lower() in table]
    remedy = f"Did you mean {' or '.join(close)}?" if close else "Omit it."
    if others and not later:
        remedy = f"It belongs in {' or '.join(others)}."
    return Found("error", line, f"{section.heading} has no setting {name}", remedy, source)


def nodes(case: Case) -> Iterator[Found]:
    """Kinds of node that are missing, numbers that two have, hosts that do not find each other."""
    cluster = case.cluster
    for kind in NODES:
        if not cluster.of_kind(kind):
            yield Found("error", None, f"there is no [{kind}]", "Add one: a cluster needs one of each.", CONFIG_INFO)
    for node in cluster.twice:
        fact = f"two nodes have the number {node.node_id}"
        yield Found("error", node.line("NodeId"), fact, "Give each a NodeId of its own, or none.", CONFIG_INFO)
    hosts = sorted({node.host for node in cluster.nodes if node.host})
    if "localhost" in hosts and len(hosts) > 1:
        local = next(node for node in cluster.nodes if node.host == "localhost")
        fact = f"a node is on localhost, others are on {', '.join(host for host in hosts if host != 'localhost')}"
        remedy = "Write the name by which the others reach it: HostName."
        yield Found("error", local.line("HostName"), fact, remedy, CONFIG_INFO)


def replicas(case: Case) -> Iterator[Found]:
    """Copies of the data that cannot be, or that one host takes along."""
    data_nodes = case.cluster.data_nodes
    copies = sorted({node.number("NoOfReplicas") for node in data_nodes})
    if len(copies) > 1:
        line = next(node.line("NoOfReplicas") for node in data_nodes if node.section.get("NoOfReplicas"))
        fact = f"data nodes differ in NoOfReplicas: {', '.join(map(str, copies))}"
        yield Found("error", line, fact, "Write it once, in [ndbd default].", DATA_NODES)
    elif data_nodes and not any(node.entry("NodeGroup") for node in data_nodes):
        yield from _groups(case.cluster, copies[0])


def _groups(cluster: Cluster, copies: int) -> Iterator[Found]:
    ordered = sorted(cluster.data_nodes, key=lambda node: node.node_id)
    if len(ordered) % copies:
        given = "" if ordered[0].entry("NoOfReplicas") else " (the default)"
        fact = f"{len(ordered)} [ndbd] cannot hold {copies} copies of all data: NoOfReplicas = {copies}{given}"
        remedy = f"Have a multiple of {copies} of them, or set NoOfReplicas."
        yield Found("error", ordered[0].line("NoOfReplicas"), fact, remedy, DATA_NODES)
        return
    for at in range(0, len(ordered), copies):
        for one, other in combinations(ordered[at : at + copies], 2):
            if one.host == other.host:
                fact = f"{one.words} and {other.words} have the same data and are both on {one.host}"
                remedy = "Put them on two hosts: with this one all copies of some data are gone."
                yield Found("warning", other.line("HostName"), fact, remedy, DATA_NODES)


def limits(case: Case) -> Iterator[Found]:
    """Limits of which one has to move before the other, and such that exclude each other."""
    operations, transactions = "MaxNoOfConcurrentOperations", "MaxNoOfConcurrentTransactions"
    for node in case.cluster.data_nodes:
        if node.number(operations) < node.number(transactions):
            fact = f"{transactions} = {node.number(transactions)} is more than {operations} = {node.number(operations)}"
            name = transactions if node.entry(transactions) else operations
            yield Found("error", node.line(name), fact, f"Raise {operations} first.", DATA_NODES)
        for name in WITHOUT_TRANSACTION_MEMORY if node.number("TransactionMemory") else ():
            if node.entry(name):
                fact = f"{name} and TransactionMemory (line {node.line('TransactionMemory')}) exclude each other"
                yield Found("error", node.line(name), fact, "Remove one of them.", DATA_NODES)


def durability(case: Case) -> Iterator[Found]:
    """Values that give some durability up."""
    for section in case.cluster.config.sections:
        for entry in section.entries:
            setting = SETTINGS[section.kind].get(entry.name.lower())
            if setting is None or setting.gives_up is None:
                continue
            try:
                value = setting.read(entry.value)
            except ValueError:  # said by `settings`
                continue
            if setting.weakens(value):
                default = "" if setting.default is None else setting.show(setting.default)
                fact = f"{setting.name} = {entry.value} gives up durability ({setting.gives_up})"
                remedy = f"Keep it only if this is intended; the default is {default}."
                yield Found("warning", entry.line, fact, remedy, setting.source)
