"""From measured steps to limits: ceiling, use, headroom, configured and effective. Arithmetic only, no regression:
the load at which a limit is used up is added from `analysis.saturation`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadframe.ledger.rules import RULES, LimitRule
from loadframe.model import Limit, SettingValue, Step, TargetState
from loadframe.switches import spelled


@dataclass(frozen=True, slots=True)
class Series:
    """A limit with its use in every step: loads and uses have one entry per step."""

    limit: Limit
    loads: tuple[float, ...]
    uses: tuple[float, ...]


def read_limits(
    steps: Sequence[Step], state: TargetState, effective: Mapping[str, SettingValue], rules: Sequence[LimitRule] = RULES
) -> list[Series]:
    """Every limit whose ceiling and use were measured in these steps of one treatment; use is the largest seen.
    Pressures are no limits of a load: the diagnosis judges them by signatures."""
    found = []
    for rule in rules:
        if rule.pressure or rule.now_only:
            continue
        pairs = [(step.level, *pair) for step in steps if (pair := _use_and_ceiling(rule, step.metrics)) is not None]
        if pairs:
            found.append(_series(rule, pairs, state, effective))
    return found


def _series(
    rule: LimitRule,
    pairs: Sequence[tuple[float, float, float]],
    state: TargetState,
    effective: Mapping[str, SettingValue],
) -> Series:
    limit = limit_of(rule, rule.use, max(pair[1] for pair in pairs), pairs[-1][2], _configured(rule, state), effective)
    return Series(limit, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def limit_of(
    rule: LimitRule,
    metric: str,
    use: float,
    ceiling: float,
    configured: SettingValue | None,
    effective: Mapping[str, SettingValue],
) -> Limit:
    """The limit of a rule, as it was read. metric: what its use is; effective: settings as in use."""
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


def _use_and_ceiling(rule: LimitRule, metrics: Mapping[str, float]) -> tuple[float, float] | None:
    ceiling = ceiling_of(rule, metrics)
    if rule.use not in metrics or ceiling is None or ceiling <= 0:
        return None
    return metrics[rule.use], ceiling


def ceiling_of(rule: LimitRule, metrics: Mapping[str, float]) -> float | None:
    """Of a rule, by the metrics of one moment or window; None where it was not measured."""
    if rule.most is not None:
        return rule.most
    return 1.0 if rule.ceiling == "one" else metrics.get(rule.ceiling)


def _configured(rule: LimitRule, state: TargetState) -> SettingValue | None:
    if rule.configured is None:
        return None
    return state.limits.get(rule.configured) if rule.layer == "process" else state.settings.get(rule.configured)


def as_number(value: SettingValue | None) -> float | None:
    """A setting as a number; None for words and for what is not there."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def clamped(configured: Mapping[str, SettingValue], effective: Mapping[str, SettingValue]) -> tuple[str, ...]:
    """The settings that the target clamped below what was asked for, in words. A higher value is not clamped, nor is
    another spelling of the same value (case, ON for 1)."""
    found = []
    for name, asked in configured.items():
        got = effective.get(name)
        if got is None or _plain(asked) == _plain(got):
            continue
        wanted, granted = as_number(asked), as_number(got)
        if wanted is None or granted is None or granted < wanted:
            found.append(f"{name}: {asked} was asked for, the target uses {got}")
    return tuple(found)


def _plain(value: SettingValue) -> str:
    text = spelled(value)
    number = as_number(text)
    return f"{number:g}" if number is not None else text
