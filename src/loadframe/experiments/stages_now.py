"""What a live pipeline prints of its stages, for the ledger at this moment: the file is followed while one looks."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.diagnosis.pipelines import in_words, stages_in
from loadframe.metrics.pipelines import CUMULATIVE
from loadframe.recording.metrics import of_readings
from loadframe.recording.stage_tail import StageTail

FEW = "statistics of stages were printed {} in this time, so that no rates are known; watch longer (--over)"


@dataclass
class StagesNow:
    """metrics: of each stage and log over the look. notes: which stage limits, or why that is not told, and what could
    not be read, in sentences."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@contextmanager
def following(files: Sequence[Path]) -> Iterator[StagesNow]:
    """Follow files while one looks; what was told is there once that is over. What they have before is not read."""
    told = StagesNow()
    if not files:
        yield told
        return
    tail = StageTail()
    with tail.watching(list(files)):
        yield told
    readings = tail.readings()
    if notes := [(one.at_s, one.counters) for one in readings]:
        told.metrics = of_readings(notes, notes[0][0], notes[-1][0], tail.counter_specs)
    counted = [name for one in readings for name in one.counters if name.rpartition(".")[2] in CUMULATIVE]
    twice = bool(readings) and (not counted or len(counted) > len(set(counted)))  # a sum was told
    few = () if twice else (FEW.format("never" if not readings else "once"),)
    stages = stages_in(told.metrics)
    told.notes = (*([in_words(stages)] if stages else []), *few, *tail.missing())
