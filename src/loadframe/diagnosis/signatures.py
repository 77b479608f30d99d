"""Signatures: what must be seen, and what must be absent, before a cause is suspected; thresholds have their sources.
Ordered by rank (`knowledge/signature.py`). A cause may have several: a server's report is a better witness than the
machine. Those of any target are in signatures.toml, those of a kind of server in its `kinds/NAME/signatures.toml`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from loadframe.knowledge.kinds import rows, tables
from loadframe.knowledge.signature import Condition, Signature, signature_rows
from loadframe.metrics import IN_FRONT
from loadframe.model import DRIVER_BESIDE, OTHERS

DRIVER_LIMITED, SATURATED, HOT_THREAD = "driver.limited", "cpu.saturated", "cpu.hot_thread"
GC_SAMPLED, GC_SAMPLED_CORES = "target.runtime.gc_sampled_share", "target.runtime.gc_sampled_cores"
THROTTLED = {"read_bytes": "bytes read", "write_bytes": "bytes written", "reads": "disk reads", "writes": "disk writes"}


def _of(signature: Signature, cage: str, to: str, cause: str, title: str) -> Signature:
    def there(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
        return tuple(replace(condition, metric=condition.metric.replace(cage, to)) for condition in conditions)

    present, absent = there(signature.present), there(signature.absent)
    return replace(signature, id=cause, title=title, present=present, absent=absent)


def _each_rate(signatures: Sequence[Signature]) -> Iterator[Signature]:
    first, words = next(iter(THROTTLED.items()))
    rates = [signature for signature in signatures if signature.id == f"cage.{first}"]
    yield from (signature for signature in signatures if signature not in rates)
    for name, shown in THROTTLED.items():
        for rate in rates:
            yield _of(rate, f".{first}.", f".{name}.", f"cage.{name}", rate.title.replace(words, shown))


OF_ANY_TARGET = tuple(_each_rate(signature_rows(Path(__file__).with_suffix(".toml"))))


def _rows_of(cause: str) -> tuple[Signature, ...]:
    return tuple(signature for signature in OF_ANY_TARGET if signature.id == cause)


PROGRAMS, *_ = _rows_of(OTHERS)
HOT = _rows_of(HOT_THREAD)[0].present[0].threshold

OF_CAGE = [signature for signature in OF_ANY_TARGET if signature.id.startswith("cage.")]
OF_CAGES = [
    _of(
        signature,
        "target.cage.",
        f"{component}.cage.",
        signature.id.replace("cage.", f"cage.{component}."),
        signature.title.replace("the cage", f"the cage of the {component}"),
    )
    for component in (*IN_FRONT, "driver")
    for signature in OF_CAGE
]
"""A limit set from outside is the deeper cause of whatever waits behind it."""


_RULED_OUT = tables("signatures", "RULED_OUT_BY", dict).values()
_OF_ANY = [
    replace(row, absent=(*row.absent, *chain.from_iterable(conditions.get(row.id, ()) for conditions in _RULED_OUT)))
    for row in (*OF_ANY_TARGET, *OF_CAGES)
]
SIGNATURES: tuple[Signature, ...] = tuple(
    sorted(
        (*_OF_ANY, *chain.from_iterable(rows("signatures", "SIGNATURES", Signature).values())),
        key=lambda signature: (signature.failing_others, signature.rank),
    )
)
"""Of equal rank, those of any target come first."""


def is_seen(cause: str, metrics: Mapping[str, float]) -> bool:
    """Whether a step shows a cause outside the target: DRIVER_LIMITED, DRIVER_BESIDE or OTHERS. Conditions on metrics
    that were not measured are skipped, but for the first, and of DRIVER_BESIDE the first two."""
    needed = 2 if cause == DRIVER_BESIDE else 1
    for signature in _rows_of(cause):
        measured = [condition for condition in signature.present if condition.metric in metrics]
        known = all(condition in measured for condition in signature.present[:needed])
        absent = any(condition.met(metrics) for condition in signature.absent)
        if known and all(condition.met(metrics) for condition in measured) and not absent:
            return True
    return False
