"""An already running server under test: settings are changed in place and restored. A service is as its study says."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.bench.base import OnBench
from loadframe.bench.places import THERE, OwnSchema
from loadframe.bench.rig import DRIVER_CPUS
from loadframe.cages.cage import Cage
from loadframe.changes.durable import NOT_ALONE, DurableJournal
from loadframe.changes.places import OwnPlace, Place, again
from loadframe.changes.process import CPUS, ServerProcess
from loadframe.errors import ChangeError, TargetError
from loadframe.host.identity import identify
from loadframe.kinds.base import Answering, Attached, Exposing, Noting, PrintsStages
from loadframe.kinds.catalogue import differing
from loadframe.kinds.config_file import BETWEEN, NAME, ConfigFile, written
from loadframe.kinds.exposed import Exposure
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.registry import BY_STUDY, READ_ONLY_REMEDY, attach, canonical, of_study
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.study import Study
from loadframe.workloads.base import MakesThings, Workload
from loadframe.workloads.databases import marked, new_mark
from loadframe.workloads.forking import end_fork_servers


class AttachedTarget(OnBench):
    """It has no cage. Its user ends with `leave`."""

    embedded = False
    private = False
    cages: tuple[Cage, ...] = ()
    initial: TargetState | None = TargetState()

    def __init__(self, study: Study, durable: DurableJournal, server: Attached | None = None) -> None:
        """server: already found. TargetError where it refuses access."""
        table = study.target
        self._row = of_study(study)
        if server is None:
            option_file = Path(table.option_file) if table.option_file else None
            server = (
                self._row.running(table)
                if self._row.running is not None
                else attach(f"{table.kind}:{table.attach}", option_file=option_file, account=BY_STUDY)
            )
        self._server = server
        self._durable = durable
        self._state = TargetState()
        self._made: Place | None = None
        """What the workload creates there."""
        self._mark = new_mark()
        self._named = process_settings(study)
        self._process: ServerProcess | None = None
        self._config: ConfigFile | None = None
        if table.config is not None:
            self._config = ConfigFile(Path(table.config), table.restart, self._server.address, self._server.words)
        self.kind = table.kind
        self.counter_specs: tuple[CounterSpec, ...] = self._server.counter_specs
        self.exposure = self._server.exposure if isinstance(self._server, Exposing) else Exposure()

    def stage_files(self) -> Sequence[Path]:
        return self._server.stage_files() if isinstance(self._server, PrintsStages) else ()

    def create(self) -> None:
        """TargetError where the process that the study changes is unknown, ChangeError where the place of our
        configuration file is taken."""
        if self._config is not None:
            self._config.make_room()
        if not self._named:
            return
        pid = self._server.listener()
        process = identify(pid) if pid is not None else None
        if process is None:
            raise TargetError(
                f"{self._named[0]} of {self._server.words} cannot be changed: which process listens there is not to be "
                "seen",
                remedy="Name a socket of this machine in target.attach, and run outside of the server's container; or "
                "leave out what the study says of its processes.",
            )
        self._process = ServerProcess(process, self._server.kind, self._server.words)

    def check(self, state: TargetState) -> None:
        """TargetError for what needs a restart, ChangeError for processes' settings that the study may not change."""
        changed = differing(self._state.settings, state.settings)
        known = self._row.attachable
        if known is not None and known.read_only and (wanted := [*changed, *_of_processes(state)]):
            raise TargetError(f"{known.read_only}: {', '.join(wanted)}", remedy=READ_ONLY_REMEDY)
        unable = [name for name in state.limits if name not in self._named]
        unable += [name for name in changed if not is_dynamic(self._row, name) and self._config is None]
        if unable:
            raise TargetError(
                f"{self._server.words} would have to be restarted to change {', '.join(unable)}, and it is not "
                "Loadframe's own",
                remedy=READ_ONLY_REMEDY,
            )
        for name, value in _of_processes(state).items():
            self._running().check(name, value)

    def start(self, state: TargetState) -> None:
        self._server.version()
        self.apply(state)

    def install(self, workload: Workload) -> None:
        """TargetError where there is a schema that is not ours."""
        schema = OwnSchema(self.endpoint(), self._server, lambda: workload.remove(self.endpoint()))
        schema.make_room()
        self._durable.intend(schema, schema.name, THERE)
        self._made = schema
        workload.install(self.endpoint())

    def apply(self, state: TargetState) -> None:
        """Raises before anything is changed."""
        self.check(state)
        self._apply_at_start(state)
        changed = differing(self._state.settings, state.settings)
        self._undo(self._server, [name for name in changed if name not in state.settings])
        for name in changed:
            if name in state.settings:
                self._durable.set(self._server, name, state.settings[name])
        before, then = _of_processes(self._state), _of_processes(state)
        if before != then:
            self._undo(self._running(), before.keys() - then.keys())
            for name, value in then.items():
                if before.get(name) != value:
                    self._durable.set(self._running(), name, value)
        self._state = replace(state, host={})

    def _apply_at_start(self, state: TargetState) -> None:
        """All other settings are reset: a restart may keep them or not."""
        now, then = self._at_start(self._state), self._at_start(state)
        if self._config is None or now == then:
            return
        self._undo(self._server)
        before = self._server.effective()
        if then:
            _, text = written(self._row, then)
            lines = [line for line in text.splitlines() if not line.startswith("[")]
            self._durable.set(self._config, NAME, BETWEEN.join(lines))
        else:
            self._undo(self._config)
        self._state = TargetState(then)
        end_fork_servers()  # they see the socket of the server before, where that was bound into their own /tmp
        after = self._server.effective()
        if then and all(after.get(name) == before.get(name) != value for name, value in then.items()):
            raise TargetError(
                f"{self._server.words} has the same {', '.join(then)} as before its restart",
                remedy="Does it read target.config when it starts, and does nothing that it reads later say otherwise?",
            )

    def _at_start(self, state: TargetState) -> dict[str, SettingValue]:
        return {name: value for name, value in state.settings.items() if not is_dynamic(self._row, name)}

    def _undo(self, place: Place, names: Container[str] | None = None) -> None:
        """ChangeError where another program has changed a setting, TargetError on failure."""
        for outcome in self._durable.back(place, names):
            if outcome.status == "left":
                raise ChangeError(str(outcome), remedy=NOT_ALONE)
            if outcome.status == "failed":
                raise TargetError(str(outcome), remedy=f"{again(outcome.place)} to put it back.")

    def _running(self) -> ServerProcess:
        assert self._process is not None, "the study names what it changes of processes"
        return self._process

    def abandon(self) -> list[ChangeRecord]:
        self._state = TargetState()
        moved = self._durable.back(self._process) if self._process is not None else []
        put_back = [*moved, *self._durable.back(self._server)]
        return [*put_back, *self._durable.back(self._config)] if self._config is not None else put_back

    def leave(self) -> list[ChangeRecord]:
        dropped = self._durable.back(self._made) if self._made is not None else []
        return [*dropped, *self.abandon()]

    def reset(self) -> None:
        """Does nothing: a running server's high-water marks and caches are its owner's."""

    forget = empty = kill = stop = reset

    def destroy(self) -> None:
        self.leave()
        self._server.close()

    def effective(self) -> dict[str, SettingValue]:
        return {**self._server.effective(), **{name: self._running().read(name) for name in self._named}}

    def counters(self) -> dict[str, float]:
        return self._server.counters()

    def local(self) -> bool:
        return self._server.local()

    def pids(self) -> tuple[int, ...]:
        return self._server.pids()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids(), **self._server.helpers()}

    def endpoint(self) -> Endpoint:
        return marked(self._server.endpoint(), self._mark)

    def healthy(self) -> bool:
        if isinstance(self._server, Answering):
            return self._server.answers()
        try:
            return bool(self._server.effective())
        except TargetError:
            return False

    def version(self) -> str:
        return self._server.version()

    def log_tail(self, lines: int = 20) -> str:
        return ""

    def notes(self) -> tuple[str, ...]:
        return self._server.notes() if isinstance(self._server, Noting) else ()

    def describe(self) -> Mapping[str, str]:
        return {"data": self._server.describe()}


def process_settings(study: Study) -> tuple[str, ...]:
    names = [*study.target_limits, *study.target_cpus]
    for cage in (*(alternative.cage for alternative in study.alternative), *(change.cage for change in study.change)):
        names += [*cage.limits, *cage.bound]
    return tuple(dict.fromkeys(name for name in names if name != DRIVER_CPUS))


def _of_processes(state: TargetState) -> dict[str, SettingValue]:
    return {**state.limits, **{name: cpus for name, cpus in state.cpus.items() if name == CPUS}}


def is_dynamic(row: KindOfTarget, name: str) -> bool:
    spec = row.setting(name)
    return spec is not None and spec.dynamic


def running(study: Study, durable: DurableJournal) -> AttachedTarget:
    """The running server that a study names. TargetError where it is not found."""
    return RunningTarget(study, durable) if study.target.is_running_service else AttachedTarget(study, durable)


class RunningTarget(AttachedTarget):
    """A running service: target.settings state what it already has."""

    def __init__(self, study: Study, durable: DurableJournal, server: Attached | None = None) -> None:
        super().__init__(study, durable, server)
        self._place: OwnPlace | None = None
        self._stated = dict(canonical(study).target.settings)
        self._owned = study.target.owned or bool(study.target.restart)
        self._state = self.initial = TargetState(self._stated)

    def start(self, state: TargetState) -> None:
        used = self._server.effective()
        if wrong := [name for name, value in self._stated.items() if used.get(name, value) != value]:
            name = wrong[0]
            raise TargetError(
                f"{self._server.words} has {name} = {used[name]}, and target.settings says {self._stated[name]}",
                remedy="Correct target.settings: a running service is taken as it is.",
            )
        super().start(state)

    def install(self, workload: Workload) -> None:
        if isinstance(workload, MakesThings):
            place = workload.own_place(super().endpoint())
            self._durable.intend(place, place.name, THERE)
            self._made = self._place = place
        workload.install(self.endpoint())

    def endpoint(self) -> Endpoint:
        endpoint = super().endpoint()
        known = {} if self._place is None else self._place.options
        return replace(endpoint, options={**endpoint.options, **known})

    def check(self, state: TargetState) -> None:
        """TargetError also for any change of a service that is not owned."""
        if state.settings != self._state.settings and not self._owned:
            raise TargetError(
                f"{self._server.words} is not changed: the study does not say that it is yours (target.owned)",
                remedy="If it is, set target.owned = true; or let Loadframe start a service of its own.",
            )
        super().check(state)

    def abandon(self) -> list[ChangeRecord]:
        put_back = super().abandon()
        self._state = TargetState(self._stated)
        return put_back

    def effective(self) -> dict[str, SettingValue]:
        return {**self._state.settings, **super().effective()}
