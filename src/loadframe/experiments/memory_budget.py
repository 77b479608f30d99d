"""The memory of a server with every connection taken: measured, where tuning scripts multiply buffer sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadframe.analysis.saturation import demand_at
from loadframe.ledger.reading import as_number
from loadframe.metrics import METRICS
from loadframe.model import SettingValue, Step

AT_FULL = ".memory_at_full"
KINDS = tuple(name.removesuffix(AT_FULL) for name in METRICS if name.endswith(AT_FULL))
"""Of servers whose connections take memory: those that have a metric of it."""
FEWEST_COUNTS = 3
"""Numbers of connections from which a line through the memory that they take can be told."""


def memory_at_full(kind: str, pairs: Sequence[tuple[float, float]], values: Mapping[str, float]) -> float | None:
    """Bytes: the line through (connections, resident bytes) taken at max_connections, plus what the server's cache has
    not filled yet. None where too few numbers of connections were seen, or a ceiling is not known.

    values: the server's other metrics, and its shared buffers as asked for."""
    most, allowed = values.get(f"{kind}.max_connections"), values.get("target.memory.allowed")
    if len({count for count, _ in pairs}) < FEWEST_COUNTS or most is None or allowed is None:
        return None
    expected = demand_at([count for count, _ in pairs], [use for _, use in pairs], allowed, most)
    unused = values.get(f"{kind}.pool_pages_free", 0.0) * values.get(f"{kind}.pool_page_bytes", 0.0)
    unused += max(0.0, values.get(f"{kind}.shared_buffers.asked", 0.0) - values.get("target.memory.shared", 0.0))
    return None if expected is None else expected + unused


def with_memory_at_full(steps: Sequence[Step], effective: Mapping[str, SettingValue]) -> list[Step]:
    """The steps of one state with the memory of their server at full, which only all of them together tell. Not of a
    target in several pieces: its memory is that of all, its connections are those of one."""
    found: dict[str, float] = {}
    for kind in KINDS:
        names = f"{kind}.connections", "target.memory.rss"
        known = [step.metrics for step in steps if all(name in step.metrics for name in names)]
        if not known or "shard1.cpu.cores" in known[-1]:
            continue
        buffers = as_number(effective.get("shared_buffers"))
        asked = {} if buffers is None else {f"{kind}.shared_buffers.asked": buffers}
        pairs = [(metrics[names[0]], metrics[names[1]]) for metrics in known]
        expected = memory_at_full(kind, pairs, {**known[-1], **asked})
        if expected is not None:
            found[f"{kind}{AT_FULL}"] = expected
    return [replace(step, metrics={**step.metrics, **found}) for step in steps] if found else list(steps)
