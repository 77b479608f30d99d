"""Where the time goes, as blocks of a document: what the profiles say, and their flame graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from loadframe.model import Investigation, Profile, ProfileKind
from loadframe.reporting import document as doc
from loadframe.reporting import flame, profiles, verdict_words, words
from loadframe.reporting.markup import element, joined

TABLES: Mapping[ProfileKind, str] = {
    "cpu": "CPU time of the target, by what it was spent on",
    "threads": "Threads of the target on average, by what they were doing",
}
SHARES = (
    "Colours compare shares of the CPU time, not its amount: a larger share may still cost less. A box is as wide as "
    "the mean of its two shares, so that what vanished is still seen."
)
READING = (
    "A box is as wide as its share of the samples, callers stand below what they called; point at a box for its name, "
    "click it to enlarge it. The sampled steps are extra: no curve or verdict uses them."
)


def blocks(inv: Investigation) -> Iterator[doc.Block]:
    """In a text the largest classes in a sentence; on a page tables and flame graphs."""
    if told := profiles.summary(inv):
        yield doc.Group(tuple(map(doc.Prose, told)), only="text")
    shown: list[doc.Block] = [*_tables(inv), *_drawings(inv)]
    rest = (profiles.rest_sentence(inv, one) for one in profiles.of_kind(inv, "cpu", "rest"))
    shown += (doc.Prose(words.sentence(text), "note") for text in rest)
    if inv.profile_missing:
        shown.append(doc.Items(tuple(map(words.sentence, profiles.missing_sentences(inv)))))
    if shown:
        yield doc.Group(tuple(shown), only="page")


def _tables(inv: Investigation) -> Iterator[doc.Block]:
    for kind, title in TABLES.items():
        shown = profiles.of_kind(inv, kind)
        heads = (doc.Column(""), *doc.numbers(*(profiles.where(inv, one) for one in shown)))
        rows: list[doc.Cells] = []
        for name, shares in profiles.rows(shown):
            if kind == "threads":
                rows.append((name, *map(profiles.threads, shares)))
                continue
            costs = ((profiles.share(share), profiles.demand(share)) for share in shares)
            rows.append((name, *((of, doc.Span(f"{cost} per request", "below")) if cost else of for of, cost in costs)))
        if shown:
            yield doc.Group((doc.Table(heads, tuple(rows), "figures"),), heading=title)


def _drawings(inv: Investigation) -> Iterator[doc.Block]:
    difference = flame.pair_of(inv)
    if difference is not None:
        before, after = map(profiles.quality_sentence, (difference.before, difference.after))
        quality = words.sentence(f"{before} before; {after} after")
        drawn = doc.Drawing(
            "flame-difference",
            words.sentence(flame.difference_sentence(inv, difference)),
            _legend("", ("up3", "a larger share after"), ("down3", "a smaller share after"), SAME),
            flame.difference_svg(inv, difference),
            f"{SHARES} {quality}",
            "flame-difference",
        )
        yield doc.Group((drawn,), heading="CPU time, before against after")
    for number, one in enumerate(profiles.with_flame(inv), start=1):
        name = f"Flame graph of the {one.component}"
        where = profiles.where(inv, one)
        drawn = doc.Drawing(
            f"flame-{number}",
            words.sentence(profiles.cpu_sentence(inv, one)),
            _choice(inv, one, number),
            flame.svg(one, label=f"{name}, {where}"),
            f"{words.sentence(profiles.quality_sentence(one))} {READING}",
        )
        unfolded = "open" if number == 1 and difference is None else ""
        yield doc.Group((drawn,), unfolded, summary=f"{name}: {where}")


SAME = ("same", verdict_words.NO_DIFFERENCE)


def _choice(inv: Investigation, one: Profile, number: int) -> Markup:
    classes = _legend("class", *((f"k-{share.id}", share.title) for share in one.classes))
    if not one.against:
        return classes
    against = f"coloured by change from {profiles.baseline_words(inv, one)}"
    buttons = []
    for kind, label in (("change", against), ("class", "by class of work")):
        name, chosen = f"by-{kind}-{number}", {"checked": "checked"} if kind == "change" else {}
        radio = {"type": "radio", "name": f"colours-{number}", "id": name, "class": f"by-{kind}", **chosen}
        buttons.append(element("input", radio) + element("label", {"for": name}, label))
    changes = _legend("change", ("up3", "costs more per request"), ("down3", "costs less"), SAME)
    return joined(*buttons, changes, classes)


def _legend(look: str, *colours: tuple[str, str]) -> Markup:
    boxes = (element("span", {"class": name}, text) for name, text in colours)
    return element("p", {"class": f"legend {look}".rstrip()}, *boxes)
