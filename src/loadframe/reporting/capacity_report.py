"""The result of a capacity search as a document."""

from collections.abc import Iterator

from loadframe.analysis.objective import WORDS, latency_limits
from loadframe.model import Capacity, CapacityObjective, RunQuality
from loadframe.model.capacity import CapacityBeside
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, verdict_words, words
from loadframe.reporting.verdict_words import CLASSES
from loadframe.reporting.words import study_unit as unit

LEAST = 0.001


def of(found: Capacity, about: doc.About | None = None, went: RunQuality | None = None) -> doc.Document:
    """A search, without its picture. about, went: what was measured, and its run quality; the record has neither."""
    return doc.Document(
        kind="Search for the capacity",
        answer=(answer(found),),
        sections=(
            doc.Section("Every level", "levels", tuple(_levels(found)), "Every level"),
            doc.Section("Other settings", "beside", tuple(_beside(found)), "Other settings"),
            doc.environment(about),
            doc.quality(went, found.warnings),
            doc.reproduce(found.run, ("loadframe capacity {study}", "the whole search")),
        ),
        about=about,
        empty="No trial was completed.",
        asides=tuple(_asides(found)),
        report=found.run and f"{found.run}/report.html",
    )


def _asides(found: Capacity) -> Iterator[doc.Aside]:
    if found.load is not None:
        far = "" if found.end == "found" else ", as far as it is known"
        about = f"{unit(found)}: the highest load that meets the objective{far}"
        yield doc.Aside(doc.Span(rounding.plain(found.load), to="#levels"), (about,), "gain", "page")
    yield doc.Aside("Objective", (f"{words.sentence(objective(found.objective))} {_loop(found)}",))
    yield doc.Aside("Proof", (_proof(found),))
    if found.expected is not None:
        yield doc.Aside("Expected beforehand", (f"{words.load_interval(found.expected, unit(found))}.",))
    yield doc.Aside("Next", (_next_step(found),), "next")


def _levels(found: Capacity) -> Iterator[doc.Block]:
    columns = (
        doc.Column(words.capital(unit(found)), "Load", ">"),
        doc.Column("Trials that met", "Met", ">"),
        "The level",
        doc.Column("Wrong with a probability of", "Wrong with", ">"),
    )
    rows = (
        (
            (
                rounding.exact(level.load),
                f"{level.met} of {level.trials}",
                CLASSES[level.classified],
                probability(level.error_probability),
            )
        )
        for level in sorted(found.levels, key=lambda level: level.load)
    )
    yield doc.Table(columns, tuple(rows))
    yield doc.Prose(("Raw data: ", doc.Span("steps.jsonl", to="steps.jsonl"), "."), "note")


def _beside(found: Capacity) -> Iterator[doc.Block]:
    if not found.beside:
        return
    columns = (
        "Settings",
        "Host",
        doc.Column("Capacity", side=">"),
        doc.Column("Of the start's on this host", "Of the start's", ">"),
        doc.Column("", "Decision"),
    )
    rows = (
        doc.Row(
            (
                alternative.name,
                alternative.host,
                _load_of(alternative, unit(found)),
                verdict_words.ratio_words(alternative.verdict)
                if alternative.verdict.has_ratio
                else alternative.verdict.method,
                verdict_words.DECISIONS[alternative.verdict.decision],
            )
        )
        for alternative in found.beside
    )
    yield doc.Table(columns, tuple(rows))
    failed = [
        f"{alternative.name} failed: {words.sentence(alternative.failed)}"
        for alternative in found.beside
        if alternative.failed
    ]
    if failed:
        yield doc.Items(tuple(failed))
    raw = doc.Span("fleet-trials.jsonl", to="fleet-trials.jsonl")
    sentence = "Each was searched on one host of the fleet, and is held against the start on that host. Raw data: "
    yield doc.Prose((sentence, raw, "."), "note")


def _load_of(one: CapacityBeside, counted_in: str) -> str:
    if not one.end:
        return "failed"
    if one.end == "below-range":
        return "below the range"
    low = "" if one.low is None else words.load(one.low, counted_in)
    return f"above {low}" if one.end == "above-range" or one.load is None else words.load(one.load, counted_in)


def answer(found: Capacity) -> str:
    """The answer in one sentence."""
    low = "" if found.low is None else words.load(found.low, unit(found))
    high = "" if found.high is None else words.load(found.high, unit(found))
    wrong = f"wrong with a probability of {probability(found.error_probability)}"
    match found.end:
        case "below-range":
            return f"The capacity is below {high}, the lowest level: {wrong}. Test lower loads."
        case "above-range":
            return f"The highest level, {low}, still meets the objective: {wrong}. Test higher loads."
    about = "" if found.load is None else words.load(found.load, unit(found))
    shown = " and ".join([f"{low} is shown to meet"] * bool(low) + [f"{high} to miss"] * bool(high))
    if found.end == "found":
        return f"Capacity: {about}. {shown[0].upper()}{shown[1:]}: {wrong}."
    return f"The capacity is not known to {100 * found.precision:g} %: about {about}" + (
        f"; {shown}." if shown else "; no level is decided yet."
    )


def objective(asked: CapacityObjective) -> str:
    """What a level must meet, in words."""
    parts = [f"{WORDS[name]} latency within {limit:g} ms" for name, limit in latency_limits(asked).items()]
    parts += [f"at most {100 * asked.error_ratio:g} % of the requests failed"] if asked.error_ratio is not None else []
    parts += [f"at most {100 * asked.loss_ratio:g} % of the requests lost"] if asked.loss_ratio is not None else []
    return ", ".join(parts)


def probability(value: float) -> str:
    """The noise is not known well enough for less than LEAST (a thousandth) to mean anything."""
    return rounding.percent(value) if value >= LEAST else f"< {rounding.percent(LEAST)}"


def _proof(found: Capacity) -> str:
    trials = counted(sum(trial.counted for trial in found.trials), "trial")
    took, above = rounding.seconds(found.load_seconds), rounding.percent(found.seconds_above_share)
    searched = f"{trials} at {counted(len(found.levels), 'level')}, {took} of load, {above} of it above the capacity"
    if found.low is None:
        return f"{searched}."
    held = rounding.seconds(found.held_s)
    return f"{searched}; {words.load(found.low, unit(found))} or more met the objective for {held} in all."


def _next_step(found: Capacity) -> str:
    low = "" if found.low is None else words.load(found.low, unit(found))
    match found.end:
        case "above-range":
            return f"Test loads above {low or 'these'}."
        case "below-range":
            return f"Test loads below {words.load(found.high, unit(found)) if found.high is not None else 'these'}."
        case "undecided":
            return "Give the search more time (measure.budget), or ask for less precision (measure.precision)."
    plan = f"Plan with {low} or less. " if low else ""
    return f"{plan}`loadframe investigate` names what limits there, and tries remedies."


def _loop(found: Capacity) -> str:
    if found.open_loop:
        return "Open loop: latencies count from the intended start of each request."
    return (
        "Closed loop: each client sends a request when its previous one has ended; latencies count "
        "from the actual start."
    )
