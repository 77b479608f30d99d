"""A ladder, for people and programs: what each change gave, what was reverted, and which changes need one another."""

from __future__ import annotations

import textwrap

from loadframe.model import Change, Interaction, Ladder, Rung, Verdict
from loadframe.reporting import change_words, facts, ladder_use, quality_words, rounding, verdict_words, words
from loadframe.reporting.layout import columns

WIDTH = 100
HEAD = ("change", "against the state before", "share", "lost without it", "")


def final_changes(found: Ladder) -> tuple[Change, ...]:
    """What is different at the top, one for each setting: as it was at the start, and as it is."""
    net: dict[tuple[str, str], Change] = {}
    for rung in found.kept:
        for change in rung.changes:
            key = (change.layer, change.setting)
            net[key] = Change(*key, net[key].before if key in net else change.before, change.after)
    return tuple(net.values())


def render_ladder(found: Ladder) -> str:
    """The answer, a row for each change, what else a reader must know, and the settings to copy."""
    parts = [
        *paragraphs(found),
        *ladder_use.sentences(found),
        *(() if found.quality is None else quality_words.sentences(found.quality)),
    ]
    rows = [row(rung, keeps_all=found.keeps_all) for rung in found.rungs]
    lines = [textwrap.fill(answer(found), WIDTH), "", *columns([HEAD, *rows], "<<<<<"), ""]
    for sentence in parts:
        lines += textwrap.wrap(words.sentence(sentence), WIDTH)
    settings = [f"  {change.setting} = {facts.shown(change.after)}" for change in final_changes(found)]
    lines += ["", "The settings at the top, where they differ from the start:", *settings] if settings else []
    return "\n".join([*lines, "", f"Report: {found.report}"])


def answer(found: Ladder) -> str:
    """The ladder in two sentences."""
    if not found.finished:
        tried = f"{len(found.rungs)} change{'' if len(found.rungs) == 1 else 's'}"
        return f"Stopped after {tried}.{_so_far(found)}"
    count, kept = len(found.rungs), len(found.kept)
    if found.total is None:
        return f"None of the {count} changes is proven to be better than the state before it; all were reverted."
    unit = words.study_unit(found.study)
    gain = verdict_words.gain_sentence(found.total, unit)
    gain = f"{gain}: {kept} of {count} changes {'is' if kept == 1 else 'are'} kept."
    largest = max(
        (rung for rung in found.kept if rung.share is not None), key=lambda rung: rung.share or 0, default=None
    )
    if kept == 1:
        return f"{gain[0].upper()}{gain[1:].removesuffix('.')}: {_named(found.kept[0])}."
    if largest is None or largest.share is None:
        return gain[0].upper() + gain[1:]
    share = f"The largest share, {rounding.percent(largest.share)}, is that of {largest.change}."
    return f"{gain[0].upper()}{gain[1:]} {share}"


def proof(found: Ladder, total: Verdict) -> str:
    """What the whole gain rests on: blocks of its own, or the product of the trials."""
    if "product" in total.method:
        return "It is the product of the trials, which decided what is kept: it may be overstated."
    return verdict_words.proof_sentence(total, words.study_unit(found.study))


def _named(rung: Rung) -> str:
    """ "wal (journal_mode from DELETE to WAL)": a change with what it sets."""
    changes = words.and_list([change_words.change(change) for change in rung.changes])
    return f"{rung.change} ({changes})" if changes else rung.change


def asides(found: Ladder) -> list[tuple[str, str]]:
    """What stands beside the picture: which changes are kept, which are not, what they give up."""
    kept = words.and_list([_named(rung) for rung in found.kept])
    others = [f"{rung.change}: {fate(rung, keeps_all=found.keeps_all)}" for rung in found.rungs if not rung.kept]
    given_up = [f"{rung.change}: {words.strip(rung.gives_up)}" for rung in found.kept if rung.gives_up]
    told = (("Kept", kept), ("Not kept", "; ".join(others)), ("Given up for it", "; ".join(given_up)))
    return [(title, f"{text}.") for title, text in told if text]


def next_step(found: Ladder) -> str:
    """What to do with the result."""
    if not found.finished:
        return f"Run it again to finish it; the finished steps are kept in {found.run}."
    unsure = [rung.change for rung in found.rungs if not rung.kept and _undecided(rung)]
    more = f" More time (measure.budget) may tell what {words.and_list(unsure)} gives." if unsure else ""
    if found.total is None:
        return f"Leave the settings as they are.{more} Next, loadframe investigate names what limits."
    return f"Set what is kept.{more} Next, loadframe investigate with these settings names what limits now."


def _undecided(rung: Rung) -> bool:
    return rung.trial is not None and rung.trial.decision == "no-proven-difference"


def _so_far(found: Ladder) -> str:
    kept = words.and_list([rung.change for rung in found.kept])
    return f" Better until then: {kept}." if kept else ""


def fate(rung: Rung, *, keeps_all: bool = False) -> str:
    """What became of a change, in words."""
    if rung.refused:
        return "refused by the target"
    if rung.kept:
        verdict = rung.verdict
        if verdict is None or verdict.decision == "better":
            return f"kept, {verdict_words.MAY_OVERSTATE}" if verdict and verdict.may_overstate else "kept"
        if keeps_all:
            return f"kept anyway: {verdict_words.DECISIONS[verdict.decision]}"
        return "kept: worse in fresh blocks" if verdict.decision == "worse" else "kept: not proven again"
    return f"{verdict_words.DECISIONS[rung.trial.decision]}: reverted" if rung.trial is not None else "reverted"


def row(rung: Rung, *, keeps_all: bool = False) -> tuple[str, str, str, str, str]:
    """Change, ratio with its interval, share, leave-one-out, what became of it."""
    return (
        rung.change,
        "" if rung.verdict is None else verdict_words.ratio_words(rung.verdict),
        "" if rung.share is None else rounding.percent(rung.share),
        "" if rung.at_top is None else verdict_words.ratio_words(rung.at_top),
        fate(rung, keeps_all=keeps_all),
    )


def paragraphs(found: Ladder) -> list[str]:
    """What the numbers alone do not say, in sentences."""
    said = [f"The target does not work with {rung.change}: {rung.refused}" for rung in found.rungs if rung.refused]
    said += [interaction_sentence(one) for one in found.interactions]
    said += [f"What {rung.change} gives up: {rung.gives_up}" for rung in found.kept if rung.gives_up]
    return [*said, *found.warnings]


def interaction_sentence(one: Interaction) -> str:
    """ "With threads, pool is worth 2.1 times (1.6 to 2.8) as much as without it: they need each other"."""
    much = f"{one.change} is worth {verdict_words.ratio_words(one.verdict)} as much as"
    if one.partner is None:
        return f"At the top, {much} at its place in the order: later changes alter what it gives"
    return f"With {one.partner}, {much} without it: they {_together(one.verdict)}"


def _together(verdict: Verdict) -> str:
    return "depend on each other" if verdict.decision == "better" else "overlap"
