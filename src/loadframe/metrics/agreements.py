"""Counters of the same thing, counted in different places, must agree. A counter that does not count reads 0, and would
rule out a cause. So what is counted twice has a row here: it must not be less than a share of what all of its witnesses
count. Otherwise it is blind: it is left out of the step, with all that follows from it, and named. Rows
(agreements.toml; those of a server in its `kinds/NAME/metrics.py`) are checked in their order, and what is blind is no
witness for later rows: what is closest to the work comes first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from loadframe.knowledge.kinds import rows
from loadframe.knowledge.metric import PARTIAL, SILENT, Agreement, requests
from loadframe.knowledge.rows import toml_rows
from loadframe.metrics import IN_FRONT, MOST_SHARDS, is_known, metric
from loadframe.metrics.exposed import OF, REQUESTS, Values
from loadframe.model import Blind
from loadframe.units import show_metric

RATES = ("1/s", "bytes/s", "s/s", "share")
"""Of cumulative counters, and of what follows from them."""

_FILE = toml_rows(Path(__file__).with_name("agreements.toml"))
_SHARES = {"SILENT": SILENT, "PARTIAL": PARTIAL}


def _agreements(table: str) -> tuple[Agreement, ...]:
    return tuple(Agreement(**{**row, "share": _SHARES.get(row["share"], row["share"])}) for row in _FILE[table])


OF_A_COMPONENT = _agreements("component")
OF_THE_MACHINE = _agreements("machine")
OF_EXPOSED = (requests(REQUESTS, also=(OF,)),)
"""Where a service does not count the load's requests, its other rates are not those of the load."""

_OF_SERVERS = tuple(chain.from_iterable(rows("metrics", "AGREEMENTS", Agreement).values()))
OF_SERVERS = tuple(row for row in _OF_SERVERS if not row.whole)
"""What both a server and its driver count."""
OF_CONNECTIONS = tuple(row for row in _OF_SERVERS if row.whole)


def contradictions(metrics: Values) -> tuple[Blind, ...]:
    contradicted: list[Blind] = []
    seen = dict(metrics)
    for row in _rows(seen):
        blind = _blind(row, seen)
        if blind is not None:
            contradicted.append(blind)
            seen = without(seen, (blind,))
    return tuple(contradicted)


def without(metrics: Values, blind: Sequence[Blind]) -> dict[str, float]:
    gone = names_of(blind)
    return {name: value for name, value in metrics.items() if name not in gone}


def names_of(blind: Sequence[Blind]) -> frozenset[str]:
    return frozenset(name for contradiction in blind for name in contradiction.metrics)


def _rows(metrics: Values) -> Iterator[Agreement]:
    pieces = [piece for piece in _PIECES if f"{piece}.cpu.cores" in metrics]
    for component in ("driver", *(pieces or ("target",))):
        for row in OF_A_COMPONENT:
            yield _of(component, row)
    yield from OF_THE_MACHINE
    yield from OF_SERVERS
    yield from OF_EXPOSED
    yield from () if pieces else OF_CONNECTIONS


_PIECES = (*IN_FRONT, *(f"shard{number}" for number in range(1, MOST_SHARDS + 1)))


def _of(component: str, row: Agreement) -> Agreement:
    """A target in pieces is the sum of them, so its metrics are blind with theirs."""
    whole = component in _PIECES

    def named(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{component}{name[1:]}" if name.startswith("C.") else name for name in names)

    own = (*row.counter, *row.also)
    return replace(
        row,
        counter=named(row.counter),
        witnesses=tuple(named(names) for names in row.witnesses),
        also=named(row.also) + (tuple(f"target{name[1:]}" for name in own if name.startswith("C.")) if whole else ()),
    )


def _blind(row: Agreement, metrics: Values) -> Blind | None:
    counted = _together(row.counter, metrics)
    others = [_together(names, metrics) for names in row.witnesses]
    if counted is None or not all(other is not None for other in others):
        return None
    least = min(other for other in others if other is not None)
    if least < row.floor or counted >= row.share * least:
        return None
    witnesses = " and ".join(_shown(names, metrics) for names in row.witnesses)
    own, prefixes = (*row.counter, *row.also), tuple(name for name in row.also if name.endswith("."))
    return Blind(
        counter=row.counter[0],
        metrics=tuple(
            name
            for name in metrics
            if name in own or (name.startswith(prefixes) and is_known(name) and metric(name).unit in RATES)
        ),
        because=f"{_shown(row.counter, metrics)}, while {witnesses} ({row.why})",
    )


def _together(names: Sequence[str], metrics: Values) -> float | None:
    values = [metrics[name] for name in names if name in metrics]
    return sum(values) if values else None


def _shown(names: Sequence[str], metrics: Values) -> str:
    return ", ".join(f"{metric(name).what}: {show_metric(name, metrics[name])}" for name in names if name in metrics)
