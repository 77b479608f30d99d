"""What profiles say, in sentences and rows that text and page share."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.model import ClassShare, Investigation, Profile, ProfileKind
from loadframe.progress import counted
from loadframe.reporting import rounding, words

PLACES = {
    "below": "below the bend",
    "past": "past the bend",
    "lowest": "at the lowest level",
    "highest": "at the highest level",
}
BASELINES = {**PLACES, "below": "what it costs below the bend", "lowest": "the lowest level"}
HIGH = ("past", "highest")
MOST_CLASSES = 3
SMALL = 0.02
"""Classes below this share are not worth a word in a sentence; the table has them all."""


def of_kind(inv: Investigation, kind: ProfileKind, component: str = "target") -> tuple[Profile, ...]:
    """The profiles of one kind and component, in the order in which they were taken."""
    return tuple(one for one in inv.profiles if (one.kind, one.component) == (kind, component))


def where(inv: Investigation, profile: Profile) -> str:
    """ "past the bend, at 64 active jobs, after the changes"."""
    level = words.load(profile.level, words.axis_unit(inv))
    after = ", after the changes" if inv.rounds and profile.treatment != inv.rounds[0].treatment else ""
    if profile.place in ("lowest", "highest"):
        return f"{PLACES[profile.place]}, {level}{after}"
    return f"{PLACES[profile.place]}, at {level}{after}"


def rows(profiles: Sequence[Profile]) -> list[tuple[str, list[ClassShare | None]]]:
    """The title of every class that occurs, the largest anywhere first, and its share in each profile."""
    by_class = [{one.id: one for one in profile.classes} for profile in profiles]
    largest: dict[str, ClassShare] = {}
    for found in by_class:
        for class_id, one in found.items():
            if class_id not in largest or one.share > largest[class_id].share:
                largest[class_id] = one
    ranked = sorted(largest.values(), key=lambda one: -one.share)
    return [(one.title, [found.get(one.id) for found in by_class]) for one in ranked]


def share(one: ClassShare | None) -> str:
    """ "31 % (28 to 34)"; empty for nothing."""
    if one is None:
        return ""
    if not rounding.has_width(one.low, one.high):
        return rounding.percent(one.share)
    low, high = (rounding.percent(end).removesuffix(" %") for end in (one.low, one.high))
    return f"{rounding.percent(one.share)} ({low} to {high})"


def demand(one: ClassShare | None) -> str:
    """CPU time per request; empty where it is not known."""
    return cost(one.demand_ms) if one is not None and one.demand_ms is not None else ""


def cost(value_ms: float) -> str:
    """ "140 µs"; from a millisecond on "1.4 ms"."""
    return words.milliseconds(value_ms) if value_ms >= 1 else f"{rounding.plain(1000 * value_ms)} µs"


def threads(one: ClassShare | None) -> str:
    """Threads on average."""
    return rounding.plain(one.amount) if one is not None else ""


def demand_ms(profile: Profile) -> float | None:
    """CPU time per request, all classes together; None where no request was done."""
    parts = [one.demand_ms for one in profile.classes if one.demand_ms is not None]
    return sum(parts) if parts else None


def cpu_sentence(inv: Investigation, profile: Profile) -> str:
    """Where the CPU time of one profile went, the largest classes first, and what a request cost."""
    named = [one for one in profile.classes if one.share >= SMALL][:MOST_CLASSES]
    parts = ", ".join(f"{one.title} {share(one)}" for one in named)
    total = demand_ms(profile)
    price = f"; a request costs {cost(total)} of CPU" if total is not None else ""
    return f"{where(inv, profile)}, the {profile.component}'s CPU time is {parts}{price}{_changes(inv, profile)}"


def _changes(inv: Investigation, profile: Profile) -> str:
    """What costs more or less per request than in the baseline, beyond chance; empty for nothing."""
    changed = [one for one in profile.classes if one.change is not None and one.share >= SMALL][:MOST_CLASSES]
    if not changed:
        return ""
    parts = ", ".join(f"{rounding.plain(one.change or 0.0)} times in {one.title}" for one in changed)
    return f", against {baseline_words(inv, profile)} {parts}"


def threads_sentence(inv: Investigation, profile: Profile) -> str:
    """What the target's threads did, on average."""
    named = [one for one in profile.classes if one.share >= SMALL][:MOST_CLASSES]
    parts = ", ".join(f"{threads(one)} {one.title}" for one in named)
    total = rounding.plain(sum(one.amount for one in profile.classes))
    return f"{where(inv, profile)}, of {total} threads on average: {parts}"


def rest_sentence(inv: Investigation, profile: Profile) -> str:
    """What else ran meanwhile, by the names of its threads."""
    cores = sum(one.amount for one in profile.classes)
    roots = sorted((box for box in profile.flame if box.depth == 0), key=lambda box: -box.width)
    names = ", ".join(f"{box.name} {rounding.percent(box.width)}" for box in roots[:MOST_CLASSES])
    most = f" ({names} of it)" if names else ""
    return f"{where(inv, profile)}, everything else on the machine used {rounding.plain(cores)} CPUs{most}"


def quality_sentence(profile: Profile) -> str:
    """How far the samples can be trusted."""
    said = [f"{counted(profile.samples, 'sample')} in {rounding.seconds(profile.seconds)}"]
    if profile.unresolved_share:
        said.append(f"{rounding.percent(profile.unresolved_share)} of them in functions without a name")
    if profile.truncated_share:
        said.append(f"{rounding.percent(profile.truncated_share)} with their outermost callers cut off")
    if profile.lost:
        said.append(f"{profile.lost:,} more were lost")
    return ", ".join(said)


def with_flame(inv: Investigation) -> tuple[Profile, ...]:
    """CPU profiles to draw: the target's, past the bend first, then the others as taken; then the driver's past it."""
    driver = [one for one in of_kind(inv, "cpu", "driver") if one.place in HIGH][:1]
    target = sorted(of_kind(inv, "cpu"), key=lambda one: one.place not in HIGH)
    return tuple(one for one in (*target, *driver) if one.flame)


def baseline_words(inv: Investigation, profile: Profile) -> str:
    """What a flame graph's changes are against; empty for nothing."""
    base = profile.against
    if base is None:
        return ""
    level = words.load(base.level, words.axis_unit(inv))
    return "the state as given" if base.treatment != profile.treatment else f"{BASELINES[base.place]} ({level})"


def missing_sentences(inv: Investigation) -> tuple[str, ...]:
    """What could not be sampled, and how to get it."""
    return tuple(f"not sampled: {one.what} ({words.strip(one.how_to_get_it)})" for one in inv.profile_missing)


def summary(inv: Investigation) -> list[str]:
    """For a screen: the state as given past the bend, its CPU time or else its threads, and what is missing."""
    cpu = [cpu_sentence(inv, one) for one in of_kind(inv, "cpu") if one.place in HIGH]
    states = [threads_sentence(inv, one) for one in of_kind(inv, "threads") if one.place in HIGH]
    lines = (cpu or states)[:1]
    return [words.sentence(line) for line in (*lines, *missing_sentences(inv))]
