"""From rounds to a conclusion on disk. The gain is a single comparison of the state with the kept changes and the first
state."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from loadframe.analysis import window
from loadframe.analysis.carryover import carried_over
from loadframe.analysis.cpu_use import companions
from loadframe.analysis.disturbance import influences
from loadframe.analysis.divergence import at_loads
from loadframe.analysis.selection import counting, deciding, select
from loadframe.bench.checking import unseen
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.conclusion import kept_trials, net_changes
from loadframe.diagnosis.windows import blind_counters
from loadframe.entry_points import READERS_GROUP, not_installed, registered
from loadframe.errors import OutsideFault, RecordingError, RunError, StudyError
from loadframe.experiments.examination import examine, placed
from loadframe.experiments.profiling import profiles_of, with_collecting
from loadframe.experiments.proof import compared, in_blocks, level_ratios, verdict_on
from loadframe.experiments.side_by_side import alternatives_of
from loadframe.experiments.sweep import curve_of
from loadframe.kinds import config_file, registry
from loadframe.model import (
    AnswersCompared,
    Change,
    ChangeRecord,
    Compared,
    Curve,
    CurvePoint,
    Host,
    HostsOfRun,
    Investigation,
    LatencyDistribution,
    Limit,
    Round,
    RunQuality,
    Steps,
    StudySummary,
    Trial,
    Variant,
    Verdict,
    by_level,
    of_treatment,
    timed,
)
from loadframe.model.verdict import decide
from loadframe.recording.series import MetricSeries, metric_series
from loadframe.reporting import quality_words, time_spent, verdict_words, words
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page
from loadframe.runs.folder import RECORDING, REPORT, RunFolder
from loadframe.runs.histograms import bin_latencies_ms
from loadframe.runs.record import describe_study, footprint
from loadframe.study import Study


def write_down(run: RunFolder, rounds: Sequence[Round], *, interrupted: bool = False) -> Investigation:
    """Conclude, and write report.html and the JSON files. RunError without rounds."""
    if not rounds:
        raise RunError(f"{run.path} has no finished round", remedy="It was stopped too early; run it again.")
    draft = concluded(run, rounds, run.steps(), interrupted=interrupted)
    end = finish(run, [(round_.number, limit) for round_ in draft.rounds for limit in round_.limits])
    investigation = replace(draft, warnings=tuple(dict.fromkeys((*draft.warnings, *end.warnings))))
    run.write_record("investigation.json", "investigation-record", investigation)
    shapes = investigation_json(investigation)
    run.write_record("findings.json", "findings", {"rounds": [round_["findings"] for round_ in shapes["rounds"]]})
    run.write_record("verdicts.json", "verdicts", {"rounds": [round_["tried"] for round_ in shapes["rounds"]]})
    run.write_report(render_page(investigation))
    return investigation


RULES = 5
"""Version of Investigation.rules: raised whenever the same steps lead to another conclusion."""


def concluded(run: RunFolder, rounds: Sequence[Round], steps: Steps, *, interrupted: bool = False) -> Investigation:
    study, decided = run.declared(), deciding(rounds)
    mine = counting(steps, decided)
    rounds = [with_intervals(round_, steps) for round_ in rounds]
    hosts = hosts_of(run, _from_all_steps(rounds, steps, study))
    rounds, end = hosts.rounds, ended(run, steps)
    last, stop = rounds[-1], run.stop()
    profiles, profile_missing = profiles_of(run)
    variants = variants_of(rounds, steps, study)
    drivers = run.drivers()
    latencies = latencies_of(run, rounds, mine, variants[-1].reported if variants else None)
    command = f"loadframe investigate {shlex.quote(f'{run.path}/study.toml')}"
    unfinished = conclusion.unfinished(rounds, steps, study.measure.budget, study.measure.blocks.max, command)
    return Investigation(
        run=end.run,
        report=end.report,
        started_at=str(run.document("run.json", "run").get("started_at", "")),
        seconds=end.quality.seconds,
        study=end.study,
        host=end.host,
        rounds=tuple(rounds),
        before=conclusion.summary(rounds[0]),
        after=conclusion.summary(last) if len(rounds) > 1 else None,
        ladder=conclusion.ladder(rounds),
        next_limit=None if drivers is not None and drivers.limit_the_curve else conclusion.next_limit(rounds),
        outcome=conclusion.outcome(rounds, interrupted=interrupted, stop=stop, drivers=drivers),
        quality=end.quality,
        warnings=end.after(
            [*(warning for round_ in rounds for warning in round_.curve.warnings), *latencies.warnings, *hosts.missing]
        ),
        profiles=profiles,
        profile_missing=profile_missing,
        forecast=run.forecast(),
        warm_restarts=tuple(run.warm_restarts()),
        alternatives=alternatives_of(run, rounds[0], mine, study),
        latencies=latencies.distributions,
        answers=end.answers,
        drivers=drivers,
        fleet_limits=hosts.limits,
        stop=stop,
        variants=variants,
        unfinished=unfinished,
        rules=0 if hosts.missing else RULES,  # concluded again, with the hosts, where their extension is installed
    )


def hosts_of(run: RunFolder, rounds: Sequence[Round] = ()) -> HostsOfRun:
    """What the hosts of a fleet add, read by its extension; a warning where that is not installed or cannot be used.
    RunError."""
    if not run.has("fleet.jsonl"):
        return HostsOfRun(tuple(rounds))
    try:
        if (read := registered(READERS_GROUP, "fleet")) is not None:
            hosts: HostsOfRun = read(run, rounds)
            return hosts
        missing = _no_reader()
    except OutsideFault as error:
        missing = f"{words.sentence(error.fact)} {error.remedy}"
    return HostsOfRun(tuple(rounds), missing=(missing,))


def _no_reader() -> str:
    error = not_installed(READERS_GROUP, "fleet", "The part about the hosts of this run")
    return f"{words.sentence(error.fact)} {error.remedy}"


def renewed(run: RunFolder, investigation: Investigation, steps: Steps) -> Investigation:
    """Concluded again by this version's rules; from its rounds alone if its study is unknown here."""
    if investigation.rules == RULES or not investigation.rounds:
        return investigation
    try:
        again = concluded(run, investigation.rounds, steps, interrupted=investigation.outcome.kind == "interrupted")
    except StudyError:
        rounds = tuple(with_intervals(round_, steps) for round_ in investigation.rounds)
        limit = investigation.next_limit and conclusion.next_limit(rounds)
        return replace(investigation, rounds=rounds, variants=variants_of(rounds, steps, None), next_limit=limit)
    refuted = any(
        not timed([step for step in of_treatment(steps, stored.treatment) if step.level == stored.level])
        for stored in investigation.latencies
    )
    return replace(
        again,
        warnings=tuple(
            dict.fromkeys((*again.warnings, *(said for said in investigation.warnings if said != _no_reader())))
        ),
        latencies=again.latencies or (() if refuted else investigation.latencies),  # the raw files may be gone
        fleet_limits=again.fleet_limits or investigation.fleet_limits,  # the fleet's extension may be missing
        profiles=again.profiles or investigation.profiles,
        profile_missing=again.profile_missing if again.profiles else investigation.profile_missing,
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """warnings: what was not observed or recorded, what a treatment left behind for the next, and answers that differ
    from other programs'."""

    run: str
    report: str
    study: StudySummary
    host: Host
    quality: RunQuality
    warnings: tuple[str, ...]
    answers: tuple[AnswersCompared, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return (*map(words.sentence, quality_words.sentences(self.quality)), *self.warnings)

    def after(self, own: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*own, *self.warnings)))


def finish(run: RunFolder, limits: Sequence[tuple[int, Limit]] = ()) -> Ended:
    """Write the derived tables of steps, limits (by round) and ticks, however the run ended."""
    steps = run.steps()
    try:
        series = metric_series(run.place(RECORDING), descriptor=run.recording())
    except (RecordingError, RunError) as error:  # the steps keep their values
        series = MetricSeries(None, (error.fact,))
    run.write_tables(steps, limits, series=series.table)
    end = ended(run, steps)
    return replace(end, warnings=(*end.warnings, *series.warnings))


def ended(run: RunFolder, steps: Steps) -> Ended:
    study, bench = run.declared(), run.bench()
    return Ended(
        run=str(run.path),
        report=str(run.place(REPORT)),
        study=describe_study(study, bench),
        host=run.host(),
        quality=quality_of(run, steps),
        warnings=(
            *unseen(study, any("target.cpu.cores" in step.metrics for step in steps)),
            *bench.notes,
            *(verdict_words.answers_sentence(comparison) for comparison in bench.answers if not comparison.equal),
            *map(str, carried_over(steps)),
        ),
        answers=bench.answers,
    )


def _from_all_steps(rounds: Sequence[Round], steps: Steps, study: Study) -> list[Round]:
    """So that curve, limits and evidence agree, and with the metrics of all rounds' evidence: a cause of a round can be
    seen gone in the next."""
    decided = deciding(rounds)
    mine = {round_.treatment: of_treatment(counting(steps, decided), round_.treatment) for round_ in rounds}
    whole = []
    for round_ in rounds:
        if of_round := mine[round_.treatment]:
            again = examine(
                of_round,
                treatment=round_.treatment,
                state=round_.state,
                effective=round_.effective,
                curve=curve_of(of_round, study, round_.treatment),
                target_kind=study.target.kind,
                highest_level=study.levels[-1],
                declared=study.target.limit,
                run=steps,
            ).round
            renewed = {finding.id: finding for finding in again.findings}
            findings = tuple(
                replace(renewed.get(old.id, old), status=old.status, mechanism=old.mechanism) for old in round_.findings
            )
            curve, limits, ruled_out = again.curve, again.limits, again.ruled_out
            round_ = placed(replace(round_, curve=curve, limits=limits, findings=findings, ruled_out=ruled_out))
        whole.append(round_)
    shown = {item.metric for round_ in whole for finding in round_.findings for item in finding.evidence}
    shown |= {limit.use_metric for round_ in whole for limit in round_.limits} | time_spent.metrics()
    return [replace(round_, footprint=footprint(mine[round_.treatment], sorted(shown))) for round_ in whole]


def quality_of(run: RunFolder, steps: Steps) -> RunQuality:
    return replace(run.quality() or quality_from(steps), influences=influences(steps), companions=companions(steps))


def quality_from(steps: Steps) -> RunQuality:
    """From the steps of a killed run, without repetitions and the recorder."""
    seconds = max(step.ended_s for step in steps) - min(step.started_s for step in steps)
    flags = dict(Counter(flag for step in steps for flag in step.flags))
    return RunQuality(len(steps), 0, flags, 0.0, 0.0, 0, 0, seconds, blind=blind_counters(steps))


def partial(run: RunFolder) -> list[Round]:
    rounds, steps = run.rounds(), run.steps()
    if rounds or not steps:
        return rounds
    first = next(iter(run.treatments()), "")
    mine = counting(of_treatment(steps, first))
    if not mine:
        return []
    study = run.declared()
    return [examined(run, study, mine, curve_of(mine, study, first), steps)]


def examined(run: RunFolder, study: Study, mine: Steps, curve: Curve, steps: Steps, up_to: float = math.inf) -> Round:
    """steps: all of the run. up_to: their highest level, if higher ones are not used."""
    treatment = run.treatment(curve.treatment)
    return examine(
        with_collecting(run, mine),
        treatment=treatment.name,
        state=treatment.state,
        effective=run.effective().get(treatment.name, {}),
        curve=curve,
        target_kind=treatment.kind or study.target.kind,
        highest_level=min(study.levels[-1], up_to),
        declared=study.target.limit,
        run=steps,
    ).round


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of the first and the last kept state. warnings: why a histogram cannot be read."""

    distributions: tuple[LatencyDistribution, ...] = ()
    warnings: tuple[str, ...] = ()


def latencies_of(run: RunFolder, rounds: Sequence[Round], steps: Steps, gain: Verdict | None) -> Latencies:
    """At the highest level of the gain, or of all; none where most steps there have none. steps: of the whole run."""
    if not rounds:
        return Latencies()
    kept = kept_trials(rounds)
    treatments = [rounds[0].treatment, *([kept[-1].treatment_after] if kept else [])]
    decided = deciding(rounds)
    mine = [by_level(select(of_treatment(steps, name), decided=decided).steps) for name in treatments]
    common = set.intersection(*map(set, mine))
    if not common:
        return Latencies()
    level = max(common.intersection(gain.levels if gain else ()) or common)
    try:
        distributions = [_merged(run, side[level]) for side in mine]
    except RunError as error:
        return Latencies(warnings=(f"the report shows no distribution of latencies: {error.fact}",))
    there = tuple(distribution for distribution in distributions if distribution is not None)
    return Latencies(there) if len(there) == len(treatments) else Latencies()


def _merged(run: RunFolder, steps: Steps) -> LatencyDistribution | None:
    read = [(step, counts) for step in timed(steps) if (counts := run.latency_counts(step.number)) is not None]
    if not any(counts.any() for _, counts in read):
        return None
    whole = np.sum([counts for _, counts in read], axis=0)
    failed = sum(step.errors for step, _ in read)
    among_them = int(whole.sum()) > sum(step.requests for step, _ in read)  # as in older versions
    latencies_ms = bin_latencies_ms()
    return LatencyDistribution(
        treatment=steps[0].treatment,
        level=steps[0].level,
        steps=len(read),
        requests=int(whole.sum()),
        failed=failed if among_them else 0,
        latency=window.of_histogram(latencies_ms, whole),
        points=window.points(latencies_ms, whole),
        left_out=0 if among_them else failed,
    )


FROM_CURVES = "the curves of both states, which were not measured in turns: the mean over these loads"


def variants_of(rounds: Sequence[Round], steps: Steps, study: Study | None) -> tuple[Variant, ...]:
    """Sets of changes: the kept ones before each that gives more up, and all of them. Empty where nothing was kept, or
    no load was measured in both states."""
    kept = [(number, trial) for number, round_ in enumerate(rounds) for trial in round_.tried if trial.kept]
    variants = []
    for end in range(1, len(kept) + 1):
        if end < len(kept) and kept[end][1].remedy.price.durability is None:
            continue
        trials = [trial for _, trial in kept[:end]]
        against = _against_first(rounds, kept[end - 1][0], trials, steps)
        if not against.levels:
            continue
        given_up = [trial.remedy.price.durability for trial in trials if trial.remedy.price.durability]
        changes, loads = net_changes(trials), [row.load for row in against.levels]
        variants.append(
            Variant(
                changes,
                study.objective.at if study is not None and study.objective.at in loads else loads[-1],
                rounds[0].treatment,
                trials[-1].treatment_after,
                "; ".join(dict.fromkeys(given_up)),
                copied(study, changes),
                verdict=against.verdict,
                levels=against.levels,
                fresh=against.fresh,
            )
        )
    return tuple(variants)


def _against_first(rounds: Sequence[Round], number: int, trials: Sequence[Trial], steps: Steps) -> Compared:
    """number: of the last change's round."""
    first, last = rounds[0], trials[-1]
    has_curve = number + 1 < len(rounds)
    if has_curve:
        after = rounds[number + 1].curve
    else:
        points = tuple(
            CurvePoint(row.load, row.after, row.after * row.low / row.ratio, row.after * row.high / row.ratio, None)
            for row in last.levels
        )
        after = replace(first.curve, points=points)
    rows, pair = at_loads(first.curve, after), (first.treatment, last.treatment_after)
    if len(trials) == 1:
        comparison = Compared(verdict=last.verdict, levels=last.levels, fresh=last.fresh)
    elif blocks := in_blocks(steps, *pair):
        comparison = compared(blocks, *pair)
    else:
        judged = [row for row in rows if row.load in last.reported.levels] or list(rows)
        comparison = Compared(verdict=last.reported)
        if judged:
            # The interval's ends are means, too: what disturbs a curve may disturb all of its loads.
            ratio, low, high = (
                math.exp(fmean(math.log(getattr(row, name)) for row in judged)) for name in ("ratio", "low", "high")
            )
            decision = decide(low, high) if all(row.low < row.high for row in judged) else "cannot-tell"
            levels = tuple(row.load for row in judged)
            comparison = Compared(verdict=Verdict(ratio, low, high, decision, 0, FROM_CURVES, levels=levels))
    better = [row for row in comparison.levels if row.low < row.high or not has_curve]
    by_load = {row.load: row for row in (*comparison.levels, *rows, *better)}
    return replace(comparison, levels=tuple(by_load[load] for load in sorted(by_load)))


def copied(study: Study | None, changes: Sequence[Change] | Sequence[ChangeRecord]) -> tuple[str, ...]:
    """A line each; empty for a kind that is not known here."""
    try:
        return () if study is None else config_file.to_copy(registry.of_study(study), changes)
    except StudyError:
        return ()


def with_intervals(round_: Round, steps: Steps) -> Round:
    """Add intervals that an earlier version did not record, from the steps of the trials' blocks."""
    tried = []
    for trial in round_.tried:
        if any(row.low < row.high for row in trial.levels):
            tried.append(trial)
            continue
        pair, judged = (trial.treatment_before, trial.treatment_after), trial.reported.levels
        # The first version did not record what a step was taken for.
        known = [
            replace(step, purpose=step.purpose or "proof") for step in steps if step.purpose or step.level in judged
        ]
        blocks = in_blocks(known, *pair, above=trial.verdict.blocks if trial.fresh is not None else 0)
        if blocks:
            again, verdict = trial.fresh and verdict_on(blocks, *pair), trial.reported
            levels = level_ratios(blocks, *pair)
            if again is None and len(verdict.levels) == 1:
                levels = tuple(replace(row, low=verdict.low, high=verdict.high) for row in levels)
            trial = replace(trial, fresh=again, levels=levels)
        tried.append(trial)
    return replace(round_, tried=tuple(tried))
