"""The step of a server that is not there, for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loadframe.model import Latency, Step


def step(level: float, throughput: float = 1.0, metrics: Mapping[str, float] | None = None, **others: Any) -> Step:
    """A step of a second of treatment A, without a flag; other fields by their names."""
    plain = Step(
        number=1,
        round=1,
        block=1,
        treatment="A",
        level=level,
        started_s=0.0,
        ended_s=1.0,
        window_start_s=0.0,
        window_end_s=1.0,
        requests=int(throughput),
        errors=0,
        throughput=throughput,
        batches=(throughput,),
        latency=Latency(1.5, 1.0, 2.0, 3.0, 4.0),
        waiting_share=0.0,
        operations=(),
        metrics=metrics or {},
    )
    return replace(plain, **others)
