"""The ledger at this moment: every rule that has a meaning here, read - or the reason why it was not."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from loadframe.ledger.reading import ceiling_of, limit_of
from loadframe.ledger.rules import KIND_OF, RULES, LimitRule
from loadframe.metrics.exposed import with_quantiles
from loadframe.model import REACHED, CounterSpec, Limit, LimitStatus, SettingValue, UnreadLimit

ONLY_IN_STEPS = "measurable only under load (loadframe measure STUDY)"
OF_A_CAGE = "cage."
"""Outside a study's steps the groups of a cage are groups like others: the rules of `cgroup.*` read them."""
NOT_TOLD = "it was not told"


def read_now(
    values: Mapping[str, float],
    missing: Mapping[str, str],
    *,
    kinds: Collection[str],
    configured: Mapping[str, SettingValue] | None = None,
    effective: Mapping[str, SettingValue] | None = None,
    rules: Sequence[LimitRule] = RULES,
) -> tuple[tuple[Limit, ...], tuple[UnreadLimit, ...]]:
    """The limits and those that could not be read.

    values, missing: metrics by name, and why others are not there. kinds: what there is besides the machine: "process",
    and the kind of the server; rules of anything else mean nothing here and are not listed. configured, effective:
    settings as asked for and as in use, rlimits by their names in setrlimit(2) among them.
    """
    limits, unread = [], []
    for rule in rules:
        if not _applies(rule, kinds):
            continue
        reason = _reason(rule, values, missing)
        if reason is None:
            limits.append(_limit(rule, values, configured or {}, effective or {}))
        else:
            unread.append(UnreadLimit(rule.id, rule.layer, rule.title, reason, rule.source))
    return tuple(limits), tuple(unread)


def judge(use: float, ceiling: float, *, near: float | None, pressure: bool, harmed: LimitStatus = "") -> LimitStatus:
    """Where a use stands; near as a share of the ceiling. harmed: what harm that was counted says, empty for none."""
    if math.isinf(ceiling):
        return "unlimited"
    share = use / ceiling
    if harmed == "reached" or (not pressure and share >= REACHED):
        return "reached"
    return "near" if harmed or (near is not None and share >= near and use > 0) else "free"


def _applies(rule: LimitRule, kinds: Collection[str]) -> bool:
    owner = rule.use.partition(".")[0]
    if rule.id.startswith(OF_A_CAGE):
        return False
    if owner == "system":
        return True
    return KIND_OF.get(rule.id, "process" if owner in ("target", "user") else owner) in kinds


def _reason(rule: LimitRule, values: Mapping[str, float], missing: Mapping[str, str]) -> str | None:
    if rule.use.startswith("workload."):
        return ONLY_IN_STEPS
    ceiling = ceiling_of(rule, values)
    if rule.use_at_this_moment not in values:
        return missing.get(rule.use_at_this_moment, NOT_TOLD)
    if ceiling is None:
        return missing.get(rule.ceiling, NOT_TOLD)
    if not ceiling > 0:
        return "its ceiling is 0: switched off"
    if math.isinf(values[rule.use_at_this_moment]):
        return "what may be asked for has no bound of its own"
    return None


def _limit(
    rule: LimitRule,
    values: Mapping[str, float],
    configured: Mapping[str, SettingValue],
    effective: Mapping[str, SettingValue],
) -> Limit:
    metric = rule.use_at_this_moment
    use, ceiling = values[metric], ceiling_of(rule, values)
    assert ceiling is not None, "a limit without a ceiling is not read"
    limit = limit_of(rule, metric, use, ceiling, configured.get(rule.configured or ""), effective)
    near = rule.near_use / ceiling if rule.near_use is not None else rule.near
    harm = values.get(limit.thrash_metric)
    status = judge(use, ceiling, near=near, pressure=rule.pressure, harmed=rule.on_harm if harm and harm > 0 else "")
    return replace(limit, near=near, harm=harm, status=status)


def counter_metrics(
    first: Mapping[str, float], last: Mapping[str, float], elapsed_s: float, specs: Sequence[CounterSpec]
) -> tuple[dict[str, float], dict[str, str]]:
    """(metrics, why others are missing). first, last: by CounterSpec.name."""
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
