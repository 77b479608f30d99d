"""Limits: at one moment as a document; of a run as a table, and as panels of how full each is over the load, before and
after the changes."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import median

from loadframe.metrics import metric as metric_of
from loadframe.model import Investigation, LedgerNow, Limit
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


@dataclass(frozen=True, slots=True)
class Panel:
    """A limit. shares: by state (before, after) and level the median use over the ceiling: a single step that reaches
    the ceiling does not make it full."""

    name: str
    shares: Mapping[str, Mapping[float, float]]

    @property
    def fullest(self) -> float:
        return max(share for by_level in self.shares.values() for share in by_level.values())

    def full_from(self, state: str) -> float | None:
        """The lowest level from which on it is full at every level; None where it is not full at the highest."""
        reached = None
        for level, share in sorted(self.shares[state].items(), reverse=True):
            if share < REACHED:
                break
            reached = level
        return reached

    def peak(self, state: str) -> tuple[float, float]:
        level, share = max(self.shares[state].items(), key=lambda item: item[1])
        return share, level


def panels(inv: Investigation) -> list[Panel]:
    by_limit: dict[str, dict[str, Mapping[float, float]]] = {}
    names: dict[str, str] = {}
    for state in plots.measured_ends(inv):
        for limit in state.round.limits:
            shares = _shares(limit, state)
            if len(shares) > 1:
                by_limit.setdefault(limit.id, {})[state.role] = shares
                names.setdefault(limit.id, name(limit))
    made = [Panel(names[limit_id], shares) for limit_id, shares in by_limit.items()]
    return sorted(made, key=lambda panel: -panel.fullest)


def name(limit: Limit) -> str:
    bare = (limit.title or limit.id).partition(",")[0].strip()
    return bare if bare == limit.id else f"{bare[:1].upper()}{bare[1:]}"


def _shares(limit: Limit, series: facts.Series) -> dict[float, float]:
    if not (math.isfinite(limit.ceiling) and limit.ceiling > 0 and limit.use_metric):
        return {}
    values = facts.values_by_level(series.round, limit.use_metric)
    return {level: median(uses) / limit.ceiling for level, uses in values.items()}


def shown(panels: Sequence[Panel]) -> list[Panel]:
    return [panel for rank, panel in enumerate(panels) if rank < ALWAYS_SHOWN or panel.fullest >= SHOWN_FROM][:MOST]


def title(inv: Investigation) -> str:
    all_panels, unit = panels(inv), inv.study.load_unit
    if not all_panels:
        return ""
    states = [state for state in COLOURS if any(state in panel.shares for panel in all_panels)]
    if (both := _full_in_both(all_panels, unit)) and len(states) > 1:
        return both
    sentences = [
        _state_words([panel for panel in all_panels if state in panel.shares], state, unit) for state in states
    ]
    return sentences[0] if len(sentences) == 1 else f"Before, {_inside(sentences[0])}; after, {_inside(sentences[1])}"


def _full_in_both(panels: Sequence[Panel], unit: str) -> str:
    firsts = []
    for state in COLOURS:
        full = [(level, panel.name) for panel in panels if state in panel.shares and (level := panel.full_from(state))]
        firsts.append(min(full, default=(math.nan, "")))
    (before, limit), (after, other) = firsts
    if limit != other or not limit:
        return ""
    return (
        f"{limit}: full from {words.load(before, unit)} on before, from {words.load(after, unit)} on after the changes"
    )


def _inside(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}" if text[:1].isupper() and text[1:2].islower() else text


def _state_words(panels: Sequence[Panel], state: str, unit: str) -> str:
    full = [(level, panel.name) for panel in panels if (level := panel.full_from(state)) is not None]
    if full:
        level, which = min(full)
        return f"{which}: full from {words.load(level, unit)} on"
    share, level, which = max((*panel.peak(state), panel.name) for panel in panels)
    return f"No limit is full; nearest: {_inside(which)}, {rounding.percent(share)} at {words.load(level, unit)}"


def note(inv: Investigation) -> str:
    all_panels = panels(inv)
    left = len(all_panels) - len(shown(all_panels))
    meaning = (
        f"A bar is the median use at a level ({inv.study.load_unit}, below it), as a share of the ceiling; the pale "
        "part is the room that is left."
    )
    rest = f" Not drawn: {left} more, all in the table of limits." if left else ""
    return meaning + rest


def _panel_words(panel: Panel, state: str, unit: str) -> str:
    label = f"{state}: " if len(panel.shares) > 1 else ""
    full = panel.full_from(state)
    if full is not None:
        return f"{label}full from {words.load(full, unit) if unit else rounding.plain(full)} on"
    share, level = panel.peak(state)
    return f"{label}at most {rounding.percent(share)}{f', at {words.load(level, unit)}' if unit else ''}"


def chart(inv: Investigation, size: Size) -> Plot | None:
    drawn = shown(panels(inv))
    if not drawn:
        return None
    across = ACROSS[size.width >= TERSE_BELOW]
    width = (size.width - GAP_PX * (across - 1)) / across
    titles = [textwrap.wrap(panel.name, int(width / CHARACTER_PX)) for panel in drawn]
    said = [
        [
            (line, COLOURS[state] if len(panel.shares) > 1 else INK)
            for state in panel.shares
            for line in textwrap.wrap(_panel_words(panel, state, ""), int(width / CHARACTER_PX))
        ]
        for panel in drawn
    ]
    head = LINE_PX * (max(map(len, titles)) + max(map(len, said))) + 8
    height = head + BARS_PX + FOOT_PX + GAP_PX
    whole = Size(size.width, round(height * math.ceil(len(drawn) / across)))
    drawing = _Drawing(whole)
    for number, panel in enumerate(drawn):
        left, top = (number % across) * (width + GAP_PX), (number // across) * height
        drawing.heading(left, top, LINE_PX, titles[number], said[number])
        drawing.bars(left, top + head, width, panel)
    drawing.description = " ".join(
        f"{panel.name}, {'; '.join(_panel_words(panel, state, inv.study.load_unit) for state in panel.shares)}."
        for panel in drawn
    )
    return drawing.finished()


class _Drawing(Canvas):
    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self._bars: dict[tuple[str, float], list[Row]] = {}

    def bars(self, left: float, top: float, width: float, panel: Panel) -> None:
        levels = sorted({level for by_level in panel.shares.values() for level in by_level})
        slot = width / len(levels)
        bar = min(slot * 0.84, 34.0) / len(panel.shares)
        for column, level in enumerate(levels):
            for place, (state, by_level) in enumerate(panel.shares.items()):
                if level in by_level:
                    self._bar(left + column * slot + place * bar, top, bar * 0.92, by_level[level], COLOURS[state])
        for column, label in _labelled(levels, slot):
            middle = left + column * slot + bar * len(panel.shares) / 2
            self.label(middle, top + BARS_PX + 5, label, QUIET, align="center", fontSize=11)

    def _bar(self, left: float, top: float, width: float, share: float, colour: str) -> None:
        filled = BARS_PX * min(max(share, 0.0), 1.0)
        row = {"x": left, "x2": left + width, "y": top, "y2": top + BARS_PX}
        self._bars.setdefault((EMPTY, FULL), []).append(row)
        opacity = FULL if share >= REACHED else FILLING
        self._bars.setdefault((colour, opacity), []).append({**row, "y": top + BARS_PX - filled})

    def finished(self) -> Plot:
        for (colour, opacity), rows in self._bars.items():
            self.boxes(rows, colour, opacity=opacity)
        return self


def _labelled(levels: Sequence[float], slot: float) -> list[tuple[int, str]]:
    """The ends, and levels between that have room for their number."""
    texts = [rounding.plain(level) for level in levels]
    last = len(levels) - 1
    kept = [0]
    for column in range(1, last):
        room = slot * min(column - kept[-1], last - column)
        if room >= CHARACTER_PX * (max(map(len, (texts[column], texts[kept[-1]], texts[last]))) + 1):
            kept.append(column)
    return [(column, texts[column]) for column in dict.fromkeys([*kept, last])]
