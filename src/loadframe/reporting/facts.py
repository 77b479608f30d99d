"""Which finding, trial and curve the report is about, for text, page and charts alike."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from loadframe.diagnosis import conclusion
from loadframe.diagnosis.windows import explained
from loadframe.model import (
    CLIENT_AXES,
    OTHERS,
    Bend,
    Change,
    ChangeRecord,
    Curve,
    CurvePoint,
    Finding,
    Investigation,
    Limit,
    Round,
    SettingValue,
    Trial,
)
from loadframe.switches import spelled

WORKERS = CLIENT_AXES | {"scan_threads", "scanners", "pipelines", "workers"}
FOOTPRINT_KEYS = frozenset({"step", "level", "block", "throughput", "latency_p95_ms", "latency_p999_ms", "errors"})
Role = Literal["before", "between", "after"]


@dataclass(frozen=True, slots=True)
class Series:
    """curve: None where only the proof's levels were measured; points then have no interval and no latency."""

    role: Role
    label: str
    points: tuple[CurvePoint, ...]
    curve: Curve | None
    round: Round


def main_findings(inv: Investigation) -> tuple[Finding, ...]:
    """The confirmed ones in order, then those that a change helped against, each id once; else the best suspected one;
    none where the drivers limit. That other programs took the CPUs comes before everything unconfirmed, unless a change
    is kept."""
    if inv.drivers is not None and inv.drivers.limit_the_curve:
        return ()
    findings = [finding for round_ in inv.rounds for finding in round_.findings]
    moved: dict[str, Finding] = {}
    for status in ("confirmed", "helped"):
        for finding in findings:
            if finding.status == status:
                moved.setdefault(finding.id, finding)
    if not moved:
        return tuple(finding for finding in findings if finding.status == "suspected")[:1]
    if any(finding.status == "confirmed" for finding in moved.values()):
        return tuple(moved.values())
    others = [finding for finding in findings if finding.id == OTHERS][:1]
    return (*moved.values(), *others) if conclusion.kept_trials(inv.rounds) else (*others, *moved.values())


def main_id(inv: Investigation) -> str:
    return next((finding.id for finding in main_findings(inv)), "")


def ruled_out_in(inv: Investigation, finding: Finding) -> tuple[tuple[str, str], ...]:
    """(State, why) of the latest state that ruled out a suspected finding."""
    if finding.status != "suspected":
        return ()
    states = {inv.rounds[-1].number: "in the last state", inv.rounds[0].number: "before any change"}
    reasons = [
        (states.get(round_.number, f"in round {round_.number}"), item.because)
        for round_ in inv.rounds
        for item in (*round_.ruled_out, *(item for other in round_.findings for item in other.ruled_out))
        if item.id == finding.id and item.judged
    ]
    return tuple(reasons[-1:])


def suspected_findings(inv: Investigation) -> tuple[Finding, ...]:
    """In the last state; earlier suspicions went with the changes."""
    main = {finding.id for finding in main_findings(inv)}
    last = inv.rounds[-1].findings if inv.rounds else ()
    return tuple(finding for finding in last if finding.status == "suspected" and finding.id not in main)


SILENT_MS, SILENT_TIMES = 200.0, 20.0
"""A stall: nothing completes for 0.2 s and 20 mean gaps between requests (one exponential gap in half a billion)."""


@dataclass(frozen=True, slots=True)
class Silence:
    load: float
    silence_ms: float
    stalled_ms: float


def silences(round_: Round) -> tuple[Silence, ...]:
    worst: dict[float, Silence] = {}
    for row in round_.footprint:
        longest, throughput = row.get("workload.silence_ms", 0.0), row["throughput"]
        if longest >= max(SILENT_MS, SILENT_TIMES * 1000 / max(throughput, 1e-9)):
            silence = Silence(row["level"], longest, row.get("system.stall.longest_ms", 0.0))
            worst[silence.load] = max(worst.get(silence.load, silence), silence, key=lambda stall: stall.silence_ms)
    return tuple(worst[load] for load in sorted(worst))


def disturbed_steps(inv: Investigation) -> int:
    return max((influence.steps for influence in inv.quality.influences if influence.kind == "disturbance"), default=0)


def mostly_disturbed(inv: Investigation) -> bool:
    return disturbed_steps(inv) > inv.quality.steps / 2


def refuted_findings(inv: Investigation) -> tuple[Finding, ...]:
    """Each id once, unless a change helped against it or it returns later."""
    main = {finding.id for finding in main_findings(inv)}
    latest = {finding.id: finding for round_ in inv.rounds for finding in round_.findings}
    return tuple(finding for finding in latest.values() if finding.status == "refuted" and finding.id not in main)


def curve_of_workers(inv: Investigation) -> Curve | None:
    """The first curve, over a load that counts those who do the work: it has how many are enough."""
    return inv.rounds[0].curve if inv.rounds and inv.study.axis in WORKERS else None


def round_of(inv: Investigation, finding: Finding) -> Round:
    return next(round_ for round_ in inv.rounds if any(finding is other for other in round_.findings))


def series(inv: Investigation) -> tuple[Series, ...]:
    """Only "before" where nothing was kept."""
    drawn: list[Series] = []
    kept: Trial | None = None
    for round_ in inv.rounds:
        label = "before" if round_ is inv.rounds[0] else _label(kept)
        if label:
            drawn.append(
                Series("between" if drawn else "before", label, round_.curve.points, explained(round_), round_)
            )
        kept = next((trial for trial in reversed(round_.tried) if trial.kept), None)
    if kept is not None:
        points = tuple(CurvePoint(row.load, row.after, row.after, row.after, None) for row in kept.levels)
        drawn.append(Series("between", _label(kept), points, None, inv.rounds[-1]))
    if len(drawn) > 1:
        drawn[-1] = replace(drawn[-1], role="after", label="after")
    return tuple(drawn)


def _label(kept: Trial | None) -> str:
    if kept is None:
        return ""
    needed = [change for change in kept.remedy.changes if change.needed]
    return f"{needed[-1].setting} = {shown(needed[-1].after)}" if needed else kept.remedy.title


def net_changes(inv: Investigation) -> tuple[ChangeRecord, ...]:
    return conclusion.net_changes(conclusion.kept_trials(inv.rounds))


def shown(value: SettingValue | None) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def was_cut(change: Change, effective: Mapping[str, SettingValue]) -> bool:
    """Whether a value is below the requested one, or differs where they are no numbers."""
    if change.setting not in effective or same_value(effective[change.setting], change.after):
        return False
    try:
        return float(effective[change.setting]) < float(change.after)
    except ValueError:
        return True


def same_value(value: SettingValue | None, other: SettingValue | None) -> bool:
    """As a target does: "WAL" and "wal", 1 and "1", true and "ON" do not differ."""
    return spelled(shown(value)) == spelled(shown(other))


def gives_up(inv: Investigation) -> tuple[str, ...]:
    texts = [trial.remedy.price.durability for trial in conclusion.kept_trials(inv.rounds)]
    texts += [step.gives_up or "" for step in inv.ladder]
    return tuple(dict.fromkeys(filter(None, texts)))


def fullness(limit: Limit) -> float:
    if limit.ceiling <= 0 or not math.isfinite(limit.ceiling) or not math.isfinite(limit.use):
        return 0.0
    return limit.use / limit.ceiling


def limit_of_bend(inv: Investigation, bend: Bend | None) -> str:
    return "" if bend is None else titles_of(inv.rounds).get(bend.limit, bend.limit)


def titles_of(rounds: Iterable[Round]) -> dict[str, str]:
    return {limit.id: limit.title for round_ in rounds for limit in round_.limits if limit.title}


def label_of(inv: Investigation, round_: Round) -> str:
    return next((state.label for state in series(inv) if state.round is round_ and state.curve is not None), "")


def by_level(round_: Round) -> dict[float, list[Mapping[str, float]]]:
    grouped: dict[float, list[Mapping[str, float]]] = {}
    for row in round_.footprint:
        if math.isfinite(row.get("level", math.nan)):
            grouped.setdefault(row["level"], []).append(row)
    return grouped


def values_by_level(round_: Round, metric: str) -> dict[float, list[float]]:
    measured: dict[float, list[float]] = {}
    for level, rows in by_level(round_).items():
        if values := [row[metric] for row in rows if math.isfinite(row.get(metric, math.nan))]:
            measured[level] = values
    return measured


def means(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if math.isfinite(value):
                values.setdefault(name, []).append(value)
    return {name: fmean(known) for name, known in values.items()}


def footprint_metrics(rows: Iterable[Mapping[str, float]]) -> list[str]:
    return sorted({name for row in rows for name, value in row.items() if value} - FOOTPRINT_KEYS)
