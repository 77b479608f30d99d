"""The capacity with several settings, each searched on one host of a fleet, and held against the capacity as given on
the same host."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from loadframe.analysis import divergence
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import FleetError, StudyError
from loadframe.fleet.alike import START_TITLE, Sample, calibrate
from loadframe.fleet.on_hosts import Done, TakesOnHosts, Work
from loadframe.model import Capacity, LoadInterval, SettingValue, Verdict
from loadframe.model.capacity import CapacityBeside
from loadframe.model.fleet_trials import TaskPurpose
from loadframe.model.verdict import NOT_KNOWN
from loadframe.runs.folder import RunFolder
from loadframe.study import Study

AROUND = 1.5
"""The start is expected on each host up to this factor around what it is here: it saves trials, and decides nothing."""
AT_ALL = 0.0
"""A capacity is one number: the level at which it is compared."""
ENDS_S = 60.0
"""After its budget a search may go on with what it has begun."""


class CapacitiesOnHosts(TakesOnHosts):
    """Searches the capacity with the settings of each alternative."""

    _study: Study

    def __call__(self, book: Bookkeeping, run: RunFolder, study: Study, here: Capacity) -> Capacity:
        """here: the capacity as given on this machine. FleetError where hosts differ, or none is left."""
        notes, hosts = list[str](), self._engine.hosts
        self._study = study
        self._over(book, run, notes, longer_s=ENDS_S)
        book.progress.phase(f"the capacity as given on each of {len(hosts)} hosts, to see whether they are alike", 0)
        fewest = divergence.PLAN.first * (len(hosts) + 1)
        book.progress.say(
            f"That takes {fewest} searches at least, one after another, of up to {study.measure.budget:g} s each."
        )
        measure = partial(self._searched, around(here))
        alike, starts = calibrate(hosts, [AT_ALL], measure, _sample, book.random, run, notes)
        book.progress.phase(f"the capacity with {len(study.alternative)} other settings", 0)
        works = [
            Work("capacity", number, each.name, self._told(each.target.settings), each.target.settings)
            for number, each in enumerate(study.alternative, start=1)
        ]
        beside = tuple(_beside(done, starts) for done in self._on.all_of(works))
        return replace(here, beside=beside, hosts=alike, warnings=(*here.warnings, *notes))

    def _searched(
        self, guess: LoadInterval | None, block: int, purpose: TaskPurpose, those: Sequence[str]
    ) -> dict[str, Capacity]:
        """The start's capacity on each of these hosts. A search that does not decide is made again, once, with all of
        them: one of the many would else end the whole."""
        asked, before = self._asked({}, guess), 0

        def work() -> Work:
            return Work(purpose, block, START_TITLE, lambda _: asked, attempts=before)

        done = self._on.together(those, work)
        if left_open := [host for host, one in done.items() if _is_open(one)]:
            self._on.say(f"A search of the start did not decide on {', '.join(left_open)}: it is made again.")
            before = max(one.work.attempts for one in done.values())
            done = self._on.together(those, work)
        return {host: _found(one) for host, one in done.items()}

    def _asked(self, settings: Mapping[str, SettingValue], guess: LoadInterval | None) -> dict[str, Any]:
        target = self._study.target.model_copy(update={"settings": {**self._study.target.settings, **settings}})
        study = self._study.model_copy(update={"target": target, "alternative": []})
        expected = None if guess is None else [guess.load, guess.low, guess.high]
        capacity = {"hold_s": 0.0, "guess": expected, "changed": bool(settings)}
        return {"study": study.resolved(), "capacity": capacity}

    def _told(self, settings: Mapping[str, SettingValue]) -> Callable[[str], Mapping[str, Any]]:
        asked = self._asked(settings, None)
        return lambda _: asked


def check_settings_alone(study: Study) -> None:
    """StudyError where there is no alternative, or one that differs in more than settings."""
    if not study.alternative:
        raise StudyError(
            f"the study {study.study.name} has no other settings to search the capacity with",
            remedy="Add an [[alternative]] with a name and target.settings for each, or search without --fleet.",
        )
    for each in study.alternative:
        only = each.target.settings and (each.target.kind or study.target.kind) == study.target.kind
        if not only or each.cage.limits or each.cage.bound or each.host.settings:
            raise StudyError(
                f"the alternative {each.name!r} is more than other settings of the study's target",
                remedy="Give it target.settings alone: these are what capacities side by side are searched with.",
            )


def around(here: Capacity) -> LoadInterval | None:
    """Where hosts that are like this machine have theirs."""
    if not here.load:
        return None
    low, high = here.low or here.load, here.high or here.load
    return LoadInterval(here.load, low / AROUND, high * AROUND)


def _is_open(done: Done) -> bool:
    found = done.capacity
    return found is not None and found.end == "undecided" and None in (found.load, found.low, found.high)


def _found(done: Done) -> Capacity:
    """FleetError where the start's capacity is not known on a host: nothing can be held against it."""
    found = done.capacity
    if found is None or found.load is None or found.low is None or found.high is None:
        why = done.failed or ("no search" if found is None else found.end)
        raise FleetError(
            f"as given, the capacity on host {done.host} is not between two levels that are shown to meet and to miss: "
            f"{why}",
            remedy="Widen load.levels, or give each search more time (measure.budget).",
        )
    return found


def _sample(found: Capacity) -> Sample:
    assert found.load and found.low and found.high
    return Sample({AT_ALL: found.load}, {AT_ALL: (found.high - found.low) / 2 / found.load})


def _beside(done: Done, starts: Mapping[str, Sequence[Capacity]]) -> CapacityBeside:
    found = done.capacity
    if found is None:
        verdict = Verdict(1.0, *NOT_KNOWN, "cannot-tell", 0, done.failed)
        return CapacityBeside(done.work.title, done.host, "", None, None, None, verdict, done.failed)
    return divergence.capacity_beside(done.work.title, done.host, starts[done.host], found)
