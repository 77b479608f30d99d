"""Rows of benchmarks/sceptic.py: what is told of remedies that are kept, and how often one worth nothing is kept."""

from __future__ import annotations

import math
from functools import partial

import kept
import tuned
import verdicts as noises
from claims import Figure, rate, row


def told_gain(generate: noises.Generate, worth: float, loudness: float, series: int) -> Figure:
    """Mean gain told of what is kept over the true one, in logarithms, beside that of the blocks that decided."""
    found = kept.kept(generate, worth, loudness, series)
    again, doubt = kept.overstated([each.again for each in found], worth)
    deciding, _ = kept.overstated([each.deciding for each in found], worth)
    return Figure(again, 1.96 * doubt, f"the blocks that decided: {deciding:.2f}x; {len(found)} of {series} are kept")


def told_interval(generate: noises.Generate, worth: float, loudness: float, series: int) -> Figure:
    """Told intervals that hold the true gain, beside those of the blocks that decided."""
    found = kept.kept(generate, worth, loudness, min(series, 2000))
    held, deciding = (kept.holding([getattr(each, name) for each in found], worth) for name in ("again", "deciding"))
    doubt = 196 * math.sqrt(0.05 * 0.95 / len(found))
    return Figure(held, doubt, f"the blocks that decided: {deciding:.0f} %, at more than 95 %")


for _name, _goal in (("white", 1.1), ("AR(1) 0.8", 1.1), ("bursts", 1.2)):
    row(f"gain: 5 %, {_name}", f"told of a kept gain over the true 5 %, in logarithms, {_name}", section=4, goal=_goal,
        unit="x")(partial(told_gain, noises.NOISES[_name], 1.05, 1.0))  # fmt: skip
row("gain: 30 %, white, loud", "the same of 30 %, noise of 14 %", section=4, goal=1.1, unit="x")(
    partial(told_gain, noises.white, 1.3, 7.0)
)
for _name in ("white", "AR(1) 0.8", "bursts"):
    row(
        f"gain: interval, {_name}", f"its interval holds the true gain, 5 % of {_name}", section=4, goal=95, most=False
    )(partial(told_interval, noises.NOISES[_name], 1.05, 1.0))


def searched(loudness: float, series: int) -> Figure:
    """The same of settings that a search recommends, beside the blocks that decided."""
    drawn = series // 20
    found = tuned.gains(noises.white, loudness, drawn)
    again, doubt = found.over_true(found.fresh)
    deciding, _ = found.over_true(found.deciding)
    told = f"the blocks that decided: {deciding:.2f}x; {len(found.true)} of {drawn} are proved"
    return Figure(again, 1.96 * doubt, told)


for _loudness in (1.0, 2.5):
    row(
        f"gain: search, {2 * _loudness:.0f} %",
        f"told of a search's gain over the true one, four settings of 0 to 5 %, noise of {2 * _loudness:.0f} %",
        section=4,
        goal=1.05,
        unit="x",
    )(partial(searched, _loudness))


def ended(share: float, often: float, series: int) -> Figure:
    """Remedies without effect that are kept as failures ended, beside the rule that a tenth of them is left."""
    by_rule, wrong = kept.ended(share, often, series)
    return rate(wrong, series, rival=f"a tenth is left: {100 * by_rule / series:.1f}")


for _share, _often in ((0.01, 1.0), (0.3, 0.25), (0.3, 0.05)):
    row(
        f"remedies: failures, {100 * _share:.0f} % in {100 * _often:.0f} % of steps",
        f"kept as failures ended, {100 * _share:.0f} % of 40 requests fail in {100 * _often:.0f} % of the steps",
        section=4,
        goal=5,
    )(partial(ended, _share, _often))


def shared(generate: noises.Generate, worths: tuple[float, ...], series: int) -> Figure:
    """Investigations that prove a remedy that is worth nothing, beside 95 % for each."""
    drawn = series // 4
    alone = kept.proven(generate, worths, drawn, sharing=False)
    return rate(kept.proven(generate, worths, drawn), drawn, rival=f"each at 95 %: {100 * alone / drawn:.1f}")


for _name in ("white", "AR(1) 0.8", "linear drift", "bursts", "period of two blocks"):
    row(f"remedies: {_name}", f"six remedies worth nothing, any of them proven to help, {_name}", section=4, goal=5)(
        partial(shared, noises.NOISES[_name], (1.0,) * 6)
    )
row("remedies: every other", "three of six worth nothing, behind others worth twice as much", section=4, goal=5)(
    partial(shared, noises.white, (2.0, 1.0) * 3)
)


@row(
    "carry-over: soon over",
    "equal servers called different, one pays x4.7 for what the other leaves",
    section=4,
    goal=5,
)
def soon_over(series: int) -> Figure:
    """All but 3 % of it is over within the step that is left out."""
    drawn = series // 4
    without, _ = kept.owed(1e-3, drawn, washes=False)
    return rate(kept.owed(1e-3, drawn, washes=True)[0], drawn, rival=f"nothing left out: {100 * without / drawn:.0f}")


@row("carry-over: lasts", "the same, a third of it left after each second: without a word on it", section=4, goal=5)
def lasts(series: int) -> Figure:
    """Beside all that are called different, which have the words."""
    drawn = series // 4
    different, unsaid = kept.owed(1 / 3, drawn, washes=True)
    without, _ = kept.owed(1 / 3, drawn, washes=False)
    words = f"called different {100 * different / drawn:.0f}, nothing left out: {100 * without / drawn:.0f}"
    return rate(unsaid, drawn, rival=words)
