"""Metrics of the ledger that follow from others: two counters make a share, settings make a demand."""

from collections.abc import Mapping
from itertools import chain

from loadframe.knowledge.kinds import rows
from loadframe.knowledge.metric import Derived

TIME_WAIT_S = 60.0
"""TCP_TIMEWAIT_LEN in include/net/tcp.h."""


OF_THE_MACHINE: tuple[Derived, ...] = (
    Derived(
        "system.cpu.frequency_lost",
        ("system.cpu.frequency_missing", "system.cpu.busy_cores", "system.cpu.count"),
        lambda missing, busy, count: missing * busy / count,
    ),
    Derived(
        "system.paging.refault_wait",
        ("system.paging.refault_share", "system.pressure.io.some"),
        lambda share, waiting: share * waiting,
    ),
    Derived("target.cpus.allowed", ("target.cpus.named", "system.cpu.count"), min),
    Derived(
        "target.memory.allowed",
        ("target.cgroup.memory.limit", "target.cage.memory.limit", "system.memory.limit"),
        min,
        either=True,
    ),
    Derived(
        "system.network.local_ports.per_second",
        ("system.network.local_ports.limit",),
        lambda ports: ports / TIME_WAIT_S,
    ),
    *(
        Derived(share, (use, ceiling), lambda used, most: used / most if most > 0 else 0.0)
        for share, use, ceiling in (
            (
                "system.network.local_ports.share",
                "system.network.local_ports",
                "system.network.local_ports.limit",
            ),
            ("target.open_files.share", "target.open_files", "target.open_files.limit"),
            ("target.accept_queue.share", "target.accept_queue", "target.accept_queue.limit"),
            ("target.runtime.heap_live_share", "target.runtime.heap_live", "target.runtime.heap_ceiling"),
        )
    ),
)
"""Of the machine and of what runs on it; each kind of server has its own (`kinds/NAME/metrics.py`)."""

DERIVED = (*OF_THE_MACHINE, *chain.from_iterable(rows("metrics", "DERIVED", Derived).values()))


def derive(values: Mapping[str, float], missing: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """The same values and reasons, with what follows from them; what does not follow has the reason of the first
    thing that it lacks."""
    found, reasons = dict(values), dict(missing)
    for one in DERIVED:
        there = [values[name] for name in one.needs if name in values]
        lacking = [name for name in one.needs if name not in values]
        if there and (one.either or not lacking):
            found[one.metric] = one.compute(there) if one.either else one.compute(*there)
        elif any(name in missing for name in lacking):
            reasons[one.metric] = next(missing[name] for name in lacking if name in missing)
    return found, reasons
