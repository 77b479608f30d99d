"""The answer of an investigation in at most three lines, without intervals, then what comes next."""

import math

from loadframe.diagnosis import conclusion
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.sizes import SERVED_AT_A_TIME, SETTING, THE_SETTING
from loadframe.diagnosis.windows import explained
from loadframe.model import (
    OTHERS,
    RATE_AXES,
    ChangeRecord,
    Finding,
    Investigation,
    LevelRatio,
    StateSummary,
    Stop,
    Variant,
)
from loadframe.progress import counted
from loadframe.reporting import alternatives, change_words, facts, latencies, next_step, rounding, verdict_words, words
from loadframe.units import show

NAMED = 2
"""Settings that the answer names; of more, only the last, which the others are for."""
NOT_OF_THE_TARGET = ("driver-limited", "link-full", "stopped-answering", "interrupted")


def answer(inv: Investigation) -> str:
    return " ".join((*lines(inv), next_line(inv))).strip()


def lines(inv: Investigation) -> list[str]:
    """What limits, what to do, what that gains. Alternatives come first, except after what ended the run."""
    sentences, compared = list(filter(None, _lines(inv))), alternatives.lead(inv)
    if compared and inv.outcome.kind in NOT_OF_THE_TARGET:
        sentences.append(compared)
    elif compared:
        sentences = [compared, f"Of {inv.study.target_kind}: {sentences[0]}", *(sentences[1:] if inv.gain else ())]
    if inv.gain is None and inv.stop is None and facts.mostly_disturbed(inv):
        disturbed = f"{facts.disturbed_steps(inv)} of {inv.quality.steps} steps were disturbed from outside"
        sentences.append(f"{disturbed}: run it again on a quieter machine.")
    return sentences


def next_line(inv: Investigation) -> str:
    """ "Next: the table cache, at 420 jobs (suspected)."; "" where `lines` say it, or it is not known."""
    limit, gained = inv.next_limit, inv.outcome.kind == "gained"
    if inv.outcome.kind in NOT_OF_THE_TARGET or (limit is None and not gained) or facts.main_id(inv) == OTHERS:
        return ""
    if limit is None:
        return f"Next: {next_step.none_in_sight(inv)}"
    if next_step.is_named_limit(inv):
        return ""
    unproved = " (suspected)" if next_step.is_suspected(inv, limit) else ""
    before = ", as before" if limit.id == facts.main_id(inv) else ""
    return f"Next: {next_step.next_limit_words(inv, limit)}{before}{unproved}."


def _lines(inv: Investigation) -> list[str]:
    action, state, unit = _action(inv), inv.after or inv.before, inv.study.load_unit
    if inv.stop is not None and inv.outcome.kind == "gained" and inv.variants:
        return [stop_sentence(inv.stop, unit), _what_to_do(inv)[0], _held(inv, inv.stop)]
    match inv.outcome.kind:
        case "gained" if inv.variants:
            return [_limit(inv), *_what_to_do(inv)]
        case "gained":
            return [_limit(inv), words.sentence(inv.outcome.text)]
        case "cpu-saturated":
            busiest = ""
            for program in inv.quality.companions:
                if program.cores >= program.of / 2 and not busiest:
                    used = f"{rounding.plain(program.cores)} of {program.of:g}"
                    busiest = f"; {program.name}, which the target connects to, has {used}"
            limit = f"The CPUs are the limit{_bend(inv)}{busiest}."
            return [limit, words.sentence(next_step.MORE_CPU), _untouched(inv)]
        case "driver-limited":
            drivers = "The load driver is" if inv.drivers is None else f"The {len(inv.drivers.drivers)} drivers are"
            return [f"{drivers} the bottleneck{_bend(inv)}; this run says nothing about the target.", action]
        case "link-full":
            return [f"The link from the target is full{_bend(inv)}; no more is said of the target.", action]
        case "no-limit-reached":
            reached = ""
            if inv.study.levels and state is not None:
                reached = f" up to {words.load(max(inv.study.levels), unit)}: {_peak(inv, state)}"
            return [f"No limit was reached{reached}.", action, _untouched(inv)]
        case "limit-not-seen":
            curve = explained(inv.rounds[-1])
            peak = words.throughput(curve.peak.throughput, inv.study.work_unit)
            seen = "nothing that is seen from outside is exhausted there"
            if facts.mostly_disturbed(inv):
                seen = "what limits it was not judged"
            limit = f"Throughput {words.curve_phrase(curve, unit)} (peak {peak}), and {seen}."
            return [limit, action, _tried(inv)]
        case "no-proven-gain" if inv.unfinished is not None:
            verdict, wait = inv.unfinished.verdict, rounding.seconds(math.ceil(inv.unfinished.more_s))
            gain = f"{verdict_words.ratio(verdict)}x {verdict_words.verdict_levels(verdict, unit)}".strip()
            likely = f"Likely: {inv.unfinished.remedy}, {gain}; not proved. About {wait} more would decide."
            return [_limit(inv), likely]
        case "no-proven-gain":
            return [_limit(inv), action, inv.outcome.text]
        case "limit-without-remedy":
            return [_limit(inv), action]
        case "stopped-answering":
            more = _what_to_do(inv) if inv.variants else [action]
            before = "Below that" if inv.stop is not None and inv.stop.went_on else "Until then"
            return [stop_sentence(inv.stop, unit), f"{before}: {_limit(inv)}", *more]
        case "interrupted":
            return _interrupted(inv)


def _limit(inv: Investigation) -> str:
    if not inv.rounds:
        return "No cause was found."
    first = next(iter(facts.main_findings(inv)), None)
    if first is None:
        return f"Throughput {words.curve_phrase(explained(inv.rounds[0]), inv.study.load_unit)}."
    title, unproved = words.strip(first.title), verdict_words.UNPROVED.get(first.status)
    if first.id == OTHERS:
        return "Other programs had the CPUs while this was measured: the target's own limit was not judged."
    if first.id in GROWTH:
        return words.sentence(f"{unproved}: {title}" if unproved else f"{title}; a restart confirms it")
    return f"{_start(inv, first)}{f'. {unproved}' if unproved else ''}: {_short(title)}."


def _short(title: str) -> str:
    """Of what has the size of a pool only the settings, else the first: "4 requests are served at a time (pool)"."""
    what, bracket, sizes = title.removesuffix(")").partition(" (")
    if not bracket or not title.endswith(")") or SERVED_AT_A_TIME not in what:
        return title
    settings = " or ".join(SETTING.findall(sizes))
    return f"{what} ({f'{THE_SETTING} {settings}' if settings else sizes.partition(';')[0]})"


def _start(inv: Investigation, finding: Finding) -> str:
    unit, curve = inv.study.load_unit, inv.rounds[0].curve
    reached = finding.reached_at
    if reached is None:
        return "Throughput is limited"
    loads = [point.load for point in curve.points]
    bends_nowhere = curve.knee is None and curve.cliff is None
    no_growth = bends_nowhere and curve.peak.load <= min(loads, default=0.0)
    if loads and (reached.low if no_growth else reached.load) <= (lowest := min(loads)):
        if curve.shape == "linear" and curve.peak.load >= max(loads):
            return f"Throughput grows up to {words.load(curve.peak.load, unit)}, but is held back at every load"
        where = words.load(lowest, unit)
        if inv.study.axis in RATE_AXES:
            return f"The lowest rate, {where}, already hits the limit"
        if lowest == 1:
            return f"One {where.removeprefix('1 ')} already hits the limit"
        return f"{where} already hit the limit"
    place = words.about_load(reached, unit)
    if bends_nowhere or (curve.knee is not None and not reached.meets(curve.knee)):
        return f"A limit is reached at {place}"
    return f"Throughput {'drops' if curve.shape in ('cliff', 'decline') else 'stops growing'} at {place}"


def _bend(inv: Investigation) -> str:
    state = inv.after or inv.before
    if state is None:
        return ""
    place = state.bend.load if state.bend else state.knee
    bend = f" from {words.about_load(place, inv.study.load_unit)} on" if place else ""
    return f"{bend}: {_peak(inv, state)}"


def _peak(inv: Investigation, state: StateSummary) -> str:
    return f"throughput peaks at {words.peak(state, inv.study.load_unit, inv.study.work_unit)}"


def _action(inv: Investigation) -> str:
    """Where no change was kept. The limit stands in the line before, another limit in the next line."""
    step = next_step.next_step(inv)
    if facts.main_id(inv) == OTHERS:
        return ""
    if not step.limit or inv.next_limit is None:
        return step.action
    if not next_line(inv) and (moves := next_step.what_moves(inv, inv.next_limit)):
        return moves
    return "" if inv.outcome.kind == "no-proven-gain" else next_step.without_limit(inv).action


def _what_to_do(inv: Investigation) -> list[str]:
    """A line for each variant; a single one has another for its price."""
    first, *more = inv.variants
    unit, kept = inv.study.load_unit, conclusion.kept_trials(inv.rounds)
    safe = " (safe)" if more and not first.gives_up else ""
    do = f"Set {_settings(first.changes, len(kept))}" if first.changes else "Keep the change"
    lines = [f"{do}{safe}: {_gain(first, unit)}.{conclusion.for_no_cause(kept)}"]
    known = first.changes
    for variant in more:
        new = tuple(change for change in variant.changes if change not in known)
        lines.append(f"With {_settings(new, len(kept))} too: {_gain(variant, unit)}.")
        known = variant.changes
    cured = "" if first.gain.decided else words.sentence(kept[-1].note)
    return lines if more else [*lines, cured or _price(inv)]


def _settings(changes: tuple[ChangeRecord, ...], kept: int) -> str:
    """kept: number of remedies; a single one changes the other settings because its last one needs them."""
    settings = [
        f"{change.setting} = {change_words.value(change.setting, change.after)}{change_words.clamped(change)}"
        for change in changes
    ]
    if len(settings) == 1 or (kept > 1 and len(settings) <= NAMED):
        return " and ".join(settings)
    return settings[-1] if change_words.clamped(changes[-1]) else f"{settings[-1]} (with what it needs)"


SMALL = 1.2


def _gain(variant: Variant, unit: str) -> str:
    """At the load of the answer, where else there is none or a gain, and what it gives up."""
    in_turns = [level for level in variant.levels if not level.from_curves]
    at, best = variant.gain, max(in_turns or variant.levels, key=lambda level: level.low)
    times = f"{verdict_words.led_ratio(at)}x" if at.decided else "none" if _is_none(at) else "no proven gain"
    gain = f"{times} at {words.load(at.load, unit)}"
    levels = sorted(variant.levels, key=lambda level: level.load)
    none = [level for level in levels if not level.decided and level is not at and _is_none(level)]
    if at.low > 1 and none:
        lowest, highest = none == levels[: len(none)], rounding.exact(none[-1].load)
        where = f"up to {highest}" if lowest and len(none) > 1 else f"at {highest}"
        if len(none) > NAMED or not (lowest or len(none) == 1):
            where = "at the lowest loads" if lowest else "at some other loads"
        gain += f"; none {where}"
    elif best.low > 1 >= at.low:
        gain = f"{verdict_words.led_ratio(best)}x at {words.load(best.load, unit)}; {gain}"
    return gain + (f", but {words.strip(variant.gives_up.partition(';')[0])}" if variant.gives_up else "")


def _is_none(level: LevelRatio) -> bool:
    return level.low > 1 / SMALL and level.high < SMALL


MORE_MEMORY = 0.1
"""Growth, as a share of the target's memory before, that is worth a line; our choice."""


def _price(inv: Investigation) -> str:
    if slower := latencies.slower(inv):
        return f"{slower.partition(';')[0].rstrip('.')}."
    prices = [trial.remedy.price for trial in conclusion.kept_trials(inv.rounds)]
    sizes = [(price.memory_before_bytes, price.memory_after_bytes) for price in prices]
    more = sum(after - before for before, after in sizes if before is not None and after is not None)
    before = next((size for size, _ in sizes if size), 0.0)
    return f"Memory: {show(more, 'bytes')} more." if more > MORE_MEMORY * before > 0 else ""


def _untouched(inv: Investigation) -> str:
    kept = len(facts.net_changes(inv))
    return f"{kept} changed setting{'s are' if kept > 1 else ' is'} kept." if kept else "Nothing was changed."


def _tried(inv: Investigation) -> str:
    tried = sum(len(round_.tried) for round_ in inv.rounds)
    if tried == 1:
        return "The one change that was tried shows no proven gain; it was put back."
    return f"None of the {tried} changes that were tried shows a proven gain; all were put back." if tried else ""


def stop_sentence(stop: Stop | None, unit: str) -> str:
    if stop is None:
        return ""
    state = f", in another state ({words.strip(stop.state)})," if stop.state else ""
    at = f"At {words.load(stop.level, unit)}{state} the service"
    if stop.full:
        return f"{at} died of memory: {stop.full.partition(',')[0]}."
    if stop.died:
        log = () if stop.died == "SIGKILL" else stop.log  # that left no time to say why
        last = next(filter(None, map(str.strip, reversed(log))), "")
        return f"{at} died ({stop.died}){f'; its last words: {last[:LONGEST_WORDS]!r}' if last else ''}."
    waited = rounding.seconds(stop.waited_s)
    if stop.status:
        return f"{at} failed: it answered {stop.path} with status {stop.status}, and still did {waited} after the load."
    return f"{at} failed: no answer ({stop.why}), also not within {waited} after the load."


LONGEST_WORDS = 80


def _held(inv: Investigation, stop: Stop) -> str:
    level = words.load(stop.level, inv.study.load_unit)
    point = next((point for point in inv.rounds[-1].curve.points if point.load == stop.level), None)
    if point is None or stop.state:
        return f"Whether it holds {level} with that was not measured."
    return f"With that it holds {level}: {words.throughput(point.throughput, inv.study.work_unit)}."


def _interrupted(inv: Investigation) -> list[str]:
    reverted = "not every change could be reverted" if inv.quality.not_reverted else "every change was reverted"
    lines = [f"Interrupted after {counted(inv.quality.steps, 'step')}; {reverted}."]
    if inv.gain:
        gain = verdict_words.gain_sentence(inv.gain, inv.study.load_unit)
        lines.append(f"Until then one gain was proved: {gain}.")
    for finding in facts.main_findings(inv)[:1]:
        status = verdict_words.UNPROVED.get(finding.status, "Confirmed")
        lines.append(f"{status} by then: {words.strip(finding.title)}.")
    return lines if len(lines) > 1 else [*lines, "No cause had been named by then."]
