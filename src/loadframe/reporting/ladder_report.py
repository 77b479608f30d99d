"""A ladder as a document: the gain of each change, what was reverted, interactions, and the busiest threads."""

from collections.abc import Iterator, Sequence

from loadframe.model import CpuUse, Interaction, Ladder, Rung, StateUse, Verdict
from loadframe.progress import counted
from loadframe.reporting import change_words, rounding, verdict_words, words
from loadframe.reporting import document as doc

FULL = 0.9
"""Share of one CPU, or of a component's CPUs, that counts as full; our choice, as in the signatures of hot threads."""
TOLD = 0.02


def states(ladder: Ladder) -> tuple[StateUse, ...]:
    return tuple(use for use in ladder.cpu_use if use.threads or use.components)


def sentences(ladder: Ladder) -> Iterator[str]:
    """The busiest thread at the start and with everything kept; where nothing was kept, over the tried states."""
    uses = states(ladder)
    first = next((use for use in uses if not use.state), None)
    if first is None:
        return
    yield f"At the start {_limit(first)}"
    kept = " + ".join(rung.change for rung in ladder.kept)
    top = next((use for use in uses if kept and use.state == kept), None)
    if top is not None:
        yield f"With all that is kept {_limit(top)}"
    tried = [use.threads[0] for use in uses if use.state and use.threads]
    if not kept and tried:
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
    share = rounding.percent(use.busy or 0.0)
    others = use.others or 0.0
    return f"{share} busy" + (f", {rounding.percent(others)} by programs outside the study" if others >= TOLD else "")


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


def _asides(ladder: Ladder) -> Iterator[doc.Aside]:
    if ladder.total is not None:
        unit, total = ladder.study.load_unit, ladder.total.reported
        about = f"the throughput, all kept changes together, {verdict_words.verdict_levels(total, unit)}"
        lines = [text for text in (about, verdict_words.confident_interval(total)) if text]
        yield doc.Aside(doc.Span(verdict_words.headline(total), to="#ladder"), tuple(lines), "gain", "page")
        yield doc.Aside("Proof", (proof(ladder, total),))
        if len(ladder.total.levels) > 1:
            yield doc.Aside("At each load", (verdict_words.by_load(ladder.total, unit),))
    kept = words.and_list([_named(rung) for rung in ladder.kept])
    others = []
    for rung in (rung for rung in ladder.rungs if not rung.kept):
        ratio = (
            f" {verdict_words.ratio_words(rung.reported)}"
            if rung.reported is not None and rung.reported.has_ratio
            else ""
        )
        others.append(f"{rung.change}{ratio}: {fate(rung, keeps_all=ladder.keeps_all)}")
    given_up = [f"{rung.change}: {words.strip(rung.gives_up)}" for rung in ladder.kept if rung.gives_up]
    for title, text in (("Kept", kept), ("Not kept", "; ".join(others)), ("Given up for it", "; ".join(given_up))):
        if text:
            yield doc.Aside(title, (f"{text}.",))
    yield doc.Aside("To copy", ladder.to_copy, only="screen")
    yield doc.Aside("Next", (next_step(ladder),), "next")
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
    yield doc.Table(columns, tuple(_row(rung, keeps_all=ladder.keeps_all) for rung in ladder.rungs))
    yield doc.Prose(NOTE + ("" if ladder.keeps_all else REVERTED), "note")
    refusals = [f"The target does not work with {rung.change}: {rung.refused}" for rung in ladder.rungs if rung.refused]
    for text in (*refusals, *map(interaction_sentence, ladder.interactions)):
        yield doc.Prose(words.sentence(text))


def _row(rung: Rung, *, keeps_all: bool) -> doc.Row:
    cells = (
        doc.Span(rung.change, "code"),
        doc.code_list([change_words.change(change) for change in rung.changes]),
        "" if rung.reported is None else verdict_words.ratio_words(rung.reported),
        "" if rung.share is None else rounding.percent(rung.share),
        "" if rung.at_top is None else verdict_words.ratio_words(rung.at_top),
        fate(rung, keeps_all=keeps_all),
    )
    return doc.Row(cells, "" if rung.kept else "quiet")


def _threads(ladder: Ladder) -> Iterator[doc.Block]:
    uses = states(ladder)
    if not uses:
        return
    yield from map(doc.Prose, sentences(ladder))
    rows = (
        (
            use.state or "at the start",
            _shown(use.threads),
            _shown(use.kinds),
            _shown(use.components),
            "" if use.busy is None else rounding.percent(use.busy),
        )
        for use in uses
    )
    heads = ("State", "Busiest thread of each", "Threads by kind, average", "CPUs used", "Machine")
    yield doc.Table(heads, tuple(rows))
    at = " at the highest level" if len(ladder.study.levels) > 1 else ""
    yield doc.Prose(
        f"CPU time in CPUs, medians over the steps of each state{at}: 1.00 is one CPU all the time. A component may "
        "have more threads than one. Machine: of all its CPUs.",
        "note",
    )


def lines(ladder: Ladder) -> tuple[str, ...]:
    if not ladder.finished:
        better = words.and_list([rung.change for rung in ladder.kept])
        until = f" Better until then: {better}." if better else ""
        return (f"Stopped after {counted(len(ladder.rungs), 'change')}.{until}",)
    count, kept = len(ladder.rungs), len(ladder.kept)
    if ladder.total is None:
        return (f"None of the {count} changes is proven to be better than the state before it; all were reverted.",)
    unit, names = ladder.study.load_unit, words.and_list([rung.change for rung in ladder.kept])
    gain = verdict_words.led_gain(ladder.total.reported, unit)
    said = f"Set {_named(ladder.kept[0]) if kept == 1 else names}: {gain}."
    if not gain:
        sentence = words.strip(verdict_words.gain_sentence(ladder.total.reported, unit))
        said = words.sentence(f"{sentence}: {kept} of {count} changes {'is' if kept == 1 else 'are'} kept")
    shares = [(rung.share, rung.change) for rung in ladder.kept if rung.share is not None]
    largest = max(shares, default=None) if kept > 1 else None
    cost = "; ".join(words.strip(rung.gives_up) for rung in ladder.kept if rung.gives_up)
    share = f"The largest share, {rounding.percent(largest[0])}, is that of {largest[1]}." if largest else ""
    return tuple(line for line in (said, cost and words.sentence(cost), share) if line)


def answer(ladder: Ladder) -> str:
    return " ".join(lines(ladder))


def proof(ladder: Ladder, total: Verdict) -> str:
    if "product" in total.method:
        return "It is the product of the trials, which decided what is kept: it may be overstated."
    return verdict_words.proof_sentence(total, ladder.study.load_unit)


def _named(rung: Rung) -> str:
    changes = words.and_list([change_words.change(change) for change in rung.changes])
    return f"{rung.change} ({changes})" if changes else rung.change


def next_step(ladder: Ladder) -> str:
    if not ladder.finished:
        return f"Run it again to finish it; the finished steps are kept in {ladder.run}."
    unsure = [rung.change for rung in ladder.rungs if not rung.kept and rung.reported and not rung.reported.decided]
    more = (
        f" More time (measure.budget) may tell what {words.and_list(unsure)} give{'s' if len(unsure) == 1 else ''}."
        if unsure
        else ""
    )
    if ladder.total is None:
        return f"Leave the settings as they are.{more} Next, loadframe investigate names what limits."
    return f"Set what is kept.{more} Next, loadframe investigate with these settings names what limits now."


def fate(rung: Rung, *, keeps_all: bool = False) -> str:
    if rung.refused:
        return "refused by the target"
    if rung.kept:
        verdict = rung.reported
        if verdict is None or verdict.decision == "better":
            return f"kept, {verdict_words.MAY_OVERSTATE}" if verdict and verdict.may_overstate else "kept"
        if keeps_all:
            return f"kept anyway: {verdict_words.DECISIONS[verdict.decision]}"
        return "kept: worse in fresh blocks" if verdict.decision == "worse" else "kept: not proven again"
    return f"{verdict_words.DECISIONS[rung.reported.decision]}: reverted" if rung.reported is not None else "reverted"


def interaction_sentence(interaction: Interaction) -> str:
    much = f"{interaction.change} is worth {verdict_words.ratio_words(interaction.verdict)} as much as"
    if interaction.partner is None:
        return f"At the top, {much} at its place in the order: later changes alter what it gives"
    together = "depend on each other" if interaction.verdict.decision == "better" else "overlap"
    return f"With {interaction.partner}, {much} without it: they {together}"
