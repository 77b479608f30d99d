"""The threads of a data node (ndbmtd), and the CPUs to which its settings bind them. Source: thr_config.cpp of MySQL
Cluster; MySQL 8.4 Reference Manual, 25.4.3.6, MaxNoOfExecutionThreads, LockExecuteThreadToCPU, ThreadConfig."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from loadframe.formats.plain_numbers import whole
from loadframe_ndb.records import NdbThreads as Threads
from loadframe_ndb.records import cpu_list
from loadframe_ndb.settings import read_cpus

SOURCE = "thr_config.cpp of MySQL Cluster"
MOST = {
    "main": 1, "ldm": 332, "recv": 80, "rep": 1, "io": 1, "watchdog": 1, "tc": 160, "send": 80, "idxbld": 1,
    "query": 332, "recover": 332,
}  # fmt: skip
UNNAMED = {"main": 1, "ldm": 1, "recv": 1, "rep": 1, "io": 1, "watchdog": 1}
"""How many there are of those that ThreadConfig does not name."""
OTHERS = "recv, tc, send"
"""Further threads of MaxNoOfExecutionThreads, as one kind: either each of them has a CPU of its own, or none has."""
EXECUTION = ("main", "ldm", "recv", "rep", OTHERS, "tc", "send", "query")
"""In the order in which they are given CPUs."""
KEEPING = ("io", "watchdog")
"""LockMaintThreadsToCPU binds them."""
PASSING = ("idxbld", "recover")
"""Threads that come and go, and may use the CPUs of others."""
BINDINGS = ("cpubind", "cpubind_exclusive", "cpuset", "cpuset_exclusive")
PARAMETERS = ("count", *BINDINGS, "realtime", "spintime", "thread_prio", "nosend")
LDM_FROM = {2: 1, 4: 2, 7: 4, 12: 6, 16: 8, 20: 10, 24: 12, 32: 16, 40: 20, 48: 24, 64: 32}
"""LDM threads by the least number of execution threads that gives it."""
TC_FROM = 9
"""From so many execution threads on transaction coordination has threads of its own."""


def by_number(threads: int) -> tuple[Threads, ...]:
    """Threads of MaxNoOfExecutionThreads: with 8 a main, a receiving and a replication thread and four LDM threads."""
    ldm = next(count for start, count in reversed(LDM_FROM.items()) if threads >= start)
    fixed = (Threads("main", 1), Threads("ldm", ldm))
    if threads < TC_FROM:
        return (*fixed, Threads("recv", 1), Threads("rep", 1))
    return (*fixed, Threads("rep", 1), Threads(OTHERS, threads - ldm - 2))


def by_config(text: str) -> tuple[Threads, ...]:
    """Threads of ThreadConfig. ValueError says why ndb_mgmd would refuse it."""
    groups: list[Threads] = []
    rest = text.strip()
    while not groups or rest:
        if groups and not rest.startswith(","):
            written = "threads are written kind={count=...}, with commas between"
            raise ValueError(f"{rest[:20]!r} cannot be read: {written}")
        rest = rest[1:] if groups else rest
        entry = re.match(r"\s*([A-Za-z_]+)\s*(?:=\s*\{([^}]*)\})?\s*", rest)
        if entry is None:
            raise ValueError(f"a kind of thread is missing at {rest[:20]!r}")
        groups.append(_threads(entry[1].lower(), entry[2]))
        rest = rest[entry.end() :]
    _check_counts(groups)
    named = {group.kind for group in groups}
    return (*groups, *(Threads(kind, count) for kind, count in UNNAMED.items() if kind not in named))


def _threads(kind: str, written: str | None) -> Threads:
    if kind not in MOST:
        raise ValueError(f"{kind!r} is not a kind of thread; there are {', '.join(MOST)}")
    given = dict(_parameters(kind, written)) if written and written.strip() else {}
    binding = [name for name in BINDINGS if name in given]
    if len(binding) > 1:
        raise ValueError(f"{kind} has {' and '.join(binding)}; only one may bind it")
    count = int(given.get("count", "1"))
    if not binding:
        return Threads(kind, count)
    try:
        cpus = read_cpus(given[binding[0]])
    except ValueError as error:
        raise ValueError(f"{kind}: {binding[0]}={given[binding[0]]} is not {error}") from None
    if binding[0].startswith("cpubind") and len(cpus) < count:
        raise ValueError(f"{kind}: {count} threads cannot be bound one to one to {len(cpus)} CPUs")
    shared = binding[0].startswith("cpuset")
    return Threads(kind, count, cpus if shared else frozenset(sorted(cpus)[:count]), shared)


def _parameters(kind: str, written: str) -> Iterable[tuple[str, str]]:
    seen: set[str] = set()
    for part in re.split(r",(?=\s*[A-Za-z_]|\s*$)", written):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name.lower() not in PARAMETERS or not equals:
            raise ValueError(f"{kind}: {part.strip()!r} is none of {', '.join(PARAMETERS)}")
        if name.lower() in seen:
            raise ValueError(f"{kind}: {name} is given twice")
        if name.lower() not in BINDINGS and (not value.isdecimal() or whole(value) is None):
            raise ValueError(f"{kind}: {name}={value} is not a number")
        seen.add(name.lower())
        yield name.lower(), value


def _check_counts(groups: Sequence[Threads]) -> None:
    totals = {kind: sum(group.count for group in groups if group.kind == kind) for kind in MOST}
    named = {group.kind for group in groups}
    for kind in sorted(named):
        if totals[kind] > MOST[kind]:
            raise ValueError(f"{totals[kind]} threads of kind {kind}; there may be {MOST[kind]}")
    if "recv" in named and not totals["recv"]:
        raise ValueError("recv=0: at least one thread has to receive")
    ldm = totals["ldm"] if "ldm" in named else UNNAMED["ldm"]
    if totals["query"] not in (0, ldm, 2 * ldm, 3 * ldm):
        raise ValueError(f"{totals['query']} query threads; there may be 0, 1, 2 or 3 for each of {ldm} ldm threads")
    if "main" in named and not totals["main"] and (totals["rep"] or "rep" not in named):
        raise ValueError("a rep thread needs a main thread; set rep={count=0} too")


def bound(groups: Sequence[Threads], locked: frozenset[int]) -> tuple[Threads, ...]:
    """The threads with LockExecuteThreadToCPU: its CPUs go to the execution threads that ThreadConfig does not bind.
    ValueError where they are too few for the kinds of thread."""
    taken = (group for group in groups if group.kind in EXECUTION or (group.shared and group.kind not in PASSING))
    free = sorted(locked - {cpu for group in taken for cpu in group.cpus or ()})
    counts = Counter[str]()
    for group in groups:
        counts[group.kind] += group.count if group.cpus is None else 0
    loose = [Threads(kind, counts[kind]) for kind in EXECUTION if counts[kind]]
    count = sum(group.count for group in loose)
    if not free or not count:
        return tuple(groups)
    receiving = sum(group.count for group in groups if group.kind == "recv")
    if len(free) >= count:
        rest = iter(free)
        given = [replace(group, cpus=frozenset(islice(rest, group.count))) for group in loose]
    elif receiving == 1 and not any(group.kind in ("tc", "send") and group.count for group in groups):
        given = _fewer(loose, free)
    else:
        raise ValueError(
            f"{count} execution threads for {len(free)} CPUs; with tc or send threads, or several that "
            "receive, each needs one"
        )
    return (*(group for group in groups if group.cpus is not None or group.kind not in EXECUTION), *given)


def check_apart(groups: Iterable[Threads]) -> None:
    """ValueError where threads' sets of CPUs overlap, except for those bound one by one and those that come and go."""
    lasting = [group for group in groups if group.cpus is not None and group.kind not in PASSING]
    sets = [group for group in lasting if group.shared]
    alone = [group for group in lasting if not group.shared]
    for at, group in enumerate(sets, 1):
        for other in (*sets[at:], *alone):
            common = (group.cpus or frozenset()) & (other.cpus or frozenset())
            if common and not (other.shared and other.cpus == group.cpus):
                raise ValueError(f"{group.kind} and {other.kind} have CPU {cpu_list(common)} in common")


def _fewer(loose: Sequence[Threads], free: Sequence[int]) -> list[Threads]:
    """LDM threads have a CPU each where that leaves one for the others to share; else the first CPU is for the others,
    and the LDM threads share the rest."""
    ldm = sum(group.count for group in loose if group.kind == "ldm")
    own = len(free) > ldm
    rest = free[ldm:] if own else free[:1]
    cpus = {
        "ldm": free[:ldm] if own else free[1:] or free,
        "main": rest[:1],
        "rep": rest[:1],
        "recv": (rest[1:2] if own else []) or rest[:1],
    }
    return [
        replace(group, cpus=frozenset(cpus[group.kind]), shared=group.count > len(cpus[group.kind]))
        if group.kind in cpus
        else group
        for group in loose
    ]
