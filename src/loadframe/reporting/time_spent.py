"""What is used, by the USE method (Gregg, CACM 56(2), 2013), and where the time goes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from loadframe.model import Investigation, Profile, ProfileKind
from loadframe.reporting import curve_report, facts, finding_words, flame, plots, verdict_words, waits, words
from loadframe.reporting import document as doc
from loadframe.reporting.html import element, joined
from loadframe.units import show_metric

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
    yield doc.Group(tuple(map(doc.Prose, flame.summary(inv))), only="text")
    shown: list[doc.Block] = [*_tables(inv), *_drawings(inv)]
    rest = (flame.rest_sentence(inv, profile) for profile in flame.of_kind(inv, "cpu", "rest"))
    shown += (doc.Prose(words.sentence(text), "note") for text in rest)
    shown.append(doc.Items(tuple(flame.missing_sentences(inv))))
    yield doc.Group(tuple(shown), only="page")


def _tables(inv: Investigation) -> Iterator[doc.Block]:
    for kind, title in TABLES.items():
        shown = flame.of_kind(inv, kind)
        heads = (doc.Column(""), *doc.numbers(*(flame.where(inv, profile) for profile in shown)))
        rows: list[doc.Cells] = []
        for name, shares in flame.rows(shown):
            if kind == "threads":
                rows.append((name, *map(flame.threads, shares)))
                continue
            costs = ((flame.share(share), flame.demand(share)) for share in shares)
            rows.append((name, *((of, doc.Span(f"{cost} per request", "below")) if cost else of for of, cost in costs)))
        yield doc.Group((doc.Table(heads, tuple(rows), "figures"),), heading=title)


def _drawings(inv: Investigation) -> Iterator[doc.Block]:
    difference = flame.pair_of(inv)
    if difference is not None:
        before, after = map(flame.quality_sentence, (difference.before, difference.after))
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
    for number, profile in enumerate(flame.with_flame(inv), start=1):
        name = f"Flame graph of the {profile.component}"
        where = flame.where(inv, profile)
        drawn = doc.Drawing(
            f"flame-{number}",
            words.sentence(flame.cpu_sentence(inv, profile)),
            _choice(inv, profile, number),
            flame.svg(profile, label=f"{name}, {where}"),
            f"{words.sentence(flame.quality_sentence(profile))} {READING}",
        )
        unfolded = "open" if number == 1 and difference is None else ""
        yield doc.Group((drawn,), unfolded, summary=f"{name}: {where}")


SAME = ("same", verdict_words.NO_DIFFERENCE)


def _choice(inv: Investigation, profile: Profile, number: int) -> Markup:
    classes = _legend("class", *((f"k-{share.id}", share.title) for share in profile.classes))
    if not profile.against:
        return classes
    against = f"coloured by change from {flame.baseline_words(inv, profile)}"
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


@dataclass(frozen=True, slots=True)
class Resource:
    """use, saturation, errors: candidate metrics, of which the first measured one is shown. high: use from which on it
    is highlighted."""

    name: str
    use: tuple[str, ...]
    saturation: tuple[str, ...]
    errors: tuple[str, ...]
    high: float = 0.9


RESOURCES = (
    Resource(
        "CPUs of the machine",
        ("system.cpu.utilization",),
        ("system.pressure.cpu.some", "system.processes.running"),
        ("system.cpu.throttles",),
        0.95,
    ),
    Resource("CPUs of the target", ("target.cpu.utilization", "target.cpu.cores"), ("target.cpu.run_delay",), (), 0.95),
    Resource("Busiest thread of the target", ("target.cpu.hottest_thread",), (), (), 0.95),
    Resource(
        "Memory of the machine",
        ("system.memory.utilization",),
        ("system.pressure.memory.some", "system.paging.direct_stalls"),
        (),
    ),
    Resource(
        "Memory of the target",
        ("target.memory.rss",),
        ("target.paging.major_faults",),
        ("target.cage.memory.oom_kills",),
        math.inf,
    ),
    Resource("Busiest disk", ("system.disk.busy",), ("system.disk.queue", "system.pressure.io.some"), (), 0.7),
    Resource("Open files of the target", ("target.open_files.share", "target.open_files"), (), (), 0.8),
    Resource(
        "Connections to the target",
        ("target.accept_queue.share",),
        ("target.accept_queue.waiting",),
        ("system.network.listen_overflows", "system.network.listen_drops"),
        0.8,
    ),
    Resource("TCP of the machine", ("system.network.tcp_memory",), (), ("system.network.retransmits",), math.inf),
    Resource("Lock that one request holds", ("workload.lock_held",), ("workload.lock_waiting",), ()),
    Resource(
        "Load driver",
        ("driver.cpu.utilization", "driver.cpu.cores"),
        ("driver.cpu.run_delay",),
        ("workload.errors",),
    ),
)


def metrics() -> frozenset[str]:
    of_resources = (name for resource in RESOURCES for name in (*resource.use, *resource.saturation, *resource.errors))
    return frozenset((*of_resources, *waits.METRICS))


def use(inv: Investigation) -> Iterator[doc.Block]:
    """Resources with any value but zero, at the highest level at which every shown state was measured."""
    measured = [facts.by_level(state.round) for state in plots.measured_ends(inv)]
    levels = set.intersection(*map(set, measured)) if measured else set()
    if not levels:
        return
    at = max(levels)
    states, to = [facts.means(by_level[at]) for by_level in measured], curve_report.address(inv.rounds[0], at)
    rows: list[doc.Cells] = []
    for resource in RESOURCES:
        quantities = ((resource.use, resource.high), (resource.saturation, math.inf), (resource.errors, math.inf))
        if any(state.get(name) for names, _ in quantities for name in _first(names, states) for state in states):
            rows.append((resource.name, *(_cell(names, states, high, to) for names, high in quantities)))
    sides = ", before \u2192 after the changes" if len(states) > 1 else ""
    where = f"At {words.load(at, inv.study.load_unit)}{sides}"
    note = f"{where}. Averages of the steps there. Resources whose numbers are all 0 are left out."
    table = doc.Table(("Resource", "Use", "Saturation", "Errors"), tuple(rows), "stack resources")
    if rows:
        yield doc.Group((doc.Prose(note, "note"), table), heading="Use, saturation, errors", only="page")


def _first(names: Sequence[str], states: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    return tuple(name for name in names if any(name in state for state in states))[:1]


def _cell(names: Sequence[str], states: Sequence[Mapping[str, float]], high: float, to: str) -> doc.Words:
    for name in _first(names, states):
        shown = [
            # seconds of waiting per second are the average number of waiting threads
            show_metric(name, state[name]).replace(" s/s", " threads") if name in state else "not measured"
            for state in states
        ]
        loud = name == names[0] and any(state.get(name, 0.0) >= high for state in states)
        what = words.sentence(finding_words.metric_words(name))[:-1]
        return doc.Span(" \u2192 ".join(shown), "high" if loud else "", to), doc.Span(what, "below")
    return doc.Span("not counted", "note")
