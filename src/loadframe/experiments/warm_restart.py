"""What a cache still has after a restart: everything is asked for once, and its origin counts what it had to fetch."""

import time
from collections.abc import Sequence
from typing import get_args

from loadframe.bench.base import Bench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import TargetError, WorkloadError
from loadframe.model import Ending, WarmRestart
from loadframe.reporting.alternatives import warm_restart_sentence
from loadframe.runs.folder import RunFolder
from loadframe.workloads.base import AsksForObjects

FETCHES = "fetches"
"""What a cache counts: requests that it passed on to its origin."""
POLL_S = 0.25


def one_of_each_kind(run: RunFolder) -> list[str]:
    """The first treatment of each kind of target: to end every one of them would take as long as to measure them."""
    kinds: dict[str, str] = {}
    for treatment in run.treatments().values():
        kinds.setdefault(treatment.kind, treatment.name)
    return list(kinds.values())


def try_restarts(book: Bookkeeping, run: RunFolder, treatments: Sequence[str]) -> None:
    """End each cache among these treatments cleanly, and by SIGKILL, and keep in the run what it still has; at the
    study's lowest level, so that it takes seconds. One that does not come back is not ended again: the next one is.
    Nothing where none of them is a cache."""
    level = book.bench.study.levels[0]
    for treatment in filter(book.bench.is_cache, treatments):
        for how in get_args(Ending):
            found = warm_restart(book.bench, treatment, level, how)
            run.append_line("survival.jsonl", "survival", found)
            book.progress.say(warm_restart_sentence(found))
            if found.kept is None:
                break


def warm_restart(bench: Bench, treatment: str, level: float, how: Ending) -> WarmRestart:
    """What the cache of a treatment (`Bench.is_cache`) still has after it was ended so, of all objects of a level."""
    workload = bench.workload
    assert isinstance(workload, AsksForObjects), "a cache is asked for objects"
    asked, kept, failed = workload.objects_at(level), None, ""
    try:
        bench.use(treatment)
        workload.set_level(bench.endpoint, level)
        workload.warm(bench.endpoint, level)
        bench.end(how)
        bench.use(treatment)
        before = _fetched(bench)
        workload.warm(bench.endpoint, level)
        kept = min(max(asked - round(_fetched(bench) - before), 0), asked)
    except (TargetError, WorkloadError) as error:  # all else is measured: this one is told with it
        failed = error.fact
    return WarmRestart(treatment, bench.kind, how, asked, kept, failed)


def _fetched(bench: Bench) -> float:
    """What a cache has fetched in all: a thread of it may tell that a moment after the answer, so until two looks
    say the same."""
    found, seen = bench.counters()[FETCHES], -1.0
    while found != seen:
        time.sleep(POLL_S)
        found, seen = bench.counters()[FETCHES], found
    return found
