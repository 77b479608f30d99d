"""The picture of a search for settings: its trials."""

import itertools
import math
from collections.abc import Iterator

from loadframe.reporting import rounding, vega, verdict_words
from loadframe.reporting.plots import TERSE_BELOW
from loadframe.reporting.vega import AFTER, BEFORE, BETWEEN, INK, QUIET, Chart, Plot, Size
from loadframe_tune.model import Tuning, TuningTrial

KINDS = {
    "trial": (AFTER, "circle"),
    "ended early": (BETWEEN, "triangle-down"),
    "missed the objective": (BEFORE, "diamond"),
    "failed": (INK, "cross"),
}
DEEPEST = 20.0
"""Best ratio divided by this: what is further below (and below the start), and what failed, is drawn at the bottom."""


def charts(tuning: Tuning) -> Iterator[Chart]:
    return vega.charted("trials", title(tuning), note(tuning), vega.BOTH, trials, tuning)


def kind(trial: TuningTrial) -> str:
    if trial.ratio is None:
        return "failed"
    if trial.missed:
        return "missed the objective"
    return "ended early" if trial.ended_early else "trial"


def best_so_far(tuning: Tuning) -> list[float]:
    """The start has 1."""
    ratios = (trial.ratio if trial.ratio is not None and kind(trial) == "trial" else 1.0 for trial in tuning.trials)
    return list(itertools.accumulate(ratios, max, initial=1.0))[1:]


def title(tuning: Tuning) -> str:
    """ "The best of 24 trials came to 9.3 times the start; the proof in fresh blocks: 7 times"."""
    best = rounding.plain(max(best_so_far(tuning), default=1.0))
    verdict = tuning.reported
    where = " in fresh blocks" if verdict and not verdict.may_overstate else ""
    proof = f"; the proof{where}: {verdict_words.ratio(verdict)} times" if verdict else ""
    return f"The best of {len(tuning.trials)} trials came to {best} times the start{proof}"


def note(tuning: Tuning) -> str:
    lowest, _ = _range(tuning)
    sentences = ["Line: the best trial so far. Dotted: the start."]
    if tuning.reported is not None:
        blocks = "the deciding blocks" if tuning.reported.may_overstate else "fresh blocks"
        confidence = verdict_words.confidence(tuning.reported)
        sentences.append(f"Square: the best settings in {blocks}, {confidence} interval.")
    if any(trial.ratio is None or trial.ratio < lowest for trial in tuning.trials):
        sentences.append("At the bottom: trials that failed, or came to less than is shown.")
    return " ".join(sentences)


def _range(tuning: Tuning) -> tuple[float, float]:
    verdict = tuning.reported
    proved = (verdict.low, verdict.ratio, verdict.high) if verdict is not None and verdict.has_ratio else ()
    known = [1.0, *(trial.ratio for trial in tuning.trials if trial.ratio is not None), *filter(math.isfinite, proved)]
    return min(1.0, max(min(known), max(known) / DEEPEST)) / 1.15, max(known)


def trials(tuning: Tuning, size: Size) -> Plot | None:
    if not tuning.trials:
        return None
    verdict, last = tuning.reported, tuning.trials[-1].number
    verdict = verdict if verdict is not None and verdict.has_ratio else None
    lowest, highest = _range(tuning)
    scale = {"type": "log", "domain": [lowest, highest * 1.25], "nice": False}
    steps, form = even_steps(lowest, highest * 1.25), vega.number_format(highest)
    y = vega.quantity("ratio", "throughput against the start (log scale)", scale, values=steps, format=form)
    right = last + max(1.0, last / 8) if verdict else last
    ticks = [number for number in range(1, last + 1) if last <= 10 or number % (5 if last <= 50 else 10) == 0]
    numbers = {"domain": [0.5, right + 0.5], "nice": False}
    x = vega.quantity("number", "trial", numbers, values=ticks, format="d", grid=False)
    rows = [
        {"number": trial.number, "ratio": max(trial.ratio or lowest, lowest), "kind": kind(trial)}
        for trial in tuning.trials
    ]
    best = [{"number": row["number"], "ratio": ratio} for row, ratio in zip(rows, best_so_far(tuning), strict=True)]
    used = [name for name in KINDS if any(row["kind"] == name for row in rows)]
    columns = 2 if size.width < TERSE_BELOW else len(KINDS)
    legend = {"orient": "top", "title": None, "columns": columns} if len(used) > 1 else None
    colours, shapes = zip(*(KINDS[name] for name in used), strict=True)
    colour = {**vega.text("kind"), "scale": {"domain": used, "range": list(colours)}, "legend": legend}
    shape = {**vega.text("kind"), "scale": {"domain": used, "range": list(shapes)}, "legend": legend}
    plot = Plot(size, x)
    plot.add("rule", [{"ratio": 1.0}], {"y": y}, color=QUIET, strokeDash=[2, 3])
    plot.add("line", best, {"x": x, "y": y}, color=BETWEEN, interpolate="step-after", strokeWidth=1.5)
    plot.add("point", rows, {"x": x, "y": y, "color": colour, "shape": shape}, filled=True, size=60, opacity=1)
    if verdict is not None:
        row = {
            "number": right,
            "ratio": min(max(verdict.ratio, lowest), highest),
            "low": max(verdict.low, lowest),
            "high": min(verdict.high, highest * 1.25),
            "label": f"proof: {verdict_words.ratio(verdict)} times",
        }
        low, high = ({"field": end, "type": "quantitative", "scale": scale} for end in ("low", "high"))
        plot.add("rule", [row], {"x": x, "y": low, "y2": {"field": "high"}}, color=INK, strokeWidth=2)
        plot.add("point", [row], {"x": x, "y": y}, color=INK, filled=True, size=90, shape="square", opacity=1)
        written = {"x": x, "y": high, "text": vega.text()}
        plot.add("text", [row], written, align="right", dx=5, dy=-8, color=INK, fontWeight=600)
    return plot


STEPS = ((1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 2.0, 3.0, *range(4, 10)))
"""Digits within each power of ten, coarse ones first."""


def even_steps(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20 and so on between two values; finer ones where those would be fewer than two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    choices = [
        [step for power in powers for digit in digits if low <= (step := digit * 10.0**power) <= high]
        for digits in STEPS
    ]
    return next((steps for steps in choices if len(steps) > 1), choices[-1])
