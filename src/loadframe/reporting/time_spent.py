"""What is used, by the USE method (Gregg, CACM 56(2), 2013), and where the time goes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from markupsafe import Markup

from loadframe.model import ClassShare, Investigation, Profile, ProfileKind
from loadframe.reporting import curve_report, facts, finding_words, flame, plots, rounding, verdict_words, waits, words
from loadframe.reporting import document as doc
from loadframe.reporting.html import element, joined
from loadframe.units import show_metric

SHARES = (
    "Colours compare shares of the CPU time, not its amount: a larger share may still cost less. A box is as wide as "
    "the mean of its two shares, so that what vanished is still seen."
)
READING = (
    "A box is as wide as its share of the samples, callers stand below what they called; point at a box for its name, "
    "click it to enlarge it. The sampled steps are extra: no curve or verdict uses them."
)


def blocks(inv: Investigation) -> Iterator[doc.Block]:
    yield doc.Group([*map(doc.Prose, flame.summary(inv))], only="text")
    shown: list[doc.Block] = []
    for kind, (title, cell) in TABLES.items():
        profiles = flame.of_kind(inv, kind)
        heads = (doc.Column(""), *doc.numbers(*(flame.where(inv, profile) for profile in profiles)))
        rows = [(name, *map(cell, shares)) for name, shares in flame.rows(profiles)]
        shown.append(doc.Group((doc.Table(heads, rows, "figures"),), heading=title))
    shown += drawings(inv)
    for profile in flame.of_kind(inv, "cpu", "rest"):
        cores = rounding.plain(sum(class_share.amount for class_share in profile.classes))
        roots = sorted((box for box in profile.flame if box.depth == 0), key=lambda box: -box.width)
        names = ", ".join(f"{box.name} {rounding.percent(box.width)}" for box in roots[: flame.MOST_CLASSES])
        most = f" ({names} of it)" if names else ""
        text = f"{flame.where(inv, profile)}, everything else on the machine used {cores} CPUs{most}"
        shown.append(doc.Prose(words.sentence(text), "note"))
    shown.append(doc.Items(flame.missing_sentences(inv)))
    yield doc.Group(shown, only="page")


def _cpu_share(share: ClassShare | None) -> doc.Words:
    if share is None or share.demand_ms is None:
        return flame.share(share)
    return flame.share(share), doc.Span(f"{flame.cost(share.demand_ms)} per request", "below")


TABLES: Mapping[ProfileKind, tuple[str, Callable[[ClassShare | None], doc.Words]]] = {
    "cpu": ("CPU time of the target, by what it was spent on", _cpu_share),
    "threads": ("Threads of the target on average, by what they were doing", flame.threads),
}


def drawings(inv: Investigation) -> Iterator[doc.Group]:
    difference = flame.pair_of(inv)
    if difference is not None:
        before, after = map(flame.quality_sentence, (difference.before, difference.after))
        quality = words.sentence(f"{before} before; {after} after")
        caption = words.sentence(flame.difference_sentence(inv, difference))
        legend = _legend("", ("up3", "a larger share after"), ("down3", "a smaller share after"), SAME)
        svg, name = flame.difference_svg(inv, difference), "flame-difference"
        drawn = doc.Drawing(name, caption, legend, svg, f"{SHARES} {quality}", name)
        yield doc.Group((drawn,), heading="CPU time, before against after")
    for number, profile in enumerate(flame.with_flame(inv), start=1):
        name, where = f"Flame graph of the {profile.component}", flame.where(inv, profile)
        caption = words.sentence(flame.cpu_sentence(inv, profile))
        note = f"{words.sentence(flame.quality_sentence(profile))} {READING}"
        svg = flame.svg(profile, label=f"{name}, {where}")
        drawn = doc.Drawing(f"flame-{number}", caption, _choice(inv, profile, number), svg, note)
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


RESOURCES = """
CPUs of the machine: system.cpu.utilization > 0.95 | system.pressure.cpu.some system.processes.running
    | system.cpu.throttles
CPUs of the target: target.cpu.utilization target.cpu.cores > 0.95 | target.cpu.run_delay |
Busiest thread of the target: target.cpu.hottest_thread > 0.95 | |
Memory of the machine: system.memory.utilization > 0.9 | system.pressure.memory.some system.paging.direct_stalls |
Memory of the target: target.memory.rss > inf | target.paging.major_faults | target.cage.memory.oom_kills
Busiest disk: system.disk.busy > 0.7 | system.disk.queue system.pressure.io.some |
Open files of the target: target.open_files.share target.open_files > 0.8 | |
Connections to the target: target.accept_queue.share > 0.8 | target.accept_queue.waiting
    | system.network.listen_overflows system.network.listen_drops
TCP of the machine: system.network.tcp_memory > inf | | system.network.retransmits
Lock that one request holds: workload.lock_held > 0.9 | workload.lock_waiting |
Load driver: driver.cpu.utilization driver.cpu.cores > 0.9 | driver.cpu.run_delay | workload.errors
"""
"""Resource: metrics of its use > use from which on it is highlighted | of its saturation | of its errors. Of several
metrics the first measured one is shown."""


def _resources() -> Iterator[tuple[str, float, list[list[str]]]]:
    for row in RESOURCES.replace("\n   ", "").strip().splitlines():
        name, _, columns = row.partition(": ")
        use, *others = columns.split("|")
        used, _, high = use.partition(" > ")
        yield name, float(high), [column.split() for column in (used, *others)]


def metrics() -> frozenset[str]:
    of_resources = (name for _, _, columns in _resources() for names in columns for name in names)
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
    for resource, high, columns in _resources():
        if any(state.get(name) for names in columns for name in _first(names, states) for state in states):
            cells = zip(columns, (high, math.inf, math.inf), strict=True)
            rows.append((resource, *(_cell(names, states, loud, to) for names, loud in cells)))
    sides = ", before \u2192 after the changes" if len(states) > 1 else ""
    where = f"At {words.load(at, inv.study.load_unit)}{sides}"
    note = f"{where}. Averages of the steps there. Resources whose numbers are all 0 are left out."
    table = doc.Table(("Resource", "Use", "Saturation", "Errors"), rows, "stack resources")
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
        what = words.heading(finding_words.metric_words(name))
        return doc.Span(" \u2192 ".join(shown), "high" if loud else "", to), doc.Span(what, "below")
    return doc.Span("not counted", "note")
