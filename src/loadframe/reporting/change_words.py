"""What was changed, what it costs and what became of it, in words."""

from __future__ import annotations

import math

from loadframe.model import Change, ChangeRecord, Control, Investigation, Price, SettingValue, Trial, UntriedRemedy
from loadframe.reporting import facts, verdict_words, words
from loadframe.units import show


def change(one: ChangeRecord | Change) -> str:
    """ "table_open_cache from 64 to 2000", with what the target made of it where that differs."""
    origin = "" if one.before is None else f" from {_setting(one.setting, one.before)}"
    effective = one.read_back if isinstance(one, ChangeRecord) else None
    cut = effective is not None and not facts.same_value(effective, one.after)
    note = f" (the target uses {_setting(one.setting, effective)})" if cut else ""
    return f"{one.setting}{origin} to {_setting(one.setting, one.after)}{note}"


def _setting(name: str, value: SettingValue | None) -> str:
    """As a configuration spells it; the memory of a cage, which no configuration holds, in words."""
    of_memory = name.endswith("memory.max") and isinstance(value, int | float)
    return show(float(value), "bytes") if of_memory and value is not None else facts.shown(value)


def kept(inv: Investigation) -> str:
    """The kept changes as the subject of a sentence; the names alone where there are more than two."""
    changes = facts.net_changes(inv)
    if not changes:
        return "the change"
    if len(changes) <= 2:
        return "setting " + " and ".join(change(each) for each in changes)
    return (
        "setting "
        + words.and_list([change(each) for each in changes[-1:]])
        + (f" (and, for that, {words.and_list([each.setting for each in changes[:-1]])})")
    )


def price_sentences(price: Price) -> list[str]:
    """What a remedy costs: memory and durability; nothing where nothing was measured or given up."""
    sentences = []
    before, after = price.memory_before_bytes, price.memory_after_bytes
    if before is not None and after is not None and math.isfinite(before) and math.isfinite(after):
        more = after - before
        by = f" ({show(abs(more), 'bytes')} {'more' if more > 0 else 'less'})" if more else ""
        shown_before, shown_after = show(before, "bytes"), show(after, "bytes")
        sentences.append(f"memory of the target under load: {shown_before} before, {shown_after} after{by}")
    if price.durability:
        sentences.append(f"durability given up: {words.strip(price.durability)}")
    if price.note:
        sentences.append(words.strip(price.note))
    return sentences


TAKEN_BACK = "proved, and reverted as fresh blocks say the opposite"


def trial_sentence(trial: Trial) -> str:
    """What became of a remedy that was tried."""
    if trial.fresh is None:
        return f"{'kept' if trial.kept else 'reverted'}: {verdict_words.gain_sentence(trial.verdict)}"
    fate = "kept" if trial.kept else TAKEN_BACK
    return f"{fate}: {verdict_words.gain_sentence(trial.fresh)}; {deciding_sentence(trial)}"


def deciding_sentence(trial: Trial) -> str:
    """What the blocks said that decided, where fresh ones followed; "" where none did."""
    return verdict_words.fresh_words(trial.verdict) if trial.fresh is not None else ""


CONTROLS = {"sham": "control", "dose": "dose", "without": "worth", "less": "counter-proof"}


def control_sentence(control: Control) -> str:
    """What a kept remedy was held against besides the state before it, in a line."""
    measured = (
        f"{verdict_words.gain_sentence(control.verdict)}; " if control.verdict and control.kind == "without" else ""
    )
    return f"{CONTROLS[control.kind]} ({control.title}): {measured}{control.because}"


def operations_sentence(trial: Trial, unit: str) -> str:
    """ "At 500 jobs: submit 9.1 ms before, 9 ms after; list 41 s before, 12 s after"; the highest level only."""
    if not trial.operations:
        return ""
    highest = max(each.load for each in trial.operations)
    told = [
        f"{each.name} {words.milliseconds(each.before_ms)} before, {words.milliseconds(each.after_ms)} after"
        for each in trial.operations
        if each.load == highest
    ]
    return f"at {words.load(highest, unit)}: {'; '.join(told)}"


def untried(inv: Investigation) -> list[UntriedRemedy]:
    """The remedies that were shown and not tried, each once; those that a later round tried after all are left out."""
    tried = {trial.remedy.id for round_ in inv.rounds for trial in round_.tried}
    shown = {each.remedy.id: each for round_ in inv.rounds for each in round_.untried if each.remedy.id not in tried}
    return list(shown.values())


def durability_sentences(inv: Investigation) -> list[str]:
    """With durability kept and relaxed, side by side; nothing where the kept changes give up none."""
    given_up = facts.gives_up(inv)
    if not given_up and inv.gain_durability_kept is None:
        return []
    sentences = []
    if inv.gain_durability_kept:
        sentences.append(f"with durability kept: {verdict_words.gain_sentence(inv.gain_durability_kept)}")
    if inv.gain and given_up:
        price = "; ".join(words.strip(text) for text in given_up)
        sentences.append(f"with durability relaxed: {verdict_words.gain_sentence(inv.gain)} - gives up: {price}")
    return sentences
