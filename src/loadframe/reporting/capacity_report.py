"""The result of a capacity search as a document, and its picture."""

import math
from collections.abc import Iterator

from loadframe.analysis.objective import WORDS, latency_limits
from loadframe.model import Capacity, CapacityObjective, CapacityTrial, RunQuality
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, verdict_words, words
from loadframe.reporting.vega import AFTER, BEFORE, BOTH, INK, Chart, LoadAxis, Plot, Size, axis_over, charted

LEAST = 0.001
LOOPS = {
    True: "Open loop: latencies count from the intended start of each request.",
    False: "Closed loop: each client sends a request when its previous one has ended; latencies count from the actual "
    "start.",
}


def of(search: Capacity, about: doc.About | None = None, went: RunQuality | None = None) -> doc.Document:
    """about, went: what was measured, and its run quality, which the record has not."""
    return doc.Document(
        kind="Search for the capacity",
        answer=(answer(search),),
        sections=(
            doc.section("Every level", "levels", _levels(search), "Every level"),
            doc.section("Other settings", "others", _other_settings(search), "Other settings"),
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
        yield doc.aside(doc.Span(rounding.plain(search.load), to="#levels"), about, look="gain", only="page")
    yield doc.aside("Objective", f"{words.sentence(objective(search.objective))} {LOOPS[search.open_loop]}")
    yield doc.aside("Proof", _proof(search))
    if search.expected is not None:
        yield doc.aside("Expected beforehand", f"{words.load_interval(search.expected, search.load_unit)}.")
    yield doc.aside("Next", _next_step(search), look="next")


def _levels(search: Capacity) -> Iterator[doc.Block]:
    columns = (
        doc.Column(words.capital(search.load_unit), "Load", ">"),
        doc.Column("Trials that met", "Met", ">"),
        "The level",
        doc.Column("Wrong with a probability of", "Wrong with", ">"),
    )
    rows = []
    for level in sorted(search.levels, key=lambda level: level.load):
        met, outcome = f"{level.met} of {level.trials}", level.classified.replace("undecided", "unknown")
        rows.append((rounding.exact(level.load), met, outcome, probability(level.error_probability)))
    yield doc.Table(columns, rows)
    yield doc.Prose(("Raw data: ", doc.file("steps.jsonl"), "."), "note")


def _other_settings(search: Capacity) -> Iterator[doc.Block]:
    if not search.alternatives:
        return
    columns = (
        "Settings",
        "Host",
        doc.Column("Capacity", side=">"),
        doc.Column("Of the start's on this host", "Of the start's", ">"),
        doc.Column("", "Decision"),
    )
    rows, failed = [], []
    for other in search.alternatives:
        verdict, decision = other.verdict, verdict_words.DECISIONS[other.verdict.decision]
        ratio = verdict_words.ratio_words(verdict) if verdict.has_ratio else verdict.method
        if not other.end:
            load = "failed"
        elif other.end == "below-range":
            load = "below the range"
        elif other.end == "above-range" or other.load is None:
            load = f"above {_load(search, other.low)}"
        else:
            load = _load(search, other.load)
        rows.append((other.name, other.host, load, ratio, decision))
        failed += [f"{other.name} failed: {words.sentence(other.failed)}"] if other.failed else []
    yield doc.Table(columns, rows)
    yield doc.Items(failed)
    sentence = "Each was searched on one host of the fleet, and is held against the start on that host. Raw data: "
    yield doc.Prose((sentence, doc.file("fleet-trials.jsonl"), "."), "note")


def _load(search: Capacity, level: float | None) -> str:
    return "" if level is None else words.load(level, search.load_unit)


def answer(search: Capacity) -> str:
    low, about, high = (_load(search, level) for level in (search.low, search.load, search.high))
    wrong = f"wrong with a probability of {probability(search.error_probability)}"
    shown = " and ".join([f"{low} is shown to meet"] * bool(low) + [f"{high} to miss"] * bool(high))
    match search.end:
        case "below-range":
            return f"The capacity is below {high}, the lowest level: {wrong}. Test lower loads."
        case "above-range":
            return f"The highest level, {low}, still meets the objective: {wrong}. Test higher loads."
        case "found":
            return f"Capacity: {about}. {words.capital(shown)}: {wrong}."
    unknown = f"The capacity is not known to {100 * search.precision:g} %: about {about}"
    return f"{unknown}; {shown or 'no level is decided yet'}."


def objective(asked: CapacityObjective) -> str:
    parts = [f"{WORDS[name]} latency within {limit:g} ms" for name, limit in latency_limits(asked).items()]
    for ratio, outcome in ((asked.error_ratio, "failed"), (asked.loss_ratio, "lost")):
        parts += [] if ratio is None else [f"at most {100 * ratio:g} % of the requests {outcome}"]
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
    low, high = _load(search, search.low), _load(search, search.high)
    match search.end:
        case "above-range":
            return f"Test loads above {low or 'these'}."
        case "below-range":
            return f"Test loads below {high or 'these'}."
        case "undecided":
            return "Give the search more time (measure.budget), or ask for less precision (measure.precision)."
    plan = f"Plan with {low} or less. " if low else ""
    return f"{plan}`loadframe investigate` names what limits there, and tries remedies."


# --- the picture ---

LOGARITHMIC = 8.0
"""Latencies further apart than this factor are drawn on a logarithmic scale."""


def charts(search: Capacity) -> Iterator[Chart]:
    met, missed = (sum(trial.met is wanted for trial in _drawn(search)) for wanted in (True, False))
    title = f"{counted(met, 'trial')} met the objective, {missed} missed it"
    between = "" if None in (search.low, search.high) else " Shaded: between the level shown to meet and that to miss."
    note = f"A dot is a trial: blue met the objective, orange missed it.{between}"
    return charted("capacity", title, note, BOTH, _chart, search)


def _chart(search: Capacity, size: Size) -> Plot | None:
    drawn = _drawn(search)
    if not drawn:
        return None
    limit = search.objective.latency_p95_ms
    values = [*(trial.latency_p95_ms for trial in drawn), *([] if limit is None else [limit])]
    levels = tuple(sorted({trial.load for trial in drawn}))
    axis = axis_over("p95 latency in ms", values, max(values) > LOGARITHMIC * min(values), 1.3)
    plot = Plot(size, LoadAxis(search.load_unit, levels).channel(), axis)
    if search.low is not None and search.high is not None:
        plot.shade(search.low, search.high, AFTER, 0.12)
    for met, colour in ((True, AFTER), (False, BEFORE)):
        of = [{"load": trial.load, "value": trial.latency_p95_ms} for trial in drawn if trial.met is met]
        if of:
            plot.draw("point", of, colour, filled=True, size=52, opacity=0.75)
    if limit is not None:
        plot.ceiling(limit, f"objective: {limit:g} ms", INK, levels[0])
    by_level: dict[float, list[str]] = {level: [] for level in levels}
    for trial in drawn:
        outcome = "met" if trial.met else "missed"
        by_level[trial.load].append(f"{words.milliseconds(trial.latency_p95_ms)} {outcome}")
    texts = (f"{words.load(level, search.load_unit)}: {', '.join(trials)}" for level, trials in by_level.items())
    plot.description = f"p95 latency of each trial. {'. '.join(texts)}."
    return plot


def _drawn(search: Capacity) -> list[CapacityTrial]:
    return [trial for trial in search.trials if trial.counted and 0 < trial.latency_p95_ms < math.inf]
