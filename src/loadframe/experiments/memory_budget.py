"""The memory of a server with every connection taken: measured, where tuning scripts multiply buffer sizes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from loadframe.analysis.saturation import demand_at
from loadframe.errors import TargetError
from loadframe.kinds.attached import Attached
from loadframe.kinds.base import Target
from loadframe.ledger.reading import as_number
from loadframe.metrics import METRICS
from loadframe.model import SettingValue, Step
from loadframe.recording.derivation import PAGE_BYTES
from loadframe.recording.process_metrics import memory

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


CONNECTION_STEPS, CONNECTIONS_PER_STEP = 6, 8
"""The connections that a private server is asked for, to see what they cost."""


def resident_by_connections(
    server: Attached | Target | None, enter: Callable[[], Attached] | None
) -> tuple[tuple[float, float], ...]:
    """(connections, resident bytes) of a private server while more and more connections of ours are open. They are
    idle: what statements take comes on top. Nothing for a server that is not ours."""
    if server is None or enter is None:
        return ()
    found = [(1.0, _resident_bytes(server.pids()))]
    with ExitStack() as stack:
        for step in range(1, CONNECTION_STEPS + 1):
            try:
                for _ in range(CONNECTIONS_PER_STEP):
                    stack.callback(enter().close)
            except TargetError:  # no more are allowed: what was seen until here is what there is
                break
            found.append((1.0 + step * CONNECTIONS_PER_STEP, _resident_bytes(server.pids())))
    return tuple(found)


def _resident_bytes(pids: Sequence[int]) -> float:
    """Of all processes together. TargetError where the first one has ended; others may end at any time."""
    found = []
    for pid in pids:
        try:
            found.append({"status": Path(f"/proc/{pid}/status").read_bytes()})
        except OSError as error:
            if pid == pids[0]:
                raise TargetError(f"Process {pid} has ended", remedy="Its server's log says why.") from error
            continue
    return float(memory(PAGE_BYTES, found).get("memory.rss", 0.0))
