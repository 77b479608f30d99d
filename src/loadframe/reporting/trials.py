"""The changes that were tried, those that were not, and the settings to copy."""

from collections.abc import Iterable, Iterator

from loadframe.model import Change, Investigation, LevelRatio, Trial
from loadframe.reporting import change_words, curve_report, facts, finding_words, rounding, verdict_words, words
from loadframe.reporting import document as doc


def tried(inv: Investigation) -> Iterator[doc.Block]:
    for trial in (trial for round_ in inv.rounds for trial in round_.tried):
        kept = doc.Span(verdict_words.FATES[trial.kept], f"tag {'confirmed' if trial.kept else 'refuted'}")
        yield doc.Group((*_trial(inv, trial),), "trial", (f"{finding_words.heading(trial.remedy.title)} ", kept))


def _trial(inv: Investigation, trial: Trial) -> Iterator[doc.Block]:
    unit, work = inv.study.load_unit, inv.study.work_unit
    blocks = f" {verdict_words.block_ratios(trial.reported)}".rstrip()
    note = f" {words.sentence(trial.note)}" if trial.note and trial.kept else ""
    yield doc.Prose((doc.Span(words.sentence(change_words.trial_sentence(trial, unit)), "b"), blocks, note))
    yield _chain(trial)
    yield doc.Items(tuple(words.sentence(change_words.control_sentence(control)) for control in trial.controls))
    yield levels(trial.levels, unit, f"Before, {work}/s", f"After, {work}/s", "steps.jsonl")
    times = tuple(
        (rounding.exact(row.load), row.name, words.milliseconds(row.before_ms), words.milliseconds(row.after_ms))
        for row in trial.operations
    )
    load, before, after = doc.numbers(words.capital(unit), "Mean time before", "Mean time after")
    yield doc.Table((load, "Kind of request", before, after), times, "figures")
    if price := change_words.price_sentences(trial.remedy.price):
        yield doc.Prose((doc.Span("Cost.", "b"), *(f" {words.sentence(line)}" for line in price)), "price")
    if trial.reported.method:
        method, raw = words.strip(trial.reported.method), doc.Span("verdicts.json", to="verdicts.json")
        of = f" and the steps of the treatments {trial.treatment_before} and {trial.treatment_after} in "
        yield doc.Prose((f"Method: {method}. Raw data: ", raw, of, curve_report.FILE, "."), "note")
    if trial.remedy.source:
        yield doc.Prose(f"Source of the remedy: {words.strip(trial.remedy.source)}.", "note")


def levels(rows: Iterable[LevelRatio], unit: str, before: str, after: str, to: str = "") -> doc.Table:
    """Before, after and their ratio at each load. before, after: heads. to: link to the steps."""
    cells: Iterator[doc.Cells] = (
        (
            doc.Span(rounding.exact(row.load), to=to),
            *map(rounding.plain, (row.before, row.after)),
            verdict_words.ratio(row),
            verdict_words.ratio_interval(row),
        )
        for row in rows
    )
    heads = doc.numbers(words.capital(unit), before, after, "Ratio", "Interval")
    return doc.Table(heads, tuple(cells), "figures")


def _chain(trial: Trial) -> doc.Table:
    def row(change: Change) -> doc.Row:
        after = doc.Span(change_words.value(change.setting, change.after), "code")
        effective: tuple[str | doc.Span, ...] = ()
        if change.setting in trial.effective:
            cut = change.needed and facts.was_cut(change, trial.effective)
            value = change_words.value(change.setting, trial.effective[change.setting])
            effective = (doc.Span(value, "code"), *((" ", doc.Span("clamped", "tag warn")) if cut else ()))
        cells: doc.Cells = (
            change.layer,
            doc.Span(change.setting, "code"),
            doc.Span(change_words.value(change.setting, change.before), "code"),
            after if change.needed else "already enough",
            *((effective,) if trial.effective else ()),
            words.sentence(change.why),
        )
        return doc.Row(cells, "" if change.needed else "quiet")

    heads = ("Layer", "Setting", "Before", "Asked for", *(("In effect",) if trial.effective else ()), "Why")
    return doc.Table(heads, tuple(map(row, trial.remedy.changes)))


def ladder(inv: Investigation, drawn: tuple[doc.Block, ...]) -> Iterator[doc.Block]:
    if len(inv.ladder) > 1:
        yield from drawn
        rows = (
            (
                finding_words.remedy(inv, step.change),
                f"{verdict_words.ratio(step)} times",
                verdict_words.ratio_interval(step),
                "" if step.share is None else rounding.percent(step.share),
                step.gives_up or "nothing",
            )
            for step in inv.ladder
        )
        heads = ("Change", "Gain", "95 % interval", doc.Column("Share of the whole", "Share"), "Trade-off")
        yield doc.Table(heads, tuple(rows))
    durability = (doc.Prose(words.sentence(text), "card") for text in change_words.durability_sentences(inv))
    yield doc.Group(tuple(durability), "pair cards")


def untried(inv: Investigation) -> Iterator[doc.Block]:
    rows: list[tuple[doc.Words, doc.Words]] = []
    for skipped in change_words.untried(inv):
        changes = doc.code_list([change_words.change(change) for change in skipped.remedy.changes])
        remarks = (f"not tried: {skipped.because}", *change_words.price_sentences(skipped.remedy.price))
        dot = ". " if changes else ""
        rows.append(
            (finding_words.heading(skipped.remedy.title), (*changes, dot, " ".join(map(words.sentence, remarks))))
        )
    yield doc.Facts(tuple(rows), "facts wide-facts")


def settings(inv: Investigation) -> Iterator[doc.Block]:
    net, given_up = facts.net_changes(inv), facts.gives_up(inv)
    if not net:
        return
    copied = [variant for variant in inv.variants if variant.to_copy]
    for variant in copied:
        if len(copied) > 1:
            yield doc.Prose(verdict_words.variant_head(variant))
        yield doc.Settings(variant.to_copy)
    yield doc.Group((doc.Diff(net),), summary="Before and after")
    if given_up:
        yield doc.Prose((doc.Span("Given up with these settings:", "b"), f" {'; '.join(given_up)}."), "price")
