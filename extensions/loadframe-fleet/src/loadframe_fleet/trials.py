"""Trials of a search for settings, blocks of a ladder and capacity searches on hosts of a fleet, side by side. Each
trial is compared with the start of its own host, each block is whole on one host: so the host cancels in the ratios.
The gain of a change may depend on the machine, so whether hosts are alike is checked first."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from loadframe.bench.bookkeeping import Block, Bookkeeping
from loadframe.errors import FleetError, StudyError, TargetError
from loadframe.experiments.climbing import LadderStates
from loadframe.experiments.frame import Executor
from loadframe.experiments.settings_search import TRIALS_ROUND, Proposed, SettingsSearch, Start
from loadframe.experiments.side_by_side import START
from loadframe.experiments.sweep import measure_block
from loadframe.model import Capacity, LoadInterval, Purpose, SettingValue, Step, Verdict
from loadframe.model.capacity import AlternativeCapacity
from loadframe.model.verdict import NOT_KNOWN, decide
from loadframe.runs.folder import RunFolder
from loadframe.runs.lines import Treatment
from loadframe.study import Study
from loadframe_fleet.alike import MARGIN, PLAN, START_TITLE, Sample, alike, calibrate, start_of, steps_asked
from loadframe_fleet.declaration import Fleet
from loadframe_fleet.engine import DaskEngine
from loadframe_fleet.load import secrets_named
from loadframe_fleet.observing import Observing
from loadframe_fleet.on_hosts import Done, Engine, TakesOnHosts, Work
from loadframe_fleet.over import check_may_change
from loadframe_fleet.part import is_private
from loadframe_fleet.records import TaskPurpose
from loadframe_fleet.wire import Message, Say

TRIED = "T"
"""A host's name for the settings of its trial."""


class SideBySide(TakesOnHosts):
    def __init__(self, engine: Engine, notes: Sequence[str] = (), observing: Observing | None = None) -> None:
        super().__init__(engine, notes, observing)
        self._proposals: dict[int, Proposed] = {}
        self._tuned: SettingsSearch

    def __call__(self, tuned: SettingsSearch, most: int) -> None:
        """FleetError where the hosts cannot be compared, or none is left."""
        self._tuned = tuned
        self._over(tuned.book, tuned.run, tuned.notes, f"go on: --resume {tuned.run.path}")
        book, hosts = tuned.book, self._engine.hosts
        try:
            book.progress.phase(f"the start on each of {len(hosts)} hosts, to see whether they are alike", 0)
            starts = alike(
                self._on, book.bench.study, tuned.run, tuned.levels, book.random, tuned.notes,
                lambda: self._time_left(len(hosts) + 1),
            )  # fmt: skip
            mine, theirs = tuned.start.reference, next(iter(starts.values())).reference
            level = tuned.levels[0]
            tuned.notes.append(
                "The start, its cause and the proof are of this machine. As given, the hosts serve "
                f"{theirs[level] / mine[level]:.2f} of what it serves at {level:g}."
            )
            self._search(starts, most)
            self._look_again(starts)
        finally:
            self._engine.close()

    def _search(self, starts: Mapping[str, Start], most: int) -> None:
        tuned, trials = self._tuned, self._tuned.left(most)
        tuned.book.progress.phase(f"up to {trials} trials of {tuned.varied} settings, side by side", 0)
        numbers = list(range(tuned.next_number, tuned.next_number + trials))[::-1]
        self._on.carry_out(
            lambda: bool(numbers) and self._time_left(1),
            lambda: self._proposed(numbers.pop(), starts),
            lambda done: self._ended(done, starts),
        )

    def _proposed(self, number: int, starts: Mapping[str, Start]) -> Work:
        tuned = self._tuned
        pending = [self._proposals[work.number] for work in self._on.running]
        proposed = self._proposals[number] = tuned.proposed(pending)
        name = TRIED if proposed.changes else START
        states = [Treatment(TRIED, proposed.title, proposed.state)] if proposed.changes else []

        def asked(host: str) -> dict[str, object]:
            return steps_asked(
                tuned.book.bench.study, [(name, level) for level in tuned.levels], states=states, block=number,
                round_number=TRIALS_ROUND, floors=tuned.floors(starts[host]),
            )  # fmt: skip

        return Work("trial", number, f"Trial {number}", asked, proposed.changes)

    def _ended(self, done: Done, starts: Mapping[str, Start]) -> None:
        tuned, number = self._tuned, done.work.number
        tuned.ended(number, self._proposals[number], done.steps, done.failed, starts[done.host], done.host)
        tuned.book.progress.step(f"trial {number}")

    def _look_again(self, starts: Mapping[str, Start]) -> None:
        hosts, tuned = self._engine.hosts, self._tuned
        if not self._time_left(1) or self._engine.present() != set(hosts) or self._on.unfit:
            self._on.say("Whether the hosts still serve after the trials what they did before was not measured.")
            return
        try:
            after = start_of(self._on, tuned.book.bench.study, tuned.levels, 0, "together", hosts)
        except FleetError as error:
            self._on.say(f"Whether the hosts still serve what they did was not measured: {error.fact}")
            return
        for host, steps in after.items():
            served = all(step.throughput > 0 for step in steps)
            ratio = math.exp(starts[host].value(steps)) if served else 0.0
            if not 1 / MARGIN <= ratio <= MARGIN:
                self._on.say(
                    f"After the trials host {host} serves {ratio:.2f} of what it did before, with the same settings: "
                    "its trials may be judged wrongly. The proof does not rest on them"
                )

    def _time_left(self, tasks: int) -> bool:
        return self._tuned.left_s() >= tasks * self._on.longest_s


START_ROUND = 1
ALIKE_SHARE = 0.4
"""Share of the budget for the question whether hosts are alike, beyond the fewest blocks."""


class BlocksOnHosts(TakesOnHosts):
    _states: LadderStates
    _book: Bookkeeping
    _number = 0

    def begin(self, book: Bookkeeping, run: RunFolder, states: LadderStates, notes: list[str]) -> None:
        """Measure the start here once, and on all hosts until they are known to be alike. FleetError where hosts
        differ."""
        study = book.bench.study
        self._book, self._states = book, states
        self._over(book, run, notes)
        levels = tuple(dict.fromkeys((study.levels[-1], study.levels[len(study.levels) // 2])))
        hosts = self._engine.hosts
        book.progress.phase("the start on this machine, once", len(levels))
        measure_block(book, START, levels, 1, round_number=START_ROUND)
        here = Start.of(book.of(START), levels)
        book.progress.phase(f"the start on each of {len(hosts)} hosts, to see whether they are alike", 0)

        def affords() -> bool:
            return book.budget.spent_s() + (len(hosts) + 1) * self._on.longest_s <= ALIKE_SHARE * book.budget.total_s

        starts = alike(self._on, study, run, levels, book.random, notes, affords)
        there = next(iter(starts.values())).reference
        notes.append(
            "All blocks were measured on the hosts, each of them whole on one. As given, the hosts serve "
            f"{there[levels[0]] / here.reference[levels[0]]:.2f} of what this machine serves at {levels[0]:g}."
        )
        book.elsewhere = self

    @property
    def at_once(self) -> int:
        return max(1, len(self._engine.hosts) - len(self._on.unfit))

    def __call__(self, blocks: Sequence[Block], *, round_number: int | None, purpose: Purpose) -> list[Step]:
        done = self._on.all_of([self._work(block, round_number, purpose) for block in blocks])
        for result in done:
            if result.failed:
                raise TargetError(f"{result.failed} (on host {result.host})", remedy="See the log of the target there.")
        steps = [step for result in done for step in result.steps]
        for step in steps:
            self._book.progress.step(f"{step.treatment} at {step.level:g}: {step.throughput:,.0f}/s")
        return steps

    def _work(self, block: Block, round_number: int | None, purpose: Purpose) -> Work:
        self._number += 1
        names = dict.fromkeys(name for name, _ in block.order if name != START)
        states = [Treatment(name, *self._states.titled(name)) for name in names]
        asked = steps_asked(
            self._book.bench.study, block.order, states=states, block=block.number, round_number=round_number,
            purpose=purpose,
        )  # fmt: skip
        return Work("block", self._number, f"Block {block.number}", lambda _: asked)


class TrialsOver(Executor):
    def __init__(self, engine: DaskEngine, observing: Observing) -> None:
        self._hosts = engine, engine.notes, observing

    def trials(self, search: SettingsSearch, most: int) -> None:
        SideBySide(*self._hosts)(search, most)

    def begin_blocks(self, book: Bookkeeping, run: RunFolder, states: LadderStates, notes: list[str]) -> None:
        BlocksOnHosts(*self._hosts).begin(book, run, states, notes)

    def capacities(self, book: Bookkeeping, run: RunFolder, study: Study, here: Capacity) -> Capacity:
        return CapacitiesOnHosts(*self._hosts)(book, run, study, here)


@contextmanager
def trials_over(
    fleet: Fleet, study: Study, say: Say = lambda _: None, *, capacities: bool = False
) -> Iterator[TrialsOver]:
    """capacities: for capacity searches with other settings; StudyError where the study has none, or they change more
    than settings. Raises as `engine_over`, too."""
    if capacities:
        check_settings_alone(study)
    with engine_over(fleet, [study], say) as (engine, observing):
        yield TrialsOver(engine, observing)


@contextmanager
def engine_over(
    fleet: Fleet, studies: Sequence[Study], say: Say = lambda _: None
) -> Iterator[tuple[DaskEngine, Observing]]:
    """UserError where a host is not there, cannot start a target, or may not be changed as a study asks."""
    for study in studies:
        if not is_private(study):
            raise StudyError(
                "trials side by side need a target of their own on each host, and this one runs already",
                remedy="Let Loadframe start it (without target.attach), or measure without --fleet.",
            )
        check_may_change(fleet, study, "trial")
    named = sorted({name for study in studies for name in secrets_named(study)})
    with DaskEngine(fleet, named, say) as engine, Observing(fleet, say) as observing:
        yield engine, observing


AROUND = 1.5
"""The start is expected on each host up to this factor around its result here: it saves trials, and decides nothing."""
AT_ALL = 0.0
"""A capacity is one number: a placeholder for the level at which it is compared."""
ENDS_S = 60.0
"""How long after its budget a search may finish what it has begun."""


class CapacitiesOnHosts(TakesOnHosts):
    _study: Study

    def __call__(self, book: Bookkeeping, run: RunFolder, study: Study, here: Capacity) -> Capacity:
        """here: the capacity on this machine, settings as given. FleetError where hosts differ, or none is left."""
        notes, hosts, progress = list[str](), self._engine.hosts, book.progress
        self._study = study
        self._over(book, run, notes, longer_s=ENDS_S)
        progress.phase(f"the capacity as given on each of {len(hosts)} hosts, to see whether they are alike", 0)
        fewest, budget_s = PLAN.first * (len(hosts) + 1), study.measure.budget
        progress.say(f"That takes {fewest} searches at least, one after another, of up to {budget_s:g} s each.")
        measure = partial(self._searched, around(here))
        alike, starts = calibrate(hosts, [AT_ALL], measure, _sample, book.random, run, notes)
        progress.phase(f"the capacity with {len(study.alternative)} other settings", 0)
        works = []
        for number, alternative in enumerate(study.alternative, start=1):
            settings = alternative.target.settings
            works.append(Work("capacity", number, alternative.name, self._question(settings), settings))
        alternatives = tuple(_alternative(done, starts) for done in self._on.all_of(works))
        return replace(here, alternatives=alternatives, hosts=alike, warnings=(*here.warnings, *notes))

    def _searched(
        self, guess: LoadInterval | None, block: int, purpose: TaskPurpose, those: Sequence[str]
    ) -> dict[str, Capacity]:
        """An undecided search is repeated once, with all of them: one of many would otherwise end the whole."""
        work = Work(purpose, block, START_TITLE, self._question({}, guess))
        done = self._on.together(those, work)
        capacities = [(host, result.capacity) for host, result in done.items()]
        if left_open := [
            host
            for host, capacity in capacities
            if capacity and capacity.end == "undecided" and None in (capacity.load, capacity.low, capacity.high)
        ]:
            self._on.say(f"A search of the start did not decide on {', '.join(left_open)}: it is made again.")
            work.attempts = max(result.work.attempts for result in done.values())
            done = self._on.together(those, work)
        return {host: _capacity_of(result) for host, result in done.items()}

    def _question(
        self, settings: Mapping[str, SettingValue], guess: LoadInterval | None = None
    ) -> Callable[[str], Message]:
        target = self._study.target.model_copy(update={"settings": {**self._study.target.settings, **settings}})
        study = self._study.model_copy(update={"target": target, "alternative": []})
        expected = None if guess is None else [guess.load, guess.low, guess.high]
        asked = {"study": study.resolved(), "capacity": {"guess": expected, "changed": bool(settings)}}
        return lambda _: asked


def check_settings_alone(study: Study) -> None:
    """StudyError without alternatives, or for one that changes more than settings."""
    if not study.alternative:
        raise StudyError(
            f"the study {study.study.name} has no other settings to search the capacity with",
            remedy="Add an [[alternative]] with a name and target.settings for each, or search without --fleet.",
        )
    for alternative in study.alternative:
        only = alternative.target.settings and (alternative.target.kind or study.target.kind) == study.target.kind
        if not only or alternative.cage.limits or alternative.cage.bound or alternative.host.settings:
            raise StudyError(
                f"the alternative {alternative.name!r} is more than other settings of the study's target",
                remedy="Give it target.settings alone: these are what capacities side by side are searched with.",
            )


def around(here: Capacity) -> LoadInterval | None:
    """Where hosts like this machine should have their capacity."""
    if not here.load:
        return None
    low, high = here.low or here.load, here.high or here.load
    return LoadInterval(here.load, low / AROUND, high * AROUND)


def _capacity_of(done: Done) -> Capacity:
    capacity = done.capacity
    if capacity is None or capacity.load is None or capacity.low is None or capacity.high is None:
        why = done.failed or ("no search" if capacity is None else capacity.end)
        raise FleetError(
            f"as given, the capacity on host {done.host} is not between two levels that are shown to meet and to miss: "
            f"{why}",
            remedy="Widen load.levels, or give each search more time (measure.budget).",
        )
    return capacity


def _sample(capacity: Capacity) -> Sample:
    assert capacity.load and capacity.low and capacity.high
    return Sample({AT_ALL: capacity.load}, {AT_ALL: (capacity.high - capacity.low) / 2 / capacity.load})


def _alternative(done: Done, starts: Mapping[str, Sequence[Capacity]]) -> AlternativeCapacity:
    capacity = done.capacity
    if capacity is None:
        verdict = Verdict(1.0, *NOT_KNOWN, "cannot-tell", 0, done.failed)
        return AlternativeCapacity(done.work.title, done.host, "", None, None, None, verdict, done.failed)
    return against_start(done.work.title, done.host, starts[done.host], capacity)


def against_start(name: str, host: str, start: Sequence[Capacity], other: Capacity) -> AlternativeCapacity:
    """The bounds are widened by the factor by which several searches of the start differ. ValueError for none, or one
    not found."""
    loads = [search.load for search in start if search.load]
    lows = [search.low for search in start if search.low]
    highs = [search.high for search in start if search.high]
    if not start or not len(loads) == len(lows) == len(highs) == len(start):
        raise ValueError("a capacity is held against searches that have all found theirs")
    spread = max(loads) / min(loads)
    low = None if other.low is None else other.low / spread / max(highs)
    high = None if other.high is None else other.high * spread / min(lows)
    middle = sorted(loads)[len(loads) // 2]
    ratio = other.load / middle if other.load and other.end in ("found", "undecided") else low or high or 1.0
    ends = low or NOT_KNOWN[0], high or NOT_KNOWN[1]
    method = f"bounds of one search, and of {len(start)} with the settings as given"
    verdict = Verdict(ratio, *ends, decide(*ends), len(start), method)
    return AlternativeCapacity(name, host, other.end, other.load, other.low, other.high, verdict)
