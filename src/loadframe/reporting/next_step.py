"""What to do after an investigation, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadframe.diagnosis import conclusion
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.operational import OPERATIONAL, UNKNOWN_KINDS
from loadframe.diagnosis.plateau import is_flat
from loadframe.model import DRIVER_BESIDE, Finding, Investigation, LoadInterval, NextLimit
from loadframe.reporting import change_words, facts, rounding, words


@dataclass(frozen=True, slots=True)
class NextStep:
    """action, why: sentences. limit: whether it is about the next limit."""

    action: str
    why: str = ""
    limit: bool = False


MORE_CPU = "give the target more CPUs, or make each request cost less CPU time"
ACTIONS: Mapping[str, tuple[str, ...]] = {
    MORE_CPU: ("cpu.saturated", "process.cpus"),
    "raise the CPU quota of that control group (of a container: its CPU limit), or make each request cost less CPU "
    "time": ("cgroup.cpu",),
    "see with EXPLAIN which statements read whole tables, and give those an index": ("rows.scanned",),
    "spread its work over more threads or processes, or make a request cost less CPU time": (
        "cpu.hot_thread",
        "process.hot_thread",
    ),
    "give the target more memory, or let it keep less there": (
        "system.memory",
        "cgroup.memory",
        "memory.pressure",
        "memory.mmap_page_faults",
    ),
    "use a faster disk, or let the target use it less often": ("disk.busy", "disk.saturated", "disk.fsync"),
    "make room on that file system": ("disk.space",),
    "raise the limit of open files (LimitNOFILE, ulimit -n)": ("process.open_files",),
    "keep connections open (keep-alive), or widen net.ipv4.ip_local_port_range": ("network.local_ports", "net.ports"),
}
"""What to do -> the limits against which it helps."""


def next_step(inv: Investigation) -> NextStep:
    """About the next limit, else what fits the outcome; where the curve alone shows the limit, what would confirm
    it."""
    first = _to_confirm(inv)
    if first is not None:
        return first
    if inv.outcome.kind in ("stopped-answering", "driver-limited", "link-full"):
        return without_limit(inv)
    if inv.outcome.kind == "cpu-saturated" and (inv.next_limit is None or inv.next_limit.id == facts.main_id(inv)):
        return NextStep(words.sentence(MORE_CPU))
    if inv.next_limit is None:
        return without_limit(inv)
    limit = words.sentence(next_limit_words(inv, inv.next_limit))
    unproved = " Suspected, not proved." if is_suspected(inv, inv.next_limit) else ""
    action = f"{limit}{unproved} {what_moves(inv, inv.next_limit)}".strip()
    return NextStep(action, words.sentence(inv.next_limit.because), limit=True)


STEPS = {
    "stopped-answering": "See the service's own log at that time; restart it, and measure again with lower levels, or "
    "with this one alone, to see whether it stops there again.",
    "link-full": "Give the target a faster link, or smaller answers; then it can be loaded further.",
    "driver-limited": "Give the driver more CPUs (cage.driver.cpus) or more threads.",
    "limit-not-seen": "Expose what the target counts of its own queues and pools (target.metrics), or declare the "
    "setting that may limit it as [target.setting.NAME]; then a change can confirm it.",
    "limit-without-remedy": "See which remedies were not tried, and why.",
}


def without_limit(inv: Investigation) -> NextStep:
    match inv.outcome.kind:
        case "interrupted":
            return NextStep(f"Run it again to finish it; the finished steps are kept in {inv.run}.")
        case "stopped-answering" if inv.stop is not None and inv.stop.went_on:
            cure = "Raise `cage.memory`, or have the target use less" if inv.stop.full else "Read the target's log"
            return NextStep(f"{cure}; until then keep it below {words.load(inv.stop.level, inv.study.load_unit)}.")
        case "driver-limited" if inv.drivers is not None:
            return NextStep("Add a driver to the fleet; then the target can be loaded further.")
        case "no-limit-reached":
            highest = f" above {words.load(max(inv.study.levels), inv.study.load_unit)}" if inv.study.levels else ""
            return NextStep(f"Test higher loads: add levels{highest}.")
        case "limit-not-seen" if inv.rounds[-1].curve.points[0].load > 1 and is_flat(inv.rounds[-1].curve):
            lowest = words.load(inv.rounds[-1].curve.points[0].load, inv.study.load_unit)
            return NextStep(
                "Measure from a load of 1.",
                f"The lowest level, {lowest}, is on the plateau already, so that the curve does not show how many "
                "requests are served at once.",
            )
        case "limit-not-seen" if inv.study.target_kind not in UNKNOWN_KINDS:
            return NextStep(
                "Measure more levels around the bend, and see the profiles of the report.",
                "None of the limits that Loadframe knows of this server explains it.",
            )
        case "limit-without-remedy" | "no-proven-gain" if facts.main_id(inv) in GROWTH:
            return _growth_next(facts.main_findings(inv)[0])
        case "limit-without-remedy" if facts.main_id(inv) == DRIVER_BESIDE:
            cpus = "Give the driver CPUs of its own (cage.cpus and cage.driver.cpus), or another machine"
            return NextStep(f"{cpus}.")
        case "gained":
            return NextStep(words.capital(none_in_sight(inv)))
    return NextStep(STEPS.get(inv.outcome.kind, "No further limit showed within the levels that were tested."))


def none_in_sight(inv: Investigation) -> str:
    last, unit = inv.rounds[-1].curve, inv.study.load_unit
    if conclusion.stops_growing(last) is not None:
        return f"not known. Throughput {words.curve_phrase(last, unit)}, and nothing that is seen is exhausted there."
    highest = max((point.load for point in last.points), default=0.0)
    return f"no limit in sight up to {words.load(highest, unit)}."


def _growth_next(growing: Finding) -> NextStep:
    still, keeps = "Then measure again.", "Find what the service keeps until it is restarted."
    if growing.status == "confirmed":
        return NextStep(f"{keeps} {still}")
    if growing.mechanism is None or growing.mechanism.after is None:
        restart = "Restart the service and see whether requests are cheap again; then find what it keeps."
        return NextStep(f"{restart} {still}")
    if growing.mechanism.receded:
        return NextStep(f"{keeps} A longer measure.budget may confirm it. {still}")
    return NextStep(
        "Look for what outlives a restart, such as a file, a table or the data of another server.",
        f"A restart did not show that the service itself keeps it. {still}",
    )


def _to_confirm(inv: Investigation) -> NextStep | None:
    finding = next(iter(facts.main_findings(inv)), None)
    if finding is None:
        return None
    without_remedy = inv.outcome.kind == "limit-without-remedy"
    if finding.id not in OPERATIONAL or finding.id in GROWTH or finding.status != "suspected":
        if not without_remedy or finding.reached_at is None:
            return None
        lowest = inv.rounds[0].curve.points[0].load
        return _could_confirm(inv, finding) if finding.reached_at.load <= lowest else None
    why = words.sentence(finding.explanation)
    if inv.outcome.kind == "no-proven-gain":
        tried = (change for round_ in inv.rounds for trial in round_.tried for change in trial.remedy.changes)
        changed = ", ".join(dict.fromkeys(change.setting for change in tried if change.needed))
        why = f"Changing {changed} has no proven gain. {why}"
        counts = "expose what the service counts of its queues and pools (target.metrics)"
        declare = f"Declare further settings as [target.setting.NAME], or {counts}."
        if inv.study.target_kind != "service":  # its settings are of a list
            declare = "Try another of its settings: name it in a [[change]] of the study."
        return _could_confirm(inv, finding, why) or NextStep(declare, why)
    if not without_remedy:
        return None
    if finding.advice:
        return NextStep(finding.advice, why)
    return _could_confirm(inv, finding, why) or NextStep(why)


def _could_confirm(inv: Investigation, finding: Finding, why: str = "") -> NextStep | None:
    could = [untried for untried in change_words.untried(inv) if finding.id in untried.remedy.addresses]
    if not could:
        return None
    titles = words.and_list(list(dict.fromkeys(untried.remedy.title for untried in could)))
    was = "was" if len(could) == 1 else "were"
    return NextStep(f"{titles} may confirm it, and {was} not tried: {words.strip(could[0].because)}.", why)


def what_moves(inv: Investigation, limit: NextLimit) -> str:
    for action, limits in ACTIONS.items():
        if limit.id in limits:
            return words.sentence(f"To get more, {action}")
    return next((finding.advice for finding in _findings(inv, limit)), "")


def _findings(inv: Investigation, limit: NextLimit) -> list[Finding]:
    return [finding for round_ in inv.rounds[-1:] for finding in round_.findings if finding.id == limit.id]


def is_named_limit(inv: Investigation) -> bool:
    """Whether the next limit is the one that the answer names, with nothing gained from it."""
    limit = inv.next_limit
    return limit is not None and limit.id == facts.main_id(inv) and inv.outcome.kind != "gained"


def is_suspected(inv: Investigation, limit: NextLimit) -> bool:
    return any(finding.status == "suspected" for finding in _findings(inv, limit)[:1])


def next_limit_words(inv: Investigation, limit: NextLimit) -> str:
    title = f"the limit {limit.id}" if limit.title == limit.id else words.strip(limit.title)
    if limit.load is None or not inv.rounds:
        return title
    last = inv.rounds[-1]
    unit, highest = inv.study.load_unit, last.curve.points[-1].load
    acts = (finding.reached_at for finding in _findings(inv, limit))  # as the answer has it
    same = next((start for start in acts if start is not None and start.load == limit.load), None)
    interval = same or last.interval_of(limit) or LoadInterval(*3 * (limit.load,))
    where = words.about_load(interval, unit)
    if not rounding.has_width(interval.low, interval.high):
        is_tested = limit.load <= highest
        where = words.load(limit.load, unit) if is_tested else f"about {words.load(words.forecast(limit.load), unit)}"
    return f"{title}, at {where}{' (extrapolated)' if limit.load > highest else ''}"
