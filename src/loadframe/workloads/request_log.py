"""The request log: one record of 24 bytes per request, little-endian, written by every driver: end of the request
(CLOCK_MONOTONIC, s, float64), latency (ms, float32), the part of it spent waiting for a lock or in a queue (ms,
float32; 0 if unknown), kind (uint32, index into Workload.operations), outcome (uint32; 0 = done, model.UNFINISHED = in
flight when the driver ended, with its age as latency, else an error). Worker processes import this module: what only
reads needs is imported there."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORD = struct.Struct("<dffII")
FIELDS = [("end_s", "<f8"), ("latency_ms", "<f4"), ("waiting_ms", "<f4"), ("operation", "<u4"), ("outcome", "<u4")]


@dataclass(frozen=True)
class Requests:
    """All of one step, in the order of their ends. Arrays of shape (requests,)."""

    end_s: NDArray[np.float64]
    latency_ms: NDArray[np.float32]
    waiting_ms: NDArray[np.float32]
    operation: NDArray[np.uint32]
    outcome: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.end_s)

    def with_unfinished(self, begun_s: NDArray[np.float64], ended_s: float) -> Requests:
        """Those in flight when the driver ended. begun_s: when they began, shape (unfinished,)."""
        import numpy as np

        from loadframe.model import UNFINISHED

        more = np.zeros(len(begun_s), dtype=FIELDS)
        more["end_s"], more["latency_ms"], more["outcome"] = ended_s, 1000.0 * (ended_s - begun_s), UNFINISHED
        return from_bytes(self.to_bytes() + more.tobytes())

    def to_bytes(self) -> bytes:
        import numpy as np

        records = np.empty(len(self), dtype=FIELDS)
        for name, _ in FIELDS:
            records[name] = getattr(self, name)
        return records.tobytes()


def from_bytes(data: bytes) -> Requests:
    """Requests of one or more logs; a torn last record (a killed driver) is left out."""
    import numpy as np

    records: NDArray[Any] = np.frombuffer(_whole(data, RECORD.size), dtype=FIELDS)
    records = records[np.argsort(records["end_s"], kind="stable")]
    return Requests(*(records[name].copy() for name, _ in FIELDS))


def moved_bytes(log: Path, sizes: Path, start_s: float, end_s: float) -> int:
    """Bytes of the requests that ended after start_s and not after end_s. sizes: uint64, in the order of the log."""
    import numpy as np

    from loadframe.workloads import step_files

    ends = np.frombuffer(_whole(step_files.read(log), RECORD.size), dtype=FIELDS)["end_s"]
    counted = np.frombuffer(_whole(step_files.read(sizes), 8), dtype="<u8")
    both = min(len(ends), len(counted))
    return int(counted[:both][(ends[:both] > start_s) & (ends[:both] <= end_s)].sum())


def _whole(data: bytes, size: int) -> bytes:
    return data[: len(data) - len(data) % size]


def read(paths: Iterable[Path]) -> Requests:
    from loadframe.workloads import step_files

    return from_bytes(b"".join(_whole(step_files.read(path), RECORD.size) for path in paths))
