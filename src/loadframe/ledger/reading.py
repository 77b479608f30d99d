"""Limits from measured steps: ceiling, use, headroom, configured and effective. Also the limits at this moment, and
metrics that follow from others."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median_high

from loadframe.knowledge.kinds import rows
from loadframe.knowledge.metric import Derived, ratio
from loadframe.ledger.rules import KIND_OF, RULES, LimitRule
from loadframe.metrics.exposed import with_quantiles
from loadframe.model import (
    REACHED,
    CounterSpec,
    Limit,
    LimitStatus,
    SettingValue,
    Steps,
    TargetState,
    UnreadLimit,
    grouped,
)
from loadframe.switches import spelled


@dataclass(frozen=True, slots=True)
class Series:
    limit: Limit
    loads: tuple[float, ...]
    uses: tuple[float, ...]


def read_limits(
    steps: Steps, state: TargetState, effective: Mapping[str, SettingValue], rules: Sequence[LimitRule] = RULES
) -> list[Series]:
    """All limits measured in steps of one state, with the highest median of a level as use;
    no pressures (see signatures)."""
    series = []
    for rule in rules:
        if rule.pressure or rule.now_only:
            continue
        readings = [
            (step.level, step.metrics[rule.use], ceiling)
            for step in steps
            if rule.use in step.metrics and (ceiling := ceiling_of(rule, step.metrics)) is not None and ceiling > 0
        ]
        if readings:
            loads, uses, ceilings = zip(*readings, strict=True)
            configured = (state.limits if rule.layer == "process" else state.settings).get(rule.configured or "")
            largest = max(map(median_high, grouped(zip(loads, uses, strict=True)).values()))
            series.append(Series(limit_of(rule, rule.use, largest, ceilings[-1], configured, effective), loads, uses))
    return series


def limit_of(
    rule: LimitRule,
    metric: str,
    use: float,
    ceiling: float,
    configured: SettingValue | None,
    effective: Mapping[str, SettingValue],
) -> Limit:
    in_effect = as_number(effective.get(rule.configured)) if rule.configured else None
    return Limit(
        id=rule.id,
        layer=rule.layer,
        ceiling=ceiling,
        configured=as_number(configured),
        effective=in_effect if in_effect is not None else ceiling,
        use=use,
        headroom=ceiling - use,
        loud=rule.loud,
        source=rule.source,
        exhausted_at=None,
        unit=rule.unit,
        chain=rule.chain,
        use_metric=metric,
        thrash_metric=rule.thrash or rule.errors or "",
        title=rule.title,
        waits=rule.waits,
        setting=rule.configured or "",
    )


def ceiling_of(rule: LimitRule, metrics: Mapping[str, float]) -> float | None:
    """A rule's ceiling, by the metrics of one moment or window; None where not measured."""
    if rule.most is not None:
        return rule.most
    return 1.0 if rule.ceiling == "one" else metrics.get(rule.ceiling)


def as_number(value: SettingValue | None) -> float | None:
    """None for words and missing values."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def clamped(configured: Mapping[str, SettingValue], effective: Mapping[str, SettingValue]) -> tuple[str, ...]:
    """Settings that the target clamped, in words; not a higher value, or another spelling."""
    sentences = []
    for name, asked in configured.items():
        got = effective.get(name)
        if got is None or _plain(asked) == _plain(got):
            continue
        wanted, granted = as_number(asked), as_number(got)
        if wanted is None or granted is None or granted < wanted:
            sentences.append(f"{name}: {asked} was asked for, the target uses {got}")
    return tuple(sentences)


def _plain(value: SettingValue) -> str:
    text = spelled(value)
    number = as_number(text)
    return f"{number:g}" if number is not None else text


ONLY_IN_STEPS = "measurable only under load (loadframe measure STUDY)"
UNREPORTED = "it was not reported"


def read_now(
    values: Mapping[str, float],
    missing: Mapping[str, str],
    *,
    kinds: Collection[str],
    configured: Mapping[str, SettingValue] | None = None,
    effective: Mapping[str, SettingValue] | None = None,
    rules: Sequence[LimitRule] = RULES,
) -> tuple[tuple[Limit, ...], tuple[UnreadLimit, ...]]:
    """The limits, and those that could not be read. missing: why other metrics are missing. kinds: what there is
    besides the machine: "process", and the kind of the server. configured, effective: settings as asked for and as in
    use, with rlimits by their names in setrlimit(2)."""
    limits, unread = [], []
    for rule in rules:
        owner = rule.use.partition(".")[0]
        kind = KIND_OF.get(rule.id, "process" if owner in ("target", "user") else owner)
        # outside of a study's steps a cage is a group like others: the rules of cgroup.* read it
        if rule.id.startswith("cage.") or (owner != "system" and kind not in kinds):
            continue
        reason = _reason(rule, values, missing)
        if reason is None:
            metric, ceiling = rule.use_at_this_moment, ceiling_of(rule, values)
            assert ceiling is not None, "a limit without a ceiling is not read"
            asked = (configured or {}).get(rule.configured or "")
            limit = limit_of(rule, metric, values[metric], ceiling, asked, effective or {})
            near = rule.near_use / ceiling if rule.near_use is not None else rule.near
            harm = values.get(limit.thrash_metric)
            harmed: LimitStatus = rule.on_harm if harm and harm > 0 else ""
            status = judge(limit.use, ceiling, near=near, pressure=rule.pressure, harmed=harmed)
            limits.append(replace(limit, near=near, harm=harm, status=status))
        else:
            unread.append(UnreadLimit(rule.id, rule.layer, rule.title, reason, rule.source))
    return tuple(limits), tuple(unread)


def judge(use: float, ceiling: float, *, near: float | None, pressure: bool, harmed: LimitStatus = "") -> LimitStatus:
    """near: as a share of the ceiling. harmed: the status by counted harm, "" for none."""
    if math.isinf(ceiling):
        return "unlimited"
    share = use / ceiling
    if harmed == "reached" or (not pressure and share >= REACHED):
        return "reached"
    return "near" if harmed or (near is not None and share >= near and use > 0) else "free"


def _reason(rule: LimitRule, values: Mapping[str, float], missing: Mapping[str, str]) -> str | None:
    if rule.use.startswith("workload."):
        return ONLY_IN_STEPS
    ceiling = ceiling_of(rule, values)
    if rule.use_at_this_moment not in values:
        return missing.get(rule.use_at_this_moment, UNREPORTED)
    if ceiling is None:
        return missing.get(rule.ceiling, UNREPORTED)
    if not ceiling > 0:
        return "its ceiling is 0: switched off"
    if math.isinf(values[rule.use_at_this_moment]):
        return "what may be asked for has no bound of its own"
    return None


def counter_metrics(
    first: Mapping[str, float], last: Mapping[str, float], elapsed_s: float, specs: Sequence[CounterSpec]
) -> tuple[dict[str, float], dict[str, str]]:
    """Metrics, and why others are missing. first, last: by CounterSpec.name."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for spec in specs:
        if spec.name not in first or spec.name not in last:
            missing[spec.metric] = f"the server does not tell {spec.name}"
        elif not spec.cumulative:
            values[spec.metric] = last[spec.name]
        elif elapsed_s <= 0:
            missing[spec.metric] = "a rate needs two readings"
        elif last[spec.name] < first[spec.name]:
            missing[spec.metric] = f"{spec.name} was reset between two readings"
        else:
            values[spec.metric] = (last[spec.name] - first[spec.name]) / elapsed_s
    return with_quantiles(values), missing


TIME_WAIT_S = 60.0
"""TCP_TIMEWAIT_LEN in include/net/tcp.h."""

OF_THE_MACHINE: tuple[Derived, ...] = (
    Derived(
        "system.cpu.frequency_lost",
        ("system.cpu.frequency_missing", "system.cpu.busy_cores", "system.cpu.count"),
        lambda missing, busy, count: missing * busy / count,
    ),
    Derived(
        "system.paging.refault_wait",
        ("system.paging.refault_share", "system.pressure.io.some"),
        lambda share, waiting: share * waiting,
    ),
    Derived("target.cpus.allowed", ("target.cpus.named", "system.cpu.count"), min),
    Derived(
        "target.memory.allowed",
        ("target.cgroup.memory.limit", "target.cage.memory.limit", "system.memory.limit"),
        min,
        either=True,
    ),
    Derived(
        "system.network.local_ports.per_second",
        ("system.network.local_ports.limit",),
        lambda ports: ports / TIME_WAIT_S,
    ),
    *(
        Derived(f"{use}.share", (use, f"{use}.limit"), ratio)
        for use in ("system.network.local_ports", "target.open_files", "target.accept_queue")
    ),
    Derived("target.runtime.heap_live_share", ("target.runtime.heap_live", "target.runtime.heap_ceiling"), ratio),
)
"""Derived metrics of the machine and of what runs on it; each kind of server has its own (`kinds/NAME/metrics.py`)."""

DERIVED = (*OF_THE_MACHINE, *chain.from_iterable(rows("metrics", "DERIVED", Derived).values()))


def derive(values: Mapping[str, float], missing: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """A metric that cannot be derived has the reason of the first metric that it lacks."""
    metrics, reasons = dict(values), dict(missing)
    for derived in DERIVED:
        there = [values[name] for name in derived.needs if name in values]
        lacking = [name for name in derived.needs if name not in values]
        if there and (derived.either or not lacking):
            metrics[derived.metric] = derived.compute(there) if derived.either else derived.compute(*there)
        elif any(name in missing for name in lacking):
            reasons[derived.metric] = next(missing[name] for name in lacking if name in missing)
    return metrics, reasons
