"""Remedies: ordered chains of changes that should lift a limit, sized from what was measured. Each is a function of the
situation, registered under the finding ids that it addresses. A chain names every link that has to hold, in the order
in which they must be raised; one that already suffices has `needed` false."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadframe.diagnosis.conclusion import stops_growing
from loadframe.diagnosis.remedies import cage, declared
from loadframe.knowledge.kinds import tables
from loadframe.knowledge.remedy import NOFILE, Builder, Builders, Situation
from loadframe.model import Change, Finding, Price, Remedy, Round, TargetState

_TABLES: tuple[Builders, ...] = (cage.BUILDERS, *tables("remedies", "BUILDERS", dict).values())
BUILDERS: dict[str, tuple[Builder, ...]] = {
    cause: tuple(builder for table in _TABLES for builder in table.get(cause, ()))
    for cause in dict.fromkeys(cause for table in _TABLES for cause in table)
}


def propose(findings: Sequence[Finding], situation: Situation) -> tuple[Remedy, ...]:
    """Remedies in the findings' order. For one finding free ones first: a study's setting of the size of a limit that
    the study does not set (servers derive limits), known ones, a study's other settings, last those that nothing speaks
    for. What is known to raise a later finding's limit addresses both, as does what a stage waits for in its server."""
    chosen: dict[str, Remedy] = {}
    for finding in _causes_first(findings):
        remedies = [remedy for build in BUILDERS.get(finding.id, ()) if (remedy := build(situation)) is not None]
        remedies += declared.remedies(finding, situation)
        if finding.behind:
            remedies = [replace(remedy, addresses=(*remedy.addresses, finding.behind)) for remedy in remedies]
        is_set = finding.id.startswith("cage.") or situation.state.limits.get(NOFILE) is not None
        for remedy in sorted(remedies, key=partial(_order, is_set=is_set)):
            known = chosen.setdefault(remedy.id, remedy)
            if not remedy.guessed:
                addresses = dict.fromkeys((*known.addresses, *remedy.addresses))
                chosen[remedy.id] = replace(known, addresses=tuple(addresses))
    return tuple(chosen.values())


def _order(remedy: Remedy, *, is_set: bool) -> tuple[bool, ...]:
    whys = [change.why for change in remedy.changes]
    is_itself = not is_set and any(why.endswith(declared.ITSELF) for why in whys)
    return all(why == declared.UNKNOWN for why in whys), remedy.price.durability is not None, not is_itself


def _causes_first(findings: Sequence[Finding]) -> list[Finding]:
    """What a finding waits for comes before itself, as a larger batch of a stage would hide it."""
    there, causes = {finding.id for finding in findings}, dict[str, list[Finding]]()
    for finding in findings:
        if finding.behind in there:
            causes.setdefault(finding.behind, []).append(finding)
    return [
        placed
        for finding in findings
        if finding.behind not in there
        for placed in (*causes.get(finding.id, ()), finding)
    ]


def proposed_for(round_: Round, situation: Situation) -> tuple[Remedy, ...]:
    """Remedies for a round's findings; without any, if throughput stops growing, all declared settings, for no
    cause."""
    proposed = propose(round_.findings, situation)
    return (
        proposed
        if proposed or stops_growing(round_.curve) is None
        else declared.because_declared(round_.findings, situation)
    )


def joined(remedies: Sequence[Remedy]) -> Remedy:
    """Several as one, for limits in series. The later one counts for a setting that two of them change."""
    changes: dict[tuple[str, str], Change] = {}
    for change in (change for remedy in remedies for change in remedy.changes):
        known = changes.get((change.layer, change.setting))
        if known is None or change.needed:
            before = change.before if known is None else known.before
            changes[change.layer, change.setting] = replace(change, before=before)
    notes = dict.fromkeys(remedy.price.note for remedy in remedies if remedy.price.note)
    lost = [remedy.price.durability for remedy in remedies if remedy.price.durability is not None]
    return Remedy(
        id="+".join(remedy.id for remedy in remedies),
        title=" and ".join(remedy.title for remedy in remedies),
        addresses=tuple(dict.fromkeys(cause for remedy in remedies for cause in remedy.addresses)),
        changes=tuple(changes.values()),
        price=Price("; ".join(lost) or None, note="; ".join(notes)),
        source="; ".join(dict.fromkeys(remedy.source for remedy in remedies if remedy.source)),
        guessed=any(remedy.guessed for remedy in remedies),
    )


def resized(remedy: Remedy, situation: Situation, limit: str, demand: float) -> Remedy | None:
    other = replace(situation, demands={**situation.demands, limit: demand})
    made = [build(other) for build in BUILDERS.get(limit, ())]
    return next((candidate for candidate in made if candidate is not None and candidate.id == remedy.id), None)


def state_after(state: TargetState, remedy: Remedy) -> TargetState:
    settings, limits, options = dict(state.settings), dict(state.limits), dict(state.options)
    for change in remedy.changes:
        if not change.needed:
            continue
        if change.layer == "process":
            limits[change.setting] = int(change.after)
        elif change.layer == "application":
            options[change.setting] = change.after
        else:
            settings[change.setting] = change.after
    return replace(state, settings=settings, limits=limits, options=options)


__all__ = ["Situation", "joined", "propose", "proposed_for", "resized", "state_after"]
