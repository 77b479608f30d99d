"""What a capacity search found, for people and programs."""

from __future__ import annotations

from loadframe.analysis.objective import WORDS, latency_limits
from loadframe.model import Capacity, CapacityObjective
from loadframe.model.capacity import CapacityBeside
from loadframe.progress import counted
from loadframe.reporting import rounding, words
from loadframe.reporting.layout import columns

LEAST = 0.001
CLASSES = {"meets": "meets", "misses": "misses", "undecided": "unknown"}


def render_capacity(found: Capacity) -> str:
    """The answer, how it was reached level by level, and what it took."""
    unit = found.axis_unit or found.axis.replace("_", " ")
    lines = [answer(found), f"Objective: {objective(found.objective)}. {loop(found)}", ""]
    lines += _table(found, unit)
    took, share = rounding.seconds(found.load_seconds), rounding.percent(found.seconds_above_share)
    lines += [
        "",
        f"{counted(len(found.trials), 'trial')}, {took} of load, {share} of it above the capacity.",
    ]
    if found.low is not None:
        held = rounding.seconds(found.held_s)
        lines.append(f"{words.load(found.low, unit)} or more met the objective for {held} in all.")
    if found.expected is not None:
        lines.append(f"Expected beforehand: {words.load_interval(found.expected, unit)}.")
    return "\n".join([*lines, *beside_lines(found), *found.warnings, f"Run folder: {found.run}"])


BESIDE_HEAD = ("settings", "host", "capacity", "as given", "")
DECISIONS = {"better": "better", "worse": "worse", "no-proven-difference": "no proven difference"}


def beside_rows(found: Capacity) -> list[tuple[str, ...]]:
    """With other settings: name, host, the capacity, how many times that as given on this host, and the decision."""
    unit = found.axis_unit or found.axis.replace("_", " ")
    return [
        (each.name, each.host, _load_of(each, unit), _ratio_of(each), DECISIONS[each.decision]) for each in found.beside
    ]


def beside_lines(found: Capacity) -> list[str]:
    """The same as a table; none without other settings."""
    if not found.beside:
        return []
    failed = [f"{each.name} failed: {words.sentence(each.failed)}" for each in found.beside if each.failed]
    head = "With other settings, each held against the start on its own host"
    return ["", head, *columns([BESIDE_HEAD, *beside_rows(found)], "<<>><"), *failed]


def _load_of(one: CapacityBeside, unit: str) -> str:
    if not one.end:
        return "failed"
    if one.end == "below-range":
        return "below the range"
    low = "" if one.low is None else words.load(one.low, unit)
    return f"above {low}" if one.end == "above-range" or one.load is None else words.load(one.load, unit)


def _ratio_of(one: CapacityBeside) -> str:
    low = "?" if one.ratio_low is None else f"{one.ratio_low:.2f}"
    high = "?" if one.ratio_high is None else f"{one.ratio_high:.2f}"
    return "" if not one.end else f"{'' if one.ratio is None else f'{one.ratio:.2f} '}({low} to {high})"


def answer(found: Capacity) -> str:
    """The answer in a sentence."""
    unit = found.axis_unit or found.axis.replace("_", " ")
    low = "" if found.low is None else words.load(found.low, unit)
    high = "" if found.high is None else words.load(found.high, unit)
    wrong = f"wrong with a probability of {probability(found.error_probability)}"
    match found.end:
        case "below-range":
            return f"The capacity is below {high}, the lowest level: {wrong}. Test lower loads."
        case "above-range":
            return f"The highest level, {low}, still meets the objective: {wrong}. Test higher loads."
    about = "" if found.load is None else words.load(found.load, unit)
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
    """The noise is not known well enough for less than a thousandth to mean anything."""
    return rounding.percent(value) if value >= LEAST else f"< {rounding.percent(LEAST)}"


def loop(found: Capacity) -> str:
    """From when latencies count."""
    if found.open_loop:
        return "Open loop: latencies count from the intended start of each request."
    return (
        "Closed loop: each client sends a request when its previous one has ended; latencies count "
        "from the actual start."
    )


def _table(found: Capacity, unit: str) -> list[str]:
    rows = [
        (
            rounding.exact(level.load),
            f"{level.met} of {level.trials}",
            CLASSES[level.classified],
            probability(level.error_probability),
        )
        for level in found.levels
    ]
    head = (unit, "met", "", "wrong with")
    return columns([head, *rows], ">><>")
