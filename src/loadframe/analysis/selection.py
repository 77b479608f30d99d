"""Which steps count, and why the others do not: for every curve, limit, latency and comparison."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loadframe.analysis.disturbance import disturbed, least_disturbed
from loadframe.model import NOT_RECOVERED, TOO_FEW, UNSETTLED, Round, Step

FEWEST_SETTLED = 2
"""Where a level has at least this many settled steps, the others do not count. The same holds for steps with a longer
warm-up."""
WARMS = "it only warmed the target"
DECIDED = "it decided whether a change is kept; fresh steps tell what the change gives"
FELL = "the target failed in it or after it"
FEW = "too little happened in its window"
NOT_SETTLED = "its warm-up had not ended"
SHORTER = "others at its load had a longer warm-up"
DISTURBED = "something outside of the study took more from it than from others at its load"


@dataclass(frozen=True, slots=True)
class Selection:
    """left_out: step number -> why it does not count."""

    steps: list[Step]
    left_out: Mapping[int, str] = field(default_factory=dict)


def select(steps: Iterable[Step], *, decided: Collection[int] = ()) -> Selection:
    """The steps that count. decided: steps after which fresh ones were measured. Of a state without a window with
    enough requests all count."""
    mine, left_out = list(steps), dict[int, str]()
    mine = _without(mine, lambda step: step.purpose == "warming", WARMS, left_out)
    mine = _without(mine, lambda step: step.number in decided, DECIDED, left_out)
    enough = {step.treatment for step in mine if step.counts}
    mine = _without(mine, lambda step: NOT_RECOVERED in step.flags and step.treatment in enough, FELL, left_out)
    mine = _without(mine, lambda step: not step.counts and step.treatment in enough, FEW, left_out)
    settled = _cells(step for step in mine if UNSETTLED not in step.flags)
    mine = _without(mine, lambda step: UNSETTLED in step.flags and _is_enough(settled, step), NOT_SETTLED, left_out)
    long = _cells(step for step in mine if _lengthened(step))
    mine = _without(mine, lambda step: not _lengthened(step) and _is_enough(long, step), SHORTER, left_out)
    out = {id(step) for step in disturbed(mine)}
    return Selection(_without(mine, lambda step: id(step) in out, DISTURBED, left_out), left_out)


def counting(steps: Iterable[Step], decided: Collection[int] = ()) -> list[Step]:
    """Steps with enough requests that decided on no change: evidence and limits rest on these."""
    return [step for step in steps if step.counts and step.number not in decided]


def deciding(rounds: Iterable[Round]) -> frozenset[int]:
    """Steps that decided on a change where fresh ones followed: stopping at the best-looking moment selects a lucky
    one."""
    return frozenset(
        number for round_ in rounds for trial in round_.tried if trial.fresh is not None for number in trial.deciding
    )


def _without(steps: Sequence[Step], out: Callable[[Step], bool], why: str, left_out: dict[int, str]) -> list[Step]:
    left_out |= {step.number: why for step in steps if out(step)}
    return [step for step in steps if not out(step)]


def _cells(steps: Iterable[Step]) -> Counter[tuple[str, float]]:
    return Counter((step.treatment, step.level) for step in steps)


def _is_enough(cells: Counter[tuple[str, float]], step: Step) -> bool:
    return cells[step.treatment, step.level] >= FEWEST_SETTLED


def one_of_each_block(steps: Iterable[Step]) -> list[Step]:
    """The step that counts of each block, state and load: with an ended and the longest warm-up, the last of the
    quietest."""
    taken: dict[tuple[str, float, object], list[Step]] = {}
    for step in steps:
        if step.block is not None:
            taken.setdefault((step.treatment, step.level, (step.purpose, step.round, step.block)), []).append(step)
    return [least_disturbed(_settled(repeats)) for repeats in taken.values()]


def _settled(steps: list[Step]) -> list[Step]:
    for flag in (TOO_FEW, UNSETTLED):
        steps = [step for step in steps if flag not in step.flags] or steps
    return [step for step in steps if _lengthened(step)] or steps


def _lengthened(step: Step) -> bool:
    return step.window_start_s - step.started_s > step.window_end_s - step.window_start_s
