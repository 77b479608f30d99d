"""From the steps of one treatment to a round: limits with the load at which they run out, and findings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadframe.analysis import saturation
from loadframe.analysis.disturbance import apart_from_effects
from loadframe.analysis.selection import select
from loadframe.diagnosis import others
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.operational import SERVED_AT_ONCE, UNKNOWN_KINDS, Seen, operational
from loadframe.diagnosis.pipelines import pipeline_findings
from loadframe.diagnosis.plateau import flat_levels
from loadframe.diagnosis.remedies import Situation
from loadframe.diagnosis.windows import look, sighted
from loadframe.experiments.memory_budget import with_memory_at_full
from loadframe.host.processes import most_open_files
from loadframe.ledger.reading import Series, clamped, read_limits
from loadframe.ledger.rules import rules_for
from loadframe.model import Curve, Knob, Limit, Round, SettingValue, Step, TargetState
from loadframe.study.exposed_tables import LimitTable

BY_REQUESTS = frozenset({"share", "cores", "1/s", "bytes/s"})
"""Units of what requests use for a time, and give back: it grows with the throughput, where files or memory grow with
the load."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A round before any remedy was tried, with what remedies are made from. bend: the last load that held."""

    round: Round
    situation: Situation
    bend: float | None


def examine(
    steps: Sequence[Step],
    *,
    number: int,
    treatment: str,
    state: TargetState,
    effective: Mapping[str, SettingValue],
    curve: Curve,
    target_kind: str,
    highest_level: float,
    free_disk_bytes: float = math.inf,
    knobs: tuple[Knob, ...] = (),
    declared: Sequence[LimitTable] = (),
    run: Sequence[Step] = (),
) -> Examined:
    """Read the ledger and diagnose, from all steps of one treatment. free_disk_bytes, knobs: as of a Situation.
    declared: the limits that the study declares. run: all steps so far, of which effects are told from disturbances;
    these steps alone without it."""
    steps, series = ledger_of(steps, state, effective, declared)
    flat = flat_levels(curve)
    limits = tuple(with_saturation(one, highest_level, flat) for one in series)
    counting = apart_from_effects(select(steps).steps, run or steps)
    windows = look(curve, counting)
    own = target_kind in UNKNOWN_KINDS
    named = {*state.settings, *(knob.name for knob in knobs)}  # of what is there besides, any value may be by chance
    settings = {name: value for name, value in effective.items() if name in named}
    several = operational(Seen(curve, counting, settings, limits, steps if own else (), own))
    unknown = others.collector(counting) if own else ()
    findings, ruled_out = diagnose(windows, limits, (*pipeline_findings(windows), *several, *unknown))
    findings = others.failures(findings, SERVED_AT_ONCE) if own else findings
    demands = {
        one.limit.id: saturation.demand_at(one.loads, one.uses, one.limit.ceiling, highest_level) for one in series
    }
    return Examined(
        round=Round(
            number=number,
            treatment=treatment,
            state=state,
            effective=dict(effective),
            curve=curve,
            limits=limits,
            findings=findings,
            tried=(),
            untried=(),
            clamped=clamped_in(state, effective),
            ruled_out=ruled_out,
        ),
        situation=Situation(
            target_kind=target_kind,
            state=state,
            effective=effective,
            demands=demands,
            ceilings={limit.id: limit.ceiling for limit in limits},
            most_open_files=most_open_files(),
            free_disk_bytes=free_disk_bytes,
            knobs=knobs,
        ),
        bend=windows.bend,
    )


def ledger_of(
    steps: Sequence[Step],
    state: TargetState,
    effective: Mapping[str, SettingValue],
    declared: Sequence[LimitTable] = (),
) -> tuple[list[Step], list[Series]]:
    """These steps of one state with what only all of them together tell, and every limit that they show."""
    whole = with_memory_at_full(sighted(steps), effective)
    return whole, read_limits(whole, state, effective, rules_for(declared, whole))


def clamped_in(state: TargetState, effective: Mapping[str, SettingValue]) -> tuple[str, ...]:
    """What the target did not grant as the state asks for it, in words. A bench's states are in canonical form."""
    return clamped({**state.settings, **state.limits}, effective)


def with_saturation(series: Series, highest_level: float, flat: Sequence[float] = ()) -> Limit:
    """The limit with the load at which it is used up, where that is not far beyond the highest level. flat: the levels
    at which throughput does not grow."""
    limit, furthest = series.limit, saturation.FORESIGHT * highest_level
    flat_from = flat[0] if flat and limit.unit in BY_REQUESTS else None
    at = saturation.over_load(series.loads, series.uses, limit.ceiling, flat_from=flat_from, furthest=furthest)
    return replace(limit, exhausted_at=at)
