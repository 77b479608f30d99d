"""Rules about what a cluster needs of others: slots for the connections of its servers, memory of its hosts."""

import re
from collections.abc import Iterator

from loadframe.formats.plain_numbers import whole
from loadframe.kinds.ndb.case import STORY, Case, Found, SqlNode
from loadframe.kinds.ndb.cluster import on_hosts
from loadframe.kinds.ndb.settings import MANUAL, POOL, POOL_MOST

OPTIONS = MANUAL + "25.4.3.9.1"
STARTING = MANUAL + "25.4.3.2"


def api_slots(case: Case) -> Iterator[Found]:
    """Connections of servers that find no slot, and how many each has."""
    slots, connections = len(case.cluster.of_kind("mysqld")), [server.connections for server in case.servers]
    wanted, terms = sum(connections), " + ".join(map(str, connections))
    if case.servers and wanted > slots:
        fact = f"the servers want {wanted} connections ({terms}), and there are {slots} API slots"
        remedy = f"Add {wanted - slots} sections [mysqld] first, and one more for tools such as ndb_restore."
        yield Found("error", None, fact, remedy, OPTIONS)
    elif case.servers and wanted == slots:
        fact = f"the servers take all {slots} API slots ({terms}); tools such as ndb_restore need one, too"
        remedy = "Add a section [mysqld]: an unused one takes its send buffer in each data node."
        yield Found("warning", None, fact, remedy, STARTING)
    for server in case.servers:
        yield from _server(server, case)


def _server(server: SqlNode, case: Case) -> Iterator[Found]:
    written = server.options.get(POOL, "")
    pool = whole(written) or 0
    if written and not 1 <= pool <= POOL_MOST:
        fact = f"mysqld does not accept {POOL} = {written}"
        yield Found("error", None, fact, f"Give a number from 1 to {POOL_MOST}.", OPTIONS, server.file)
        return
    # who finds a data node on localhost is there, too
    with_data = all(node.host == "localhost" for node in case.cluster.data_nodes)
    if server.connections == 1:
        fact = "the server has one connection to the cluster, behind whose lock all its threads wait"
        remedy = f"Try {POOL}: 8 gave twice the throughput with one server; with several, 2 or 3 suffice."
        yield Found("note", None, fact, remedy, STORY, server.file)
    elif with_data and case.hosts.cpus is not None and pool >= len(case.hosts.cpus):
        fact = f"{POOL} = {pool} is not less than the {len(case.hosts.cpus)} CPUs of localhost"
        yield Found("warning", None, fact, "Lower it: more connections than CPUs are expensive.", OPTIONS, server.file)
    numbers = [word for word in server.options.get(f"{POOL}_nodeids", "").split(",") if word.strip()]
    if numbers and len(numbers) != server.connections:
        fact = f"{POOL}_nodeids has {len(numbers)} numbers for {server.connections} connections"
        yield Found("error", None, fact, "Give one number for each connection.", OPTIONS, server.file)
    if pool > 1 and re.search(r"nodeid\s*=", server.options.get("ndb_connectstring", ""), re.I):
        fact = f"ndb_connectstring has a nodeid, and {POOL} = {pool} wants {pool} of them"
        yield Found("error", None, fact, f"Omit it there; use {POOL}_nodeids.", OPTIONS, server.file)


def memory(case: Case) -> Iterator[Found]:
    """Data nodes that do not fit into the memory of their host."""
    there = case.hosts.memory_bytes
    for host, nodes in on_hosts(case.cluster.data_nodes):
        wanted = sum(node.memory_bytes() for node in nodes)
        if there is not None and case.hosts.known(host) and wanted > there:
            largest = max(nodes, key=lambda node: node.number("DataMemory"))
            what = f"{len(nodes)} data nodes take" if len(nodes) > 1 else f"{nodes[0].words} takes"
            fact = f"{what} at least {wanted / 2**30:.1f} GiB of memory, and {host} has {there / 2**30:.1f} GiB"
            remedy = "Lower DataMemory or what else takes it, or give the host more memory first."
            yield Found("error", largest.line("DataMemory"), fact, remedy, MANUAL + "25.4.3.6")
