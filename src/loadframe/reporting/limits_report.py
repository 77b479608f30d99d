"""The limits at one moment as a document, and the limits of a run as a part of one."""

import math
from collections.abc import Iterator, Sequence
from functools import reduce

from loadframe.metrics import metric as metric_of
from loadframe.model import Investigation, LedgerNow, Limit
from loadframe.progress import counted
from loadframe.reporting import curve_report, facts, finding_words, rounding, terminal, words
from loadframe.reporting import document as doc
from loadframe.units import show, show_metric


def render_limits(now: LedgerNow, *, width: int = 110) -> str:
    """What is reached or runs out first, with its cost; then the rest, the chains, and what could not be read."""
    urgent = [limit for limit in now.limits if limit.status in ("reached", "near") or limit.exhausted_at is not None]
    rest = [limit for limit in now.limits if limit not in urgent and limit.status != "unlimited"]
    unlimited = [limit.id for limit in now.limits if limit.status == "unlimited"]
    read = f"Limits of {now.subject}, read {counted(now.readings, 'time')} within {rounding.seconds(now.watched_s)}"
    rows = (
        (limit.id, _percent(limit), "" if limit.unit == "share" else _amount(limit), _when_full(limit))
        for limit in rest
    )
    table = doc.Table(("limit", *doc.numbers("used"), "of its ceiling", "when full"), tuple(rows))
    ceilings = {limit.id: show(limit.ceiling, limit.unit) for limit in now.limits}
    linked = (" <- ".join(f"{name} {ceilings[name]}" for name in chain) for chain in chains(now.limits))
    reasons: dict[str, list[str]] = {}
    for unread in now.unread:
        reasons.setdefault(unread.reason, []).append(unread.id)
    sections = (
        doc.listed("Reached, or runs out", map(_urgent, urgent)),
        doc.section("Others", "others", [table]),
        doc.listed("Chains: each is capped by the next", linked),
        doc.listed("Silently clamped", now.clamped),
        doc.listed("Without a ceiling here", [", ".join(unlimited)] if unlimited else ()),
        doc.listed("Not read", (f"{', '.join(ids)}: {reason}" for reason, ids in reasons.items())),
        doc.listed("Mind", now.warnings),
    )
    answer = (read,) if urgent else (read, "None is reached or near.")
    return terminal.render(doc.Document("Limits", answer, sections), width)


def chains(limits: Sequence[Limit]) -> list[tuple[str, ...]]:
    """The limits that others cap, each followed by what caps it, as far as read; without chains that end another."""
    known = {limit.id: limit for limit in limits if math.isfinite(limit.ceiling)}

    def linked(name: str, order: tuple[str, ...]) -> tuple[str, ...]:
        if name not in known or name in order:
            return order
        return reduce(lambda longer, link: linked(link, longer), known[name].chain, (*order, name))

    all_chains = [linked(limit.id, ()) for limit in known.values()]
    inner = {chain[at:] for chain in all_chains for at in range(1, len(chain))}
    return sorted({chain for chain in all_chains if len(chain) > 1 and chain not in inner})


def of_run(inv: Investigation) -> Iterator[doc.Block]:
    """The limits of the last round: those that run out first, then the fullest."""
    limits = list(inv.rounds[-1].limits) if inv.rounds else []
    limits.sort(key=lambda limit: (limit.exhausted_at.load if limit.exhausted_at else math.inf, -facts.fullness(limit)))
    heads = ("Limit", "Ceiling", "Use", "Headroom", "When reached", "Runs out at")
    yield doc.Table(heads, tuple(_of_run(inv, limit) for limit in limits))


def _of_run(inv: Investigation, limit: Limit) -> doc.Row:
    unit, chain = inv.study.load_unit, finding_words.chain(inv, limit)
    about = (limit.layer, f", stands on: {chain}" if chain else "", f"; {limit.source}" if limit.source else "")
    ceiling: list[str | doc.Span] = [words.limit_number(limit.ceiling, limit) or "none"]
    if limit.configured is not None and limit.configured != limit.effective:
        configured, effective = (words.limit_number(value, limit) for value in (limit.configured, limit.effective))
        ceiling += [" ", doc.Span(f"configured {configured}, in effect {effective}", "tag warn")]
    full = facts.fullness(limit)
    share = f" ({rounding.percent(full)})" if full and limit.unit != "share" else ""
    use = doc.Span(words.limit_number(limit.use, limit), to=curve_report.address(inv.rounds[-1]))
    when: doc.Words = doc.Span("does not grow with load", "note")
    if limit.exhausted_at:
        tested = limit.exhausted_at.load <= max(inv.study.levels, default=-math.inf)
        within = (doc.Span("within the tested levels", "below"),) if tested else ()
        when = (words.load_interval(limit.exhausted_at, unit), *within)
    cells: doc.Cells = (
        (
            doc.Span(finding_words.heading(limit.title or limit.id), "b", title=limit.id),
            doc.Span("".join(about), "below"),
        ),
        tuple(ceiling),
        (use, doc.Span(share, "note")) if share else use,
        words.limit_number(limit.headroom, limit) if limit.headroom > 0 else "none",
        "errors" if limit.loud else "silently slow",
        when,
    )
    return doc.Row(cells, "marked" if inv.next_limit and inv.next_limit.id == limit.id else "")


# --- words ----------------------------------------------------------------------------------------------------------


def _urgent(limit: Limit) -> str:
    status = "full" if limit.costs_nothing else limit.status if limit.status in ("reached", "near") else "runs out"
    share = "" if limit.unit == "share" else f" ({_percent(limit)}), when full: {_when_full(limit)}"
    if limit.costs_nothing:
        share = f"{share.partition(',')[0]}, costs nothing"
    parts = [f"{status}: {limit.id}: {_amount(limit)}{share}"]
    if limit.exhausted_at is not None and limit.status != "reached":
        at = limit.exhausted_at
        value, low, high = map(rounding.seconds, (at.load, at.low, at.high))
        parts.append(f"full in {value} ({low} to {high})" if at.high > 0 else "at its ceiling in the last reading")
    if limit.harm is not None:
        metric = limit.thrash_metric
        return "; ".join([*parts, limit.title, f"{show_metric(metric, limit.harm)} {metric_of(metric).what}"])
    return "; ".join([*parts, limit.title])


def _when_full(limit: Limit) -> str:
    return "errors" if limit.loud else "silent"


def _amount(limit: Limit) -> str:
    if limit.unit == "share":
        return show(limit.use, "share")
    asked = ""
    if limit.configured is not None and limit.configured > limit.effective:
        asked = f" ({show(limit.configured, limit.unit)} asked for)"
    return f"{show(limit.use, limit.unit)} of {show(limit.ceiling, limit.unit)}{asked}"


def _percent(limit: Limit) -> str:
    share = limit.use / limit.ceiling
    return "< 0.1 %" if 0 < share < 0.001 else rounding.percent(share)
