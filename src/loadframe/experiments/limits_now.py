"""The limits now of this machine, a process, a server or a study's target, in the order in which they are reached."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from loadframe.analysis.saturation import over_time
from loadframe.bench.checking import check_consent, check_stages, need_stages
from loadframe.bench.declared import workload_of
from loadframe.bench.driver_user import driver_user
from loadframe.bench.loading import Tail, tails
from loadframe.bench.rig import make_target
from loadframe.diagnosis.findings import causes
from loadframe.errors import TargetError
from loadframe.experiments.examination import FEWEST_COUNTS, memory_at_full, resident_by_connections
from loadframe.host.identity import Identity, alive, running
from loadframe.host.leases import Lease
from loadframe.host.signals import tell
from loadframe.kinds import registry as targets
from loadframe.kinds.base import Attached, Exposing, PrintsStages, Target
from loadframe.kinds.behind import comm_of
from loadframe.kinds.registry import BY_OPTION, BY_STUDY, attach
from loadframe.knowledge.families import FAMILIES
from loadframe.knowledge.kinds import rows_of
from loadframe.ledger.reading import as_number, clamped, counter_metrics, derive, read_now
from loadframe.ledger.rules import RULES, rules_among
from loadframe.model import CounterSpec, LedgerNow, Limit, Saturation, SettingValue, TargetState
from loadframe.progress import Progress, Silent
from loadframe.recording.metrics import of_readings
from loadframe.recording.snapshot import Place, Readings, Snapshot, read, take
from loadframe.recording.snapshot_process import EVERYTHING
from loadframe.study import Study
from loadframe.study.exposed_tables import LimitTable

ONE_LOOK_S = 1.0
"""Seconds between the two readings that rates need."""
STAGES_LOOK_S = 3.0
"""The same for the lines of a pipeline, which come once a second or more often."""
READINGS = 60
SHORTEST_S, LONGEST_S = 1.0, 30.0
"""Bounds of the interval between readings: one takes up to a tenth of a second, and a leak may be quick."""
ELSEWHERE = "the server is on another machine: run `loadframe limits` there"


@dataclass(frozen=True, slots=True)
class Subject:
    """server: asked for its counters. enter: opens a connection to a private server. declared: by its study."""

    words: str
    place: Place = field(default_factory=Place)
    kinds: frozenset[str] = frozenset()
    server: Attached | Target | None = None
    configured: Mapping[str, SettingValue] = field(default_factory=dict)
    effective: Mapping[str, SettingValue] = field(default_factory=dict)
    local: bool = True
    process: Identity | None = None
    enter: Callable[[], Attached] | None = None
    declared: Sequence[LimitTable] = ()

    @property
    def kind(self) -> str:
        return self.server.kind if self.server is not None else ""


@dataclass(frozen=True, slots=True)
class Moment:
    snapshot: Snapshot
    counters: Mapping[str, float]


@dataclass(slots=True)
class Watch:
    first: Moment
    last: Moment
    intervals: list[tuple[float, Mapping[str, float]]]
    ended: bool = False

    @property
    def watched_s(self) -> float:
        return self.last.snapshot.at_s - self.first.snapshot.at_s


def limits(
    *,
    pid: int | None = None,
    study: Study | None = None,
    server: str | None = None,
    option_file: Path | None = None,
    user: str = "",
    over_s: float | None = None,
    stages: Sequence[Path] = (),
    progress: Progress | None = None,
) -> LedgerNow:
    """The ledger now: of a study's target, started privately without load; of a running server (KIND:ADDRESS), `pid`
    naming its process where it cannot be found; of a process; else of the machine. over_s: watch so long, and forecast.
    stages: files with statistics of pipeline stages. TargetError where there is no such process or access is refused;
    StudyError, MissingTool."""
    if stages:
        need_stages("--stages")
    with _subject(pid, study, server, option_file, user) as subject:
        given = [file.resolve() for file in stages]  # a link of the user's is followed
        files = [*given, *(subject.server.stage_files() if isinstance(subject.server, PrintsStages) else ())]
        followed = tails() if files else []
        with ExitStack() as stack:
            for tail in followed:
                stack.enter_context(tail.watching(files))
            watch = observe(
                partial(_moment, subject),
                over_s or (STAGES_LOOK_S if stages else ONE_LOOK_S),
                still_there=lambda: subject.process is None or alive(subject.process),
                specs=partial(_specs, subject),
                progress=progress or Silent(),
            )
        in_stages, notes = _of_families(followed) if followed else ({}, ())
        resident = resident_by_connections(subject.server, subject.enter)
        ledger = ledger_of(subject, watch, forecast=over_s is not None, resident=resident, stages=in_stages)
        return replace(ledger, warnings=(*ledger.warnings, *notes))


@contextmanager
def _subject(
    pid: int | None, study: Study | None, server: str | None, option_file: Path | None, user: str
) -> Iterator[Subject]:
    with ExitStack() as stack:
        account = BY_OPTION if study is None else BY_STUDY
        if study is not None:
            check_consent(study)
            check_stages(study)
        if study is not None and study.target.attach is not None:
            server = f"{study.target.kind}:{study.target.attach}"
            option_file = Path(study.target.option_file) if study.target.option_file else None
            study = None
        if study is not None and study.target.is_running_service:
            make = targets.of_study(study).running
            assert make is not None, "a kind whose studies may name one that runs"
            stated = targets.canonical(study).target.settings  # as the study states them
            subject = _attached(make(study.target), None)
            effective = {**stated, **subject.effective}
            yield replace(subject, configured=stated, effective=effective, declared=study.target.limit)
        elif study is not None:
            yield _private(stack, study)
        elif server is not None:
            attached = attach(server, option_file=option_file, user=user, account=account)
            stack.callback(attached.close)
            yield _attached(attached, pid)
        elif pid is not None:
            process = running(pid)
            yield Subject(
                f"{comm_of(pid) or 'a process'} (pid {pid})", Place(pid=pid), frozenset({"process"}), process=process
            )
        else:
            yield Subject("this machine")


def _attached(server: Attached, pid: int | None) -> Subject:
    row = targets.KINDS.get(server.kind)
    ruled_as = row.ruled_as if row is not None else ""
    pid = pid if pid is not None else server.pid()
    local = pid is not None or server.local()
    missing = "its process is not visible here; name it with --pid" if local else ELSEWHERE
    return Subject(
        f"{server.version()} at {server.describe()}" + (f" (pid {pid})" if pid is not None else ""),
        Place(pid=pid, no_process=missing),
        frozenset({"process", rows_of(server.kind), rows_of(ruled_as or server.kind)}),
        server,
        server.configured(),
        server.effective(),
        local,
        None if pid is None else running(pid),
    )


def _private(stack: ExitStack, study: Study) -> Subject:
    study = targets.canonical(study)
    kind, shards = study.target.kind, study.target.shards
    if shards is not None and not targets.of_study(study).one_system:  # all alike
        study = study.model_copy(update={"target": study.target.model_copy(update={"shards": 1})})
    lease = stack.enter_context(
        Lease.acquire(f"{kind} for the limits of study {study.study.name}", visible=study.as_toml())
    )
    workload = workload_of(study)
    target = make_target(study, lease, kind, driver_user(study, workload, lease).privilege)
    stack.callback(target.destroy)
    stack.push(partial(_say_ending, kind))
    target.create()
    state = TargetState(study.target.settings, study.target_limits)
    target.start(state)
    pid = next(iter(target.pids()), None)
    words = f"{target.version()}, started for study {study.study.name}"
    words += f" as one of its {shards} shards" if study.target.shards != shards else ""
    asked, used = {**state.settings, **state.limits}, target.effective()
    row = targets.of_study(study)
    kinds = frozenset({"process", rows_of(kind), rows_of(row.ruled_as or kind)})
    if pid is None:
        place = Place(no_process=f"{kind} runs inside its clients' processes, and no client runs now")
        return Subject(words, place, kinds, configured=asked, effective=used)
    started = Subject(
        words, Place(pid=pid), kinds, target, asked, used, process=running(pid), declared=study.target.limit
    )
    if row.attachable is None or row.one_system:  # a web server, a cache, a cluster: asked directly
        return started
    endpoint = target.endpoint()
    enter = partial(attach, f"{kind}:{endpoint.address}", option_file=Path(endpoint.options["option_file"]))
    server = enter()
    stack.callback(server.close)
    return replace(started, server=server, enter=enter)


def _say_ending(kind: str, why: type[BaseException] | None, *_: object) -> None:
    if why is not None and issubclass(why, KeyboardInterrupt):
        tell(f"Ending {kind}.")


def _moment(subject: Subject) -> Moment:
    server = subject.server
    if server is None:
        return Moment(take(subject.place, EVERYTHING), {})
    others = tuple(pid for pid in server.pids() if pid != subject.place.pid)
    counters = {**server.counters(), **(server.exposure.now() if isinstance(server, Exposing) else {})}
    return Moment(take(replace(subject.place, others=others), EVERYTHING), counters)


def observe(
    look: Callable[[], Moment],
    over_s: float,
    *,
    still_there: Callable[[], bool],
    specs: Callable[[], Sequence[CounterSpec]] = tuple,
    progress: Progress,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Watch:
    """Readings, fewer where the subject ends. TargetError before the second one."""
    every_s = min(max(over_s / READINGS, SHORTEST_S), LONGEST_S, over_s)
    count = max(1, round(over_s / every_s))
    first = look()
    watch = Watch(first, first, [])
    progress.phase("watching the limits", count)
    for number in range(1, count + 1):
        sleep(max(0.0, first.snapshot.at_s + number * every_s - clock()))
        try:
            moment = look()
        except TargetError:  # a live server that does not answer
            if still_there():
                raise
        if not still_there():
            watch.ended = True
            break
        watch.intervals.append((moment.snapshot.at_s, _metrics(watch.last, moment, specs()).values))
        watch.last = moment
        progress.step(f"{watch.watched_s:.0f} s")
    if not watch.intervals:
        raise TargetError(
            "The process ended before it could be read twice", remedy="Name a process that keeps running."
        )
    return watch


def _metrics(
    first: Moment, last: Moment, specs: Sequence[CounterSpec] = (), asked: Mapping[str, float] | None = None
) -> Readings:
    readings = read(first.snapshot, last.snapshot, EVERYTHING)
    elapsed_s = last.snapshot.at_s - first.snapshot.at_s
    values, missing = counter_metrics(first.counters, last.counters, elapsed_s, specs)
    return Readings(*derive({**(asked or {}), **readings.values, **values}, {**readings.missing, **missing}))


def ledger_of(
    subject: Subject,
    watch: Watch,
    *,
    forecast: bool,
    resident: Sequence[tuple[float, float]] = (),
    stages: Mapping[str, float] | None = None,
) -> LedgerNow:
    """forecast: add when a limit saturates. resident: bytes by connections; default: those of the watch."""
    readings = _metrics(watch.first, watch.last, _specs(subject), _asked(subject))
    values, missing = dict(readings.values), dict(readings.missing)
    if not subject.local:
        row = targets.KINDS.get(subject.kind)
        own = f"{row.ruled_as if row is not None and row.ruled_as else subject.kind}."
        read_here = {*values, *missing, *(name for source in EVERYTHING for name in source.metrics)}
        missing |= {name: ELSEWHERE for name in read_here if not name.startswith(own)}
        values = {name: value for name, value in values.items() if name.startswith(own)}
    values |= stages or {}
    names = f"{subject.kind}.connections", "target.memory.rss"
    pairs = [(read[names[0]], read[names[1]]) for _, read in watch.intervals if all(name in read for name in names)]
    at_full = f"{subject.kind}.memory_at_full"
    if (expected := memory_at_full(subject.kind, resident or pairs, values)) is not None:
        values[at_full] = expected
    elif len({count for count, _ in resident or pairs}) < FEWEST_COUNTS:
        missing[at_full] = missing.get("target.memory.rss", TOO_STEADY)
    warnings = [f"the watched process ended after {watch.watched_s:.0f} s"] if watch.ended else []
    if resident:
        warnings.append("memory per connection was measured with idle connections; statements take more")
    if isinstance(subject.server, Exposing):
        warnings += subject.server.exposure.missing()
    known, unread = read_now(
        values,
        missing,
        kinds={*subject.kinds, *FAMILIES},
        configured=subject.configured,
        effective=subject.effective,
        rules=rules_among(subject.declared, values),
    )
    if forecast:
        known = tuple(_with_time(limit, watch) for limit in known)
    return LedgerNow(
        subject=subject.words,
        watched_s=watch.watched_s,
        readings=len(watch.intervals) + 1,
        limits=tuple(sorted(known, key=urgency)),
        unread=unread,
        clamped=clamped(subject.configured, subject.effective),
        warnings=tuple(warnings),
    )


def _specs(subject: Subject) -> Sequence[CounterSpec]:
    server = subject.server
    if server is None:
        return ()
    return (*server.counter_specs, *(server.exposure.counter_specs if isinstance(server, Exposing) else ()))


STATUS_ORDER = {"reached": 0, "near": 2, "free": 4, "unlimited": 5, "": 6}
RUNS_OUT, COSTS_NOTHING = 1, 3


def urgency(limit: Limit) -> tuple[int, float, float]:
    """Sort key: reached, running out (soonest first), near, full ones that cost nothing; within these by use."""
    if limit.status != "reached" and limit.exhausted_at is not None:
        return RUNS_OUT, limit.exhausted_at.load, 0.0
    order = COSTS_NOTHING if limit.costs_nothing else STATUS_ORDER[limit.status]
    return order, 0.0, -limit.use / limit.ceiling


PRESSURES = frozenset(rule.id for rule in RULES if rule.pressure)


def _with_time(limit: Limit, watch: Watch) -> Limit:
    if limit.id in PRESSURES or limit.status == "unlimited":
        return limit
    if limit.status == "reached":
        return replace(limit, exhausted_at=Saturation(0.0, 0.0, 0.0, "measured", "bracket"))
    series = [(at_s, values[limit.use_metric]) for at_s, values in watch.intervals if limit.use_metric in values]
    times_s, uses = [at_s for at_s, _ in series], [use for _, use in series]
    return replace(limit, exhausted_at=over_time(times_s, uses, limit.ceiling))


def _asked(subject: Subject) -> dict[str, float]:
    """As "KIND.NAME.asked", configured before effective; 0 for what the server worked out itself."""
    row = targets.KINDS.get(subject.kind)
    worked_out = dict.fromkeys(row.worked_out & subject.effective.keys() if row is not None else (), 0)
    settings = {**subject.effective, **worked_out, **subject.configured}
    numbers = ((name, as_number(value)) for name, value in settings.items())
    return {f"{subject.kind}.{name}.asked": number for name, number in numbers if number is not None}


TOO_STEADY = "the number of connections hardly changed; watch longer (--over) to see what each one takes"


def _of_families(followed: Sequence[Tail]) -> tuple[Mapping[str, float], tuple[str, ...]]:
    metrics: Mapping[str, float] = {}
    readings = [reading for tail in followed for reading in tail.readings()]
    if readings:
        pairs = [(reading.at_s, reading.counters) for reading in readings]
        specs = [spec for tail in followed for spec in tail.counter_specs]
        metrics = of_readings(pairs, pairs[0][0], pairs[-1][0], specs)
    said = [note for family in causes() for note in family.now(metrics, readings)]
    return metrics, (*said, *(why for tail in followed for why in tail.missing()))
