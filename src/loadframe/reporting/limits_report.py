"""The ledger now, as text and as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from loadframe.metrics import metric as metric_of
from loadframe.model import LedgerNow, Limit, LoadInterval
from loadframe.progress import counted
from loadframe.reporting import rounding
from loadframe.reporting.layout import columns, wrapped
from loadframe.units import show, show_metric

STATUS_WIDTH = 9


def render_limits(now: LedgerNow, *, width: int = 110) -> str:
    """What is reached or runs out first, with what it costs; then the rest, the chains, and what could not be read."""
    urgent = [limit for limit in now.limits if limit.status in ("reached", "near") or limit.exhausted_at is not None]
    rest = [limit for limit in now.limits if limit not in urgent and limit.status != "unlimited"]
    unlimited = [limit.id for limit in now.limits if limit.status == "unlimited"]
    lines = [
        f"Limits of {now.subject}, read {counted(now.readings, 'time')} within {rounding.seconds(now.watched_s)}",
        "",
    ]
    for limit in urgent:
        lines += _urgent(limit, width)
    if not urgent:
        lines.append("None is reached or near.")
    lines += ["", *_table(rest)] if rest else []
    lines += _section(
        "Chains: each is capped by the next", [_chain(chain, now.limits) for chain in chains(now.limits)], width
    )
    lines += _section("Silently clamped", list(now.clamped), width)
    lines += _section("Without a ceiling here", [", ".join(unlimited)] if unlimited else [], width)
    lines += _section("Not read", _reasons(now), width)
    lines += _section("Mind", list(now.warnings), width)
    return "\n".join(lines)


def chains(limits: Sequence[Limit]) -> list[tuple[str, ...]]:
    """The limits that others cap, each with what caps it, in order, as far as it was read; a chain that is the end of
    another is not repeated."""
    known = {limit.id: limit for limit in limits if math.isfinite(limit.ceiling)}
    found = [_linked(limit.id, known) for limit in known.values()]
    inner = {chain[at:] for chain in found for at in range(1, len(chain))}
    return sorted({chain for chain in found if len(chain) > 1 and chain not in inner})


def _linked(head: str, known: dict[str, Limit]) -> tuple[str, ...]:
    """The chain of one limit, with the chains of its links."""
    order: list[str] = []

    def follow(name: str) -> None:
        if name in known and name not in order:
            order.append(name)
            for link in known[name].chain:
                follow(link)

    follow(head)
    return tuple(order)


# --- words ----------------------------------------------------------------------------------------------------------


def _urgent(limit: Limit, width: int) -> list[str]:
    head = f"{_status(limit):<{STATUS_WIDTH}} {limit.id}: {_amount(limit)}{_share(limit)}{_effect(limit)}"
    when = f"; {_when(limit.exhausted_at)}" if limit.exhausted_at is not None and limit.status != "reached" else ""
    lines = textwrap.wrap(head + when, width, subsequent_indent=" " * (STATUS_WIDTH + 1))
    detail = limit.title + (f"; {_harm(limit)}" if limit.harm is not None else "")
    indent = " " * (STATUS_WIDTH + 1)
    return [*lines, *textwrap.wrap(detail, width, initial_indent=indent, subsequent_indent=indent)]


def _status(limit: Limit) -> str:
    if limit.costs_nothing:
        return "full"
    return limit.status if limit.status in ("reached", "near") else "runs out"


def _effect(limit: Limit) -> str:
    if limit.costs_nothing:
        return ", costs nothing"
    if limit.unit == "share":
        return ""
    return f", {_when_full(limit)}"


def _when_full(limit: Limit) -> str:
    return f"when full: {'errors' if limit.loud else 'silent'}"


def _amount(limit: Limit) -> str:
    """Use of ceiling, in the limit's unit; a share of a whole is its use alone."""
    if limit.unit == "share":
        return show(limit.use, "share")
    asked = ""
    if limit.configured is not None and limit.configured > limit.effective:
        asked = f" ({show(limit.configured, limit.unit)} asked for)"
    return f"{show(limit.use, limit.unit)} of {show(limit.ceiling, limit.unit)}{asked}"


def _share(limit: Limit) -> str:
    return "" if limit.unit == "share" else f" ({_percent(limit)})"


def _percent(limit: Limit) -> str:
    share = limit.use / limit.ceiling
    return "< 0.1 %" if 0 < share < 0.001 else rounding.percent(share)


def _harm(limit: Limit) -> str:
    metric = limit.thrash_metric
    what = metric_of(metric).what
    return f"{show_metric(metric, limit.harm or 0.0)} {what}"


def _when(interval: LoadInterval) -> str:
    if interval.high <= 0:
        return "at its ceiling in the last reading"
    low, high = rounding.seconds(interval.low), rounding.seconds(interval.high)
    return f"full in {rounding.seconds(interval.load)} ({low} to {high})"


def _table(limits: Sequence[Limit]) -> list[str]:
    """One line each: id, share of the ceiling, use and ceiling, what happens."""
    rows = [
        (
            one.id,
            _percent(one),
            "" if one.unit == "share" else _amount(one),
            _when_full(one),
        )
        for one in limits
    ]
    return columns(rows, "<><<")


def _section(head: str, items: Sequence[str], width: int) -> list[str]:
    if not items:
        return []
    return ["", f"{head}:", *(line for item in items for line in wrapped(item, width))]


def _chain(chain: Sequence[str], limits: Sequence[Limit]) -> str:
    ceilings = {limit.id: show(limit.ceiling, limit.unit) for limit in limits}
    return " <- ".join(f"{name} {ceilings[name]}" for name in chain)


def _reasons(now: LedgerNow) -> list[str]:
    """The limits by the reason why they were not read."""
    by_reason: dict[str, list[str]] = {}
    for one in now.unread:
        by_reason.setdefault(one.reason, []).append(one.id)
    return [f"{', '.join(ids)}: {reason}" for reason, ids in by_reason.items()]
