"""Findings that only several levels show, from the operational laws: n requests are served at a time. Only a change
shows what there are n of, so they come after every cause with a counter of its own."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadframe.analysis.in_service import InService
from loadframe.diagnosis import growing, peers, waiting_limits
from loadframe.diagnosis.others import crowding, taken_cpus
from loadframe.diagnosis.plateau import ONE, Plateau, plateau_of
from loadframe.diagnosis.signatures import HOT
from loadframe.diagnosis.sizes import (
    IN_SERVICE,
    PARALLELISM,
    RUNNING,
    SERIAL,
    SERVED_AT_A_TIME,
    SERVED_AT_ONCE,
    SETTING,
    STATES,
    THROUGHPUT,
    Size,
    by_chance,
    rates,
    sizes,
)
from loadframe.knowledge.signature import CPU_BUSY, Condition, condition_rows
from loadframe.metrics import metric as metric_of
from loadframe.model import Curve, Evidence, Finding, Limit, LoadInterval, RuledOut, SettingValue, Step, Steps, by_level
from loadframe.units import show, show_metric

OPERATIONAL = frozenset({*SERVED_AT_ONCE, peers.SLOW, *growing.GROWTH})
"""Findings that restate the curve: they are no second cause, and a setting without effect refutes none."""
UNKNOWN_KINDS = frozenset({"service", "url"})
"""Only their owner knows what may limit them."""
SCORE = 0.51
REFUSES = 0.65
"""Requests that fail while n are in service fail for that reason."""
MOST_NAMED = 3
NOTHING = "Nothing that is seen from outside is exhausted"
NOTHING_ELSE = "The CPUs are saturated; nothing else that is seen from outside is exhausted"
CONDITIONS = condition_rows(Path(__file__).with_suffix(".toml"))
FAILING, ONE_CPU, ONE_LOCK = (CONDITIONS[name] for name in ("failing", "one_cpu", "one_lock"))
FIRST = (
    *("own_cpu_busy", "saturated", "busy", "driver", "waits_for_cpu", "throttled", "throttled_around", "failing"),
    "disk_busy",
)
ABSENT = tuple(CONDITIONS[name] for name in FIRST)
"""Each of these ends the throughput, and X R is then no number of anything."""
SHOWN = (
    *("workload.cpu_wait", "target.saturation", "target.cage.cpu.throttled_share"),
    *("target.cgroup.cpu.throttled_share", "system.disk.busy"),
)
COMPUTES = Condition("target.cpu.hottest_thread", ">=", HOT, "one thread computes all the time")
SEVERAL = 1.5
LEAST_TAKEN = 0.2
"""CPUs taken by others below which they are not why the target computes on one at a time."""
NO_ONE_THREAD = (
    Condition("target.cpu.hottest_thread", "<", HOT, "no thread of it is at its limit: they take turns"),
    CONDITIONS["several_at_once"],
)
"""Where both hold, threads of a target that computes on one CPU take turns, by a lock or a runtime (Go's
GOMAXPROCS)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """sequence: all steps, disturbed ones too, of a service that Loadframe does not know (own); else empty, as a
    database that is filled costs more by design."""

    curve: Curve
    steps: Steps
    settings: Mapping[str, SettingValue]
    limits: Sequence[Limit]
    sequence: Steps = ()
    own: bool = True


def operational(seen: Seen) -> tuple[Finding | RuledOut, ...]:
    """Nothing of the number in service unless throughput is flat over several levels at a constant cost per request."""
    if (grown := growing.growing(seen.curve.axis, seen.sequence)) is not None:
        why = "a request costs more and more, so that the levels cannot be compared"
        return grown, RuledOut(PARALLELISM, why, judged=False)
    plateau = plateau_of(seen.curve, seen.steps)
    served = plateau.served if plateau is not None else None
    slow = peers.slow_peer(seen.steps)
    if slow is not None and not _other_cause([step for step in seen.steps if step.level == seen.curve.points[-1].load]):
        many = how_many(served) if served is not None and served.known else ""
        waits = RuledOut(PARALLELISM, f"requests wait at {slow.name}, not in the target")
        return peers.finding(slow, seen.curve, many), waits
    if plateau is None:
        return ()
    flat = [step for step in seen.steps if step.level in plateau.levels]
    if served is None:
        return (RuledOut(PARALLELISM, plateau.because, judged=False),)
    id_ = SERIAL if served.high < ONE and not served.bounded else PARALLELISM
    refused = plateau.refuses and _holds(FAILING, flat)
    crowd = crowding(flat, served.value, _where(plateau))
    other = _other_cause(flat, served, but=FAILING if refused else None)
    if crowd is not None:
        return crowd, RuledOut(id_, other or "the requests in service wait for CPUs that other programs use")
    if other:
        return (RuledOut(id_, other),)
    flushes = waiting_limits.waits_for_flushes(served, flat, _from(seen.curve, plateau)) if seen.own else None
    if flushes is not None:
        return flushes, RuledOut(id_, "the requests in service wait for flushes of the disk")
    return (_finding(id_, seen, plateau, served, flat, refused),)


def _other_cause(flat: Steps, served: InService | None = None, *, but: Condition | None = None) -> str | None:
    unseen = not all("target.cpu.run_delay" in step.metrics for step in flat)
    cores = _of(ONE_CPU, flat)
    one_thread = cores is None or cores < SEVERAL
    for condition in (*ABSENT, *((CPU_BUSY,) if unseen else ()), *((COMPUTES,) if one_thread else ())):
        value = _of(condition, flat)
        if condition is not but and value is not None and condition.holds(value):
            return _because(condition, value)
    if served is not None and served.high < ONE:
        turns = _takes_turns(flat)
        held = _of(ONE_LOCK, flat)
        if held is not None and ONE_LOCK.holds(held):
            how_long = show_metric(ONE_LOCK.metric, held)
            return f"a lock does that, and is judged as a cause of its own: it was held {how_long} of the time"
        if not turns and _holds(ONE_CPU, flat):
            return _because(ONE_CPU, cores or 0.0)
        if not turns and ONE_CPU.holds((cores or 0.0) + _taken(flat)):
            return "the target computes all the time, or waits for a CPU that others use"
    return None


def _takes_turns(flat: Steps) -> bool:
    """Threads compute one at a time, and not for a single thread, an interpreter, or others on the CPUs."""
    alone = _taken(flat) < LEAST_TAKEN
    return alone and _holds(ONE_CPU, flat) and all(_holds(condition, flat) for condition in NO_ONE_THREAD)


def _taken(flat: Steps) -> float:
    taken = [value for step in flat if (value := taken_cpus(step.metrics)) is not None]
    return sum(taken) / len(taken) if taken else 0.0


def _holds(condition: Condition, steps: Steps) -> bool:
    value = _of(condition, steps)
    return value is not None and condition.holds(value)


def _finding(id_: str, seen: Seen, plateau: Plateau, served: InService, flat: Steps, refused: bool) -> Finding:
    low = [step for step in seen.steps if step.level == plateau.lowest]
    turns = id_ == SERIAL and _takes_turns(flat)
    matches = sizes(served, by_level(flat), low, seen.settings, seen.limits)
    if turns:  # the others wait for it, or for something unrelated
        matches = tuple(size for size in matches if size.metric not in STATES or size.metric == RUNNING)
    where = _where(plateau)
    wanted = float(served.whole) if served.whole is not None else round(served.value, 1)
    source = "throughput there x the response time at the lowest load (Little's law)"
    return Finding(
        id=id_,
        title=_title(served, matches, refused),
        reached_at=_from(seen.curve, plateau),
        evidence=(
            Evidence(IN_SERVICE, served.value, "~", wanted, where, source),
            *(
                Evidence(size.metric, size.value, "~", round(size.value), where, "it has that size")
                for size in matches
                if size.metric
            ),
            *(
                Evidence(THROUGHPUT, served.throughput, "~", rate.per_s, where, f"the value of a setting: {rate}")
                for rate in rates(seen.settings if seen.own else {}, served.throughput)
            ),
            *(_evidence((ONE_CPU, *NO_ONE_THREAD[:1]), flat, where) if turns else ()),
            *_evidence([condition for condition in ABSENT if condition.metric in SHOWN], flat, where, absent=True),
        ),
        score=REFUSES if refused else SCORE,
        explanation=_explanation(seen, plateau, served, matches, refused, turns),
        advice=_advice(served, matches, seen.own),
    )


def _where(plateau: Plateau) -> str:
    return f"on the plateau, at {plateau.levels[0]:g} to {plateau.levels[-1]:g}"


def _from(curve: Curve, plateau: Plateau) -> LoadInterval | None:
    if plateau.whole and plateau.lowest == 1:  # one client reaches all of the throughput
        return LoadInterval(plateau.lowest, plateau.lowest, plateau.lowest)
    return curve.knee


def _evidence(conditions: Sequence[Condition], flat: Steps, where: str, *, absent: bool = False) -> list[Evidence]:
    seen = ((condition, _of(condition, flat)) for condition in conditions)
    return [condition.evidence(value, where, absent=absent) for condition, value in seen if value is not None]


def how_many(served: InService, sizes: Sequence[Size] = ()) -> str:
    """ "4"; "about 20"; "between 3.1 and 5.2"; "at most 8.3". sizes: what has that size, used if unique."""
    if served.bounded:
        return f"at most {_digits(served.high)}"
    if served.whole is not None:
        return show(served.whole, "count")
    of_it = {round(size.value) for size in sizes}
    if served.known:
        return f"about {of_it.pop() if len(of_it) == 1 else _digits(served.value)}"
    return f"between {_digits(max(1.0, served.low))} and {_digits(served.high)}"


OWN_QUEUES = (
    " Requests wait before that many are in service, and hold a thread no longer for it: each thread that serves has a "
    "queue of its own, and some are idle while requests wait for another."
)
BEHIND = (
    " It has connections to {}, and the kernel does not tell whether an answer is awaited on them: what is behind may "
    "be what serves that many. Name it under [[target.with]], or measure it as a target of its own."
)
CAPS = (
    " The throughput is the value of a setting ({}): where that caps the rate, requests wait for it, and no number of "
    "them is what limits."
)
TURNS = (
    " Several threads compute, one at a time, and none of them is at its limit: a lock guards what they compute, or "
    "the runtime runs one of them at a time."
)
STAGE = (
    " The two numbers do not tell how they come about: a pool of about that size, or one stage that serves one request "
    "at a time, for {} of each (a lock, a connection, a thread), within a request that takes longer."
)


def _title(served: InService, sizes: Sequence[Size], refused: bool) -> str:
    many = how_many(served, sizes)
    what = f"one request is {SERVED_AT_A_TIME}" if many == "1" else f"{many} requests are {SERVED_AT_A_TIME}"
    what += ", and those beyond fail" if refused else ""
    if not sizes:
        return f"{what}, or one stage serves one for {turn}" if (turn := _turn(served)) else what
    more = len(sizes) - MOST_NAMED
    named = "; ".join(size.words for size in sizes[:MOST_NAMED])
    return f"{what} ({named}{f'; and {more} more of that size' if more > 0 else ''})"


def confirmed_title(title: str, raised: Collection[str]) -> str:
    what, _, named = title.partition(" (")
    if not named.endswith(")"):
        return title
    entries = [entry for entry in named[:-1].split("; ") if not entry.startswith("and ")]
    kept = [entry for entry in entries if (setting := SETTING.match(entry)) is None or setting[1] in raised]
    return f"{what} ({'; '.join(kept)})" if kept else what


def _explanation(
    seen: Seen, plateau: Plateau, served: InService, sizes: Sequence[Size], refused: bool, turns: bool
) -> str:
    unit = "client" if plateau.lowest == 1 else "clients"
    at = f"at {plateau.lowest:g} {unit}" if seen.curve.axis != "rate" else f"at {plateau.lowest:g} requests/s"
    least = max(served.low, min(1.0, served.value))  # where anything is served, at least one request is
    interval = f" ({_digits(least)} to {_digits(served.high)})"
    others = "fail" if refused else "wait"
    law = (
        f"{show(served.throughput, '1/s')} x {show(1000 * served.response_s, 'ms')}, the response time {at}, is "
        f"{_digits(served.value)}{interval}: that many requests are in service at once, and all others {others}."
    )
    if served.bounded:
        law += " Requests may wait there already: measure from a lower load to know the number."
    if turns:
        law += TURNS
    if plateau.own_queues:
        law += OWN_QUEUES
    if caps := rates(seen.settings if seen.own else {}, served.throughput):
        law += CAPS.format(" and ".join(map(str, caps)))
    if caps or any(size.setting for size in sizes):
        law += f" {by_chance(seen.settings, served)}"
    if seen.own and (behind := peers.unseen_sockets(seen.steps)):
        law += BEHIND.format(" and ".join(behind))
    return f"{law} {_seen(served, sizes)}"


def _seen(served: InService, sizes: Sequence[Size]) -> str:
    if not served.known:
        return f"{NOTHING}. The interval is too wide to compare it with the size of anything."
    if any(size.setting for size in sizes):
        return "What has that size may be what limits; only a change of it shows that."
    if sizes:
        return f"Seen of that size: {'; '.join(size.words for size in sizes)}."
    stage = STAGE.format(turn) if (turn := _turn(served)) else ""
    return f"{NOTHING}, and nothing seen has that size.{stage}"


def _advice(served: InService, sizes: Sequence[Size], own: bool) -> str:
    if not served.known:
        return "Measure more blocks or longer windows (measure.blocks, measure.window), or from a load of 1."
    if any(size.setting for size in sizes) or not own:
        return ""
    if sizes:
        return (
            "Declare the setting that gives it this size as [target.setting.NAME]: Loadframe changes it, and measures "
            "whether it is the cause."
        )
    return (
        f"Expose the use of a pool of {how_many(served)} (target.metrics), or declare the setting that sizes it as "
        "[target.setting.NAME]: Loadframe changes it, and measures whether it is the cause."
    )


def _turn(served: InService) -> str:
    """X = 1 / D (utilisation law); "" where no stage may serve one request at a time."""
    is_one = served.known and served.whole is None and served.value > ONE
    return show(1000 / served.throughput, "ms") if is_one else ""


def _because(condition: Condition, value: float) -> str:
    shown = f"{value:.3g} per request" if condition.per_request else show_metric(condition.metric, value)
    return f"{metric_of(condition.metric).alone}: {shown} ({condition.source})"


def _digits(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _of(condition: Condition, steps: Steps) -> float | None:
    values = [condition.of({**step.metrics, THROUGHPUT: step.throughput}) for step in steps]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def served_at_once(steps: Steps, responses_s: Mapping[str, float]) -> list[Step]:
    """Add how many requests are in service, where the response time at the lowest load is known."""
    return [
        replace(step, metrics={**step.metrics, IN_SERVICE: step.throughput * responses_s[step.treatment]})
        if step.treatment in responses_s
        else step
        for step in steps
    ]
