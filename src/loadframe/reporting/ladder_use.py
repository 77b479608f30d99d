"""Which thread is busiest in the states of a ladder, and whether it or the CPUs are at their limit, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadframe.model import CpuUse, Ladder, StateUse
from loadframe.reporting import rounding, words
from loadframe.reporting.document import Row

FULL = 0.9
"""Of one CPU, or of those that a component may use: less a tenth, our choice, as in the signatures of hot threads."""
TOLD = 0.02
"""Of the machine's CPUs: what other programs use below is not told."""
HEAD = ("State", "Throughput", "Busiest thread of each", "Threads by kind, average", "CPUs used", "Machine")


def states(found: Ladder) -> tuple[StateUse, ...]:
    """Those of which anything is known."""
    return tuple(one for one in found.cpu_use if one.threads or one.components)


def row(one: StateUse) -> Row:
    """As HEAD says; CPU time in CPUs."""
    cells = (
        one.state or "at the start",
        f"{rounding.plain(one.throughput)}/s",
        _shown(one.threads),
        _shown(one.kinds),
        _shown(one.components),
        "" if one.busy is None else rounding.percent(one.busy),
    )
    return Row(cells)


def sentences(found: Ladder) -> Iterator[str]:
    """The busiest thread at the start, and at the top of what is kept; where nothing is, over the states that were
    tried."""
    each = states(found)
    first = next((one for one in each if not one.state), None)
    if first is None:
        return
    yield f"At the start {_limit(first)}"
    kept = " + ".join(rung.change for rung in found.kept)
    top = next((one for one in each if kept and one.state == kept), None)
    if top is not None:
        yield f"With all that is kept {_limit(top)}"
    tried = [one.threads[0] for one in each if one.state and one.threads]
    if not kept and tried:
        names = words.and_list(sorted({used.name for used in tried}))
        cores = [used.cores for used in tried]
        spread = f"{min(cores):.2f} to {max(cores):.2f} of one CPU"
        yield f"In the states that were tried and reverted it is one of {names}, with {spread}."


def _limit(one: StateUse) -> str:
    """What of it is at its limit; the busiest thread is named in any case."""
    kinds = f"; the busiest kind is {_shown(one.kinds[:1])}" if one.kinds else ""
    thread = "" if not one.threads else f"{one.threads[0].name} ({one.threads[0].cores:.2f} of one CPU{kinds})"
    busiest = thread and f"the busiest thread is one of {thread}"
    full = [used for used in one.components if used.cores >= FULL * used.of]
    if one.threads and one.threads[0].cores >= FULL:
        return f"{busiest}: it is at the limit of a single CPU."
    if full:
        names = words.and_list([f"{used.name} ({used.cores:.2f} of {used.of:g})" for used in full])
        return f"{busiest}; the CPUs that it may use are full for {names}."
    if one.busy is not None and one.busy >= FULL:
        return f"{busiest}, so no thread is at its limit: the machine's CPUs are, {_busy(one)}."
    busy = f" (the machine's are {_busy(one)})" if one.busy is not None else ""
    return f"{busiest}: neither a thread nor the CPUs are at their limit{busy}."


def _busy(one: StateUse) -> str:
    share = rounding.percent(one.busy or 0.0)
    others = one.others or 0.0
    return f"{share} busy" + (f", {rounding.percent(others)} by programs outside the study" if others >= TOLD else "")


def _shown(each: Sequence[CpuUse]) -> str:
    return ", ".join(f"{used.name} {used.cores:.2f}" for used in each)
