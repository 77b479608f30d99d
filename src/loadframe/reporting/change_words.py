"""Changes, their price and their outcome in words."""

import math
import re
from dataclasses import replace

from loadframe.diagnosis.conclusion import kept_trials
from loadframe.model import (
    KEPT_FIRST,
    Change,
    ChangeRecord,
    Investigation,
    Price,
    Round,
    SettingValue,
    Trial,
    UntriedRemedy,
)
from loadframe.reporting import facts, verdict_words, words
from loadframe.units import show


def change(change: ChangeRecord | Change) -> str:
    origin = "" if change.before is None else f" from {value(change.setting, change.before)}"
    return f"{change.setting}{origin} to {value(change.setting, change.after)}{clamped(change)}"


def clamped(change: ChangeRecord | Change) -> str:
    effective = change.read_back if isinstance(change, ChangeRecord) else None
    if effective is None or facts.same_value(effective, change.after):
        return ""
    return f" (the target uses {value(change.setting, effective)})"


_BYTES = re.compile(r"(?:_size|_bytes|_memory|memory\.max)$")


def value(name: str, setting: SettingValue | None) -> str:
    if isinstance(setting, int | float) and setting >= 1024 and _BYTES.search(name):
        return show(float(setting), "bytes")
    return facts.shown(setting)


def price_sentences(price: Price) -> list[str]:
    memory = ""
    sizes = [size for size in (price.memory_before_bytes, price.memory_after_bytes) if size is not None]
    if len(sizes) == 2 and all(map(math.isfinite, sizes)):
        before, after, change = (show(size, "bytes") for size in (*sizes, abs(sizes[1] - sizes[0])))
        by = "" if sizes[0] == sizes[1] else f" ({change} {'more' if sizes[1] > sizes[0] else 'less'})"
        memory = f"memory of the target under load: {before} before, {after} after{by}"
    durability = f"durability given up: {price.durability}" if price.durability else ""
    return [words.strip(text) for text in (memory, price.slower_tail, durability, price.note) if text]


def trial_sentence(trial: Trial, unit: str = "") -> str:
    fate = verdict_words.FATES[trial.kept]
    if not trial.kept and (trial.fresh is not None or trial.verdict.decision == "better"):
        if trial.reported.decision == "worse":
            fate = verdict_words.TAKEN_BACK
        elif trial.note:
            fate += f", as {trial.note}"
    fresh = "" if trial.fresh is None else f"; {verdict_words.fresh_words(trial.verdict)}"
    return f"{fate}: {verdict_words.gain_sentence(trial.reported, unit)}{fresh}"


APART = 1.1
"""From this factor on, the product of the parts would seem to contradict the whole."""


def parts_sentence(inv: Investigation) -> str:
    parts = [trial.reported.ratio for trial in kept_trials(inv.rounds)]
    if inv.gain is None or len(parts) < 2 or not all(part > 0 for part in (*parts, inv.gain.ratio)):
        return ""
    if 1 / APART < math.prod(parts) / inv.gain.ratio < APART:
        return ""
    return (
        "Each change was measured against the state before it, all of them together in blocks of their own: "
        "the parts need not multiply to the whole."
    )


def untried(inv: Investigation) -> list[UntriedRemedy]:
    tried = {trial.remedy.id for round_ in inv.rounds for trial in round_.tried}
    skipped = {
        remedy.remedy.id: replace(remedy, because=_because(inv, round_, remedy.because))
        for round_ in inv.rounds
        for remedy in round_.untried
        if remedy.remedy.id not in tried
    }
    return list(skipped.values())


def _because(inv: Investigation, round_: Round, because: str) -> str:
    if not because.startswith(KEPT_FIRST):
        return because
    if round_ is not inv.rounds[-1]:
        return f"{KEPT_FIRST}, and what was found in the state with it does not call for this one"
    if inv.outcome.kind == "interrupted" or (inv.stop is not None and not inv.stop.went_on):
        return f"{KEPT_FIRST}, and the run was stopped before a further round"
    return f"{KEPT_FIRST}, and no further round came: an investigation has {len(inv.rounds)} at most"


def durability_sentences(inv: Investigation) -> list[str]:
    sentences = []
    for variant in inv.variants if facts.gives_up(inv) else ():
        gain = verdict_words.gain_sentence(variant.reported, inv.study.load_unit)
        given_up = words.strip(variant.gives_up)
        kept = f"relaxed: {gain} - gives up: {given_up}" if given_up else f"kept: {gain}"
        sentences.append(f"with durability {kept}")
    return sentences
