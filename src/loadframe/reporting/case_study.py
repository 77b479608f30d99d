"""An investigation as a document: decides what is shown where; the sentences come from *words.py."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from loadframe.metrics import metric as metric_of
from loadframe.model import Alternative, Ending, Finding, Investigation, RuledOut
from loadframe.reporting import (
    alternatives,
    answers,
    curve_report,
    facts,
    finding_words,
    forecasts,
    latencies,
    limits_report,
    quality_words,
    rounding,
    stages,
    time_spent,
    trials,
    verdict_words,
    words,
)
from loadframe.reporting import document as doc
from loadframe.reporting.fleet_report import drivers_sentence, fleet_limits_sentences
from loadframe.reporting.next_step import next_step
from loadframe.reporting.vega import Chart
from loadframe.units import show_metric

Charts = Mapping[str, Chart]


def of(inv: Investigation, drawn: Charts) -> doc.Document:
    first = ("alternatives" if "alternatives" in drawn else "side-by-side-1") if inv.alternatives else ""
    beside = f"Its answers beside those of {inv.answers[0].others}" if inv.answers else ""
    about, took = doc.About(inv.run, inv.study, inv.host), f"the whole run took {rounding.seconds(inv.seconds)}"
    fleet = [] if inv.drivers is None else [drivers_sentence(inv.drivers)]
    alone = inv.rounds[-1].ruled_out if inv.rounds and not facts.main_findings(inv) else ()
    refuted = tuple(
        (
            doc.Span(finding_words.cause(inv, finding.id), title=finding.id),
            " ".join(words.sentence(finding_words.evidence_sentence(piece)) for piece in finding.evidence[:1]),
        )
        for finding in facts.refuted_findings(inv)
    )
    clamped = (words.sentence(text) for round_ in inv.rounds for text in round_.clamped)
    warnings = (*fleet, *fleet_limits_sentences(inv.fleet_limits), *inv.warnings, inv.outcome.text, took)
    return doc.Document(
        kind="Case study",
        answer=tuple(line for line in (*answers.lines(inv), answers.next_line(inv)) if line),
        sections=(
            doc.environment(
                about,
                *(
                    (f"Alternative: {alternative.name}", alternative.version)
                    for alternative in inv.alternatives
                    if alternative.version
                ),
                ("Started", words.moment(inv.started_at)),
            ),
            doc.section("Before and after" if inv.after else "The curve", "curves", _curves(inv, drawn), "Curves"),
            *(
                _side_by_side(inv, alternative, number, drawn, first)
                for number, alternative in enumerate(inv.alternatives, start=1)
            ),
            doc.section("Warm restart", "restart", _restarts(inv)),
            doc.section("Forecast and outcome", "forecast", _forecast(inv, drawn)),
            doc.section("Cause and evidence", "finding", _findings(inv, drawn), "Cause and evidence"),
            doc.section("What was ruled out", "ruled-out", _ruled_out(inv, alone)),
            doc.section("Suspected, then refuted by a trial", "refuted", [doc.Facts(refuted, "facts wide-facts")]),
            doc.section("Changes and proof", "changes", trials.tried(inv), "Changes and proof"),
            doc.listed("Silently clamped", dict.fromkeys(clamped), "clamped"),
            doc.section(
                "The ladder of gains", "ladder", trials.ladder(inv, (*_figures(drawn, "ladder", look="ladder"),))
            ),
            doc.section(beside, "answers", map(doc.Prose, map(verdict_words.answers_sentence, inv.answers))),
            doc.section("How full each limit is", "fullness", _figures(drawn, "limits")),
            doc.section("What it uses", "footprint", _footprint(inv, drawn)),
            doc.section("Where the time goes", "time", time_spent.blocks(inv), "Where the time goes"),
            doc.section("Known remedies that were not tried", "untried", trials.untried(inv)),
            doc.section("Which limit is reached next", "next", limits_report.of_run(inv), "Limits"),
            doc.quality(inv.quality, warnings),
            doc.section("Settings to copy", "settings", trials.settings(inv), "Settings to copy"),
            doc.reproduce(inv.run, ("loadframe investigate {study}", "the whole loop")),
            doc.section("Every step", "data", curve_report.blocks(inv), "Every step", "page"),
        ),
        about=about,
        figures=(*_figures(drawn, first, "proof", "gains"),),
        asides=(*_asides(inv),),
        report=inv.report,
    )


def _figures(drawn: Charts, *chosen: str, look: str = "") -> Iterator[doc.Figure]:
    return (doc.Figure(drawn[name], look) for name in chosen if name in drawn)


def _asides(inv: Investigation) -> Iterator[doc.Aside]:
    unit, work, reach, best = inv.study.load_unit, inv.study.work_unit, verdict_words.reach_of(inv), inv.variants[-1:]
    yield doc.Aside("Asked", (inv.study.question,), only="text")
    for variant in best if inv.gain and not facts.crowded(inv) else ():
        if variant.gain.low > 1:
            named = f", with {verdict_words.variant_name(variant)}" if len(inv.variants) > 1 else ""
            lines = (
                f"the throughput at {words.load(variant.at, unit)}{named}",
                verdict_words.confident_interval(variant.gain),
            )
            times = doc.Span(f"{verdict_words.led_ratio(variant.gain)}\u00d7", to="#changes")
            yield doc.Aside(times, tuple(line for line in lines if line), "gain", "page")
    for variant in inv.variants if inv.gain else ():
        if len(variant.levels) > 1:
            name = f"{verdict_words.variant_name(variant)}, at each load"
            yield doc.Aside(name, (verdict_words.by_load(variant, unit),))
    if inv.gain:
        how = doc.Span("How it was measured", "page", "#changes")
        yield doc.Aside("Proof", ((f"{verdict_words.proof_sentence(inv.gain, unit)} ", how),))
    if reach:
        phrases = (verdict_words.height_words(reach, unit), verdict_words.knee_words(reach, unit))
        yield doc.Aside("Peak against peak", (" ".join(words.sentence(text) for text in phrases if text),))
    copied = [variant for variant in inv.variants if variant.to_copy]
    heads = [(verdict_words.variant_head(variant),) * (len(copied) > 1) for variant in copied]
    settings = (line for variant, head in zip(copied, heads, strict=True) for line in (*head, *variant.to_copy))
    yield doc.Aside("To copy", tuple(settings), only="screen")
    yield doc.Aside("To decide", () if inv.unfinished is None else (inv.unfinished.command,))
    yield doc.Aside("Its log", () if inv.stop is None else inv.stop.log)
    for number, other in enumerate(inv.alternatives, start=1):
        text = words.sentence(alternatives.sentence(inv, other))
        yield doc.Aside(doc.Span(other.name, to=f"#side-by-side-{number}"), (text,))
    yield doc.Aside("Drivers", () if inv.drivers is None else (drivers_sentence(inv.drivers),), only="screen")
    evidence = [piece for finding in facts.main_findings(inv)[:1] for piece in finding.evidence[:3]]
    yield doc.Aside("Evidence", tuple(map(finding_words.evidence_brief, evidence)), only="screen")
    step = next_step(inv)
    said = f"Next: {step.action}".casefold() == answers.next_line(inv).casefold()
    actions = () if said else (step.action, *((f"Why: {step.why}",) if step.why else ()))
    yield doc.Aside("Next limit" if step.limit else "Next", actions, "next")
    if slower := latencies.slower(inv):
        yield doc.Aside("Slower after it", (doc.Span(slower, to="#chart-percentiles"),))
    if given_up := facts.gives_up(inv):
        safe = [variant for variant in inv.variants if not variant.gives_up]
        without = f" Without that: {verdict_words.gain_sentence(safe[-1].reported, unit)}." if safe else ""
        yield doc.Aside("Given up for it", (f"{words.sentence('; '.join(given_up))}{without}",))
    for label, state, shown in (("Before", inv.before, inv.rounds[:1]), ("After", inv.after, inv.rounds[-1:])):
        if state is not None:
            limit = facts.limit_of_bend(inv, state.bend)
            text = words.state_sentence(state, unit, work, limit, shown[0].curve)
            yield doc.Aside(label, (doc.Span(text, to=curve_report.address(shown[0], state.peak.load)),), label.lower())
    foretold = forecasts.outcome(inv.forecast, unit, work)[:1] if inv.forecast else ()
    yield doc.Aside("Forecast", tuple(foretold), only="screen")
    yield doc.brief_quality(inv.quality)


def _curves(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    if not inv.rounds:
        return
    yield doc.Group((*_figures(drawn, "blocks", "latency"),), "pair")
    heads = (doc.Column(""), *doc.numbers(*latencies.COLUMNS))
    table = doc.Table(heads, tuple((name, *cells) for name, cells in latencies.rows(inv)), "figures stack")
    if "percentiles" in drawn:
        yield doc.Figure(drawn["percentiles"], inside=(table,))
    else:
        yield table
    if "stalls" in drawn:
        yield from _figures(drawn, "stalls")
    elif silence := quality_words.silence_sentence(inv):
        yield doc.Prose(silence)
    yield from (curve_report.of_round(inv, round_) for round_ in inv.rounds)


def _side_by_side(inv: Investigation, alternative: Alternative, number: int, drawn: Charts, first: str) -> doc.Section:
    unit, target, name = inv.study.load_unit, inv.study.target_kind, f"side-by-side-{number}"
    blocks: list[doc.Block] = [doc.Prose(" ".join(alternatives.sentences(inv, alternative)))]
    blocks += _figures(drawn, name if name != first else "")
    for title, verdicts in (("", alternative.by_level), ("With nothing cached", alternative.cold)):
        to = f"#data-{name}" if alternative.round.footprint and not title else ""
        rows = tuple(
            (
                doc.Span(rounding.exact(verdict.levels[0]), to=to),
                verdict_words.ratio(verdict),
                verdict_words.ratio_interval(verdict),
                verdict_words.DECISIONS[verdict.decision]
                if verdict.has_ratio
                else verdict_words.without_ratio(verdict),
            )
            for verdict in verdicts
        )
        heads = (words.capital(unit), doc.Column(f"{alternative.name} / {target}", "Ratio"), "95 % interval", "")
        if rows:
            blocks.append(doc.Group((doc.Table(heads, rows),), heading=title))
    if alternative.witnesses:
        at = doc.Column(f"At {words.load(alternative.witnesses[0].level, unit)}", "Metric")
        shown: tuple[doc.Cells, ...] = tuple(
            (
                doc.Span(metric_of(seen.metric).what, title=seen.metric),
                show_metric(seen.metric, seen.target),
                show_metric(seen.metric, seen.alternative),
            )
            for seen in alternative.witnesses
        )
        blocks.append(doc.Table((at, target, alternative.name), shown))
    heading = f"{target} and {alternative.name} side by side"
    return doc.section(heading, name, blocks, "Side by side" if number == 1 else "")


def _restarts(inv: Investigation) -> Iterator[doc.Block]:
    had: dict[str, dict[str, str]] = {}
    for restart in inv.warm_restarts:
        unknown = f"not known: {words.strip(restart.error)}"
        held = unknown if restart.kept is None else f"{restart.kept:,} of {restart.asked:,} objects"
        had.setdefault(restart.target_kind, {})[restart.how] = held
    if had:
        endings = get_args(Ending)
        rows = tuple((kind, *(by_ending.get(how, "") for how in endings)) for kind, by_ending in had.items())
        yield doc.Table(("Cache", *(f"After {how}" for how in endings)), rows)
        counted = "Counted: objects of the lowest level that the cache did not fetch from its origin again."
        yield doc.Prose(counted, "note")


def _forecast(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    if inv.forecast is None:
        return
    unit, work, forecast = inv.study.load_unit, inv.study.work_unit, inv.forecast
    yield doc.Prose(" ".join(forecasts.outcome(forecast, unit, work)))
    yield from _figures(drawn, "forecast")
    yield from forecasts.tables(forecast, unit, work)
    yield doc.Items(forecast.notes)


def _findings(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    evidence = (*_figures(drawn, *(name for name in drawn if name.startswith("evidence"))),)
    for finding, ruled_out in facts.findings_and_ruled_out(inv):
        pictures, evidence = doc.Group(evidence, "pair"), ()
        heading = (f"{finding_words.heading(finding.title)} ", doc.Span(finding.status, f"tag {finding.status}"))
        yield doc.Group((*_finding(inv, finding, pictures), *_ruled_out(inv, ruled_out)), "finding", heading)


def _finding(inv: Investigation, finding: Finding, pictures: doc.Group) -> Iterator[doc.Block]:
    unit, round_ = inv.study.load_unit, facts.round_of(inv, finding)
    said = (words.sentence(finding_words.sentence(inv, finding)), finding.explanation, finding.advice)
    yield doc.Prose(" ".join(text for text in said if text))
    yield pictures
    rows: list[doc.Cells] = []
    for piece in finding.evidence:
        steps = curve_report.address(round_)
        window = finding_words.evidence_window(piece, unit) or ("all steps" if steps else "")
        source = (doc.Span(piece.source, "below"),) if piece.source else ()
        rows.append(
            (
                finding_words.heading(finding_words.metric_words(piece.metric)),
                doc.Span(show_metric(piece.metric, piece.value), "b", title=piece.metric),
                finding_words.evidence_threshold(piece),
                (doc.Span(window, to=steps), *source),
            )
        )
    yield doc.Table(("Evidence", "Value", "Threshold", "Measured"), tuple(rows))
    if finding.mechanism and not finding_words.tells_mechanism(finding):
        yield doc.Prose(words.sentence(finding_words.mechanism_sentence(finding)))
    id_ = doc.Span(finding.id, "code")
    where = doc.Span("findings.json", to="findings.json")
    yield doc.Prose(("In JSON: ", id_, f", round {round_.number} of ", where, "."), "note id")


def _ruled_out(inv: Investigation, items: Sequence[RuledOut]) -> Iterator[doc.Block]:
    for heading, judged in (("Ruled out", True), ("Not judged", False)):
        by_name: dict[str, list[RuledOut]] = {}
        for item in items:
            if item.judged is judged:
                by_name.setdefault(finding_words.cause(inv, item.id), []).append(item)
        by_reason: dict[str, list[str]] = {}
        for name, items_of_it in by_name.items():
            reason = " ".join(dict.fromkeys(words.sentence(item.because) for item in items_of_it))
            by_reason.setdefault(reason, []).append(name)
        rows = tuple(
            (doc.Span("; ".join(names), title=by_name[names[0]][0].id), reason) for reason, names in by_reason.items()
        )
        yield doc.Group((doc.Facts(rows, "facts wide-facts"),), "small", heading)


def _footprint(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    yield doc.Group(tuple(map(doc.Prose, stages.sentences(inv))), only="text")
    if helping := stages.helping(inv):
        yield doc.Group((doc.Prose(helping),), only="page")
    yield from _figures(drawn, "stages", "stages-after", "waits", "waits-after")
    yield from time_spent.use(inv)
    yield doc.Group((*_figures(drawn, *(name for name in drawn if name.startswith("footprint"))),), "pair")
