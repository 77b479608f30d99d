"""Which stage of a pipeline limits it (docs/pipelines.md). A few operations in a queue only show that it keeps up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from loadframe.units import show
from loadframe_pipelines import families

FULL = 0.85
"""From this share on, a stage's workers are always at work, but for handing on entries and a window's start and end."""
SOME = 0.2
"""From this share of the workers' time on, being idle, or blocked, is no accident."""
EMPTY = 0.5
"""Waiting operations per worker, below which there is no queue."""
LONG = 10.0
"""Waiting operations per worker, from which on a queue of unknown capacity counts as fed."""
MANY = 1.5
"""Mean entries per operation from which an operation takes several."""
ABOUT = 4.0
"""Of a queue that each operation empties, half of an operation's entries wait on average; by chance a quarter."""
FILLED = 0.5
"""Share of a queue's capacity from which it holds back the stages before it."""
GROWS = 0.1
"""A queue that grows by more than this share of the completed operations is fed too fast."""
TOO_MANY_S = 2.0
"""Seconds per second of a worker from which the unit or the number of workers is wrong; up to here, operations counted
at their end may add up to more than one."""
ANY_IDLE = 0.5
IN_TURNS = 0.1
Kind = Literal["stage", "source", "pool", "quota", "turns", "single"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Averages. busy, idle, blocked: shares of its workers; at_work: workers. waiting: operations in its queue, growth:
    of these per second; room: share of the queue's capacity in use. most_current: most operations in work. server:
    share of the work spent waiting for its server. spent: reported seconds per second of all its workers. pool_idle:
    idle workers of a shared pool."""

    name: str
    busy: float | None = None
    idle: float | None = None
    blocked: float | None = None
    at_work: float | None = None
    workers: float | None = None
    done: float | None = None
    entries: float | None = None
    batch: float | None = None
    waiting: float | None = None
    growth: float | None = None
    room: float | None = None
    current: float | None = None
    most_current: float | None = None
    ms_per_op: float | None = None
    ms_per_entry: float | None = None
    server: float | None = None
    spent: float | None = None
    pool_idle: float | None = None

    @property
    def is_full(self) -> bool:
        return self.busy is not None and self.busy >= FULL and not self.is_blocked

    @property
    def is_single(self) -> bool:
        """One operation is in work all the time and never two, although there are workers for more."""
        several = self.workers is not None and self.workers > 1.0
        single = self.most_current is not None and 0.5 <= self.most_current < MANY
        return several and single and (self.at_work or 0.0) >= FULL and not self.is_blocked

    @property
    def is_uneven(self) -> bool:
        """Its workers are at work where its entries are, while those in another process are not."""
        if self.busy is None or self.at_work is None or not self.workers:
            return False
        return self.busy - self.at_work / self.workers >= SOME

    @property
    def is_impossible(self) -> bool:
        return self.workers is not None and (self.spent or 0.0) > TOO_MANY_S * self.workers

    @property
    def is_blocked(self) -> bool:
        return (self.blocked or 0.0) >= SOME

    @property
    def is_idle(self) -> bool:
        return (self.idle or 0.0) >= SOME

    @property
    def counts_entries(self) -> bool:
        """About as many wait as an operation takes, although it takes several. Of batches fewer would wait, or more and
        more."""
        if self.waiting is None or self.batch is None or self.batch < MANY:
            return False
        return self.batch / ABOUT <= self.waiting <= self.batch * max(1.0, self.workers or 1.0)

    @property
    def queue_grows(self) -> bool:
        """In a queue that operations empty, what a window ends with is chance."""
        rate = self.entries if self.counts_entries else self.done
        return self.growth is not None and self.growth > GROWS * max(rate or 0.0, 1e-9)

    @property
    def has_queue(self) -> bool | None:
        if self.waiting is None:
            return None
        return self.queue_grows or (self.room or 0.0) >= FILLED or self.waiting >= EMPTY * max(1.0, self.workers or 1.0)

    @property
    def is_fed(self) -> bool:
        """Its queue is full or fills or, with unknown capacity, is long."""
        if self.waiting is None:
            return False
        long = self.room is None and self.waiting >= LONG * max(1.0, self.workers or 1.0)
        return self.queue_grows or (self.room or 0.0) >= FILLED or long

    @property
    def keeps_up(self) -> bool:
        """Its operations take all that waits: then it is always at work, however little arrives."""
        if self.waiting is None or self.batch is None or self.is_fed:
            return False
        return self.batch >= MANY and self.waiting <= self.batch * max(1.0, self.workers or 1.0)

    @property
    def contradicts(self) -> bool:
        """Its operations in work contradict their duration (Little's law)."""
        if not self.current or not self.at_work:
            return False
        counted = (self.at_work, self.at_work * (self.batch or 1.0))
        return not any(1 / 3 <= self.current / count <= 3 for count in counted)


@dataclass(frozen=True, slots=True)
class Limiting:
    """kind: "stage", its workers; "source", all wait for entries; "pool", shared workers; "quota", no more at once
    although workers are idle; "single", one operation at a time; "turns", the stage that takes most time of workers
    that pass an entry through all stages. seen: what confirms it: "queue", "before" (blocked), "behind" (idle). also:
    another full stage."""

    kind: Kind
    at: int
    seen: tuple[str, ...] = ()
    also: int | None = None


ENDS = {
    **{share: f"{share}_share" for share in ("busy", "server", "idle", "blocked")},
    "at_work": "busy",
    "growth": "waiting_growth",
    "room": "queue_share",
    "most_current": "current_most",
}
SPENT = ("busy", "idle_s", "blocked_s")


def stages_in(metrics: Mapping[str, float]) -> list[Stage]:
    stages = []
    for name in families.in_order(metrics):
        of = f"{families.STAGES}{name}."
        shares = {field.name: metrics.get(of + ENDS.get(field.name, field.name)) for field in fields(Stage)[1:]}
        stages.append(Stage(name, **{**shares, "spent": sum(metrics.get(of + end, 0.0) for end in SPENT)}))
    return stages


def limiting(stages: Sequence[Stage]) -> Limiting | str:
    if not stages:
        return "no stage was seen"
    pool = [stage.pool_idle for stage in stages if stage.pool_idle is not None]
    if pool:
        return _of_pool(stages, max(pool))
    unseen = [stage.name for stage in stages if stage.busy is None]
    if unseen:
        return (
            f"{', '.join(unseen)} {'report' if len(unseen) > 1 else 'reports'} neither the seconds of its workers nor "
            "how many are idle, so that it cannot be seen which stage is at work all the time"
        )
    if impossible := [stage for stage in stages if stage.is_impossible]:
        stage = impossible[0]
        spent, workers = show(stage.spent or 0.0, "count"), show(stage.workers or 0.0, "count")
        return (
            f"{stage.name} reports more worker-seconds in a second than it has workers ({spent} of {workers}): its "
            "times are not in seconds, or its number of workers is wrong"
        )
    full = [place for place, stage in enumerate(stages) if stage.is_full]
    if not full:
        return _not_full(stages)
    fed = [place for place in full if stages[place].is_fed or (place > 0 and stages[place - 1].is_blocked)]
    short = [place for place in full if not stages[place].keeps_up]
    if not fed and not short and full[-1] > 0:
        return (
            f"the workers of {stages[full[-1]].name} are at work, but each operation takes all entries that wait: with "
            "more of them it would take more at once"
        )
    at = fed[-1] if fed else max(short or full, key=lambda place: stages[place].busy or 0.0)
    if at > 0 and stages[at].has_queue is False and not _held(stages, at):
        return f"the workers of {stages[at].name} are at work, but nothing waits before it, and nothing is held back"
    also = [place for place in short if place != at]
    return Limiting("stage", at, _seen(stages, at), also[-1] if also else None)


def _held(stages: Sequence[Stage], at: int) -> bool:
    return any(stage.is_blocked for stage in stages[:at])


def _seen(stages: Sequence[Stage], at: int) -> tuple[str, ...]:
    behind = [stage for stage in stages[at + 1 :] if stage.idle is not None]
    signs = {
        "queue": at > 0 and stages[at].has_queue is True,
        "before": _held(stages, at),
        "behind": bool(behind) and all(stage.is_idle for stage in behind),
    }
    return tuple(name for name, there in signs.items() if there)


def _not_full(stages: Sequence[Stage]) -> Limiting | str:
    single = [place for place, stage in enumerate(stages) if stage.is_single]
    if single:
        most = max(single, key=lambda place: stages[place].at_work or 0.0)
        return Limiting("single", most, _seen(stages, most))
    held = [stage.name for stage in stages if stage.is_blocked]
    if held and _in_turns(stages):
        most = max(range(len(stages)), key=lambda place: stages[place].busy or 0.0)
        return Limiting("turns", most, _seen(stages, most))
    if held:
        return (
            f"{', '.join(held)} cannot hand on entries, and no stage behind is at work all the time: something between "
            "them does not report itself"
        )
    if all(stage.idle is None or stage.is_idle for stage in stages) and any(stage.is_idle for stage in stages):
        if any(stage.queue_grows for stage in stages):
            return "workers are idle while entries pile up before them: something else holds them back"
        return Limiting("source", 0)
    busiest = max(stages, key=lambda stage: stage.busy or 0.0)
    return f"no stage is at work all the time: {busiest.name} is busiest, {100 * (busiest.busy or 0.0):.0f} % of it"


def _in_turns(stages: Sequence[Stage]) -> bool:
    """Whether nearly always one stage is at work: those before it are blocked, those behind it idle."""
    busy = [stage.busy or 0.0 for stage in stages]
    alike = len({stage.workers for stage in stages}) == 1
    blocked_behind = all(
        stage.blocked is not None and abs(stage.blocked - sum(busy[place + 1 :])) <= IN_TURNS
        for place, stage in enumerate(stages)
    )
    return alike and blocked_behind and FULL <= sum(busy) <= 1 + IN_TURNS


def _of_pool(stages: Sequence[Stage], idle: float) -> Limiting | str:
    known = [place for place, stage in enumerate(stages) if stage.at_work is not None]
    if not known:
        return "how long the workers are in each stage is not known"
    if idle < ANY_IDLE:
        most = max(known, key=lambda place: stages[place].at_work or 0.0)
        seen = ("queue",) if stages[most].has_queue else ()
        return Limiting("pool", most, seen)
    waits = [place for place, stage in enumerate(stages) if stage.has_queue]
    if not waits:
        return Limiting("source", 0)
    return Limiting("quota", max(waits, key=lambda place: stages[place].waiting or 0.0), ("queue",))


def percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.0f} %"
