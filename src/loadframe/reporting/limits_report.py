"""Limits at one moment as a document, of a run and of hosts as tables, and as panels over the load."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import median

from loadframe.metrics import metric as metric_of
from loadframe.model import FleetLimit, Investigation, LedgerNow, Limit, Saturation
from loadframe.model.limit import REACHED
from loadframe.progress import counted
from loadframe.reporting import curve_report, facts, finding_words, plots, rounding, terminal, words
from loadframe.reporting import document as doc
from loadframe.reporting.vega import AFTER, BEFORE, CHARACTER_PX, INK, QUIET, Canvas, Plot, Row, Size
from loadframe.units import show, show_metric

EMPTY = "#E9EDF1"
COLOURS = {"before": BEFORE, "after": AFTER}
MOST, SHOWN_FROM, ALWAYS_SHOWN = 6, 0.1, 3
"""MOST: panels. Of limits that stay below SHOWN_FROM of their ceiling only the fullest ALWAYS_SHOWN are drawn."""
ACROSS = {True: 3, False: 1}
TERSE_BELOW = 400
GAP_PX, BARS_PX, LINE_PX, FOOT_PX = 26, 74, 15, 22
FULL, FILLING = 1.0, 0.5


def render_limits(now: LedgerNow, *, width: int = 110) -> str:
    """What is reached or runs out first, with its cost; then the rest."""
    urgent = [limit for limit in now.limits if limit.status in ("reached", "near") or limit.exhausted_at is not None]
    rest = [limit for limit in now.limits if limit not in urgent and limit.status != "unlimited"]
    unlimited = [limit.id for limit in now.limits if limit.status == "unlimited"]
    read = f"Limits of {now.subject}, read {counted(now.readings, 'time')} within {rounding.seconds(now.watched_s)}"
    rows = [
        (limit.id, _percent(limit), "" if limit.unit == "share" else _amount(limit), _when_full(limit))
        for limit in rest
    ]
    table = doc.Table(("limit", *doc.numbers("used"), "of its ceiling", "when full"), rows)
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
    """Limits that others cap, each followed by what caps it; without chains that end another."""
    known = {limit.id: limit for limit in limits if math.isfinite(limit.ceiling)}

    def linked(name: str, order: tuple[str, ...]) -> tuple[str, ...]:
        if name not in known or name in order:
            return order
        return reduce(lambda longer, link: linked(link, longer), known[name].chain, (*order, name))

    all_chains = [linked(limit.id, ()) for limit in known.values()]
    inner = {chain[at:] for chain in all_chains for at in range(1, len(chain))}
    return sorted({chain for chain in all_chains if len(chain) > 1 and chain not in inner})


def of_run(inv: Investigation) -> Iterator[doc.Block]:
    limits = list(inv.rounds[-1].limits) if inv.rounds else []
    coming = inv.next_limit.id if inv.next_limit else None
    limits.sort(
        key=lambda limit: (
            limit.id != coming,
            limit.exhausted_at.load if limit.exhausted_at else math.inf,
            -facts.fullness(limit),
        )
    )
    rows = []
    for limit in limits:
        chain = finding_words.chain(inv, limit)
        about = f"{limit.layer}{chain and f', stands on: {chain}'}{limit.source and f'; {limit.source}'}"
        ceiling: list[str | doc.Span] = [words.limit_number(limit.ceiling, limit) or "none"]
        if limit.configured is not None and limit.configured != limit.effective:
            configured, effective = (words.limit_number(value, limit) for value in (limit.configured, limit.effective))
            ceiling += [" ", doc.Span(f"configured {configured}, in effect {effective}", "tag warn")]
        full, used = facts.fullness(limit), words.limit_number(limit.use, limit)
        share = (doc.Span(f" ({rounding.percent(full)})", "note"),) if full and limit.unit != "share" else ()
        when: doc.Words = doc.Span("does not grow with load", "note")
        if limit.exhausted_at:
            tested = limit.exhausted_at.load <= max(inv.study.levels, default=-math.inf)
            within = (doc.Span("within the tested levels", "below"),) if tested else ()
            when = (words.load_interval(limit.exhausted_at, inv.study.load_unit), *within)
        cells: doc.Cells = (
            (doc.Span(words.heading(limit.title or limit.id), "b", title=limit.id), doc.Span(about, "below")),
            tuple(ceiling),
            (doc.Span(used, to=curve_report.address(inv.rounds[-1])), *share),
            words.limit_number(limit.headroom, limit) if limit.headroom > 0 else "none",
            "errors" if limit.loud else "silently slow",
            when,
        )
        rows.append(doc.Row(cells, "marked" if limit.id == coming else ""))
    heads = ("Limit", "Ceiling", "Use", "Headroom", "When reached", "Runs out at")
    yield doc.Table(heads, rows)


def _urgent(limit: Limit) -> str:
    status: str = limit.status if limit.status in ("reached", "near") else "runs out"
    share = "" if limit.unit == "share" else f" ({_percent(limit)})"
    cost = f", when full: {_when_full(limit)}" if share else ""
    if limit.costs_nothing:
        status, cost = "full", ", costs nothing"
    parts = [f"{status}: {limit.id}: {_amount(limit)}{share}{cost}"]
    if (at := limit.exhausted_at) is not None and limit.status != "reached":
        value, low, high = map(rounding.seconds, (at.load, at.low, at.high))
        parts.append(f"full in {value} ({low} to {high})" if at.high > 0 else "at its ceiling in the last reading")
    parts.append(limit.title)
    if limit.harm is not None:
        metric = limit.thrash_metric
        parts.append(f"{show_metric(metric, limit.harm)} {metric_of(metric).what}")
    return "; ".join(parts)


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


def of_hosts(limits: Sequence[FleetLimit]) -> doc.Section:
    heads: doc.Heads = ("host", "limit", *doc.numbers("use", "of", "share", "runs out at"))
    table = doc.Table(heads, [*map(_of_host, _ranked(limits))])
    unseen = (
        doc.Prose(f"Host {fleet_limit.host}: {fleet_limit.limit.title} cannot be seen: {fleet_limit.unseen}.")
        for fleet_limit in limits
        if fleet_limit.unseen
    )
    return doc.section("Limits of the hosts", "hosts", (table, *unseen))


def hosts_sentences(limits: Sequence[FleetLimit]) -> list[str]:
    ranked = _ranked(limits)
    urgent = [fleet_limit for fleet_limit in ranked if fleet_limit.limit.status != "free"] or ranked[:1]
    return [
        f"Host {host}: {title}, {use} of {ceiling} ({share})."
        for host, title, use, ceiling, share, _ in map(_of_host, urgent)
    ]


def _ranked(limits: Sequence[FleetLimit]) -> list[FleetLimit]:
    seen = (fleet_limit for fleet_limit in limits if not fleet_limit.unseen)
    return sorted(seen, key=lambda fleet_limit: -fleet_limit.limit.use / fleet_limit.limit.ceiling)


def _of_host(fleet_limit: FleetLimit) -> tuple[str, ...]:
    limit = fleet_limit.limit
    title = f"the link to {fleet_limit.driver}" if fleet_limit.driver and fleet_limit.error is None else limit.title
    at = "" if limit.exhausted_at is None else f"{limit.exhausted_at.load:.3g}"
    use, ceiling = (show(value, limit.unit) for value in (limit.use, limit.ceiling))
    use += "" if fleet_limit.error is None else f" +- {show(fleet_limit.error, limit.unit)}"
    return fleet_limit.host, title, use, ceiling, show(limit.use / limit.ceiling, "share"), at


@dataclass(frozen=True, slots=True)
class Panel:
    """shares: by state (before, after) and level the median use over the ceiling. full: by state where it runs out, if
    that was measured."""

    name: str
    shares: dict[str, dict[float, float]]
    full: dict[str, Saturation]

    @property
    def fullest(self) -> float:
        return max(share for by_level in self.shares.values() for share in by_level.values())

    def peak(self, state: str) -> tuple[float, float]:
        level, share = max(self.shares[state].items(), key=lambda item: item[1])
        return share, level


def panels(inv: Investigation) -> list[Panel]:
    by_limit: dict[str, Panel] = {}
    for state in plots.measured_ends(inv):
        for limit in state.round.limits:
            if math.isfinite(limit.ceiling) and limit.ceiling > 0 and limit.use_metric:
                values = facts.values_by_level(state.round, limit.use_metric)
                if len(values) > 1:
                    bare = (limit.title or limit.id).partition(",")[0].strip()
                    panel = Panel(bare if bare == limit.id else words.capital(bare), {}, {})
                    panel = by_limit.setdefault(limit.id, panel)
                    panel.shares[state.role] = {level: median(uses) / limit.ceiling for level, uses in values.items()}
                    if limit.exhausted_at is not None and limit.exhausted_at.how == "measured":
                        panel.full[state.role] = limit.exhausted_at
    return sorted(by_limit.values(), key=lambda panel: -panel.fullest)


def shown(panels: Sequence[Panel]) -> list[Panel]:
    return [panel for rank, panel in enumerate(panels) if rank < ALWAYS_SHOWN or panel.fullest >= SHOWN_FROM][:MOST]


def title(inv: Investigation) -> str:
    all_panels, unit = panels(inv), inv.study.load_unit
    if not all_panels:
        return ""
    sentences: list[str] = []
    full_from: list[tuple[str, str]] = []
    for state in COLOURS:
        if shown := [panel for panel in all_panels if state in panel.shares]:
            full = [(panel.full[state].load, panel) for panel in shown if state in panel.full]
            for _, panel in sorted(full, key=lambda pair: pair[0])[:1]:
                start = words.about_load(panel.full[state], unit)
                full_from.append((panel.name, start))
                sentences.append(f"{panel.name}: full from {start} on")
            if not full:
                share, level, limit = max((*panel.peak(state), panel.name) for panel in shown)
                nearest = f"{_inside(limit)}, {rounding.percent(share)} at {words.load(level, unit)}"
                sentences.append(f"No limit is full; nearest: {nearest}")
    if len(sentences) == 1:
        return sentences[0]
    if len(full_from) == 2 and full_from[0][0] == full_from[1][0]:
        (limit, before), (_, after) = full_from
        return f"{limit}: full from {before} on before, from {after} on after the changes"
    return f"Before, {_inside(sentences[0])}; after, {_inside(sentences[1])}"


def _inside(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}" if text[:1].isupper() and text[1:2].islower() else text


def note(inv: Investigation) -> str:
    all_panels = panels(inv)
    left = len(all_panels) - len(shown(all_panels))
    rest = f" Not drawn: {left} more, all in the table of limits." if left else ""
    return (
        f"A bar is the median use at a level ({inv.study.load_unit}, below it), as a share of the ceiling; the pale "
        f"part is the room that is left.{rest}"
    )


def _panel_words(panel: Panel, state: str, unit: str) -> str:
    label = f"{state}: " if len(panel.shares) > 1 else ""
    if (full := panel.full.get(state)) is not None:
        return f"{label}full from {words.about_load(full, unit).strip()} on"
    share, level = panel.peak(state)
    return f"{label}at most {rounding.percent(share)}{f', at {words.load(level, unit)}' if unit else ''}"


def chart(inv: Investigation, size: Size) -> Plot | None:
    drawn = shown(panels(inv))
    if not drawn:
        return None
    across = ACROSS[size.width >= TERSE_BELOW]
    width = (size.width - GAP_PX * (across - 1)) / across
    characters = int(width / CHARACTER_PX)
    titles = [textwrap.wrap(panel.name, characters) for panel in drawn]
    lines = [
        [
            (line, COLOURS[state] if len(panel.shares) > 1 else INK)
            for state in panel.shares
            for line in textwrap.wrap(_panel_words(panel, state, ""), characters)
        ]
        for panel in drawn
    ]
    head = LINE_PX * (max(map(len, titles)) + max(map(len, lines))) + 8
    height = head + BARS_PX + FOOT_PX + GAP_PX
    drawing = Canvas(Size(size.width, round(height * math.ceil(len(drawn) / across))))
    bars: dict[tuple[str, float], list[Row]] = {}
    for number, panel in enumerate(drawn):
        left, top = (number % across) * (width + GAP_PX), (number // across) * height
        drawing.heading(left, top, LINE_PX, titles[number], lines[number])
        for look, row in _bars(drawing, left, top + head, width, panel):
            bars.setdefault(look, []).append(row)
    for (colour, opacity), rows in bars.items():
        drawing.boxes(rows, colour, opacity=opacity)
    drawing.description = " ".join(
        f"{panel.name}, {'; '.join(_panel_words(panel, state, inv.study.load_unit) for state in panel.shares)}."
        for panel in drawn
    )
    return drawing


def _bars(
    drawing: Canvas, left: float, top: float, width: float, panel: Panel
) -> Iterator[tuple[tuple[str, float], Row]]:
    levels = sorted({level for by_level in panel.shares.values() for level in by_level})
    slot = width / len(levels)
    bar = min(slot * 0.84, 34.0) / len(panel.shares)
    for column, level in enumerate(levels):
        for place, (state, by_level) in enumerate(panel.shares.items()):
            if level in by_level:
                share, at = by_level[level], left + column * slot + place * bar
                row = {"x": at, "x2": at + bar * 0.92, "y": top, "y2": top + BARS_PX}
                yield (EMPTY, FULL), row
                filled = BARS_PX * min(max(share, 0.0), 1.0)
                opacity = FULL if share >= REACHED else FILLING
                yield (COLOURS[state], opacity), {**row, "y": top + BARS_PX - filled}
    for column, label in _labelled(levels, slot):
        middle = left + column * slot + bar * len(panel.shares) / 2
        drawing.label(middle, top + BARS_PX + 5, label, QUIET, align="center", fontSize=11)


def _labelled(levels: Sequence[float], slot: float) -> list[tuple[int, str]]:
    texts = [rounding.plain(level) for level in levels]
    last = len(levels) - 1
    kept = [0]
    for column in range(1, last):
        room = slot * min(column - kept[-1], last - column)
        if room >= CHARACTER_PX * (max(map(len, (texts[column], texts[kept[-1]], texts[last]))) + 1):
            kept.append(column)
    return [(column, texts[column]) for column in dict.fromkeys([*kept, last])]
