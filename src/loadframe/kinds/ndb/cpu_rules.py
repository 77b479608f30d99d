"""Rules about the threads of data nodes and the CPUs that they share with each other and with other processes."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from loadframe.kinds.ndb.config import Node, on_hosts
from loadframe.kinds.ndb.config_rules import DATA_NODES, STORY, Case, Found, Hosts
from loadframe.kinds.ndb.threads import EXECUTION, PASSING, SOURCE
from loadframe.model import NdbThreads, cpu_list

PARTS_PER_LDM = 4
LOCK, KEEP = "LockExecuteThreadToCPU", "LockMaintThreadsToCPU"
CONFIG, NUMBER = "ThreadConfig", "MaxNoOfExecutionThreads"


def threads(case: Case) -> Iterator[Found]:
    """Threads that do not add up, or are fewer than there could be."""
    for node in case.cluster.data_nodes:
        yield from _overridden(node)
        try:
            groups = node.threads()
        except ValueError as error:
            name = next((name for name in (CONFIG, LOCK, KEEP) if node.entry(name)), NUMBER)
            remedy = "The cluster would not start; correct this."
            yield Found("error", node.line(name), f"{name}: {error}", remedy, SOURCE)
            continue
        if groups is not None:
            yield from _counts(node, groups, case.hosts)


def _overridden(node: Node) -> Iterator[Found]:
    automatic = "AutomaticThreadConfig"
    over = automatic if node.number(automatic) else CONFIG if node.value(CONFIG) else ""
    for name in {automatic: (CONFIG, NUMBER), CONFIG: (NUMBER,)}.get(over, ()):
        if node.entry(name):
            fact = f"{name} has no effect next to {over} (line {node.line(over)})"
            yield Found("warning", node.line(name), fact, "Remove one of them.", DATA_NODES)


def _counts(node: Node, groups: Sequence[NdbThreads], hosts: Hosts) -> Iterator[Found]:
    ldm, parts = node.ldm_threads(), node.number("NoOfFragmentLogParts")
    too_many, too_few = parts > PARTS_PER_LDM * ldm, parts < ldm and node.number("ClassicFragmentation")
    if too_many or too_few:
        fact = f"NoOfFragmentLogParts = {parts} does not fit {ldm} LDM threads"
        line = node.line("NoOfFragmentLogParts")
        remedy = "Make it as many as LDM threads; more than four for each are refused."
        yield Found("error" if too_many else "warning", line, fact, remedy, DATA_NODES)
    running = sum(group.count for group in groups if group.kind in EXECUTION)
    there = len(hosts.cpus) if hosts.cpus is not None and hosts.known(node.host) else None
    if not _chosen(node):
        if there is None or there > running:
            fact = f"{node.words} has one LDM thread, the default"
            remedy = f"Try ndbmtd with {NUMBER}: 8, with the CPUs' power saving off, gave 3.5 times the throughput."
            yield Found("note", node.section.line, fact, remedy, STORY)
    elif there is not None and running > there:
        fact = f"{node.words} has {running} execution threads for the {there} CPUs of {node.host}"
        name = CONFIG if node.value(CONFIG) else NUMBER
        yield Found("warning", node.line(name), fact, f"Lower {name}, or give it more CPUs first.", DATA_NODES)
    elif there is not None and not cpus_of(node):
        fact = f"the threads of {node.words} are not bound to CPUs"
        gain = "1.8 times the throughput; with few CPUs it costs."
        remedy = f"Try {LOCK}, with servers and drivers on other CPUs: {gain}"
        yield Found("note", node.section.line, fact, remedy, STORY)


def _chosen(node: Node) -> bool:
    """Whether the file says which threads there are; without, it may be ndbd, which has only one."""
    return node.entry(NUMBER) is not None or bool(node.value(CONFIG))


def cpus(case: Case) -> Iterator[Found]:
    """CPUs that are not there, or that belong to several."""
    for node in case.cluster.data_nodes:
        yield from _lists(node)
    nodes = [node for node in case.cluster.data_nodes if cpus_of(node)]
    for node in nodes:
        yield from _ldm(node)
        there = case.hosts.cpus if case.hosts.known(node.host) else None
        if there is not None and (absent := cpus_of(node) - there):
            fact = f"{node.words} is bound to CPU {cpu_list(absent)}, and {node.host} has {cpu_list(there)}"
            yield Found("error", _line(node), fact, "Name CPUs that exist.", DATA_NODES)
    for host, together in on_hosts(nodes):
        for one, other in combinations(together, 2):
            if common := cpus_of(one) & cpus_of(other):
                fact = f"{one.words} and {other.words}, both on {host}, are bound to CPU {cpu_list(common)}"
                yield Found("warning", _line(other), fact, "Give each its own CPUs.", STORY)
    yield from _strangers(nodes, case.hosts)


def _lists(node: Node) -> Iterator[Found]:
    if common := node.cpus(LOCK) & node.cpus(KEEP):
        fact = f"CPU {cpu_list(common)} is both in {LOCK} (line {node.line(LOCK)}) and in {KEEP}"
        remedy = "Give the maintenance threads a CPU that no execution thread has."
        yield Found("warning", node.line(KEEP), fact, remedy, STORY)
    taken = cpus_of(node)
    if taken and (unused := node.cpus(LOCK) - taken):
        fact = f"{LOCK} names CPU {cpu_list(unused)}, for which {node.words} has no thread"
        yield Found("warning", node.line(LOCK), fact, "Name as many CPUs as there are execution threads.", DATA_NODES)


def _ldm(node: Node) -> Iterator[Found]:
    """Threads that hold the data, on CPUs that are not theirs alone."""
    if not _chosen(node):
        return
    groups = [group for group in node.threads() or () if group.cpus and group.kind in EXECUTION]
    mine = frozenset(cpu for group in groups if group.kind == "ldm" for cpu in group.cpus or ())
    others = [group for group in groups if group.kind != "ldm" and mine & (group.cpus or mine)]
    remedy = "Give each a CPU of its own."
    if others:
        common = mine & frozenset(cpu for group in others for cpu in group.cpus or ())
        kinds = ", ".join(dict.fromkeys(group.kind for group in others))
        yield Found("warning", _line(node), f"LDM and {kinds} threads share CPU {cpu_list(common)}", remedy, STORY)
    if mine and len(mine) < node.ldm_threads():
        fact = f"{node.ldm_threads()} LDM threads share CPU {cpu_list(mine)}"
        yield Found("warning", _line(node), fact, remedy, STORY)


def _strangers(nodes: Sequence[Node], hosts: Hosts) -> Iterator[Found]:
    """Servers and drivers on CPUs of data nodes, or of each other."""
    for name, theirs in hosts.bound.items():
        for node in nodes:
            if hosts.known(node.host) and (common := cpus_of(node) & theirs):
                fact = f"{name} and {node.words} are both bound to CPU {cpu_list(common)}"
                yield Found("warning", _line(node), fact, f"Bind {name} to CPUs of its own.", STORY)
    for (name, one), (other, two) in combinations(hosts.bound.items(), 2):
        if common := one & two:
            fact = f"{name} and {other} are both bound to CPU {cpu_list(common)}"
            yield Found("warning", None, fact, "Bind each to CPUs of its own.", STORY)


def cpus_of(node: Node) -> frozenset[int]:
    """The CPUs that threads of a data node are bound to for good; none where that cannot be told."""
    try:
        groups = node.threads() or ()
    except ValueError:  # said by `threads`
        return frozenset()
    return frozenset(cpu for group in groups if group.kind not in PASSING for cpu in group.cpus or ())


def _line(node: Node) -> int:
    return next(node.line(name) for name in (LOCK, CONFIG, KEEP) if node.entry(name))
