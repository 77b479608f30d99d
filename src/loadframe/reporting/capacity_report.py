"""The result of a capacity search as a document, and its picture."""

import math
from collections.abc import Iterator

from loadframe.analysis.objective import WORDS, latency_limits
from loadframe.model import Capacity, CapacityObjective, CapacityTrial, RunQuality
from loadframe.model.capacity import AlternativeCapacity
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, verdict_words, words
from loadframe.reporting.vega import AFTER, BEFORE, INK, LoadAxis, Plot, Size, ValueAxis
from loadframe.reporting.verdict_words import CLASSES

LEAST = 0.001
LOOPS = {
    True: "Open loop: latencies count from the intended start of each request.",
    False: "Closed loop: each client sends a request when its previous one has ended; latencies count from the actual "
    "start.",
}


def of(search: Capacity, about: doc.About | None = None, went: RunQuality | None = None) -> doc.Document:
    """A capacity search without its picture. about, went: what was measured, and its run quality, which the record has
    not."""
    return doc.Document(
        kind="Search for the capacity",
        answer=(answer(search),),
        sections=(
            doc.section("Every level", "levels", _levels(search), "Every level"),
            doc.section("Other settings", "beside", _beside(search), "Other settings"),
            doc.environment(about),
            doc.quality(went, search.warnings),
            doc.reproduce(search.run, ("loadframe capacity {study}", "the whole search")),
        ),
        about=about,
        empty="No trial was completed.",
        asides=tuple(_asides(search)),
        report=search.run and f"{search.run}/report.html",
    )


def _asides(search: Capacity) -> Iterator[doc.Aside]:
    if search.load is not None:
        far = "" if search.end == "found" else ", as far as it is known"
        about = f"{search.load_unit}: the highest load that meets the objective{far}"
        yield doc.Aside(doc.Span(rounding.plain(search.load), to="#levels"), (about,), "gain", "page")
    loop = LOOPS[search.open_loop]
    yield doc.Aside("Objective", (f"{words.sentence(objective(search.objective))} {loop}",))
    yield doc.Aside("Proof", (_proof(search),))
    if search.expected is not None:
        yield doc.Aside("Expected beforehand", (f"{words.load_interval(search.expected, search.load_unit)}.",))
    yield doc.Aside("Next", (_next_step(search),), "next")


def _levels(search: Capacity) -> Iterator[doc.Block]:
    columns = (
        doc.Column(words.capital(search.load_unit), "Load", ">"),
        doc.Column("Trials that met", "Met", ">"),
        "The level",
        doc.Column("Wrong with a probability of", "Wrong with", ">"),
    )
    rows = (
        (
            rounding.exact(level.load),
            f"{level.met} of {level.trials}",
            CLASSES[level.classified],
            probability(level.error_probability),
        )
        for level in sorted(search.levels, key=lambda level: level.load)
    )
    yield doc.Table(columns, tuple(rows))
    yield doc.Prose(("Raw data: ", doc.Span("steps.jsonl", to="steps.jsonl"), "."), "note")


def _beside(search: Capacity) -> Iterator[doc.Block]:
    if not search.alternatives:
        return
    columns = (
        "Settings",
        "Host",
        doc.Column("Capacity", side=">"),
        doc.Column("Of the start's on this host", "Of the start's", ">"),
        doc.Column("", "Decision"),
    )
    rows = (
        (
            alternative.name,
            alternative.host,
            _load_of(alternative, search.load_unit),
            verdict_words.ratio_words(alternative.verdict)
            if alternative.verdict.has_ratio
            else alternative.verdict.method,
            verdict_words.DECISIONS[alternative.verdict.decision],
        )
        for alternative in search.alternatives
    )
    yield doc.Table(columns, tuple(rows))
    failed = (
        f"{alternative.name} failed: {words.sentence(alternative.failed)}"
        for alternative in search.alternatives
        if alternative.failed
    )
    yield doc.Items(tuple(failed))
    raw = doc.Span("fleet-trials.jsonl", to="fleet-trials.jsonl")
    sentence = "Each was searched on one host of the fleet, and is held against the start on that host. Raw data: "
    yield doc.Prose((sentence, raw, "."), "note")


def _load_of(alternative: AlternativeCapacity, counted_in: str) -> str:
    if not alternative.end:
        return "failed"
    if alternative.end == "below-range":
        return "below the range"
    low = "" if alternative.low is None else words.load(alternative.low, counted_in)
    return (
        f"above {low}"
        if alternative.end == "above-range" or alternative.load is None
        else words.load(alternative.load, counted_in)
    )


def _load(search: Capacity, level: float | None) -> str:
    return "" if level is None else words.load(level, search.load_unit)


def answer(search: Capacity) -> str:
    low = _load(search, search.low)
    high = _load(search, search.high)
    wrong = f"wrong with a probability of {probability(search.error_probability)}"
    match search.end:
        case "below-range":
            return f"The capacity is below {high}, the lowest level: {wrong}. Test lower loads."
        case "above-range":
            return f"The highest level, {low}, still meets the objective: {wrong}. Test higher loads."
    about = _load(search, search.load)
    shown = " and ".join([f"{low} is shown to meet"] * bool(low) + [f"{high} to miss"] * bool(high))
    if search.end == "found":
        return f"Capacity: {about}. {shown[0].upper()}{shown[1:]}: {wrong}."
    return f"The capacity is not known to {100 * search.precision:g} %: about {about}" + (
        f"; {shown}." if shown else "; no level is decided yet."
    )


def objective(asked: CapacityObjective) -> str:
    parts = [f"{WORDS[name]} latency within {limit:g} ms" for name, limit in latency_limits(asked).items()]
    parts += [f"at most {100 * asked.error_ratio:g} % of the requests failed"] if asked.error_ratio is not None else []
    parts += [f"at most {100 * asked.loss_ratio:g} % of the requests lost"] if asked.loss_ratio is not None else []
    return ", ".join(parts)


def probability(value: float) -> str:
    """A share in per cent, "< 0.1 %" below LEAST: the noise is not known well enough for less to mean anything."""
    return rounding.percent(value) if value >= LEAST else f"< {rounding.percent(LEAST)}"


def _proof(search: Capacity) -> str:
    trials = counted(sum(trial.counted for trial in search.trials), "trial")
    took, above = rounding.seconds(search.load_seconds), rounding.percent(search.seconds_above_share)
    searched = f"{trials} at {counted(len(search.levels), 'level')}, {took} of load, {above} of it above the capacity"
    if search.low is None:
        return f"{searched}."
    held = rounding.seconds(search.held_s)
    return f"{searched}; {words.load(search.low, search.load_unit)} or more met the objective for {held} in all."


def _next_step(search: Capacity) -> str:
    low = _load(search, search.low)
    match search.end:
        case "above-range":
            return f"Test loads above {low or 'these'}."
        case "below-range":
            return (
                f"Test loads below {words.load(search.high, search.load_unit) if search.high is not None else 'these'}."
            )
        case "undecided":
            return "Give the search more time (measure.budget), or ask for less precision (measure.precision)."
    plan = f"Plan with {low} or less. " if low else ""
    return f"{plan}`loadframe investigate` names what limits there, and tries remedies."


# --- the picture ---

LOGARITHMIC = 8.0
"""Latencies further apart than this factor are drawn on a logarithmic scale."""


def title(search: Capacity) -> str:
    met, missed = (sum(trial.met is wanted for trial in _drawn(search)) for wanted in (True, False))
    return f"{counted(met, 'trial')} met the objective, {missed} missed it"


def note(search: Capacity) -> str:
    between = "" if None in (search.low, search.high) else " Shaded: between the level shown to meet and that to miss."
    return f"A dot is a trial: blue met the objective, orange missed it.{between}"


def chart(search: Capacity, size: Size) -> Plot | None:
    """The p95 latency of each trial over its load, with the requested latency; None without a trial."""
    drawn = _drawn(search)
    if not drawn:
        return None
    limit = search.objective.latency_p95_ms
    values = [trial.latency_p95_ms for trial in drawn] + ([limit] if limit is not None else [])
    logarithmic = max(values) > LOGARITHMIC * min(values)
    low, high = (min(values) / 1.3, max(values) * 1.3) if logarithmic else (0.0, max(values) * 1.15)
    levels = tuple(sorted({trial.load for trial in drawn}))
    axis = ValueAxis("p95 latency in ms", low, high, logarithmic)
    plot = Plot(size, LoadAxis(search.load_unit, levels).channel(), axis)
    if search.low is not None and search.high is not None:
        plot.shade(search.low, search.high, AFTER, 0.12)
    for met, colour in ((True, AFTER), (False, BEFORE)):
        of = [{"load": trial.load, "value": trial.latency_p95_ms} for trial in drawn if trial.met is met]
        if of:
            plot.draw("point", of, colour, filled=True, size=52, opacity=0.75)
    if limit is not None:
        plot.ceiling(limit, f"objective: {limit:g} ms", INK, levels[0])
    said = [
        (trial.load, f"{words.milliseconds(trial.latency_p95_ms)} {'met' if trial.met else 'missed'}")
        for trial in drawn
    ]
    by_level = [
        f"{words.load(level, search.load_unit)}: {', '.join(text for load, text in said if load == level)}"
        for level in levels
    ]
    plot.description = f"p95 latency of each trial. {'. '.join(by_level)}."
    return plot


def _drawn(search: Capacity) -> list[CapacityTrial]:
    return [trial for trial in search.trials if trial.counted and 0 < trial.latency_p95_ms < math.inf]
