"""From the steps of one treatment to a round: limits with the load at which they saturate, and findings."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from loadframe.analysis import saturation
from loadframe.analysis.disturbance import apart_from_effects
from loadframe.analysis.selection import select
from loadframe.diagnosis import others
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.operational import UNKNOWN_KINDS, Seen, operational
from loadframe.diagnosis.plateau import flat_levels
from loadframe.diagnosis.remedies import Situation
from loadframe.diagnosis.windows import acts_from, look, sighted
from loadframe.errors import TargetError
from loadframe.experiments.proof import judged_levels
from loadframe.host.processes import most_open_files
from loadframe.kinds.base import Attached, Target
from loadframe.ledger.reading import Series, as_number, clamped, read_limits
from loadframe.ledger.rules import rules_for
from loadframe.metrics import METRICS
from loadframe.model import Curve, Knob, Limit, Round, Saturation, SettingValue, Step, Steps, TargetState
from loadframe.recording.derivation import PAGE_BYTES
from loadframe.recording.process_metrics import memory
from loadframe.study.exposed_tables import LimitTable

BY_REQUESTS = frozenset({"share", "cores", "1/s", "bytes/s"})
"""Units of rates, which follow the throughput; files or memory follow the load."""


@dataclass(frozen=True, slots=True)
class Examined:
    """bend: the last load before the curve levels off."""

    round: Round
    situation: Situation
    bend: float | None

    @property
    def levels(self) -> tuple[float, ...]:
        return judged_levels(self.round.curve, self.bend)

    def but(self, **changes: Any) -> Self:
        return replace(self, round=replace(self.round, **changes))


def examine(
    steps: Steps,
    *,
    number: int = 1,
    treatment: str,
    state: TargetState,
    effective: Mapping[str, SettingValue],
    curve: Curve,
    target_kind: str,
    highest_level: float,
    free_disk_bytes: float = math.inf,
    knobs: tuple[Knob, ...] = (),
    declared: Sequence[LimitTable] = (),
    run: Steps = (),
) -> Examined:
    """steps: all of one treatment. run: all steps so far, to separate effects from disturbances; default: these
    steps."""
    steps, series = ledger_of(steps, state, effective, declared)
    flat = flat_levels(curve)
    limits = tuple(with_saturation(limit_series, highest_level, flat) for limit_series in series)
    counting = apart_from_effects(select(steps).steps, run or steps)
    windows = look(curve, counting)
    own = target_kind in UNKNOWN_KINDS
    named = {*state.settings, *(knob.name for knob in knobs)}  # the value of any other may be chance
    settings = {name: value for name, value in effective.items() if name in named}
    several = operational(Seen(curve, counting, settings, limits, steps if own else (), own))
    unknown = others.collector(counting) if own else ()
    findings, ruled_out = diagnose(windows, limits, (*several, *unknown))
    findings = others.failures(findings) if own else findings
    demands = {
        limit_series.limit.id: saturation.demand_at(
            limit_series.loads, limit_series.uses, limit_series.limit.ceiling, highest_level
        )
        for limit_series in series
    }
    round_ = Round(
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
    )
    return Examined(
        round=placed(round_),
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


def placed(round_: Round) -> Round:
    """The first finding acts from the bend where its own evidence agrees, and a limit runs out where its finding
    begins."""
    findings = list(round_.findings)
    at = next((number for number, finding in enumerate(findings) if finding.status != "refuted"), None)
    if at is not None:
        findings[at] = replace(findings[at], reached_at=acts_from(round_, findings[at]))
    begins = {finding.id: finding.reached_at for finding in findings if finding.reached_at is not None}
    limits = []
    for limit in round_.limits:
        if (start := begins.get(limit.id)) is not None:
            how = start.how if isinstance(start, Saturation) else "measured"
            method = limit.exhausted_at.method if limit.exhausted_at else "bracket"
            limit = replace(limit, exhausted_at=Saturation(start.load, start.low, start.high, how, method))
        limits.append(limit)
    return replace(round_, findings=tuple(findings), limits=tuple(limits))


def ledger_of(
    steps: Steps, state: TargetState, effective: Mapping[str, SettingValue], declared: Sequence[LimitTable] = ()
) -> tuple[list[Step], list[Series]]:
    """The steps with metrics that need all of them, and the limits that they show."""
    whole = with_memory_at_full(sighted(steps), effective)
    return whole, read_limits(whole, state, effective, rules_for(declared, whole))


def clamped_in(state: TargetState, effective: Mapping[str, SettingValue]) -> tuple[str, ...]:
    return clamped({**state.settings, **state.limits}, effective)


def with_saturation(series: Series, highest_level: float, flat: Sequence[float] = ()) -> Limit:
    """The limit, with the load of its saturation if near the tested levels. flat: levels without growth."""
    limit, furthest = series.limit, saturation.FORESIGHT * highest_level
    flat_from = flat[0] if flat and limit.unit in BY_REQUESTS else None
    at = saturation.over_load(series.loads, series.uses, limit.ceiling, flat_from=flat_from, furthest=furthest)
    return replace(limit, exhausted_at=at)


AT_FULL = ".memory_at_full"
KINDS = tuple(name.removesuffix(AT_FULL) for name in METRICS if name.endswith(AT_FULL))
"""Servers with a metric of their connections' memory."""
FEWEST_COUNTS = 3


def memory_at_full(kind: str, pairs: Sequence[tuple[float, float]], values: Mapping[str, float]) -> float | None:
    """Bytes: the line through (connections, resident bytes) at max_connections, plus the unfilled part of the cache.
    None for too few numbers of connections."""
    most, allowed = values.get(f"{kind}.max_connections"), values.get("target.memory.allowed")
    if len({count for count, _ in pairs}) < FEWEST_COUNTS or most is None or allowed is None:
        return None
    expected = saturation.demand_at([count for count, _ in pairs], [use for _, use in pairs], allowed, most)
    unused = values.get(f"{kind}.pool_pages_free", 0.0) * values.get(f"{kind}.pool_page_bytes", 0.0)
    unused += max(0.0, values.get(f"{kind}.shared_buffers.asked", 0.0) - values.get("target.memory.shared", 0.0))
    return None if expected is None else expected + unused


def with_memory_at_full(steps: Steps, effective: Mapping[str, SettingValue]) -> list[Step]:
    """Not for a target in several pieces, whose connections are those of one."""
    at_full: dict[str, float] = {}
    for kind in KINDS:
        names = f"{kind}.connections", "target.memory.rss"
        known = [step.metrics for step in steps if all(name in step.metrics for name in names)]
        if not known or "shard1.cpu.cores" in known[-1]:
            continue
        buffers = as_number(effective.get("shared_buffers"))
        asked = {} if buffers is None else {f"{kind}.shared_buffers.asked": buffers}
        pairs = [(metrics[names[0]], metrics[names[1]]) for metrics in known]
        expected = memory_at_full(kind, pairs, {**known[-1], **asked})
        if expected is not None:
            at_full[f"{kind}{AT_FULL}"] = expected
    return [replace(step, metrics={**step.metrics, **at_full}) for step in steps] if at_full else list(steps)


CONNECTION_STEPS, CONNECTIONS_PER_STEP = 6, 8


def resident_by_connections(
    server: Attached | Target | None, enter: Callable[[], Attached] | None
) -> tuple[tuple[float, float], ...]:
    """(connections, resident bytes), with more and more idle connections; empty unless the server is private."""
    if server is None or enter is None:
        return ()
    readings = [(1.0, _resident_bytes(server.pids()))]
    with ExitStack() as stack:
        for step in range(1, CONNECTION_STEPS + 1):
            try:
                for _ in range(CONNECTIONS_PER_STEP):
                    stack.callback(enter().close)
            except TargetError:  # no more are allowed: use what was measured so far
                break
            readings.append((1.0 + step * CONNECTIONS_PER_STEP, _resident_bytes(server.pids())))
    return tuple(readings)


def _resident_bytes(pids: Sequence[int]) -> float:
    """TargetError where the first process has ended; others may end at any time."""
    files = []
    for pid in pids:
        try:
            files.append({"status": Path(f"/proc/{pid}/status").read_bytes()})
        except OSError as error:
            if pid == pids[0]:
                raise TargetError(f"Process {pid} has ended", remedy="Its server's log says why.") from error
            continue
    return float(memory(PAGE_BYTES, files).get("memory.rss", 0.0))
