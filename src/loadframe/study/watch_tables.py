"""`[watch]`: what `loadframe watch` does at intervals, and which metric is the load."""

from __future__ import annotations

from pydantic import Field, field_validator

from loadframe.study.fields import Duration, Table
from loadframe.study.workload_tables import Command

SHORTEST_S = 1.0


class WatchTable(Table):
    every: Duration = Field(300.0, description="how often the unit of work is done; --every may ask for less, not more")
    load: str = Field("", max_length=300, description="the metric that is the load; none: the open connections")
    unit: Command = Field(
        default_factory=list, description="one small unit of work: a program, whose exit status 0 is a success"
    )

    @field_validator("every")
    @classmethod
    def _small(cls, every: float) -> float:
        if every < SHORTEST_S:
            raise ValueError(f"every = {every:g} s: a watch does at most one unit of work a second")
        return every
