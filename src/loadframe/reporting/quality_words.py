"""Run quality in words."""

import math
from collections.abc import Sequence

from loadframe.model import FLAGS, Companion, Influence, Investigation, RunQuality, UnrevertedChange
from loadframe.reporting import facts, rounding, words
from loadframe.units import show


def sentences(quality: RunQuality) -> list[str]:
    again = f", {quality.repeated} of them run again" if quality.repeated else ""
    judged = {influence.flag for influence in quality.influences}
    lines = [
        *not_reverted_sentences(quality.not_reverted),
        f"{quality.steps} {'step was' if quality.steps == 1 else 'steps were'} measured{again}",
        *(companion_sentence(program) for program in quality.companions if program.cores >= NAMED_FROM * program.of),
        *(_influence(influence, quality.steps) for influence in quality.influences),
        *(
            f"a counter did not work in {counter.steps} of {quality.steps} steps; it rules out and confirms nothing: "
            f"{counter.because}"
            for counter in quality.blind
        ),
        *(
            f"{count} of {quality.steps} steps: {FLAGS.get(flag, flag)}"
            for flag, count in quality.flags.items()
            if count and flag not in judged
        ),
    ]
    if not any(quality.flags.values()):
        lines.append("no step was flagged")
    if quality.ticks and math.isfinite(quality.recorder_cpu_share):
        cpu, memory = rounding.percent(quality.recorder_cpu_share), show(quality.recorder_rss_bytes, "bytes")
        ticks = f"{quality.late_ticks:,} of its {quality.ticks:,} ticks came late"
        lines.append(f"Loadframe's own recorder used {cpu} of one CPU and {memory}; {ticks}")
    return lines


QUANTITIES = {
    "steal": "the hypervisor took {} of the CPUs",
    "stranger": "processes outside the study used {} of the CPUs",
    "frequency": "the CPUs ran up to {} slower",
    "disk-stalled": "the disk ended no request for {} of the window",
    "recorder-late": "no process ran for {} of the window",
    "driver-lag": "requests waited for the load driver's own CPUs for {} of their time",
}
NAMED_FROM = 0.1
"""Share of all CPUs from which on a program that works for the target is named."""


def companion_sentence(program: Companion) -> str:
    cores, of = rounding.plain(program.cores), rounding.exact(program.of)
    return f"{program.name}, which the target connects to, used {cores} of {of} CPUs at {program.load:g}"


def _influence(influence: Influence, steps: int) -> str:
    what = FLAGS[influence.flag]
    if influence.low is not None and influence.high is not None and influence.flag in QUANTITIES:
        low, high = rounding.percent(influence.low), rounding.percent(influence.high)
        one_number = low == high or influence.flag == "frequency"
        what = QUANTITIES[influence.flag].format(high if one_number else f"{low} to {high}")
    names = f" ({', '.join(influence.names)})" if influence.names else ""
    where = ", ".join(f"{level:g}" for level in influence.levels)
    seen = f"{influence.steps} of {steps} steps, at {where}: {what}{names}"
    if influence.kind == "effect":
        cost = "; I/O costs the hypervisor CPU time" if influence.goes_with and influence.flag == "steal" else ""
        return f"{seen}. An effect: it follows the state and the load in every block{cost}. These steps count"
    counted = influence.steps - influence.left_out
    left = f"{'all' if not influence.left_out else counted or 'none'} of them count{'' if counted > 1 else 's'}"
    return f"{seen}. A disturbance: it does not follow the state or the load; {left}"


def not_reverted_sentences(changes: Sequence[UnrevertedChange]) -> list[str]:
    return [
        f"{change.setting} of {change.of} {words.strip(change.because)}; "
        f"`loadframe changes revert`{f' on host {change.host}' if change.host else ''} tries again"
        for change in changes
    ]


def silence_sentence(inv: Investigation) -> str:
    rounds = [(inv.study.target_kind, round_) for round_ in inv.rounds]
    rounds += [(alternative.name, alternative.round) for alternative in inv.alternatives]
    silences = [(name, silence) for name, round_ in rounds for silence in facts.silences(round_)]
    if not silences:
        return ""
    name, worst = max(silences, key=lambda pair: pair[1].silence_ms)
    still = "; the whole machine stalled" if worst.stalled_ms >= facts.SILENT_MS else ""
    loads = len({silence.load for _, silence in silences})
    often = f", and at {loads} loads in total" if loads > 1 else ""
    at, longest = words.load(worst.load, inv.study.load_unit), words.milliseconds(worst.silence_ms)
    return f"No request completed for up to {longest} ({name}, at {at}{often}){still}."
