"""What takes resources from a step besides the study: an effect follows the state and the load (the hypervisor's
threads for the target's disk), a disturbance follows time (docs/mathematics.md)."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.analysis.comparison import FEWEST_BLOCKS
from loadframe.metrics import parts_of
from loadframe.model import Influence, InfluenceKind, Step, Steps, Verdict, grouped
from loadframe.model.verdict import decide

Cell = tuple[str, float]
FEWEST_QUIET = 2
"""A louder step is left out where at least this many of the same state and load are quieter."""
ERROR = 0.05
"""Probability that a quantity that follows time alone is called an effect."""
PERMUTATIONS = 999
NEAR = 0.5
"""A cell with more than the quietest by this share of a threshold explains its own steps."""
MOST = 0.95
"""A larger share of the machine leaves nothing to extrapolate from."""
ROUNDING = 1e-9
MOST_NAMES = 3
DISK = "system.disk.busy"
ALONG = 0.8
"""Least correlation: it explains two thirds of the squares; our choice."""
BUSY = 0.9
"""USE method: with CPUs idle a tenth of the time, others on them take nothing away."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """flag: of steps with more than `threshold`; source: of the threshold. metric: "" where there is only the flag.
    voids: a disturbed step does not count; False for what the study itself causes. costs: a share of what the target
    could have used: without an amount a the throughput would be up to 1 / (1 - a) times as high."""

    flag: str
    threshold: float
    source: str
    metric: str
    voids: bool = True
    costs: bool = True

    def amount(self, metrics: Mapping[str, float], length_s: float) -> float | None:
        """Of a time, its share of the window (s)."""
        amount = metrics.get(self.metric)
        return amount / 1000 / length_s if amount is not None and self.metric.endswith("_ms") else amount


STEAL, FOREIGN = "system.cpu.steal", "system.cpu.foreign"
OF_SPEED = "what is bound by the CPU loses as much throughput as the CPU loses speed"
QUANTITIES = (
    Quantity("steal", 0.10, "netdata: the warning level for stolen CPU time", STEAL),
    Quantity("stranger", 0.20, "a fifth of the CPUs changes what two of them can do", FOREIGN),
    Quantity("frequency", 0.10, OF_SPEED, "system.cpu.frequency_drop"),
    Quantity("disk-stalled", 0.10, "of the window, as for the speed of the CPUs", "system.disk.stall_ms"),
    Quantity("recorder-late", 0.10, "of the window, as for the disk", "system.stall.share"),
    Quantity("driver-lag", 0.20, "a fifth of the requests' time", "workload.driver_lag", voids=False),
    Quantity("clock-step", 0.50, "it has no amount", "", costs=False),
)
BY_FLAG: Mapping[str, Quantity] = {quantity.flag: quantity for quantity in QUANTITIES}
VOIDING = frozenset(quantity.flag for quantity in QUANTITIES if quantity.voids)


def exceeded(metrics: Mapping[str, float], length_s: float) -> frozenset[str]:
    seen = ((quantity, quantity.amount(metrics, length_s)) for quantity in QUANTITIES)
    return frozenset(quantity.flag for quantity, amount in seen if amount is not None and amount > quantity.threshold)


def amount_of(quantity: Quantity, step: Step) -> float:
    """The amount in a step, made consistent with its flag, which rests on more than the amount."""
    known = quantity.amount(step.metrics, step.window_end_s - step.window_start_s) or 0.0
    if quantity.flag not in step.flags:
        return min(known, quantity.threshold)
    return known if known > quantity.threshold else 2 * quantity.threshold


def cell_of(step: Step) -> Cell:
    return step.treatment, step.level


def _cells(steps: Iterable[Step]) -> dict[Cell, list[Step]]:
    return grouped((cell_of(step), step) for step in steps)


def disturbed(steps: Steps) -> list[Step]:
    """The steps with more of a quantity than FEWEST_QUIET others of their state and load, by its threshold."""
    cells = _cells(steps)
    return [step for step in steps if _excess(step, cells[cell_of(step)], FEWEST_QUIET)]


def is_disturbed(step: Step, others: Iterable[Step]) -> bool:
    """Whether a step has more of a quantity than the quietest of its state and load; True for the only one, as a second
    shows whether it is an effect."""
    cell = [other for other in others if cell_of(other) == cell_of(step) and other.counts and other is not step]
    return not VOIDING.isdisjoint(step.flags) and (not cell or bool(_excess(step, [*cell, step], 1)))


def least_disturbed(steps: Steps) -> Step:
    return [step for step in steps if not _excess(step, steps, 1)][-1]


def _burden(step: Step) -> float:
    return sum(amount_of(BY_FLAG[flag], step) / BY_FLAG[flag].threshold for flag in VOIDING.intersection(step.flags))


def _excess(step: Step, cell: Steps, quiet: int) -> dict[str, float]:
    """By flag, a step's amount beyond the `quiet`-th quietest step of its cell, where above a threshold."""
    if VOIDING.isdisjoint(step.flags) or len(cell) < quiet:
        return {}
    floor = sorted(cell, key=_burden)[quiet - 1]
    if _burden(step) - _burden(floor) < 1:
        return {}
    rows = [BY_FLAG[flag] for flag in step.flags if flag in VOIDING]
    more = {row: amount_of(row, step) - amount_of(row, floor) for row in rows}
    return {row.flag: excess for row, excess in more.items() if excess > row.threshold}


def widened(verdict: Verdict, steps: Steps, before: str, after: str) -> Verdict:
    """The verdict with an interval that covers what disturbances have cost these steps: without its amount beyond the
    quietest of its state and load, a step's throughput may have been up to 1 / (1 - share) times as high."""
    cells = _cells(step for step in steps if step.level in verdict.levels)
    lost = {
        name: [_lost(step, cell) for (treatment, _), cell in cells.items() if treatment == name for step in cell]
        for name in (before, after)
    }
    shares = [share for side in lost.values() for share in side]
    if not any(shares) or verdict.blocks < FEWEST_BLOCKS or not verdict.has_ratio:
        return verdict
    low, high = verdict.low / math.exp(fmean(lost[before])), verdict.high * math.exp(fmean(lost[after]))
    words = f"; whatever disturbances cost in {sum(map(bool, shares))} of {len(shares)} steps"
    decision = decide(low, high)
    return replace(verdict, low=low, high=high, decision=decision, method=f"{verdict.method}{words}")


def _lost(step: Step, cell: Steps) -> float:
    excess = _excess(step, cell, 1).items()
    return -sum(math.log1p(-min(amount, MOST)) for flag, amount in excess if BY_FLAG[flag].costs)


def influences(steps: Steps) -> tuple[Influence, ...]:
    """In the order of QUANTITIES; what follows state and load and also occurs by itself is listed as both."""
    counting = [step for step in steps if step.counts]
    cells = _cells(counting)
    excess = {step.number: _excess(step, cells[cell_of(step)], FEWEST_QUIET) for step in counting}
    listed: list[Influence] = []
    for quantity in QUANTITIES:
        flagged = [step for step in counting if quantity.flag in step.flags]
        if not flagged:
            continue
        typical = effects(quantity, counting)
        out = {step.number for step in flagged if quantity.flag in excess[step.number]}
        explained = {cell for cell, amount in typical.items() if amount > NEAR * quantity.threshold}
        own = [step for step in flagged if cell_of(step) in explained and step.number not in out]
        by_itself = [step for step in flagged if step not in own]
        if own:
            busy = _typical(counting, lambda step: step.metrics.get(DISK, 0.0))
            size = math.sqrt(_covariance(busy, busy) * _covariance(typical, typical))
            goes_with = DISK if size > 0 and _covariance(busy, typical) >= ALONG * size else ""
            listed.append(_influence(quantity, "effect", own, counting, goes_with))
        if by_itself:
            listed.append(_influence(quantity, "disturbance", by_itself, counting, left_out=len(out)))
    return tuple(listed)


def _influence(
    quantity: Quantity, kind: InfluenceKind, mine: Steps, counting: Steps, goes_with: str = "", left_out: int = 0
) -> Influence:
    measured = [quantity.amount(step.metrics, step.window_end_s - step.window_start_s) or 0.0 for step in mine]
    amounts, cells = [amount for amount in measured if amount > quantity.threshold], {cell_of(step) for step in mine}
    return Influence(
        flag=quantity.flag,
        kind=kind,
        steps=len(mine),
        low=min(amounts, default=None),
        high=max(amounts, default=None),
        elsewhere=max((amount_of(quantity, step) for step in counting if cell_of(step) not in cells), default=None),
        levels=tuple(sorted({step.level for step in mine})),
        treatments=tuple(sorted({step.treatment for step in mine})),
        left_out=left_out,
        goes_with=goes_with,
        names=_names(mine) if quantity.flag == "stranger" else (),
    )


def _names(steps: Steps) -> tuple[str, ...]:
    used: dict[str, float] = {}
    for step in steps:
        for metric, cores in step.metrics.items():
            if (program := parts_of(metric).get("program")) is not None:
                used[program] = used.get(program, 0.0) + cores
    return tuple(sorted(used, key=lambda program: -used[program])[:MOST_NAMES])


def effects(quantity: Quantity, steps: Steps) -> dict[Cell, float]:
    """How much more each state and load has than the cell with the least, by medians; {} where the quantity follows
    time, or too few blocks decide."""
    counting = [step for step in steps if step.counts]
    typical = _typical(counting, lambda step: amount_of(quantity, step))
    if not _follows(quantity, counting) or _takes_what_is_left(quantity, counting, typical):
        return {}
    least = min(typical.values())
    return {cell: amount - least for cell, amount in typical.items()}


def apart_from_effects(steps: Steps, run: Steps) -> list[Step]:
    """With only that foreign CPU time which no effect explains. run: all steps of the run."""
    known = {FOREIGN: effects(BY_FLAG["stranger"], run), STEAL: effects(BY_FLAG["steal"], run)}
    if not any(known.values()):
        return list(steps)
    apart = []
    for step in steps:
        own = {name: typical.get(cell_of(step), 0.0) for name, typical in known.items() if name in step.metrics}
        unexplained = {name: max(0.0, step.metrics[name] - amount) for name, amount in own.items()}
        apart.append(replace(step, metrics={**step.metrics, **unexplained}))
    return apart


def _typical(
    steps: Steps, value: Callable[[Step], float], mean: Callable[[Iterable[float]], float] = median
) -> dict[Cell, float]:
    return {cell: mean(map(value, mine)) for cell, mine in _cells(steps).items()}


def _follows(quantity: Quantity, steps: Steps) -> bool:
    """Permutation test: whether cells differ by more than in random block orders."""
    ordered = sorted((step for step in steps if step.block is not None), key=lambda step: step.number)
    blocks = grouped(((step.purpose, step.round, step.block), step) for step in ordered)
    of_blocks = [_typical(block, lambda step: amount_of(quantity, step), fmean) for block in blocks.values()]
    tables = [table for table in of_blocks if len(table) > 1]
    names = {cell: i for i, cell in enumerate(dict.fromkeys(cell for table in tables for cell in table))}
    random = np.random.default_rng(0)
    sums, counts = np.zeros((PERMUTATIONS + 1, len(names))), np.zeros(len(names))
    for table in tables:
        at, values = np.array([names[cell] for cell in table]), np.array(list(table.values()))
        sums[:, at] += _dealt(values - values.mean(), [treatment for treatment, _ in table], random)
        counts[at] += 1
    between = (sums**2 / counts).sum(axis=1)
    as_much = int((between[1:] >= between[0] * (1 - ROUNDING)).sum())
    return (1 + as_much) / (1 + PERMUTATIONS) <= ERROR


def _dealt(values: Floats, treatments: Sequence[str], random: np.random.Generator) -> Floats:
    """(1 + PERMUTATIONS, cells), the first as they were taken."""
    numbers = np.unique(treatments, return_inverse=True)[1]
    turn = random.random((PERMUTATIONS, numbers.max() + 1)).argsort(axis=1).argsort(axis=1)[:, numbers]
    order = (turn + random.random((PERMUTATIONS, len(values)))).argsort(axis=1)
    dealt = np.empty((PERMUTATIONS, len(values)))
    np.put_along_axis(dealt, order, np.broadcast_to(values, dealt.shape), axis=1)
    return np.vstack([values, dealt])


def _takes_what_is_left(quantity: Quantity, steps: Steps, typical: Mapping[Cell, float]) -> bool:
    """Whether others have the less of full CPUs the more the study uses; what works for it would use more."""
    flagged = [step for step in steps if quantity.flag in step.flags]
    busy = [step.metrics.get("system.cpu.utilization", 1.0) for step in flagged]
    if quantity.flag != "stranger" or not busy or fmean(busy) < BUSY:
        return False
    own = _typical(steps, lambda step: step.metrics.get("system.cpu.own", 0.0))
    return _covariance(own, typical) <= 0


def _covariance(medians: Mapping[Cell, float], other: Mapping[Cell, float]) -> float:
    first, second = fmean(medians.values()), fmean(other.values())
    return sum((medians[cell] - first) * (other[cell] - second) for cell in medians)
