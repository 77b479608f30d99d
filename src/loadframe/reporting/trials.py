"""Changes that were tried or not, and the settings to copy."""

from collections.abc import Iterable, Iterator

from loadframe.model import Change, Investigation, LevelRatio, SettingValue, Trial
from loadframe.reporting import change_words, facts, finding_words, rounding, verdict_words, words
from loadframe.reporting import document as doc

CONTROLS = {"sham": "control", "dose": "dose", "without": "worth", "less": "counter-proof"}


def tried(inv: Investigation) -> Iterator[doc.Block]:
    for trial in (trial for round_ in inv.rounds for trial in round_.tried):
        kept = doc.Span(verdict_words.FATES[trial.kept], f"tag {'confirmed' if trial.kept else 'refuted'}")
        yield doc.Group((*_trial(inv, trial),), "trial", (f"{words.heading(trial.remedy.title)} ", kept))


def _trial(inv: Investigation, trial: Trial) -> Iterator[doc.Block]:
    unit, work = inv.study.load_unit, inv.study.work_unit
    blocks = f" {verdict_words.block_ratios(trial.reported)}".rstrip()
    note = f" {words.sentence(trial.note)}" if trial.note and trial.kept else ""
    sentence = words.sentence(change_words.trial_sentence(trial, unit))
    yield doc.Prose((doc.Span(sentence, "b"), blocks, note))
    yield _chain(trial)
    controls = []
    for control in trial.controls:
        proved = control.kind == "without" and control.verdict
        gain = f"{verdict_words.gain_sentence(proved)}; " if proved else ""
        controls.append(words.sentence(f"{CONTROLS[control.kind]} ({control.title}): {gain}{control.because}"))
    yield doc.Items(controls)
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
        method = f"Method: {words.strip(trial.reported.method)}. Raw data: "
        of = f" and the steps of the treatments {trial.treatment_before} and {trial.treatment_after} in "
        yield doc.Prose((method, doc.file("verdicts.json"), of, doc.file("steps.jsonl"), "."), "note")
    if trial.remedy.source:
        yield doc.Prose(f"Source of the remedy: {words.strip(trial.remedy.source)}.", "note")


def levels(rows: Iterable[LevelRatio], unit: str, before: str, after: str, to: str = "") -> doc.Table:
    """before, after: heads. to: link to the steps."""
    cells: list[doc.Cells] = []
    for row in rows:
        load, values = doc.Span(rounding.exact(row.load), to=to), map(rounding.plain, (row.before, row.after))
        cells.append((load, *values, verdict_words.ratio(row), verdict_words.ratio_interval(row)))
    heads = doc.numbers(words.capital(unit), before, after, "Ratio", "Interval")
    return doc.Table(heads, cells, "figures")


def _chain(trial: Trial) -> doc.Table:
    def row(change: Change) -> doc.Row:
        def code(value: SettingValue | None) -> doc.Span:
            return doc.Span(change_words.value(change.setting, value), "code")

        effective: tuple[str | doc.Span, ...] = ()
        if change.setting in trial.effective:
            cut = change.needed and facts.was_cut(change, trial.effective)
            clamped = (" ", doc.Span("clamped", "tag warn")) if cut else ()
            effective = (code(trial.effective[change.setting]), *clamped)
        cells: doc.Cells = (
            change.layer,
            doc.Span(change.setting, "code"),
            code(change.before),
            code(change.after) if change.needed else "already enough",
            *((effective,) if trial.effective else ()),
            words.sentence(change.why),
        )
        return doc.Row(cells, "" if change.needed else "quiet")

    heads = ("Layer", "Setting", "Before", "Asked for", *(("In effect",) if trial.effective else ()), "Why")
    return doc.Table(heads, [*map(row, trial.remedy.changes)])


def ladder(inv: Investigation, drawn: tuple[doc.Block, ...]) -> Iterator[doc.Block]:
    if len(inv.ladder) > 1:
        yield from drawn
        rows = []
        for step in inv.ladder:
            gain = (f"{verdict_words.ratio(step)} times", verdict_words.ratio_interval(step))
            share, price = rounding.percent(step.share), step.gives_up or "nothing"
            rows.append((finding_words.remedy(inv, step.change), *gain, share, price))
        heads = ("Change", "Gain", "95 % interval", doc.Column("Share of the whole", "Share"), "Trade-off")
        yield doc.Table(heads, rows)
    durability = [doc.Prose(words.sentence(text), "card") for text in change_words.durability_sentences(inv)]
    yield doc.Group(durability, "pair cards")


def untried(inv: Investigation) -> Iterator[doc.Block]:
    rows: list[tuple[doc.Words, doc.Words]] = []
    for skipped in change_words.untried(inv):
        changes = doc.code_list([change_words.change(change) for change in skipped.remedy.changes])
        remarks = (f"not tried: {skipped.because}", *change_words.price_sentences(skipped.remedy.price))
        why = (*changes, ". " if changes else "", words.paragraph(remarks))
        rows.append((words.heading(skipped.remedy.title), why))
    yield doc.Facts(rows, "facts wide-facts")


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
