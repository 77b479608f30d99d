"""Which steps count, and why the others do not: for every curve, limit, latency and comparison."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from loadframe.analysis.disturbance import cell_of, disturbed, least_disturbed
from loadframe.model import NOT_RECOVERED, TOO_FEW, UNSETTLED, Round, Step, Steps, grouped

FEWEST_SETTLED = 2
"""Where a level has at least this many settled steps, or ones with a longer warm-up, the others do not count."""
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
    """decided: steps after which fresh ones were measured. Of a state without enough requests in any window all
    count."""
    mine, left_out = list(steps), dict[int, str]()

    def leave_out(out: Iterable[Step], why: str) -> None:
        gone = {id(step): step.number for step in out}
        left_out.update(dict.fromkeys(gone.values(), why))
        mine[:] = [step for step in mine if id(step) not in gone]

    leave_out((step for step in mine if step.purpose == "warming"), WARMS)
    leave_out((step for step in mine if step.number in decided), DECIDED)
    enough = {step.treatment for step in mine if step.counts}
    leave_out((step for step in mine if NOT_RECOVERED in step.flags and step.treatment in enough), FELL)
    leave_out((step for step in mine if not step.counts and step.treatment in enough), FEW)
    leave_out(_unlike(mine, lambda step: UNSETTLED not in step.flags), NOT_SETTLED)
    leave_out(_unlike(mine, _lengthened), SHORTER)
    leave_out(disturbed(mine), DISTURBED)
    return Selection(mine, left_out)


def counting(steps: Iterable[Step], decided: Collection[int] = ()) -> list[Step]:
    """Steps with enough requests that decided on no change."""
    return [step for step in steps if step.counts and step.number not in decided]


def deciding(rounds: Iterable[Round]) -> frozenset[int]:
    """Steps that decided on a change where fresh ones followed: stopping where it looks best selects a lucky one."""
    return frozenset(
        number for round_ in rounds for trial in round_.tried if trial.fresh is not None for number in trial.deciding
    )


def _unlike(steps: Steps, better: Callable[[Step], bool]) -> list[Step]:
    """Those that are not `better`, where enough others of their state and load are."""
    cells = Counter(cell_of(step) for step in steps if better(step))
    return [step for step in steps if not better(step) and cells[cell_of(step)] >= FEWEST_SETTLED]


def one_of_each_block(steps: Iterable[Step]) -> list[Step]:
    """Of each block, state and load: with an ended and the longest warm-up, the last of the quietest."""
    taken = grouped(
        ((cell_of(step), step.purpose, step.round, step.block), step) for step in steps if step.block is not None
    )
    return [least_disturbed(_settled(repeats)) for repeats in taken.values()]


def _settled(steps: list[Step]) -> list[Step]:
    for flag in (TOO_FEW, UNSETTLED):
        steps = [step for step in steps if flag not in step.flags] or steps
    return [step for step in steps if _lengthened(step)] or steps


def _lengthened(step: Step) -> bool:
    return step.window_start_s - step.started_s > step.window_end_s - step.window_start_s
