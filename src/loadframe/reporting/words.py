"""Loads, throughput and curves in words, and grammar."""

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from loadframe.diagnosis.plateau import is_flat
from loadframe.model import WORK, Bend, Curve, CurvePoint, Limit, LoadInterval, Scalability, StateSummary, StudySummary
from loadframe.reporting import rounding
from loadframe.units import show


def target_name(study: StudySummary) -> str:
    """A server that names itself in its version is not named twice."""
    kind, version = study.target_kind, study.target_version
    return version if kind.lower() in version.lower() else f"{kind} {version}".strip()


def load(value: float, unit: str) -> str:
    """ "12 active jobs"; "1 worker", "1 process", "1 request/s"."""
    return _counted(rounding.exact(value) if float(value).is_integer() else rounding.plain(value), unit)


def _counted(number: str, unit: str) -> str:
    if number != "1":
        return f"{number} {unit}"
    first, *rest = re.split("( of |/)", unit, maxsplit=1)
    for plural, singular in (("ies", "y"), ("sses", "ss"), ("ss", "ss"), ("s", "")):
        if first.endswith(plural):
            first = f"{first.removesuffix(plural)}{singular}"
            break
    return "".join((number, " ", first, *rest))


def load_interval(interval: LoadInterval, unit: str) -> str:
    ends = (interval.load, interval.low, interval.high)
    if not rounding.has_width(*ends[1:]):
        return load(interval.load, unit)
    value, low, high = rounding.with_interval(*ends)
    if "." in value and all(float(end).is_integer() for end in ends):
        value, low, high = map(rounding.exact, ends)
    return f"{_counted(value, unit)} ({low} to {high})"


def about_load(interval: LoadInterval, unit: str) -> str:
    if not rounding.has_width(interval.low, interval.high):
        return load(interval.load, unit)
    value, _, _ = rounding.with_interval(interval.load, interval.low, interval.high)
    if "." in value:
        value = rounding.plain(forecast(float(value.replace(",", ""))))
    return f"about {_counted(value, unit)}"


def forecast(value: float) -> float:
    """A derived load deserves three digits, however narrow its interval."""
    return float(rounding.plain(value).replace(",", "")) if math.isfinite(value) else value


def throughput(value: float, work: str = WORK) -> str:
    return f"{rounding.plain(value)} {work}/s"


def point_throughput(point: CurvePoint, work: str = WORK) -> str:
    ends = point.throughput_low, point.throughput_high
    between = f" ({' to '.join(map(rounding.plain, ends))})" if rounding.has_width(*ends) else ""
    return f"{throughput(point.throughput, work)}{between}"


def milliseconds(value: float | None) -> str:
    """ "12.5 ms"; from ten seconds on in seconds; "" where unknown."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{rounding.plain(value)} ms" if value < 10_000 else rounding.seconds(value / 1000)


def peak(state: StateSummary, unit: str, work: str = WORK) -> str:
    return f"{throughput(state.peak.throughput, work)} at {load(state.peak.load, unit)}"


def state_sentence(
    state: StateSummary, unit: str, work: str = WORK, limit: str = "", curve: Curve | None = None
) -> str:
    """limit: explains the bend. curve: of the state, to say why there is none."""
    if state.bend:
        bend = bend_words(state.bend, unit, limit)
    elif state.knee:
        bend = f"bends at {load_interval(state.knee, unit)}"
    elif curve is not None and is_flat(curve):  # it is saturated below its lowest level
        bend = f"flat from {load(min(point.load for point in curve.points), unit)} on, the lowest level"
    else:
        bend = "no bend within the tested levels"
    return f"peak {peak(state, unit, work)}; {bend}"


def bend_words(bend: Bend, unit: str, limit: str = "") -> str:
    alone = load_interval(bend.curve, unit)
    where = f"a limit is reached ({limit})" if limit and limit != bend.limit else f"{bend.limit} is full"
    return f"bends at {load_interval(bend.load, unit)}, where {where}; the curve alone gives {alone}"


def curve_phrase(curve: Curve, unit: str) -> str:
    last = max((point.load for point in curve.points), default=curve.peak.load)
    bend = about_load(curve.knee, unit) if curve.knee else load(curve.peak.load, unit)
    if served_nothing(curve):
        return "is 0 at every load: nothing was served, or it is not counted"
    if len(curve.points) == 1:
        return f"was measured at {load(last, unit)} alone"
    if curve.gradual is not None:
        return _gradually(curve, curve.gradual, unit, last)
    match curve.shape:
        case "cliff" if curve.cliff:
            kept = rounding.percent(curve.cliff.throughput_kept)
            ends = f"{rounding.exact(curve.cliff.from_load)} and {load(curve.cliff.to_load, unit)}"
            return f"falls to {kept} between {ends}"
        case "decline" | "cliff":
            return f"falls after {bend}"
        case "plateau" if curve.knee:
            return f"levels off at {bend}"
        case "plateau" if is_flat(curve):
            return "is flat over these levels"
        case _ if curve.peak.load < last:
            return f"peaks at {load(curve.peak.load, unit)}, with no bend that is proved"
        case _:
            return f"still grows at {load(last, unit)}"


def _gradually(curve: Curve, between: LoadInterval, unit: str, last: float) -> str:
    """ "levels off gradually, between about 5 and 80 clients"; an end that is only that of the levels is not named."""
    begins = rounding.plain(forecast(between.low))
    if between.low <= min(point.load for point in curve.points):
        begins = "the lowest load"
    if curve.shape == "decline":
        return f"levels off gradually from {begins} on, and falls after {load(curve.peak.load, unit)}"
    if between.high >= last:
        return f"levels off gradually from {begins} on, and still does at {load(last, unit)}"
    return f"levels off gradually, between {begins} and {load(forecast(between.high), unit)}"


def served_nothing(curve: Curve) -> bool:
    return bool(curve.points) and all(point.throughput == 0 for point in curve.points)


FORESIGHT = 10.0
"""The scalability law's peak is not reported beyond this many times the highest load."""
CLOSED_LOOP = "Closed loop: a client sends nothing while its request waits, and the latencies do not show that."
OPEN_LOOP = "Open loop: requests were offered at a fixed rate; each latency counts from the intended start."


def curve_facts(curve: Curve, unit: str, bend: Bend | None = None, work: str = WORK, limit: str = "") -> list[str]:
    """Sentences. bend: where a limit explains the knee; limit: its name."""
    peak = f"Peak: {point_throughput(curve.at_peak, work)} at {load(curve.peak.load, unit)}."
    lines = [] if served_nothing(curve) else [peak]
    if bend:
        lines.append(f"It {bend_words(bend, unit, limit)}.")
    elif curve.gradual:
        lines.append("It has no corner: no single load is its knee.")
    elif curve.knee:
        lines.append(f"Knee: {load_interval(curve.knee, unit)}.")
    if curve.capacity:
        lines.append(f"Capacity within the objective: {load_interval(curve.capacity, unit)}.")
    if curve.usl is not None and (expected := _law_peak(curve.usl, curve)) is not None:
        lines.append(f"Scalability law: peak expected at {load_interval(expected, unit)}.")
    if curve.closed_loop is not None:
        lines.append(CLOSED_LOOP if curve.closed_loop else OPEN_LOOP)
    return lines


def _law_peak(law: Scalability, curve: Curve) -> LoadInterval | None:
    """With the interval of kappa; None unless kappa is proven, and the peak near what was measured."""
    highest_load, (low, high) = curve.points[-1].load, law.kappa_interval
    if law.peak_load is None or not 0 < low <= high or not law.peak_load <= FORESIGHT * highest_load:
        return None
    if law.peak_load <= highest_load and curve.shape not in ("decline", "cliff"):
        return None
    soonest, latest = (math.sqrt((1 - law.sigma) / kappa) for kappa in (high, low))
    return LoadInterval(law.peak_load, soonest, latest)


def limit_number(value: float | None, limit: Limit) -> str:
    return "" if value is None or not math.isfinite(value) else show(value, limit.unit)


def strip(text: str) -> str:
    return text.strip().rstrip(".").rstrip()


def sentence(text: str) -> str:
    """With a capital and a full stop. Names (table_open_cache, books = 16) keep their spelling."""
    bare = strip(text)
    first, *rest = bare.split() or [""]
    is_word = first.rstrip(",:;").replace("-", "").replace("'", "").isalpha() and rest[:1] != ["="]
    return bare and f"{capital(bare) if is_word else bare}."


def paragraph(texts: Iterable[str]) -> str:
    return " ".join(filter(None, map(sentence, texts)))


def heading(text: str) -> str:
    return sentence(text)[:-1]


def capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def and_list(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def moment(iso: str) -> str:
    """ "25 November 2026, 22:48 UTC" from an ISO 8601 time; what is none, or has no zone, unchanged."""
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return iso if at.tzinfo is None else f"{at.astimezone(UTC):%-d %B %Y, %H:%M} UTC"
