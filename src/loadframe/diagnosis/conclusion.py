"""What the rounds add up to: the ladder, the next limit, what is unfinished, and the outcome."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from loadframe.analysis import comparison
from loadframe.analysis.samples import needed
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.operational import OPERATIONAL
from loadframe.diagnosis.plateau import is_flat
from loadframe.diagnosis.signatures import DRIVER_LIMITED
from loadframe.diagnosis.sizes import in_service_by
from loadframe.diagnosis.windows import bend_intervals, bend_of, explains_bend
from loadframe.knowledge.families import in_series
from loadframe.model import (
    CLIENT_AXES,
    DRIVER_BESIDE,
    OTHERS,
    ChangeRecord,
    Curve,
    FleetDrivers,
    LadderStep,
    Limit,
    NextLimit,
    Outcome,
    Round,
    StateSummary,
    Steps,
    Stop,
    Trial,
    Unfinished,
)
from loadframe.model.verdict import MOST_BLOCKS
from loadframe.units import show, show_metric


def kept_trials(rounds: Sequence[Round]) -> list[Trial]:
    return [trial for round_ in rounds for trial in round_.tried if trial.kept]


def net_changes(kept: Sequence[Trial]) -> tuple[ChangeRecord, ...]:
    net: dict[tuple[str, str], ChangeRecord] = {}
    for trial in kept:
        for change in trial.remedy.changes:
            if change.needed:
                key = (change.layer, change.setting)
                before = net[key].before if key in net else change.before
                effective = trial.effective.get(change.setting)
                net[key] = ChangeRecord(
                    change.setting, before, change.after, effective, "applied", layer=change.layer, why=change.why
                )
    return tuple(net.values())


def ladder(rounds: Sequence[Round]) -> tuple[LadderStep, ...]:
    kept = kept_trials(rounds)
    gains = [trial.reported for trial in kept]
    if not kept or not all(gain.has_ratio for gain in gains):
        return ()
    shares = comparison.shares(comparison.combine(gains), gains) or [None] * len(kept)
    return tuple(
        LadderStep(trial.remedy.title, gain.ratio, gain.low, gain.high, share, trial.remedy.price.durability)
        for trial, gain, share in zip(kept, gains, shares, strict=True)
    )


def summary(round_: Round) -> StateSummary:
    return StateSummary(round_.curve.peak, round_.curve.knee, bend_of(round_))


FURTHEST = 2.0
"""Multiple of the highest load tested beyond which a straight line says nothing."""


def next_limit(rounds: Sequence[Round]) -> NextLimit | None:
    """An open cause of the last state, that of its bend first; else a limit measured as full at the bend, or what was
    raised and is full again; else one that a kept change has raised, or as many requests served at once; else the one
    that a straight line fills first, up to FURTHEST times the highest load."""
    last, kept = rounds[-1], kept_trials(rounds)
    settled = {cause for trial in last.tried if trial.kept for cause in trial.remedy.addresses}
    open_ = [
        finding for finding in last.findings if finding.status != "refuted" and finding.id not in settled.union(GROWTH)
    ]
    open_ = [finding for finding in open_ if finding.id != OTHERS] or open_  # a disturbance is no limit
    if open_:
        at_bend = [finding for finding in open_ if bend_intervals(last.curve) and explains_bend(finding)]
        first = (at_bend or open_)[0]
        at = first.reached_at
        return NextLimit(first.id, None if at is None else at.load, first.title, first.explanation)
    # the room of a queue fills because of the next stage
    limits = [limit for limit in last.limits if not (limit.id.endswith(".queue") and in_series(limit.id))]
    limits.sort(key=_load)
    placed = [(limit, limit.exhausted_at) for limit in limits if limit.exhausted_at is not None]
    full = [limit for limit, at in placed if at.how == "measured" and any(map(at.meets, bend_intervals(last.curve)))]
    if full:
        return _as_next(full[0], "its use is at the ceiling of {ceiling} where the last curve bends")
    moved = {cause for trial in kept for cause in trial.remedy.addresses}
    if again := [limit for limit, at in placed if at.how == "measured" and limit.id in moved]:
        return _as_next(again[0], "it is at its ceiling of {ceiling} again")
    furthest = FURTHEST * last.curve.points[-1].load
    within = [limit for limit, at in placed if at.how == "extrapolated" and at.load <= furthest]
    larger = {
        change.setting: (change.before, change.after)
        for trial in kept
        for change in trial.remedy.changes
        if change.needed and isinstance(change.before, int | float) and isinstance(change.after, int | float)
        if change.before < change.after
    }
    raised = [limit for limit in limits if limit.setting and limit.setting in larger]
    if raised and not (within and _load(within[0]) < _load(raised[0])):
        return _as_next(raised[0], f"a change has raised {raised[0].setting} to {{ceiling}}", furthest)
    at_once = [in_service_by(finding) for round_ in rounds for finding in round_.findings]
    sizes = [(float(new), setting) for setting, (old, new) in larger.items() if old in at_once]
    size, setting = min(sizes, default=(math.inf, ""))
    if last.curve.axis in CLIENT_AXES and size <= min([furthest, *map(_load, within)]):
        return NextLimit(setting, size, f"the setting {setting}", f"a change has raised {setting} to {size:g}")
    return _as_next(within[0], "its use grows with the load towards the ceiling of {ceiling}") if within else None


def _as_next(limit: Limit, because: str, furthest: float = math.inf) -> NextLimit:
    load, ceiling = _load(limit), show_metric(limit.use_metric, limit.ceiling)
    title, because = limit.title or limit.id, because.format(ceiling=ceiling)
    return NextLimit(limit.id, load if load <= furthest and math.isfinite(load) else None, title, because)


def _load(limit: Limit) -> float:
    return limit.exhausted_at.load if limit.exhausted_at is not None else math.inf


def outcome(
    rounds: Sequence[Round], *, interrupted: bool = False, stop: Stop | None = None, drivers: FleetDrivers | None = None
) -> Outcome:
    """stop: where the target failed. drivers: all driving hosts compared with fewer."""
    kept = kept_trials(rounds)
    if stop is not None and not (kept and stop.went_on):
        how = f"died ({stop.died})" if stop.died else "failed, and did not recover"
        where = "from lower loads" if stop.went_on else "from the steps before"
        load = f"{rounds[-1].curve.axis.replace('_', ' ')} = {stop.level:g}"
        return Outcome("stopped-answering", f"The target {how} at {load}; the results are {where}.")
    if interrupted:
        return Outcome("interrupted", "The investigation was stopped before its end; this is what was measured.")
    if drivers is not None and drivers.limit == "drivers":
        return Outcome("driver-limited", "The drivers were the bottleneck, not the target; nothing was changed.")
    if drivers is not None and drivers.limit == "link":
        return Outcome("link-full", "The link from the target was full; nothing of the target was changed.")
    if kept:
        words = " and ".join(trial.remedy.title for trial in kept)
        return Outcome("gained", f"Kept: {words}.{for_no_cause(kept)}")
    last = rounds[-1]
    if not last.findings:
        seen = _nothing_found(last)
        return replace(seen, text=seen.text.removesuffix(UNCHANGED) + DECLARED) if last.tried else seen
    if last.tried:
        return Outcome("no-proven-gain", "No change that was tried has a proven gain; all were reverted.")
    first = last.findings[0]
    title = first.title[0].upper() + first.title[1:]
    if first.id == DRIVER_LIMITED:
        return Outcome("driver-limited", "The load driver was the bottleneck, not the target; nothing was changed.")
    if first.id in (OTHERS, DRIVER_BESIDE):
        return Outcome("limit-without-remedy", f"{title}; nothing was changed.")
    if first.id in OPERATIONAL:
        return Outcome("limit-without-remedy", f"{title}; no change that could confirm why was tried.")
    if first.id == "cpu.saturated":
        return Outcome("cpu-saturated", "The CPUs are saturated with the work asked for; nothing was changed.")
    return Outcome(
        "limit-without-remedy", f"Suspected: {first.title}. No remedy for it was tried; nothing was changed."
    )


WORTH_MORE = 1.05
"""A smaller gain is not worth more time; our choice."""
FEWEST_ALIKE = 3
"""Blocks that all show a gain: with equal states one trial in eight does."""


def unfinished(
    rounds: Sequence[Round], steps: Steps, budget_s: float, most_blocks: int, command: str
) -> Unfinished | None:
    """Of the unkept changes that gained in each block, and that MOST_BLOCKS could prove, the best."""
    counts = [
        (_blocks_to_decide(trial), trial)
        for round_ in rounds
        for trial in round_.tried
        if not trial.kept
        and trial.reported.has_ratio
        and len(trial.reported.block_ratios) >= FEWEST_ALIKE
        and min(trial.reported.block_ratios) > 1
        and trial.reported.ratio > WORTH_MORE
        # Where a warm-up had not ended, more blocks would not prove it, unless others already did.
        and (not trial.reported.unsettled_at or trial.verdict.decision == "better")
    ]
    within = [(count, trial) for count, trial in counts if count is not None and count <= MOST_BLOCKS]
    if kept_trials(rounds) or not within:
        return None
    count, best = max(within, key=lambda pair: pair[1].reported.ratio)
    verdict = best.reported
    took = [step.ended_s - before.ended_s for before, step in pairwise(steps) if step.number in best.deciding]
    if not took:
        return None
    more_s = (count - verdict.blocks) * 2 * len(verdict.levels) * fmean(took)
    budget = f" --set measure.budget={math.ceil(budget_s + more_s)}s"
    blocks = f" --set measure.blocks.max={count}" if count > most_blocks and not verdict.decided else ""
    return Unfinished(best.remedy.title, verdict, more_s, f"{command}{budget}{blocks}")


def _blocks_to_decide(trial: Trial) -> int | None:
    """Doubled without fresh blocks; None where it is or cannot be decided."""
    if trial.fresh is None and trial.reported.decision == "better":
        return 2 * trial.reported.blocks
    count = None if trial.reported.decided else needed(trial.reported, "blocks").count
    return count if count is None or trial.fresh is None else max(count, 2 * trial.reported.blocks)


def for_no_cause(kept: Sequence[Trial]) -> str:
    if not kept or any(trial.remedy.addresses for trial in kept):
        return ""
    if len(kept) == 1:
        return " It was tried because the study declares it; its gain names no cause."
    return " They were tried because the study declares them; their gains name no cause."


UNCHANGED = "; nothing was changed."
DECLARED = "; no setting that the study declares has a proven gain, and all were put back."
NEAR = 0.85
"""Share of a ceiling from which on a limit is named where nothing is exhausted; our choice."""


def _nothing_found(last: Round) -> Outcome:
    if (why := stops_growing(last.curve)) is None:
        return Outcome("no-limit-reached", f"No limit was reached within the levels tested{UNCHANGED}")
    near = [limit for limit in last.limits if NEAR * limit.ceiling <= limit.use < limit.ceiling]
    nearest = ""
    if near:
        limit = max(near, key=lambda limit: limit.use / limit.ceiling)
        nearest = f"; nearest to that: {limit.title or limit.id}, {show(limit.use / limit.ceiling, 'share')} in use"
    return Outcome("limit-not-seen", f"{why}, and nothing that is seen from outside is exhausted{nearest}{UNCHANGED}")


LITTLE = 0.15
"""Exponent of the load below which throughput hardly grows, our choice: 1.4 times at ten times the load."""


def stops_growing(curve: Curve) -> str | None:
    """Where throughput stops growing, in words; None where it grows up to the highest level, or there is only one."""
    if curve.cliff is not None:
        return f"Throughput falls between {curve.axis} {curve.cliff.from_load:g} and {curve.cliff.to_load:g}"
    if curve.knee is not None:
        return f"Throughput stops growing at {curve.axis} {curve.knee.load:.3g}"
    if is_flat(curve):
        return f"Throughput does not grow from the lowest level, {curve.axis} {curve.points[0].load:g}, on"
    low, high = curve.points[0], curve.points[-1]
    little = math.pow(high.load / low.load, LITTLE)
    if curve.shape == "plateau" and high.load > low.load and high.throughput < low.throughput * little:
        times, loads = high.throughput / low.throughput, high.load / low.load
        return f"Throughput hardly grows: it is {times:.3g} times as high at {loads:.3g} times the {curve.axis}"
    return None
