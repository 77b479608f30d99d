"""The stage that limits a pipeline as a finding: `pipeline.STAGE`, or `pipeline.source` where all wait for entries."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadframe.diagnosis.signatures import THROTTLED
from loadframe.diagnosis.windows import Window, Windows
from loadframe.knowledge.signature import DISK_BUSY, OWN_CPU_BUSY, OWN_PIPELINE, Condition
from loadframe.model import Evidence, Finding, LoadInterval, Reading, RuledOut
from loadframe.units import show
from loadframe_pipelines import families
from loadframe_pipelines.behind_stages import behind as behind
from loadframe_pipelines.stages import ANY_IDLE, FULL, MANY, SOME, Kind, Limiting, Stage, limiting, percent, stages_in

OF = families.STAGES
SOURCE = f"{OF}source"
UNSEEN = f"{OF}stage"
SCORE, ALONE = 0.66, 0.5
"""A stage comes before the machine's signatures; after them without evidence from other stages, or where CPUs are
busy."""
NEAR = 0.6
"""Share of its workers at work from which on a stage limits once the limiting one has twice as many."""
BEHIND = 0.05
"""Share of real time by which a log falls behind; less may be a window's edge."""
FALLS_BEHIND = 0.52
"""It says that something limits, not what."""
CPU_USED_UP: tuple[Condition, ...] = (
    OWN_CPU_BUSY,
    Condition("target.saturation", ">=", 0.9, "the CPUs that the target may use are used up"),
    Condition("driver.saturation", ">=", 0.9, "the CPUs that the driver may use are used up"),
    *(
        Condition(
            f"{component}.cage.cpu.throttled_share", ">=", 0.5, "a CPU quota that binds runs out in every second period"
        )
        for component in ("target", "driver")
    ),
)
ON_DISK: tuple[Condition, ...] = (
    DISK_BUSY,
    *(
        Condition(f"{component}.cage.{what}.utilization", ">=", 0.8, "an allowance of a cage that binds is used up")
        for component in ("driver", "target")
        for what in THROTTLED
    ),
)


def findings(windows: Windows) -> tuple[Finding | RuledOut, ...]:
    """The stage that limits past the bend, with all other stages ruled out, or why that is not known; and change logs
    that are not followed."""
    return (*_stages(windows, windows.place), *_logs(windows))


def _stages(windows: Windows, where: Window) -> tuple[Finding | RuledOut, ...]:
    stages = stages_in(where.metrics)
    if not stages:
        return ()
    limit = limiting(stages)
    if isinstance(limit, str):
        return (RuledOut(UNSEEN, f"which stage limits is not known: {limit}"),)
    if limit.kind == "source" and OWN_PIPELINE.metric not in where.metrics:
        return (RuledOut(SOURCE, "the stages wait for entries: the load brings no more of them"),)
    stays = windows.bend is not None or len(windows.top.levels) > 1 or len(windows.levels) == 1
    if limit.kind == "source" and not stays:
        return (RuledOut(SOURCE, "the stages wait for entries, and throughput still grows with the load"),)
    others = (RuledOut(f"{OF}{stage.name}", why) for stage in stages if (why := _not_it(stage, limit, stages)))
    return (_finding(limit, stages, where, windows), *others)


FEW = "statistics of stages were printed {} in this time, so that no rates are known; watch longer (--over)"


def now(metrics: Mapping[str, float], readings: Sequence[Reading]) -> tuple[str, ...]:
    """Which stage limits now, and whether the pipeline is starved or clogged, or why that is not known; and that there
    are too few readings for rates."""
    stages = stages_in(metrics)
    counted = [name for reading in readings for name in reading.counters if families.is_cumulative(name)]
    twice = bool(readings) and (not counted or len(counted) > len(set(counted)))  # a counter was printed twice
    few = () if twice else (FEW.format("never" if not readings else "once"),)
    if not stages:
        return few
    limit = limiting(stages)
    if isinstance(limit, str):
        return (f"which stage of the pipeline limits is not known: {limit}", *few)
    return (f"{_title(limit, stages)}. {_flow(limit, stages)}".rstrip(), *few)


def _finding(bottleneck: Limiting, stages: Sequence[Stage], where: Window, windows: Windows) -> Finding:
    stage = stages[bottleneck.at]
    used_up = any(condition.met(where.metrics) for condition in CPU_USED_UP)
    sure = bool(bottleneck.seen) and not used_up and not stage.contradicts
    return Finding(
        id=_id(bottleneck, stages),
        title=_title(bottleneck, stages),
        reached_at=_from(bottleneck, stages, windows),
        evidence=tuple(_evidence(bottleneck, stages, where)),
        score=SCORE if sure else ALONE,
        explanation=" ".join(_explanation(bottleneck, stages, where, windows)),
    )


def _title(bottleneck: Limiting, stages: Sequence[Stage]) -> str:
    stage = stages[bottleneck.at]
    if bottleneck.kind == "source":
        return "all stages of the pipeline wait for entries: its source limits"
    if bottleneck.kind == "pool":
        return f"all workers of the pipeline are at work, most of them in {stage.name}"
    if bottleneck.kind == "turns":
        return f"the workers of the pipeline are in one stage at a time, most of the time in {stage.name}"
    if bottleneck.kind == "quota":
        return f"entries wait before {stage.name} while workers are idle: it takes no more at once"
    if bottleneck.kind == "single":
        return f"the stage {stage.name} has one operation at a time, all the time, and no work for its other workers"
    if stage.is_uneven:
        return (
            f"the workers of the stage {stage.name} are at work all the time in the processes that entries pass through"
        )
    many = "" if stage.workers is None else f" {show(stage.workers, 'count')}"
    if stage.workers is not None and round(stage.workers) == 1:
        return f"the only worker of the stage {stage.name} is at work all the time"
    return f"all{many} workers of the stage {stage.name} are at work all the time"


EVIDENCE: Mapping[Kind, tuple[Condition, ...]] = {
    "stage": (Condition("busy_share", ">=", FULL, "its workers are at work"),),
    "pool": (
        Condition("busy", ">", 0.0, "most of all stages"),
        Condition("pool_idle", "<", ANY_IDLE, "no worker is idle"),
    ),
    "single": (
        Condition("busy", ">=", FULL, "an operation is in work"),
        Condition("current_most", "<", MANY, "never two at once"),
    ),
    "turns": (Condition("busy_share", ">", 0.0, "most of all stages, which are at work for {} together"),),
    "quota": (Condition("pool_idle", ">=", ANY_IDLE, "workers are idle"),),
}
QUEUE = Condition("waiting", ">", 0.0, "entries wait before it")
BLOCKED = Condition("blocked_share", ">=", SOME, "it cannot hand on")
IDLE = Condition("idle_share", ">=", SOME, "nothing comes to it")


def _evidence(bottleneck: Limiting, stages: Sequence[Stage], where: Window) -> list[Evidence]:
    at, stage = bottleneck.at, stages[bottleneck.at]
    if bottleneck.kind == "source":
        shown = [(member, IDLE) for member in stages]
    else:
        shown = [(stage, condition) for condition in EVIDENCE[bottleneck.kind]]
        shown += [(stage, QUEUE)] if "queue" in bottleneck.seen else []
        shown += [(earlier, BLOCKED) for earlier in stages[:at] if earlier.is_blocked]
        shown += [(later, IDLE) for later in stages[at + 1 :] if later.is_idle]
    in_all = percent(sum(member.busy or 0.0 for member in stages))
    evidence = []
    for member, condition in shown:
        metric = f"{OF}{member.name}.{condition.metric}"
        if (value := where.get(metric)) is not None:
            seen = replace(condition, metric=metric, source=condition.source.format(in_all))
            evidence.append(seen.evidence(value, where.words))
    return evidence


def _explanation(bottleneck: Limiting, stages: Sequence[Stage], where: Window, windows: Windows) -> list[str]:
    stage = stages[bottleneck.at]
    if bottleneck.kind == "source":
        return [
            "Workers of every stage are idle: entries come to the first stage more slowly than any stage takes them. "
            "More workers cannot help; look at what feeds it."
        ]
    first, last = bottleneck.at == 0, bottleneck.at == len(stages) - 1
    sentences = [flow] if (flow := _flow(bottleneck, stages)) else []
    if bottleneck.kind == "single":
        sentences.append(
            "More workers cannot help: what it does cannot be divided among them, or is given to it one at a time. "
            "Shorter operations do."
        )
    if stage.is_uneven:
        sentences.append(
            "Of its processes one at least has hardly any entries; they count by the entries that pass through."
        )
    if not bottleneck.seen and not (first and last):
        sentences.append("No other stage shows it: nothing is known of a queue before it or of idle workers behind it.")
    if bottleneck.also is not None:
        sentences.append(
            f"The workers of {stages[bottleneck.also].name} are at work all the time as well: with more for one the "
            "other limits soon."
        )
    elif busy := [other for other in stages if other is not stage and (other.busy or 0.0) >= NEAR]:
        behind = max(busy, key=lambda other: other.busy or 0.0)
        sentences.append(f"The next one is {behind.name}, at work for {percent(behind.busy)} of the time.")
    if stage.contradicts:
        sentences.append("What it has in work does not agree with the time of its operations (Little's law).")
    if cpus := [condition.source for condition in CPU_USED_UP if condition.met(where.metrics)]:
        sentences.append(f"Its workers may wait for a CPU: {cpus[0]}. Then more of them cannot help.")
    if disks := [condition.source for condition in ON_DISK if condition.met(where.metrics)]:
        sentences.append(f"Its workers may wait for a disk: {disks[0]}.")
    sentences += _elsewhere(bottleneck, stages, windows)
    return sentences


def _flow(bottleneck: Limiting, stages: Sequence[Stage]) -> str:
    if bottleneck.kind == "source":
        return "The pipeline is starved."
    if bottleneck.kind != "stage":
        return ""
    if bottleneck.at == 0 and len(stages) > 1:
        return "It is the first stage: those behind it are starved."
    if "before" in bottleneck.seen or "queue" in bottleneck.seen:
        return "Entries pile up before it: the pipeline is clogged there, not starved."
    return ""


def _id(limit: Limiting, stages: Sequence[Stage]) -> str:
    return SOURCE if limit.kind == "source" else f"{OF}{stages[limit.at].name}"


def _at_each(windows: Windows) -> list[tuple[float, str]]:
    seen = [(window.levels[0], stages_in(window.metrics)) for window in windows.levels]
    limits = [(level, limiting(stages), stages) for level, stages in seen]
    return [(level, _id(limit, stages) if isinstance(limit, Limiting) else "") for level, limit, stages in limits]


def _elsewhere(bottleneck: Limiting, stages: Sequence[Stage], windows: Windows) -> list[str]:
    others: dict[str, list[float]] = {}
    for level, id_ in _at_each(windows):
        if id_ not in ("", SOURCE, _id(bottleneck, stages)):
            others.setdefault(id_.removeprefix(OF), []).append(level)
    return [
        f"At {levels[0]:,.12g}{f' to {levels[-1]:,.12g}' if len(levels) > 1 else ''} it is {name}."
        for name, levels in others.items()
    ]


def _from(bottleneck: Limiting, stages: Sequence[Stage], windows: Windows) -> LoadInterval | None:
    """The lowest level from which on the same stage limits, and the level before it."""
    begins: LoadInterval | None = None
    before: float | None = None
    for level, id_ in _at_each(windows):
        if id_ != _id(bottleneck, stages):
            begins = None
        elif begins is None:
            begins = LoadInterval(level, level if before is None else before, level)
        before = level
    return begins


def _logs(windows: Windows) -> list[Finding | RuledOut]:
    findings: list[Finding | RuledOut] = []
    top = windows.levels[-1]
    for name in families.names(top.metrics, families.LOGS):
        id_ = f"{families.LOGS}{name}"
        behind = top.get(f"{id_}.behind")
        if behind is None:
            continue
        if behind < BEHIND:
            findings.append(RuledOut(id_, f"it is followed: log time passes at {percent(1 - behind)} of real time"))
        else:
            findings.append(_not_followed(id_, name, behind, windows))
    return findings


def _not_followed(id_: str, name: str, behind: float, windows: Windows) -> Finding:
    top, before, at = windows.levels[-1], None, windows.levels[-1].levels[0]
    for window in reversed(windows.levels):
        if (window.get(f"{id_}.behind") or 0.0) < BEHIND:
            before = window.levels[0]
            break
        at = window.levels[0]
    pending = top.get(f"{id_}.pending")
    more = [] if pending is None else [Evidence(f"{id_}.pending", pending, ">", 0.0, top.words, "read, not applied")]
    source = "log time over real time is below 1"
    return Finding(
        id=id_,
        title=f"the change log {name} is not followed: its time passes at {percent(1 - behind)} of real time",
        reached_at=LoadInterval(at, at if before is None else before, at),
        evidence=(Evidence(f"{id_}.behind", behind, ">=", BEHIND, top.words, source), *more),
        score=FALLS_BEHIND,
        explanation="Changes come faster than they are applied. At this rate the pipeline never catches up: the lag "
        "grows as long as the rate lasts. Which stage limits says what to give more.",
    )


def _not_it(stage: Stage, bottleneck: Limiting, stages: Sequence[Stage]) -> str:
    if stage is stages[bottleneck.at] or bottleneck.kind == "source":
        return ""
    if stage.is_blocked:
        return f"its workers are blocked for {percent(stage.blocked)} of the time: they wait for what is behind"
    if stage.is_idle:
        return f"its workers are idle for {percent(stage.idle)} of the time"
    if bottleneck.also is not None and stage is stages[bottleneck.also]:
        return ""
    if stage.busy is not None:
        return f"its workers are at work for {percent(stage.busy)} of the time"
    if stage.at_work is not None:
        return f"{show(stage.at_work, 'count')} workers are in it on average"
    return ""
