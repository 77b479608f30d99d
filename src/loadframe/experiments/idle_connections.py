"""What idle connections take of a private server's memory: more and more are opened, and its memory read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.kinds.attached import Attached
from loadframe.kinds.base import Target
from loadframe.recording.derivation import PAGE_BYTES
from loadframe.recording.process_metrics import memory

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
