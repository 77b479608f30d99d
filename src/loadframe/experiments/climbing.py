"""A ladder: try the changes of a study in order, then measure what is kept in fresh blocks."""

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from loadframe.analysis import comparison
from loadframe.analysis import ladder as analysis
from loadframe.analysis.ladder import Samples, State
from loadframe.bench.base import Bench
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.bench.rig import host_settings
from loadframe.changes.journal import differences
from loadframe.errors import UserError
from loadframe.experiments.proof import in_groups, orders, prove, throughputs, verdict_on
from loadframe.experiments.side_by_side import START, changed, state_of
from loadframe.experiments.stopping import UNFIT
from loadframe.kinds import registry as targets
from loadframe.model import Change, Compared, Interaction, Rung, SettingValue, Step, Steps, TargetState, Verdict
from loadframe.study.declaration import ChangeTable


@dataclass
class LadderStates:
    """Create it before anything is changed: host settings are compared with the machine's values of now."""

    book: Bookkeeping
    _names: dict[State, str] = field(default_factory=dict)
    _host: dict[str, dict[str, SettingValue]] = field(init=False)

    def __post_init__(self) -> None:
        self._host = {change.name: host_settings(change.host) for change in self.book.bench.study.change}

    def of(self, state: State) -> TargetState:
        study = self.book.bench.study
        settings = self.book.bench.start_state
        for change in study.change:
            if change.name in state:
                settings = changed(settings, change, self._host[change.name])
        return settings

    def name(self, state: State) -> str:
        if state not in self._names:
            title = " + ".join(state)
            self._names[state] = self.book.next_treatment(title, self.of(state)) if state else START
        return self._names[state]

    def titled(self, name: str) -> tuple[str, TargetState]:
        state = next(state for state, known in self._names.items() if known == name)
        return " + ".join(state), self.of(state)

    def changes(self, before: State, after: State) -> tuple[Change, ...]:
        return tuple(differences(self.of(before), self.of(after)))

    def groups(self, states: Sequence[State]) -> list[list[str]]:
        grouped: dict[Hashable, list[str]] = {}
        row = targets.of_study(self.book.bench.study)
        for state in states:
            wanted = self.of(state)
            specs = ((name, row.setting(name)) for name in wanted.settings)
            at_start = [name for name, spec in specs if not (spec and spec.dynamic and not spec.sized_at_start)]
            needs_restart = frozenset((name, wanted.settings[name]) for name in at_start)
            grouped.setdefault((needs_restart, frozenset(wanted.limits.items())), []).append(self.name(state))
        return list(grouped.values())


def check_alternatives(bench: Bench) -> None:
    """Raise as Target.check does, naming the alternative."""
    for alternative in bench.study.alternative:
        state, kind = state_of(bench, alternative)
        _check(bench, f"alternative {alternative.name!r}", state, kind)


def check_changes(bench: Bench, states: LadderStates) -> None:
    names: State = ()
    for change in bench.study.change:
        names = (*names, change.name)
        _check(bench, f"change {change.name!r}", states.of(names))


def _check(bench: Bench, what: str, state: TargetState, kind: str | None = None) -> None:
    try:
        bench.check(state, kind)
    except UserError as error:
        raise type(error)(f"{what}: {error.fact}", remedy=error.remedy, details=error.details) from error


CLIMB_SHARE = 0.7
"""Share of the budget for the changes; the rest is for the ladder as a whole."""
OVERRUN = 0.1


@dataclass(frozen=True, slots=True)
class Climbed:
    rungs: tuple[Rung, ...]
    total: Compared | None = None
    interactions: tuple[Interaction, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def kept(self) -> State:
        return tuple(rung.change for rung in self.rungs if rung.kept)


def climb(
    book: Bookkeeping, states: LadderStates, *, keep_all: bool, note: Callable[[Climbed], None] = lambda rung: None
) -> Climbed:
    """Try each change against the state before it, keep what is proven better, then measure the whole. keep_all:
    without trials. note: called with every rung."""
    changes, budget = book.bench.study.change, book.budget
    if keep_all:
        names = tuple(change.name for change in changes)
        rungs = (_rung(book, states, names[:at], change, kept=True) for at, change in enumerate(changes))
        climbed = Climbed(tuple(rungs))
    else:
        climbed = _try_all(book, states, note)
    note(climbed)
    if climbed.kept:
        climbed = _taken_apart(book, states, climbed)
        note(climbed)
        climbed = _with_partners(book, states, climbed)
    if budget.spent_s() <= (1 + OVERRUN) * budget.total_s:
        return climbed
    overrun = (
        f"It took {budget.spent_s():.0f} s, and the budget is {budget.total_s:.0f} s: each change has "
        f"{FEWEST_BLOCKS} blocks at least, with the restarts that it needs. Fewer levels or changes take less."
    )
    return replace(climbed, missing=(*climbed.missing, overrun))


def _try_all(book: Bookkeeping, states: LadderStates, note: Callable[[Climbed], None]) -> Climbed:
    changes = book.bench.study.change
    reserve_s = (1 - CLIMB_SHARE) * book.budget.left_s()
    climbed = Climbed(())
    for number, change in enumerate(changes, start=1):
        mine_s = max(book.budget.left_s() - reserve_s, 0.0) / (len(changes) - number + 1)
        rung = _try(book, states, climbed.kept, change, number, book.budget.left_s() - mine_s)
        climbed = Climbed((*climbed.rungs, rung))
        note(climbed)
    return climbed


def _try(
    book: Bookkeeping, states: LadderStates, kept: State, change: ChangeTable, number: int, firm_reserve_s: float
) -> Rung:
    before = states.name(kept)
    rung = _rung(book, states, kept, change, kept=False)
    try:
        pair = before, states.name((*kept, change.name))
        levels = book.bench.study.levels
        ((proved, _),) = prove(book, [pair], levels, round_number=number, firm_reserve_s=firm_reserve_s)
    except UNFIT as error:
        book.bench.recover(before)
        return replace(rung, refused=error.fact)
    better = proved.verdict.decision == "better"
    verdict = replace(proved.verdict, may_overstate=better)
    return replace(rung, comparison=replace(proved, verdict=verdict), kept=better)


def _rung(book: Bookkeeping, states: LadderStates, before: State, change: ChangeTable, *, kept: bool) -> Rung:
    changes = states.changes(before, (*before, change.name))
    given_up = targets.of_study(book.bench.study).gives_up(change.target.settings)
    return Rung(change.name, changes, kept, gives_up=given_up)


def _taken_apart(book: Bookkeeping, states: LadderStates, climbed: Climbed) -> Climbed:
    """All states of the ladder in the same blocks, which decided nothing, so that they do not flatter what was kept."""
    kept, study = climbed.kept, book.bench.study
    wanted, missing = analysis.states(kept), list[str]()
    if not _affords(book, wanted, study.measure.blocks.min):
        if len(wanted) > len(analysis.rising(kept)):
            missing.append("What is lost at the top without each change was not measured: the budget is used up.")
        wanted = analysis.rising(kept)
    if not _affords(book, wanted, FEWEST_BLOCKS):
        return _from_trials(climbed)
    what = f"the whole ladder, {len(wanted)} states of it"
    steps = _measured(book, states, wanted, what, len(study.change) + 1)
    samples = _samples(steps, states, wanted)
    decomposition = analysis.decompose(samples, kept)

    def known(gain: Verdict, before: State, after: State) -> Verdict:
        """A product of throughputs has no ratio where a state served nothing; the steps say whether it failed."""
        return gain if gain.has_ratio else verdict_on(steps, states.name(before), states.name(after))

    climbs = zip(decomposition.gains, itertools.pairwise(analysis.rising(kept)), strict=True)
    gains = dict(zip(kept, (known(gain, *pair) for gain, pair in climbs), strict=True))
    tops = dict(zip(kept, decomposition.at_top, strict=True))
    rungs = []
    for rung in _with_shares(climbed.rungs, decomposition.shares):
        tried, gain = rung.comparison, gains.get(rung.change)
        if gain is not None:
            tried = Compared(verdict=gain) if tried is None else Compared(verdict=tried.verdict, fresh=gain)
        rungs.append(replace(rung, comparison=tried, at_top=tops.get(rung.change)))
    total = Compared(verdict=known(decomposition.total, (), kept), levels=analysis.level_ratios(samples, kept))
    return Climbed(tuple(rungs), total, analysis.interactions(samples, kept), tuple(missing))


def _from_trials(climbed: Climbed) -> Climbed:
    trials = [rung.reported for rung in climbed.rungs if rung.kept and rung.reported is not None]
    if not trials:
        return replace(climbed, missing=("No time was left to measure the ladder: give measure.budget more.",))
    total = comparison.combine(trials)
    missing = (
        "The whole was not measured in blocks of its own, the budget is used up: it is the product of the trials, "
        "which decided what is kept, so that it may be overstated."
    )
    rungs = _with_shares(climbed.rungs, comparison.shares(total, trials))
    return Climbed(rungs, Compared(verdict=total), missing=(missing,))


def _with_shares(rungs: Sequence[Rung], shares: Sequence[float]) -> tuple[Rung, ...]:
    remaining = iter(shares)
    return tuple(replace(rung, share=next(remaining, None)) if rung.kept else rung for rung in rungs)


def _with_partners(book: Bookkeeping, states: LadderStates, climbed: Climbed) -> Climbed:
    kept, study = climbed.kept, book.bench.study
    interactions, missing, number = list[Interaction](), list(climbed.missing), len(study.change) + 2
    for interaction in climbed.interactions:
        interactions.append(interaction)
        later = () if interaction.partner is not None else kept[kept.index(interaction.change) + 1 :]
        for partner in later:
            wanted = analysis.pair_states(kept, interaction.change, partner)
            if not _affords(book, wanted, study.measure.blocks.min):
                missing.append(
                    f"With which change {interaction.change} interacts was not looked for to the end: no time was left."
                )
                break
            steps = _measured(book, states, wanted, f"{interaction.change} with and without {partner}", number)
            samples = _samples(steps, states, wanted)
            pair = analysis.pair(samples, kept, interaction.change, partner, confidence=1 - analysis.ERROR / len(later))
            interactions += [pair] if pair.verdict.decided else []
            number += 1
    return replace(climbed, interactions=tuple(interactions), missing=tuple(missing))


def _affords(book: Bookkeeping, wanted: Sequence[State], blocks: int) -> bool:
    return book.budget.affords(list(book.bench.study.levels) * len(wanted) * blocks)


def _measured(book: Bookkeeping, states: LadderStates, wanted: Sequence[State], what: str, number: int) -> list[Step]:
    """The number of blocks depends on the time alone, so a single look at the end has its nominal error."""
    levels, blocks = list(book.bench.study.levels), book.bench.study.measure.blocks
    book.progress.phase(f"measuring {what}", len(wanted) * len(levels) * blocks.min)
    taken: list[Step] = []
    slowest_s = 0.0
    drawn = orders(book.random, states.groups(wanted), levels)
    for group in in_groups(book, blocks.max, drawn):
        if group[0].number > FEWEST_BLOCKS and slowest_s > book.budget.left_s():
            break
        left_s = book.budget.left_s()
        taken += book.take_blocks(group, round_number=number, purpose="proof")
        slowest_s = max(slowest_s, left_s - book.budget.left_s())
    return taken


def _samples(steps: Steps, states: LadderStates, wanted: Sequence[State]) -> Samples:
    return {state: throughputs(steps, states.name(state)) for state in wanted}
