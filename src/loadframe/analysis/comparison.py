"""Two treatments that alternated in blocks (docs/mathematics.md): what affects a whole block cancels."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Floats
from loadframe.analysis.sequential import Plan, planned_level
from loadframe.model import Answer, Decision, Verdict
from loadframe.model.verdict import NOT_KNOWN, ROUNDING, decide

Blocks = Mapping[float, Sequence[float]]
"""Throughputs (1/s) per block, by level."""
Grains = Mapping[float, tuple[float, float]]
FEWEST_BLOCKS = 2
FEW_ORDERS = 8
UNPAIRED = 0.5
"""With fewer than FEW_ORDERS blocks periodic noise may follow the orders drawn: the interval is at least UNPAIRED times
the unpaired one; with 1, common variation would hide real changes (benchmarks/sceptic.py)."""
EULER = 0.5772156649015329
LEND = {2: (EULER + math.log(2), 4 / math.pi**2), 3: (EULER, 12 / math.pi**2)}
"""By number of blocks, where few: how far the mean logarithm of their variance is below the true one's, and the degrees
of freedom that a level adds (digamma and trigamma)."""
LEAST_VARIANCE = 0.01
"""The least variance of a level, as a share of the levels' mean: three equal counts may be chance."""
FEWEST_PAIRS = 3
"""Fewer pairs of blocks have a t-interval that mostly reflects their number."""


def verdict(
    before: Blocks, after: Blocks, *, plan: Plan | None, confidence: float = 0.95, grain: Grains | None = None
) -> Verdict:
    """Ratio after / before over the common levels, from throughputs (1/s) per block (index i: block i on both sides),
    in blocks complete on every level. The resolution of throughputs (the smallest spacing, or `grain` where finer) adds
    to the variance; where no side scatters and no grain is known, nothing is proven. plan: the intervals of all its
    looks hold at once; None: one look, at the end, where the number of blocks depends on time alone. Of zeros no ratio
    is made. With one block: cannot-tell, and the extremes of the levels.
    ValueError for no common level, no complete block, or values negative or not finite."""
    sides = _sides(before, after, grain)
    blocks, by_block = sides.blocks, sides.ratios.mean(axis=0)
    plan = plan or Plan(max(FEWEST_BLOCKS, blocks), max(FEWEST_BLOCKS, blocks))
    alpha = planned_level(plan, blocks, 1 - confidence)
    centre, when = sides.ratios.mean(), f"looks after blocks {plan.first} to {plan.last}"
    when = "one look, at the end" if plan.first == plan.last else when
    method = f"paired blocks, mean log ratio, t at {100 * (1 - alpha):.4g} % ({when})"
    if blocks < FEWEST_BLOCKS:
        low, high = sides.ratios.min(), sides.ratios.max()
        method = "one block: extremes of the levels' ratios, no interval"
    else:
        rounding = sides.rounding.sum() / len(sides.levels) ** 2
        means = sides.before.mean(axis=0), sides.after.mean(axis=0)
        half = abs(centre) if sides.still else half_width(*means, alpha, rounding=rounding)
        low, high = centre - half, centre + half
    outcome = verdict_of_logs(
        by_block.mean(),
        low,
        high,
        blocks=blocks,
        method=method,
        block_logs=by_block,
        levels=sides.levels,
        confidence=confidence,
    )
    values = (side[level][:blocks] for level in sides.levels for side in (before, after))
    return unless_zero(replace(outcome, floor=_floor(sides)), *values)


verdict_at_end = partial(verdict, plan=None)


def at_each_level(before: Blocks, after: Blocks, *, error: float = 0.05) -> tuple[Verdict, ...]:
    """All intervals hold at once with a probability of 1 - error (Bonferroni). Two or three blocks are lent the noise
    of all levels (docs/mathematics.md, "Side by side"). ValueError as `verdict`."""
    sides = _sides(before, after)
    levels, table, blocks = sides.levels, sides.ratios, sides.blocks
    if blocks not in LEND or len(levels) == 1:
        confidence = 1 - error / len(levels)
        return tuple(
            verdict_at_end({level: before[level]}, {level: after[level]}, confidence=confidence) for level in levels
        )
    variances = table.var(axis=1, ddof=1) + sides.rounding
    bias, freedom = LEND[blocks]
    floored = np.maximum(variances, LEAST_VARIANCE * variances.mean())
    common = math.exp(np.log(floored).mean() + bias) if variances.any() else 0.0
    lent = _half(common, freedom * len(levels), error / len(levels), blocks)
    halves = [max(lent, _half(own, blocks - 1, error / 2, blocks)) for own in variances]
    method = f"paired blocks, noise lent among {len(levels)} levels that hold at once at {100 * (1 - error):.4g} %"
    outcomes = (
        verdict_of_logs(
            row.mean(),
            row.mean() - half,
            row.mean() + half,
            blocks=blocks,
            method=method,
            block_logs=row,
            levels=(level,),
            confidence=1 - error / 2,
        )
        for level, row, half in zip(levels, table, halves, strict=True)
    )
    return tuple(unless_zero(outcome, before[outcome.levels[0]], after[outcome.levels[0]]) for outcome in outcomes)


def unless_zero(verdict: Verdict, *sides: Sequence[float]) -> Verdict:
    values, did = [value for side in sides for value in side], [any(side) for side in sides]
    if all(values):
        return verdict
    why = f"{values.count(0)} of {len(values)} values are zero, and of zeros no ratio is made"
    if not all(did):
        why = "one side did nothing" if any(did) else "neither side did anything"
    return without_ratio(verdict, why)


def without_ratio(verdict: Verdict, why: str, decision: Decision = "cannot-tell") -> Verdict:
    low, high = NOT_KNOWN
    nothing = replace(verdict, ratio=1.0, low=low, high=high, block_ratios=(), floor=None, sessions=None)
    return replace(nothing, decision=decision, method=why)


def turned(verdict: Verdict) -> Verdict:
    """The same verdict for values of which lower is better."""
    opposite: Mapping[Decision, Decision] = {"better": "worse", "worse": "better"}
    return replace(verdict, decision=opposite.get(verdict.decision, verdict.decision))


def margin(verdict: Verdict, allowed: float, *, lower_is_better: bool = False) -> Answer:
    """Whether the whole interval is worse by more than the share `allowed`."""
    if verdict.decision == "cannot-tell":
        return "cannot-tell"
    if not verdict.has_ratio:  # one side served nothing
        return "proven-worse" if verdict.decision == "worse" else "proven-not-worse"
    # The reciprocal of a time compares like a throughput.
    low, high, edge = (
        (1 / verdict.high, 1 / verdict.low, 1 / (1 + allowed))
        if lower_is_better
        else (verdict.low, verdict.high, 1 - allowed)
    )
    if high < edge - ROUNDING:
        return "proven-worse"
    return "proven-not-worse" if low >= edge - ROUNDING else "cannot-tell"


def shares(whole: Verdict, gains: Sequence[Verdict]) -> tuple[float, ...]:
    """Of each successive gain in the logarithm of the whole; () where that is undecided or a gain has no ratio."""
    logs = [math.log(gain.ratio) for gain in gains]
    total = sum(logs)
    if not whole.decided or abs(total) <= ROUNDING or not all(gain.has_ratio for gain in gains):
        return ()
    return tuple(log / total for log in logs)


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """The product of successive, independent gains."""
    if len(verdicts) == 1:
        return verdicts[0]
    centre = sum(math.log(part.ratio) for part in verdicts)
    down = math.sqrt(sum((math.log(part.ratio) - math.log(part.low)) ** 2 for part in verdicts))
    up = math.sqrt(sum((math.log(part.high) - math.log(part.ratio)) ** 2 for part in verdicts))
    common = set(verdicts[0].levels).intersection(*(part.levels for part in verdicts))
    same = all(set(part.levels) == common for part in verdicts)
    method = f"product of {len(verdicts)} successive verdicts, intervals combined in quadrature of logarithms"
    if not same:
        method += "; the verdicts were taken at different levels, so the product is approximate"
    decisions = {part.decision for part in verdicts}
    whole = verdict_of_logs(
        centre,
        centre - down,
        centre + up,
        blocks=min(part.blocks for part in verdicts),
        method=method,
        levels=tuple(sorted(common)),
        confidence=min(part.confidence for part in verdicts),
    )
    decision: Decision = "cannot-tell" if "cannot-tell" in decisions else whole.decision
    whole = replace(whole, decision=decision, may_overstate=any(part.may_overstate for part in verdicts))
    if (open_ := next((part for part in verdicts if not part.has_ratio), None)) is None:
        return whole
    return without_ratio(whole, open_.method, open_.decision if len(decisions) == 1 else "cannot-tell")


def logarithms(samples: Sequence[Sequence[float]]) -> list[Floats]:
    """Logarithms of samples; of a zero 0, as `unless_zero` lets nothing of it stand. ValueError for values negative or
    not finite."""
    values = [np.asarray(sample, dtype=np.float64) for sample in samples]
    together = np.concatenate(values)
    if not np.isfinite(together).all() or (together < 0).any():
        raise ValueError(f"values must be finite and not negative, got {together.tolist()}")
    return [np.log(np.where(sample == 0, 1.0, sample)) for sample in values]


def half_width(before: Floats, after: Floats, alpha: float, *, rounding: float = 0.0) -> Floats:
    """At level 1 - alpha, of the mean of after - before, log throughputs, (..., blocks). Paired t; below FEW_ORDERS
    blocks at least UNPAIRED times the unpaired one. rounding: variance added to a difference."""
    blocks = before.shape[-1]
    paired = (after - before).var(axis=-1, ddof=1) + rounding
    half = student.quantile(1 - alpha / 2, blocks - 1) * np.sqrt(paired / blocks)
    if blocks < FEW_ORDERS:
        apart = before.var(axis=-1, ddof=1) + after.var(axis=-1, ddof=1) + rounding
        unpaired = student.quantile(1 - alpha / 2, 2 * (blocks - 1)) * np.sqrt(apart / blocks)
        half = np.maximum(half, UNPAIRED * unpaired)
    return np.asarray(half)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Log throughputs of complete blocks, (levels, blocks). rounding: variance that it adds to a log ratio; still:
    neither side scatters and no grain is known."""

    levels: tuple[float, ...]
    before: Floats
    after: Floats
    rounding: Floats
    still: bool

    @property
    def ratios(self) -> Floats:
        return self.after - self.before

    @property
    def blocks(self) -> int:
        return int(self.before.shape[1])


def _sides(before: Blocks, after: Blocks, grain: Grains | None = None) -> _Sides:
    levels = tuple(sorted(set(before) & set(after)))
    if not levels:
        raise ValueError("the two treatments have no level in common; measure both at the same levels")
    blocks = min(min(len(before[level]), len(after[level])) for level in levels)
    if blocks == 0:
        raise ValueError("no block is complete on every level; measure at least one")
    values = [(before[level][:blocks], after[level][:blocks]) for level in levels]
    logs = [logarithms(pair) for pair in values]
    known = grain or {}
    return _Sides(
        levels,
        np.array([first for first, _ in logs]),
        np.array([second for _, second in logs]),
        np.array([_rounding(grains(*pair), known.get(level)) for level, pair in zip(levels, values, strict=True)]),
        grain is None and all(len(set(side)) == 1 for pair in values for side in pair),
    )


def _rounding(seen: tuple[float, float], known: tuple[float, float] | None) -> float:
    """By the finer grain: equal counts have no spacing."""
    finest = seen if known is None else tuple(map(min, ((grain or 1.0) for grain in seen), known))
    return sum(grain**2 / 12 for grain in finest)


def grains(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Relative resolution of each sample: the smallest spacing of all values (0 for a single value) over its median."""
    spacing = float(np.diff(np.unique(np.array([*before, *after], dtype=np.float64))).min(initial=math.inf))
    if math.isinf(spacing):
        return 0.0, 0.0
    first, second = (min(1.0, spacing / max(float(np.median(side)), spacing)) for side in (before, after))
    return first, second


def _floor(sides: _Sides) -> tuple[float, float] | None:
    """Of an A/A pair of these blocks, 95 % (docs/mathematics.md, "Noise floor")."""
    even = sides.blocks - sides.blocks % 2
    if even < FEWEST_BLOCKS or sides.still:
        return None
    means = np.array([side.mean(axis=0)[:even] for side in (sides.before, sides.after)])
    apart = means[:, 1::2] - means[:, ::2]
    if not apart.any():  # equal counts do not prove that there is no noise
        return None
    pairs = apart.mean(axis=0)
    most = np.abs(apart).max()
    if len(pairs) >= FEWEST_PAIRS:
        most = _half((pairs**2).mean(), len(pairs), 0.05, len(pairs))
    return exp_in_range(-most), exp_in_range(most)


def _half(variance: float, freedom: float, alpha: float, blocks: int) -> float:
    return float(student.quantile(1 - alpha / 2, freedom)) * math.sqrt(variance / blocks)


def verdict_of_logs(
    centre: float,
    low: float,
    high: float,
    *,
    blocks: int,
    method: str,
    block_logs: Iterable[float] = (),
    levels: tuple[float, ...] = (),
    confidence: float = 0.95,
) -> Verdict:
    low, high = exp_in_range(low), exp_in_range(high)
    decision = decide(low, high) if blocks >= FEWEST_BLOCKS else "cannot-tell"
    of_blocks = tuple(map(exp_in_range, block_logs))
    return Verdict(exp_in_range(centre), low, high, decision, blocks, method, of_blocks, levels, confidence)


def exp_in_range(value: float) -> float:
    """exp(value), from 1e-87 to 1e87: intervals of two blocks can exceed what a file may hold
    (`runs.formats.LARGEST`)."""
    return math.exp(min(max(value, -200.0), 200.0))
