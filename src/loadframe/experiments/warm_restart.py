"""What a cache still has after a restart: every object is requested once, and its origin counts the fetches."""

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
"""Counter of a cache: requests that it passed on to its origin."""
POLL_S = 0.25


def one_of_each_kind(run: RunFolder) -> list[str]:
    """The first treatment of each kind of target: restarting every treatment would take as long as measuring them."""
    kinds: dict[str, str] = {}
    for treatment in run.treatments().values():
        kinds.setdefault(treatment.kind, treatment.name)
    return list(kinds.values())


def try_restarts(book: Bookkeeping, run: RunFolder, treatments: Sequence[str]) -> None:
    """End each cache among these treatments cleanly, and by SIGKILL, and record what it still has, at the study's
    lowest level. One that does not come back is not ended again."""
    level = book.bench.study.levels[0]
    for treatment in filter(book.bench.is_cache, treatments):
        for how in get_args(Ending):
            survival = warm_restart(book.bench, treatment, level, how)
            run.append_line("survival.jsonl", "survival", survival)
            book.progress.say(warm_restart_sentence(survival))
            if survival.kept is None:
                break


def warm_restart(bench: Bench, treatment: str, level: float, how: Ending) -> WarmRestart:
    """What the cache of a treatment still has of all objects of a level after it was ended that way."""
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
    except (TargetError, WorkloadError) as error:  # the rest is measured already: recorded with this failure
        failed = error.fact
    return WarmRestart(treatment, bench.kind, how, asked, kept, failed)


def _fetched(bench: Bench) -> float:
    """A thread may report a fetch a moment after the answer, so read until two readings agree."""
    fetched, seen = bench.counters()[FETCHES], -1.0
    while fetched != seen:
        time.sleep(POLL_S)
        fetched, seen = bench.counters()[FETCHES], fetched
    return fetched
