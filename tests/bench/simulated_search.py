"""A search for settings over a simulated bench: what may be varied, how fast that is, and what
`loadframe_tune.tune` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.frame import HERE
from loadframe.experiments.sweep import curve_of
from loadframe.model import SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe_tune.loop import searched
from loadframe_tune.model import Tuning
from loadframe_tune.trials import measure_start, trials_in

Simulated = Callable[..., Bookkeeping]
Answer = tuple[float, Mapping[str, float]]
GB = 1 << 30
SETTINGS = (
    "target.settings={table_open_cache=64, innodb_io_capacity=200, innodb_adaptive_hash_index=false}",
    "tune.settings={innodb_io_capacity={from=200, to=6400}, innodb_adaptive_hash_index=[false, true]}",
)


def busy(state: TargetState, level: float) -> Answer:
    """Up to twice as fast with more I/O, and a tenth faster with the index."""
    capacity = float(state.settings["innodb_io_capacity"])
    return 1000 * (capacity / 200) ** 0.2 * (1.1 if state.settings["innodb_adaptive_hash_index"] else 1), {}


def idle(state: TargetState, level: float) -> Answer:
    return 1000.0, {}


def examined(book: Bookkeeping) -> Examined:
    """The start as `loadframe_tune.tune` looks at it."""
    study, state = book.bench.study, book.bench.start_state
    measure_start(book)
    return examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=state,
        effective=book.bench.use("A"),
        curve=curve_of(book.steps, study, "A"),
        target_kind=study.target.kind,
        highest_level=study.levels[-1],
    )


def tune(book: Bookkeeping, folder: Path, *, trials: int = 20, **more: object) -> Tuning:
    run = RunFolder.create(folder, "tuned")
    wanted = {"earlier": (), "searching": HERE.trials, **more}
    found = searched(book, run, examined(book), trials=trials, memory_bytes=16 * GB, **wanted)  # type: ignore[arg-type]
    assert tuple(trials_in(run)) == found.trials, "every trial is in the run folder"
    return found


def after(found: Tuning) -> dict[str, SettingValue]:
    return {each.name: each.after for each in found.settings if each.after != each.before}


WITHIN = "objective.within.latency_p95_ms=100"


def with_index(p95_ms: float, otherwise_ms: float = 50.0) -> Callable[[TargetState, float], float]:
    return lambda state, level: p95_ms if state.settings["innodb_adaptive_hash_index"] else otherwise_ms
