"""A study's alternatives in words."""

from collections.abc import Iterable, Sequence

from loadframe.model import Alternative, Decision, Finding, Investigation, LoadInterval, Verdict, WarmRestart
from loadframe.reporting import verdict_words, words

MOST_SENTENCES = 3
"""Of more only the fastest has a sentence of its own in the first lines of a report."""
TINY = 1e-9
"""Relative: a place computed from the logarithm of a level counts as that level."""


def sentence(inv: Investigation, alternative: Alternative) -> str:
    unit = inv.study.load_unit
    over = "over all loads"
    if not {level for verdict in alternative.by_level for level in verdict.levels} <= set(alternative.verdict.levels):
        over = verdict_words.verdict_levels(alternative.verdict, unit)  # the warm-up of some had not ended
    alike = len({verdict.decision for verdict in alternative.by_level}) <= 1
    parts = [verdict_words.apart(alternative.verdict, over)] * alike + _at_ends(alternative.by_level, unit)
    return f"{'; '.join(parts)}."


def _at_ends(verdicts: Sequence[Verdict], unit: str) -> list[str]:
    ends = (*verdicts[:1], *verdicts[1:][-1:])
    return [verdict_words.apart(verdict, verdict_words.verdict_levels(verdict, unit)) for verdict in ends]


def sentences(inv: Investigation, alternative: Alternative) -> list[str]:
    unit = inv.study.load_unit
    texts = [f"{alternative.name} against {inv.study.target_kind}: {sentence(inv, alternative)}"]
    if alternative.divergence is not None:
        what = "They diverge" if differ(alternative) else "Their ratio changes"
        texts.append(f"{what} {place_of(alternative.divergence, alternative, unit)}.")
    if alternative.cold:
        texts.append(f"With nothing cached: {'; '.join(_at_ends(alternative.cold, unit))}.")
    mine, theirs = _causes(alternative.round.findings), _causes(inv.rounds[0].findings if inv.rounds else ())
    for name, own, others in ((inv.study.target_kind, theirs, mine), (alternative.name, mine, theirs)):
        if alone := [cause for known, cause in own.items() if known not in others]:
            texts.append(f"Only in {name}: {'; '.join(alone)}.")
    return texts


def lead(inv: Investigation) -> str:
    target = inv.study.target_kind
    proven = {alternative.name: verdicts for alternative in inv.alternatives if (verdicts := _proven(alternative))}
    if len(proven) > MOST_SENTENCES:
        first, *rest = sorted(proven, key=lambda name: -proven[name][0].ratio)
        short = (f"{name} {_ratios(inv, proven[name])}" for name in rest)
        texts = ["; ".join((_serves(inv, first, proven[first]), *short))]
    else:
        texts = [_serves(inv, name, verdicts) for name, verdicts in proven.items()]
    if equal := [alternative.name for alternative in inv.alternatives if alternative.name not in proven]:
        texts.append(f"no difference from {target} is proven for {words.and_list(equal)}")
    return words.paragraph(texts)


def _proven(alternative: Alternative) -> list[Verdict]:
    """At the highest load with a proven difference, else over all loads; where the order reverses, also at the highest
    load with the opposite decision."""
    by_decision: dict[Decision, Verdict] = {}
    for verdict in (*reversed(alternative.by_level), alternative.verdict):
        if verdict.decided:
            by_decision.setdefault(verdict.decision, verdict)
    return list(by_decision.values())


def _serves(inv: Investigation, name: str, verdicts: list[Verdict]) -> str:
    target = inv.study.target_kind
    if not verdicts[0].has_ratio:
        return f"{name} against {target}: {verdict_words.without_ratio(verdicts[0])}"
    return f"{name} serves {_ratios(inv, verdicts, f' what {target} serves')}"


def _ratios(inv: Investigation, verdicts: list[Verdict], of: str = "") -> str:
    parts: list[str] = []
    for verdict in verdicts:
        at = (
            verdict_words.verdict_levels(verdict, inv.study.load_unit) if len(verdict.levels) == 1 else "over all loads"
        )
        times = f"{verdict_words.ratio(verdict)} times{'' if parts else of}"
        ratio = f"{times} {at} ({verdict_words.ratio_interval(verdict)})"
        parts.append(ratio if verdict.has_ratio else verdict_words.without_ratio(verdict))
    return ", but ".join(parts)


def differ(alternative: Alternative) -> bool:
    return any(verdict.decided for verdict in alternative.by_level)


def place_of(divergence: LoadInterval, alternative: Alternative, unit: str) -> str:
    """At the lowest level it may already have diverged below it."""
    lowest = alternative.by_level[0].levels[0]
    if divergence.low > lowest * (1 + TINY):
        return f"at {words.load_interval(divergence, unit)}"
    return f"at {words.load(words.forecast(divergence.high), unit)} at the latest"


def _causes(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.id: f"{finding.title} ({finding.status})" for finding in findings if finding.status != "refuted"}


def warm_restart_sentence(restart: WarmRestart) -> str:
    if restart.kept is None:
        return f"What {restart.target_kind} has after {restart.how} is not known: {words.strip(restart.error)}."
    return f"After {restart.how} {restart.target_kind} still had {restart.kept:,} of {restart.asked:,} objects."
