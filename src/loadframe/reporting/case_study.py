"""An investigation as a document, and its charts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from loadframe.metrics import metric as metric_of
from loadframe.model import OTHERS, Ending, Finding, Investigation, RuledOut
from loadframe.reporting import (
    alternatives,
    answers,
    curve_report,
    facts,
    finding_words,
    forecasts,
    gain_bars,
    latencies,
    limits_report,
    plots,
    quality_words,
    rounding,
    time_spent,
    trials,
    verdict_words,
    waits,
    words,
)
from loadframe.reporting import document as doc
from loadframe.reporting.next_step import is_named_limit, next_step, what_moves
from loadframe.reporting.vega import BOTH, HALF, NARROW, Chart, charted
from loadframe.units import show_metric

Charts = Mapping[str, Chart]
WIDE = "facts wide-facts"
OF_COMPONENTS = {
    "cpu.cores": "CPU",
    "memory.rss": "Memory",
    "io.read_bytes": "Bytes read",
    "io.write_bytes": "Bytes written",
}
OF_TARGET = {"target.cpu.cores": "CPU of the target", "target.memory.rss": "Memory of the target"}


def of(inv: Investigation, drawn: Charts) -> doc.Document:
    first = ("alternatives" if "alternatives" in drawn else "side-by-side-1") if inv.alternatives else ""
    answers_heading = f"Its answers and those of {inv.answers[0].others}" if inv.answers else ""
    about, took = doc.About(inv.run, inv.study, inv.host), f"the whole run took {rounding.seconds(inv.seconds)}"
    fleet = [] if inv.drivers is None else [verdict_words.drivers_sentence(inv.drivers)]
    alone = inv.rounds[-1].ruled_out if inv.rounds and not facts.main_findings(inv) else ()
    refuted = []
    for finding in facts.refuted_findings(inv):
        evidence = " ".join(words.sentence(finding_words.evidence_sentence(piece)) for piece in finding.evidence[:1])
        refuted.append((doc.Span(finding_words.cause(inv, finding.id), title=finding.id), evidence))
    versions = ((f"Alternative: {other.name}", other.version) for other in inv.alternatives if other.version)
    clamped = (words.sentence(text) for round_ in inv.rounds for text in round_.clamped)
    warnings = (*fleet, *limits_report.hosts_sentences(inv.fleet_limits), *inv.warnings, inv.outcome.text, took)
    return doc.Document(
        kind="Case study",
        answer=tuple(filter(None, (*answers.lines(inv), answers.next_line(inv)))),
        sections=(
            doc.environment(about, *versions, ("Started", words.moment(inv.started_at))),
            doc.section("Before and after" if inv.after else "The curve", "curves", _curves(inv, drawn), "Curves"),
            *(_side_by_side(inv, number, drawn, first) for number in range(1, len(inv.alternatives) + 1)),
            doc.section("Warm restart", "restart", _restarts(inv)),
            doc.section("Forecast and outcome", "forecast", _forecast(inv, drawn)),
            doc.section("Cause and evidence", "finding", _findings(inv, drawn), "Cause and evidence"),
            doc.section("What was ruled out", "ruled-out", _ruled_out(inv, alone)),
            doc.section("Suspected, then refuted by a trial", "refuted", [doc.Facts(refuted, WIDE)]),
            doc.section("Changes and proof", "changes", trials.tried(inv), "Changes and proof"),
            doc.listed("Silently clamped", dict.fromkeys(clamped), "clamped"),
            doc.section("The ladder of gains", "ladder", trials.ladder(inv, _figures(drawn, "ladder", look="ladder"))),
            doc.section(answers_heading, "answers", map(doc.Prose, map(verdict_words.answers_sentence, inv.answers))),
            doc.section("How full each limit is", "fullness", _figures(drawn, "limits")),
            doc.section("What it uses", "footprint", _footprint(inv, drawn)),
            doc.section("Where the time goes", "time", time_spent.blocks(inv), "Where the time goes"),
            doc.section("Known remedies that were not tried", "untried", trials.untried(inv)),
            doc.section("All limits, the next one first", "next", limits_report.of_run(inv), "Limits"),
            doc.quality(inv.quality, warnings),
            doc.section("Settings to copy", "settings", trials.settings(inv), "Settings to copy"),
            doc.reproduce(inv.run, ("loadframe investigate {study}", "the whole loop")),
            doc.section("Every step", "data", curve_report.blocks(inv), "Every step", "page"),
        ),
        about=about,
        figures=_figures(drawn, first, "proof", "gains"),
        asides=(*_asides(inv),),
        report=inv.report,
    )


def _figures(drawn: Charts, *chosen: str, look: str = "") -> tuple[doc.Figure, ...]:
    return tuple(doc.Figure(drawn[name], look) for name in chosen if name in drawn)


def _asides(inv: Investigation) -> Iterator[doc.Aside]:
    unit, work, reach, best = inv.study.load_unit, inv.study.work_unit, verdict_words.reach_of(inv), inv.variants[-1:]
    yield doc.aside("Asked", inv.study.question, only="text")
    for variant in best if inv.gain and facts.main_id(inv) != OTHERS else ():
        if variant.gain.low > 1:
            named = f", with {verdict_words.variant_name(variant)}" if len(inv.variants) > 1 else ""
            about = f"the throughput at {words.load(variant.at, unit)}{named}"
            times = doc.Span(f"{verdict_words.led_ratio(variant.gain)}\u00d7", to="#changes")
            interval = verdict_words.confident_interval(variant.gain)
            yield doc.aside(times, about, interval, look="gain", only="page")
    for variant in inv.variants if inv.gain else ():
        if len(variant.levels) > 1:
            name = f"{verdict_words.variant_name(variant)}, at each load"
            yield doc.aside(name, verdict_words.by_load(variant, unit))
    if inv.gain:
        how = doc.Span("How it was measured", "page", "#changes")
        yield doc.aside("Proof", (f"{verdict_words.proof_sentence(inv.gain, unit)} ", how))
    yield doc.aside("Peak against peak", verdict_words.reach_sentences(reach, unit) if reach else "")
    copied = [variant for variant in inv.variants if variant.to_copy]
    heads = [(verdict_words.variant_head(variant),) * (len(copied) > 1) for variant in copied]
    settings = (line for variant, head in zip(copied, heads, strict=True) for line in (*head, *variant.to_copy))
    yield doc.aside("To copy", *settings, only="screen")
    yield doc.aside("To decide", inv.unfinished.command if inv.unfinished else "")
    yield doc.Aside("Its log", () if inv.stop is None else inv.stop.log)
    for number, other in enumerate(inv.alternatives, start=1):
        text = words.sentence(alternatives.sentence(inv, other))
        yield doc.aside(doc.Span(other.name, to=f"#side-by-side-{number}"), text)
    yield doc.aside("Drivers", verdict_words.drivers_sentence(inv.drivers) if inv.drivers else "", only="screen")
    evidence = [piece for finding in facts.main_findings(inv)[:1] for piece in finding.evidence[:3]]
    brief = ((finding_words.evidence_value(piece), piece.window.partition(", at ")[0]) for piece in evidence)
    yield doc.aside("Evidence", *(" ".join(pair).strip() for pair in brief), only="screen")
    step = next_step(inv)
    said = ["", *(line.removeprefix("Next: ").casefold() for line in (*answers.lines(inv), answers.next_line(inv)))]
    repeated = inv.next_limit if step.limit and is_named_limit(inv) else None
    action = step.action if repeated is None else what_moves(inv, repeated)
    if action.casefold() in said:
        yield doc.aside("Why", step.why, look="next")
    else:
        why = step.why and f"Why: {step.why}"
        yield doc.aside("Next limit" if step.limit and repeated is None else "Next", action, why, look="next")
    if slower := latencies.slower(inv):
        yield doc.aside("Slower after it", doc.Span(slower, to="#chart-percentiles"))
    if given_up := facts.gives_up(inv):
        safe = [variant for variant in inv.variants if not variant.gives_up]
        without = f" Without that: {verdict_words.gain_sentence(safe[-1].reported, unit)}." if safe else ""
        yield doc.aside("Given up for it", f"{words.sentence('; '.join(given_up))}{without}")
    for label, state, shown in (("Before", inv.before, inv.rounds[:1]), ("After", inv.after, inv.rounds[-1:])):
        if state is not None:
            limit = facts.limit_of_bend(inv, state.bend)
            text = words.state_sentence(state, unit, work, limit, shown[0].curve)
            steps = curve_report.address(shown[0], state.peak.load)
            yield doc.aside(label, doc.Span(text, to=steps), look=label.lower())
    predicted = forecasts.outcome(inv.forecast, unit, work)[0] if inv.forecast else ""
    yield doc.aside("Forecast", predicted, only="screen")
    yield doc.brief_quality(inv.quality)


def _curves(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    if not inv.rounds:
        return
    yield doc.Group(_figures(drawn, "blocks", "latency"), "pair")
    heads = (doc.Column(""), *doc.numbers(*latencies.COLUMNS))
    table = doc.Table(heads, [(name, *cells) for name, cells in latencies.rows(inv)], "figures stack")
    if "percentiles" in drawn:
        yield doc.Figure(drawn["percentiles"], inside=(table,))
    else:
        yield table
    if "stalls" in drawn:
        yield from _figures(drawn, "stalls")
    elif silence := quality_words.silence_sentence(inv):
        yield doc.Prose(silence)
    yield from (curve_report.of_round(inv, round_) for round_ in inv.rounds)


def _side_by_side(inv: Investigation, number: int, drawn: Charts, first: str) -> doc.Section:
    alternative, unit, target = inv.alternatives[number - 1], inv.study.load_unit, inv.study.target_kind
    name = f"side-by-side-{number}"
    blocks: list[doc.Block] = [doc.Prose(" ".join(alternatives.sentences(inv, alternative)))]
    blocks += _figures(drawn, name if name != first else "")
    for title, verdicts in (("", alternative.by_level), ("With nothing cached", alternative.cold)):
        to = f"#data-{name}" if alternative.round.footprint and not title else ""
        rows: list[doc.Cells] = []
        for verdict in verdicts:
            load = doc.Span(rounding.exact(verdict.levels[0]), to=to)
            decision = verdict_words.DECISIONS[verdict.decision]
            outcome = decision if verdict.has_ratio else verdict_words.without_ratio(verdict)
            rows.append((load, verdict_words.ratio(verdict), verdict_words.ratio_interval(verdict), outcome))
        heads = (words.capital(unit), doc.Column(f"{alternative.name} / {target}", "Ratio"), "95 % interval", "")
        if rows:
            blocks.append(doc.Group((doc.Table(heads, rows),), heading=title))
    if alternative.witnesses:
        at = doc.Column(f"At {words.load(alternative.witnesses[0].level, unit)}", "Metric")
        shown: list[doc.Cells] = []
        for seen in alternative.witnesses:
            values = (show_metric(seen.metric, value) for value in (seen.target, seen.alternative))
            shown.append((doc.Span(metric_of(seen.metric).what, title=seen.metric), *values))
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
        note = "Counted: objects of the lowest level that the cache did not fetch from its origin again."
        yield doc.Prose(note, "note")


def _forecast(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    if inv.forecast is None:
        return
    unit, work, forecast = inv.study.load_unit, inv.study.work_unit, inv.forecast
    yield doc.Prose(" ".join(forecasts.outcome(forecast, unit, work)))
    yield from _figures(drawn, "forecast")
    yield from forecasts.tables(forecast, unit, work)
    yield doc.Items(forecast.notes)


def _findings(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    pictures = _figures(drawn, *(name for name in drawn if name.startswith("evidence")))
    shown = (*facts.main_findings(inv), *facts.suspected_findings(inv))
    named, listed = {finding.id for finding in shown}, set[RuledOut]()
    for finding in shown:  # a shown cause is never listed as ruled out
        ruled_out = tuple(item for item in finding.ruled_out if item not in listed and item.id not in named)
        listed.update(finding.ruled_out)
        heading = (f"{words.heading(finding.title)} ", doc.Span(finding.status, f"tag {finding.status}"))
        inside = (*_finding(inv, finding, doc.Group(pictures, "pair")), *_ruled_out(inv, ruled_out))
        yield doc.Group(inside, "finding", heading)
        pictures = ()


def _finding(inv: Investigation, finding: Finding, pictures: doc.Group) -> Iterator[doc.Block]:
    unit, round_ = inv.study.load_unit, facts.round_of(inv, finding)
    texts = (words.sentence(finding_words.sentence(inv, finding)), finding.explanation, finding.advice)
    yield doc.Prose(" ".join(filter(None, texts)))
    yield pictures
    rows: list[doc.Cells] = []
    for piece in finding.evidence:
        name, steps = words.heading(finding_words.metric_words(piece.metric)), curve_report.address(round_)
        value = doc.Span(show_metric(piece.metric, piece.value), "b", title=piece.metric)
        window = finding_words.evidence_window(piece, unit) or ("all steps" if steps else "")
        source = (doc.Span(piece.source, "below"),) if piece.source else ()
        rows.append((name, value, finding_words.evidence_threshold(piece), (doc.Span(window, to=steps), *source)))
    yield doc.Table(("Evidence", "Value", "Threshold", "Measured"), rows)
    if finding.mechanism and not finding_words.is_suspected_growth(finding):
        yield doc.Prose(words.sentence(finding_words.mechanism_sentence(finding)))
    where = (f", round {round_.number} of ", doc.file("findings.json"), ".")
    yield doc.Prose(("In JSON: ", doc.Span(finding.id, "code"), *where), "note id")


def _ruled_out(inv: Investigation, items: Sequence[RuledOut]) -> Iterator[doc.Block]:
    for heading, judged in (("Ruled out", True), ("Not judged", False)):
        by_name: dict[str, list[RuledOut]] = {}
        for item in items:
            if item.judged is judged:
                by_name.setdefault(finding_words.cause(inv, item.id), []).append(item)
        by_reason: dict[str, list[str]] = {}
        for name, alike in by_name.items():
            reason = " ".join(dict.fromkeys(words.sentence(item.because) for item in alike))
            by_reason.setdefault(reason, []).append(name)
        rows = tuple(
            (doc.Span("; ".join(names), title=by_name[names[0]][0].id), reason) for reason, names in by_reason.items()
        )
        yield doc.Group((doc.Facts(rows, WIDE),), "small", heading)


def _footprint(inv: Investigation, drawn: Charts) -> Iterator[doc.Block]:
    for part in plots.parts():
        yield doc.Group([*map(doc.Prose, part.sentences(inv))], only="text")
        if summary := part.summary(inv):
            yield doc.Group((doc.Prose(summary),), only="page")
        yield from _figures(drawn, *(name for name, _ in part.rounds(inv)))
    yield from _figures(drawn, "waits", "waits-after")
    yield from time_spent.use(inv)
    yield doc.Group(_figures(drawn, *(name for name in drawn if name.startswith("footprint"))), "pair")


def charts(inv: Investigation) -> Iterator[Chart]:
    steps = "A dot is a step, a ring an outlier; boxes are quartiles, whiskers 1.5 boxes long; medians are joined."
    ends = [state.curve for state in plots.measured_ends(inv)]
    knee = " Dashed: where it bends, with its interval." if any(curve and curve.knee for curve in ends) else ""
    note = f"Shaded: 95 % interval.{knee}"
    yield from charted("proof", plots.proof_title(inv), note, BOTH, plots.throughput, inv)
    if any(facts.silences(round_) for round_ in inv.rounds):
        longest = "Longest time in which no request was done, of each step; the line joins the averages."
        sentence = quality_words.silence_sentence(inv)[:-1]
        yield from charted("stalls", sentence, longest, BOTH, plots.metric, inv, "workload.silence_ms", "")
    yield from charted("latency", plots.latency_title(inv), "", HALF, plots.latency, inv)
    yield from charted("blocks", "Throughput of every step", steps, HALF, plots.boxes, inv)
    yield from charted("percentiles", latencies.title(inv), latencies.note(inv), BOTH, latencies.percentiles, inv)
    bands = "Shaded bands: 95 % intervals."
    if len(inv.alternatives) > 1:
        title = f"{inv.study.target_kind} and its alternatives by load"
        yield from charted("alternatives", title, bands, BOTH, plots.side_by_side, inv, inv.alternatives)
    for number, other in enumerate(inv.alternatives, start=1):
        name, title = f"side-by-side-{number}", plots.side_by_side_title(inv, other)
        dashed = " Dashed: where their ratio begins to change, with its interval." if other.divergence else ""
        yield from charted(name, title, f"{bands}{dashed}", BOTH, plots.side_by_side, inv, (other,))
    shaded = "Shaded: where the first resource was expected to saturate. Bars: 90 % intervals."
    yield from charted("forecast", plots.forecast_title(inv), shaded, BOTH, plots.forecast, inv)
    evidence = [pair for finding in facts.main_findings(inv)[:1] for pair in plots.evidence_metrics(inv, finding)]
    for number, (name, limit) in enumerate(evidence, start=1):
        title = words.heading(finding_words.metric_words(name))
        yield from charted(f"evidence-{number}", title, "", HALF, plots.metric, inv, name, limit, metric=name)
    pictures: list[plots.Picture] = [*plots.parts(), waits]
    for picture in pictures:
        for name, state in picture.rounds(inv):
            title = picture.title(state, inv.study.load_unit)
            yield from charted(name, title, picture.note(state), BOTH, picture.chart, inv, state)
    for name, bars in (("limits", limits_report), ("gains", gain_bars)):
        yield from charted(name, bars.title(inv), bars.note(inv), BOTH, bars.chart, inv)
    for number, (name, what) in enumerate(OF_COMPONENTS.items(), start=1):
        title = f"{what} of each component by load"
        yield from charted(f"footprint-component-{number}", title, "", HALF, plots.components, inv, name)
    for number, (name, what) in enumerate(OF_TARGET.items(), start=1):
        if name not in dict(evidence):
            chart = f"footprint-{number}"
            yield from charted(chart, f"{what} by load", "", HALF, plots.metric, inv, name, "", metric=name)
    yield from charted("ladder", "What each change adds", "", (*HALF, NARROW), gain_bars.ladder, inv)
