"""A ladder as a document."""

from collections.abc import Iterator, Sequence

from loadframe.model import CpuUse, Interaction, Ladder, Rung, StateUse
from loadframe.progress import counted
from loadframe.reporting import change_words, gain_bars, rounding, verdict_words, words
from loadframe.reporting import document as doc
from loadframe.reporting.vega import BOTH, Chart, charted

FULL = 0.9
"""Share of one CPU, or of a component's; our choice, as in the signatures of hot threads."""
NAMED_FROM = 0.02


def states(ladder: Ladder) -> tuple[StateUse, ...]:
    return tuple(use for use in ladder.cpu_use if use.threads or use.components)


def sentences(ladder: Ladder) -> Iterator[str]:
    """The busiest thread at the start and with everything kept; where nothing was kept, over the tried states."""
    uses, kept = {use.state: use for use in reversed(states(ladder))}, " + ".join(rung.change for rung in ladder.kept)
    if "" not in uses:
        return
    yield f"At the start {_limit(uses[''])}"
    tried = [use.threads[0] for use in uses.values() if use.state and use.threads]
    if kept in uses and kept:
        yield f"With all that is kept {_limit(uses[kept])}"
    elif not kept and tried:
        names = words.and_list(sorted({used.name for used in tried}))
        cores = [used.cores for used in tried]
        spread = f"{min(cores):.2f} to {max(cores):.2f} of one CPU"
        yield f"In the states that were tried and reverted it is one of {names}, with {spread}."


def _limit(use: StateUse) -> str:
    kinds = f"; the busiest kind is {_shown(use.kinds[:1])}" if use.kinds else ""
    thread = "" if not use.threads else f"{use.threads[0].name} ({use.threads[0].cores:.2f} of one CPU{kinds})"
    busiest = thread and f"the busiest thread is one of {thread}"
    full = [used for used in use.components if used.cores >= FULL * used.of]
    if use.threads and use.threads[0].cores >= FULL:
        return f"{busiest}: it is at the limit of a single CPU."
    if full:
        names = words.and_list([f"{used.name} ({used.cores:.2f} of {used.of:g})" for used in full])
        return f"{busiest}; the CPUs that it may use are full for {names}."
    if use.busy is not None and use.busy >= FULL:
        return f"{busiest}, so no thread is at its limit: the machine's CPUs are, {_busy(use)}."
    busy = f" (the machine's are {_busy(use)})" if use.busy is not None else ""
    return f"{busiest}: neither a thread nor the CPUs are at their limit{busy}."


def _busy(use: StateUse) -> str:
    others = use.others or 0.0
    outside = f", {rounding.percent(others)} by programs outside the study" if others >= NAMED_FROM else ""
    return f"{rounding.percent(use.busy or 0.0)} busy{outside}"


def _shown(uses: Sequence[CpuUse]) -> str:
    return ", ".join(f"{used.name} {used.cores:.2f}" for used in uses)


NOTE = (
    "Ratios of throughput with their 95 % intervals, where nothing else is said. Kept changes were measured again, all "
    "states of the ladder in the same blocks; shares are of the logarithm of the whole and add up to 100 %."
)
REVERTED = " A change that was reverted was measured against the state before it, when it was tried."
NO_GOVERNOR = (("Governor", "none that could be set on this machine"),)


def of(ladder: Ladder) -> doc.Document:
    about = doc.About(ladder.run, ladder.study, ladder.host)
    net = doc.Group((doc.Diff(ladder.net_changes),), summary="Before and after", only="page")
    return doc.Document(
        kind="Ladder of gains",
        answer=lines(ladder),
        sections=(
            doc.section("The ladder", "ladder", _ladder(ladder), "The ladder"),
            doc.section("The busiest threads", "cpu", _threads(ladder), "The busiest threads"),
            doc.section("Settings to copy", "settings", (doc.Settings(ladder.to_copy), net), "Settings to copy"),
            doc.environment(about, *NO_GOVERNOR * ("governor" not in ladder.host.facts)),
            doc.quality(ladder.quality, ladder.warnings),
            doc.reproduce(ladder.run, ("loadframe ladder {study}", "the whole ladder")),
        ),
        about=about,
        empty="No change was measured.",
        asides=tuple(_asides(ladder)),
        report=ladder.report,
    )


def charts(ladder: Ladder) -> Iterator[Chart]:
    note = "Thin lines: 95 % intervals. Grey: measured, and reverted."
    return charted("waterfall", "What each change gives", note, BOTH, gain_bars.waterfall, ladder)


def _asides(ladder: Ladder) -> Iterator[doc.Aside]:
    if ladder.total is not None:
        unit, total = ladder.study.load_unit, ladder.total.reported
        about = f"the throughput, all kept changes together, {verdict_words.verdict_levels(total, unit)}"
        head, interval = doc.Span(verdict_words.headline(total), to="#ladder"), verdict_words.confident_interval(total)
        yield doc.aside(head, about, interval, look="gain", only="page")
        proof = "It is the product of the trials, which decided what is kept: it may be overstated."
        yield doc.aside("Proof", proof if "product" in total.method else verdict_words.proof_sentence(total, unit))
        if len(ladder.total.levels) > 1:
            yield doc.aside("At each load", verdict_words.by_load(ladder.total, unit))
    kept = words.and_list([_named(rung) for rung in ladder.kept])
    others = []
    for rung in ladder.rungs:
        verdict = rung.reported
        ratio = f" {verdict_words.ratio_words(verdict)}" if verdict is not None and verdict.has_ratio else ""
        others += [] if rung.kept else [f"{rung.change}{ratio}: {fate(rung)}"]
    given_up = [f"{rung.change}: {words.strip(rung.gives_up)}" for rung in ladder.kept if rung.gives_up]
    for title, text in (("Kept", kept), ("Not kept", "; ".join(others)), ("Given up for it", "; ".join(given_up))):
        yield doc.aside(title, text and f"{text}.")
    yield doc.aside("To copy", *ladder.to_copy, only="screen")
    yield doc.aside("Next", next_step(ladder), look="next")
    yield doc.brief_quality(ladder.quality)


def _ladder(ladder: Ladder) -> Iterator[doc.Block]:
    columns = (
        "Change",
        doc.Column("What changes", only="page"),
        doc.Column("Against the state before", "Against before"),
        doc.Column("Share of the whole", "Share"),
        doc.Column("Lost at the top without it", "Lost without it"),
        "Outcome",
    )
    rows = []
    for rung in ladder.rungs:
        cells = (
            doc.Span(rung.change, "code"),
            doc.code_list([change_words.change(change) for change in rung.changes]),
            verdict_words.ratio_words(rung.reported),
            rounding.percent(rung.share),
            verdict_words.ratio_words(rung.at_top),
            fate(rung, keeps_all=ladder.keeps_all),
        )
        rows.append(doc.Row(cells, "" if rung.kept else "quiet"))
    yield doc.Table(columns, rows)
    yield doc.Prose(NOTE + ("" if ladder.keeps_all else REVERTED), "note")
    refusals = [f"The target does not work with {rung.change}: {rung.refused}" for rung in ladder.rungs if rung.refused]
    for text in (*refusals, *map(interaction_sentence, ladder.interactions)):
        yield doc.Prose(words.sentence(text))


def _threads(ladder: Ladder) -> Iterator[doc.Block]:
    uses = states(ladder)
    if not uses:
        return
    yield from map(doc.Prose, sentences(ladder))
    rows = []
    for use in uses:
        shown = map(_shown, (use.threads, use.kinds, use.components))
        rows.append((use.state or "at the start", *shown, rounding.percent(use.busy)))
    heads = ("State", "Busiest thread of each", "Threads by kind, average", "CPUs used", "Machine")
    yield doc.Table(heads, rows)
    at = " at the highest level" if len(ladder.study.levels) > 1 else ""
    yield doc.Prose(
        f"CPU time in CPUs, medians over the steps of each state{at}: 1.00 is one CPU all the time. A component may "
        "have more threads than one. Machine: of all its CPUs.",
        "note",
    )


def lines(ladder: Ladder) -> tuple[str, ...]:
    count, kept = len(ladder.rungs), len(ladder.kept)
    names = words.and_list([rung.change for rung in ladder.kept])
    if not ladder.finished:
        until = f" Better until then: {names}." if names else ""
        return (f"Stopped after {counted(count, 'change')}.{until}",)
    if ladder.total is None:
        return (f"None of the {count} changes is proven to be better than the state before it; all were reverted.",)
    unit = ladder.study.load_unit
    if gain := verdict_words.led_gain(ladder.total.reported, unit):
        lines = [f"Set {_named(ladder.kept[0]) if kept == 1 else names}: {gain}."]
    else:
        sentence = words.strip(verdict_words.gain_sentence(ladder.total.reported, unit))
        lines = [words.sentence(f"{sentence}: {kept} of {count} changes {'is' if kept == 1 else 'are'} kept")]
    if cost := "; ".join(words.strip(rung.gives_up) for rung in ladder.kept if rung.gives_up):
        lines.append(words.sentence(cost))
    shares = [(rung.share, rung.change) for rung in ladder.kept if rung.share is not None]
    if shares and kept > 1:
        share, change = max(shares)
        lines.append(f"The largest share, {rounding.percent(share)}, is that of {change}.")
    return tuple(lines)


def answer(ladder: Ladder) -> str:
    return " ".join(lines(ladder))


def _named(rung: Rung) -> str:
    changes = words.and_list([change_words.change(change) for change in rung.changes])
    return f"{rung.change} ({changes})" if changes else rung.change


def next_step(ladder: Ladder) -> str:
    if not ladder.finished:
        return f"Run it again to finish it; the finished steps are kept in {ladder.run}."
    unsure = [rung.change for rung in ladder.rungs if not rung.kept and rung.reported and not rung.reported.decided]
    more = ""
    if unsure:
        give = "gives" if len(unsure) == 1 else "give"
        more = f" More time (measure.budget) may tell what {words.and_list(unsure)} {give}."
    if ladder.total is None:
        return f"Leave the settings as they are.{more} Next, loadframe investigate names what limits."
    return f"Set what is kept.{more} Next, loadframe investigate with these settings names what limits now."


def fate(rung: Rung, *, keeps_all: bool = False) -> str:
    if rung.refused:
        return "refused by the target"
    if rung.reported is None:
        return "kept" if rung.kept else "reverted"
    decision, shown = rung.reported.decision, verdict_words.DECISIONS[rung.reported.decision]
    if not rung.kept:
        return f"{shown}: reverted"
    if decision == "better":
        return f"kept, {verdict_words.MAY_OVERSTATE}" if rung.reported.may_overstate else "kept"
    if keeps_all:
        return f"kept anyway: {shown}"
    return "kept: worse in fresh blocks" if decision == "worse" else "kept: not proven again"


def interaction_sentence(interaction: Interaction) -> str:
    much = f"{interaction.change} is worth {verdict_words.ratio_words(interaction.verdict)} as much as"
    if interaction.partner is None:
        return f"At the top, {much} at its place in the order: later changes alter what it gives"
    together = "depend on each other" if interaction.verdict.decision == "better" else "overlap"
    return f"With {interaction.partner}, {much} without it: they {together}"
