"""What a cache still has after a restart: everything is asked for once, and its origin counts what it had to fetch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from loadframe.bench.sweep import Bookkeeping
from loadframe.errors import TargetError, WorkloadError
from loadframe.model import Ending, Survival
from loadframe.runs.folder import RunFolder


def one_of_each_kind(run: RunFolder) -> list[str]:
    """The first treatment of each kind of target: to end every one of them would take as long as to measure them."""
    kinds: dict[str, str] = {}
    for treatment in run.treatments().values():
        kinds.setdefault(treatment.kind, treatment.name)
    return list(kinds.values())


def try_restarts(book: Bookkeeping, run: RunFolder, treatments: Sequence[str]) -> None:
    """End each cache among these treatments cleanly, and by SIGKILL, and keep in the run what it still has; at the
    study's lowest level, so that it takes seconds. Nothing where none of them is a cache."""
    level = book.bench.study.levels[0]
    for treatment in filter(book.bench.is_cache, treatments):
        for how in get_args(Ending):
            try:
                found: Survival = book.bench.survival(treatment, level, how)
            except (TargetError, WorkloadError) as error:  # all else is measured, and is told
                book.progress.say(f"it did not come back after {how}: {error.fact}")
                return
            run.append_line("survival.jsonl", "survival", found)
            book.progress.say(f"{found.target_kind} after {how}: {found.kept} of {found.asked} objects kept")
