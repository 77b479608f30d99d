"""What a search for settings found, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping

from loadframe.model import (
    Change,
    ObjectiveSide,
    TrialReason,
    TunedSetting,
    Tuning,
    TuningProof,
    TuningTrial,
    Verdict,
)
from loadframe.reporting import change_words, facts, quality_words, rounding, verdict_words, words
from loadframe.reporting.capacity_report import objective

MOST_TRIALS = 8
REASONS: Mapping[TrialReason, str] = {
    "start": "the start itself",
    "diagnosis": "a remedy for the cause found",
    "search": "highest expected gain",
    "again": "repeated to be sure",
}


def render_tuning(found: Tuning) -> str:
    """The answer, the settings to copy, the best of the trials, and what it rests on."""
    lines = [answer(found), ""]
    lines += [_setting(each) for each in changed(found)] if found.end != "nothing-better" else []
    if found.file_text:
        lines += ["", f"To copy ({found.run}/{found.file_name}):", *_indented(found.file_text)]
    lines += ["", deciding_sentence(found), ""] if found.end == "gained" else [""]
    if found.objective is not None:
        lines += [objective_head(found), *(f"- {text}." for text in objective_levels(found)), ""]
    lines += _other_proofs(found)
    lines += _trials(found)
    went = () if found.quality is None else quality_words.sentences(found.quality)
    lines += [words.sentence(text) for text in (*found.warnings, *went)]
    lines += [f"Not varied: {name}, {why}." for name, why in found.left_out.items()]
    return "\n".join([*lines, f"Report: {found.report}"])


def answer(found: Tuning) -> str:
    """The answer in a sentence."""
    count = len(found.trials)
    varied = f"{count} trial{'' if count == 1 else 's'} of {len(found.settings)} settings"
    if found.end == "stopped":
        return f"Stopped after {varied}; nothing was proved. Go on with --resume."
    if found.end == "nothing-better":
        return f"Nothing better was found in {varied}: leave the settings as they are."
    assert found.verdict is not None and found.told is not None, "the recommendation was proved"
    if found.end == "gained":
        kept = "" if found.objective is None else ", and the objective is met"
        return f"{_gain(found, found.told)}{kept}. Found in {varied}{_before_it(found)}."
    ratio = verdict_words.ratio(found.told)
    if found.verdict.decision == "better" and found.told.decision != "worse":
        return (
            f"No gain within the objective: the best of {varied} is {ratio} of the start "
            f"in fresh blocks, and misses the objective there{_after_it(found)}. Leave the settings as they are."
        )
    first = "" if found.fresh is None else f", after {verdict_words.ratio(found.verdict)} in the deciding blocks"
    return (
        f"No proven gain: the best of {varied} is {ratio} of the start in fresh "
        f"blocks{first}{_after_it(found)}. Leave the settings as they are."
    )


def _gain(found: Tuning, told: Verdict) -> str:
    """What is told of the best settings."""
    sentence = verdict_words.gain_sentence(told, found.axis_unit)
    return sentence if told.decision == "better" else f"A gain was proved; in fresh blocks {sentence}"


def deciding_sentence(found: Tuning) -> str:
    """Whence the number of a proved gain is: "The gain is from fresh blocks; the deciding blocks gave 2.9 times (95 %
    interval 2.1 to 4)."; "" where nothing is proved."""
    if found.end != "gained" or found.verdict is None:
        return ""
    if found.fresh is None:
        return "No time was left for fresh blocks: the gain comes from the deciding blocks and is likely too high."
    return words.sentence(f"the gain is {verdict_words.fresh_words(found.verdict)}")


def _before_it(found: Tuning) -> str:
    """Of a gain: how many were held against the start before."""
    count = len(found.failed_proofs)
    if count == 0:
        return ""
    return "; settings with a higher expected gain did not hold" + (
        f" in {count} proofs" if count > 1 else " in its proof"
    )


def _after_it(found: Tuning) -> str:
    """Of no gain: how many more were held against the start."""
    count = len(other_proofs(found))
    return f", and the next best {'one' if count == 1 else f'{count} ones'} did not hold either" if count else ""


def objective_head(found: Tuning) -> str:
    """What the study asks besides throughput, and how many trials missed it; "" where it asks for nothing."""
    if found.objective is None:
        return ""
    missed = sum(bool(trial.missed) for trial in found.trials)
    trials = f" {missed} trial{'' if missed == 1 else 's'} clearly missed it." if missed else ""
    return f"The objective: {objective(found.objective.asked)}.{trials} At the levels that were judged:"


def objective_levels(found: Tuning) -> list[str]:
    """What became of it at each of these levels."""
    if found.objective is None:
        return []
    return [
        f"{words.load(each.load, found.axis_unit)}: as given {_side(each.before)}"
        + ("" if each.after is None else f"; {_blocks(found)} with the best settings {_side(each.after)}")
        for each in found.objective.levels
    ]


def _blocks(found: Tuning) -> str:
    """Of which blocks what is told of the best settings is."""
    return "in the proof" if found.fresh is None else "in fresh blocks"


def _side(side: ObjectiveSide) -> str:
    lost = f", {100 * side.lost_share:.2g} % lost" if side.lost_share else ""
    latency = words.milliseconds(side.latency_p95_ms) if side.latency_p95_ms else "no response time"
    return f"{latency}{lost} ({'met' if side.met else 'missed'})"


def other_proofs(found: Tuning) -> list[TuningProof]:
    """Those that failed, but for one that the answer is about."""
    return list(found.failed_proofs if found.end in ("gained", "stopped") else found.failed_proofs[1:])


def proof_fate(proof: TuningProof) -> str:
    """What came of a proof that failed, in words."""
    sentence = verdict_words.gain_sentence(proof.told)
    if proof.verdict.decision == "better" and proof.told.decision == "worse":
        return f"{change_words.TAKEN_BACK}: {sentence}"
    return f"{sentence}, but the objective is missed" if proof.verdict.decision == "better" else sentence


def proof_settings(proof: TuningProof) -> str:
    """What it changed: "name = value, ..."."""
    return ", ".join(f"{name} = {facts.shown(value)}" for name, value in proof.changes.items())


def changed(found: Tuning) -> list[TunedSetting]:
    """The settings that are recommended to change."""
    return [each for each in found.settings if each.after != each.before]


def changes(found: Tuning) -> list[Change]:
    """The same as changes."""
    return [Change("server", each.name, each.before, each.after) for each in changed(found)]


def ranked(found: Tuning) -> list[TunedSetting]:
    """All settings, those that change first, then the ones worth most."""

    def key(each: TunedSetting) -> tuple[bool, float]:
        return each.after == each.before, -(each.worth.ratio if each.worth else 0.0)

    return sorted(found.settings, key=key)


def worth(each: TunedSetting) -> str:
    """ "1.8 times (1.5 to 2.1)"; of a setting that stays, with the value that this is of."""
    told = each.worth
    if told is None:
        return ""
    ratio, low, high = rounding.with_interval(told.ratio, told.low, told.high)
    of = "" if each.after != each.before else f"{facts.shown(told.value)}: "
    return f"{of}{ratio} times ({low} to {high})"


def asides(found: Tuning) -> list[tuple[str, str]]:
    """What is next to the chart: titles and sentences."""
    said = []
    if found.end == "gained":
        said.append(("What changes", f"{words.and_list([change_words.change(one) for one in changes(found)])}."))
    if found.told is not None:
        said.append(("Proof", verdict_words.proof_sentence(found.told, found.axis_unit)))
    if given_up := prices(found):
        said.append(("Given up for it", " ".join(given_up)))
    if found.verdict is not None:
        trials = f"{rounding.plain(found.expected)} times, after shrinkage"
        said.append(("Gain expected from the trials", trials))
    if found.objective is not None and found.verdict is not None:
        kept = f"Met {_blocks(found)} at every judged level." if found.objective.met else f"Missed {_blocks(found)}."
        said.append(("The objective", kept))
    if found.findings:
        said.append(("Cause found at the start", " ".join(words.sentence(title) for title in found.findings)))
    restart = [each.name for each in changed(found) if each.restart]
    if restart and found.end == "gained":
        said.append(("Needs a restart", words.and_list(restart)))
    return said


def next_step(found: Tuning) -> str:
    """What to do with the result."""
    match found.end:
        case "stopped":
            return "Go on from its trials: the command is below, at Reproduce."
        case "gained" if found.fresh is None:
            return (
                "Measure the gain again before you rely on it: there was no time for fresh blocks. "
                "loadframe compare holds two studies against each other."
            )
        case "gained":
            return "Set them. Next, loadframe investigate with these settings names what limits now."
    return "Leave the settings as they are. Next, loadframe investigate names what limits, and tries its remedies."


def places(found: Tuning) -> list[tuple[str, str]]:
    """What is where on the page: anchor and name."""
    there = (
        ("settings", "Settings to copy", bool(found.file_text)),
        ("proof", "The proof", bool(found.levels)),
        ("worth", "The value of each setting", True),
        ("trials", "Every trial", bool(found.trials)),
        ("environment", "What was measured", True),
        ("reproduce", "Reproduce", True),
    )
    return [(anchor, name) for anchor, name, shown in there if shown]


def prices(found: Tuning) -> list[str]:
    """What is given up with the best settings."""
    return [
        f"{each.name} = {facts.shown(each.after)} gives up durability ({each.gives_up})."
        for each in changed(found)
        if each.gives_up
    ]


def fate(trial: TuningTrial) -> str:
    """What became of a trial, in words; "" of one that was measured whole."""
    if trial.failed:
        return f"failed: {trial.failed}"
    if trial.missed:
        return f"missed the objective {trial.missed}"
    return "ended early" if trial.ended_early else ""


def _setting(each: TunedSetting) -> str:
    restart = " (needs a restart)" if each.restart else ""
    price = f"; gives up durability: {each.gives_up}" if each.gives_up else ""
    return f"- {each.name}: {facts.shown(each.before)} -> {facts.shown(each.after)}{restart}{price}"


def _other_proofs(found: Tuning) -> list[str]:
    proofs = [f"- {proof_settings(each)}: {proof_fate(each)}." for each in other_proofs(found)]
    return ["Other proofs, which failed:", *proofs, ""] if proofs else []


def _trials(found: Tuning) -> list[str]:
    """The first trials by their ratio."""
    worked = sorted((each for each in found.trials if each.ratio is not None), key=_ratio, reverse=True)
    lines = [
        f"{_ratio(each):>6.2f}  trial {each.number:<3} "
        + (f"on {each.host}: " if each.host else "")
        + (", ".join(f"{name} = {facts.shown(value)}" for name, value in each.changes.items()) or "as given")
        for each in worked[:MOST_TRIALS]
    ]
    failed = len(found.trials) - len(worked)
    early = sum(each.ended_early for each in found.trials)
    notes = [f"{failed} failed"] * bool(failed) + [f"{early} were ended early"] * bool(early)
    head = f"Single trials against the start, the best of {len(found.trials)}"
    return [f"{head}{' (' + ', '.join(notes) + ')' if notes else ''}:", *lines]


def _ratio(trial: TuningTrial) -> float:
    return trial.ratio or 0.0


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
