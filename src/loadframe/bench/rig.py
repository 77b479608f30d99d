"""A target on the bench, and the machine around it, each brought to one state at a time, with every change in the
journal."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from loadframe.bench.base import OnBench
from loadframe.changes.durable import NOT_ALONE, DurableJournal
from loadframe.changes.host import Host
from loadframe.changes.journal import Journal, Reasons
from loadframe.changes.places import Place
from loadframe.errors import ChangeError, StudyError
from loadframe.model import ChangeRecord, CounterSpec, Reading, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.study.declaration import HostTable
from loadframe.workloads.base import Workload


def kinds_of(study: Study) -> tuple[str, ...]:
    named = (study.target.kind, *(alternative.target.kind for alternative in study.alternative))
    return tuple(dict.fromkeys(kind for kind in named if kind is not None))


def prefix_of(study: Study, kind: str) -> str:
    """The prefix of a target's counter names: two servers' may be equal."""
    return "" if len(kinds_of(study)) == 1 else f"{kind}."


class Rig:
    """target: created, not started; destroyed by its maker."""

    def __init__(self, target: OnBench, run: RunFolder, prefix: str = "", reasons: Reasons | None = None) -> None:
        self.target = target
        self._prefix = prefix
        self._journal = Journal(run, target, private=target.private, reasons=reasons)
        self._first: TargetState | None = None
        self._now: TargetState | None = None
        self._installed = False
        self._put_back: list[ChangeRecord] = []
        self._checked: list[TargetState] = []

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        """Including all that it has exposed so far."""
        specs = (*self.target.counter_specs, *self.target.exposure.counter_specs)
        return tuple(replace(spec, name=f"{self._prefix}{spec.name}") for spec in specs)

    def counters(self) -> dict[str, float]:
        """Values by the names of `counter_specs`. Raises as Target.counters does."""
        return {f"{self._prefix}{name}": value for name, value in self.target.counters().items()}

    def exposed(self) -> list[Reading]:
        return [
            replace(reading, counters={f"{self._prefix}{name}": value for name, value in reading.counters.items()})
            for reading in self.target.exposure.readings()
        ]

    def check(self, state: TargetState) -> None:
        """Raises as Target.check does. Each state is checked once, and none that the target has been in."""
        state = replace(state, cpus={}) if self.target.private else state
        if state not in self._checked:
            self.target.check(state)
            self._checked.append(state)

    def bring(self, treatment: str, state: TargetState, workload: Workload) -> dict[str, SettingValue]:
        """Returns the target's effective settings."""
        if self._now is None:
            begin = state if self.target.initial is None else self.target.initial
            self.target.start(begin)
            self._first = begin if self._first is None else self._first
            self._now = begin
            self._checked.append(replace(begin, cpus={}) if self.target.private else begin)
        if not self._installed:
            self.target.install(workload)
            self._installed = True
        if self._now != state:
            self.check(state)
            before, self._now = self._now, None  # not known until the change has succeeded
            try:
                self._journal.go(treatment, before, state)
            except Exception:  # not Ctrl-C: then `close` follows at once
                self._note(self.target.abandon())
                raise
        self._now = state
        return self.target.effective()

    def stop(self) -> None:
        self._note(self.target.abandon())
        self._ended()

    def empty(self) -> None:
        """The next `bring` starts it again."""
        self.stop()
        self.target.empty()

    def close(self) -> list[ChangeRecord]:
        """A private target's changes end with it; one that goes on is restored. Returns the outcome of each change."""
        self._note(self.target.leave())
        self._ended()
        return self._put_back

    def _ended(self) -> None:
        if self._first is not None and self._now is not None:
            self._journal.close(self._now, self._first)
        self._now = None

    def _note(self, outcomes: list[ChangeRecord]) -> None:
        self._put_back += outcomes
        self._journal.reverted(outcomes)


class Machine(Place, Protocol):
    def moves(self, name: str) -> tuple[str, ...]:
        """The settings that may change along with this one."""


class Surroundings:
    kind = "host"

    def __init__(
        self, machine: Machine, names: Iterable[str], durable: DurableJournal, run: RunFolder, reasons: Reasons | None
    ) -> None:
        """machine: the target's. names: all settings that any state may set."""
        self._names = tuple(dict.fromkeys(names))
        self._host = machine
        self._durable = durable
        far = not isinstance(machine, Host)
        self._journal = Journal(run, self, private=False, reasons=reasons, words=lambda: machine.words if far else "")
        self._now: Mapping[str, SettingValue] = {}

    def bring(self, treatment: str, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """All other settings become as they were; returns the effective ones."""
        if settings != self._now:
            self._journal.go(treatment, TargetState(host=self._now), TargetState(host=settings))
            self._now = dict(settings)
        return self.effective()

    def apply(self, state: TargetState) -> None:
        """ChangeError where the kernel rejects a value, or another program changes it too."""
        gone = self._now.keys() - state.host.keys()
        moved = {other for name in gone for other in self._host.moves(name)}
        for outcome in self._durable.back(self._host, gone | moved - state.host.keys()):
            if outcome.status != "reverted":
                raise ChangeError(str(outcome), remedy=NOT_ALONE)
        for name, value in state.host.items():
            if self._now.get(name) != value:
                self._durable.set(self._host, name, value, self._host.moves(name))

    def effective(self) -> dict[str, SettingValue]:
        return {name: self._host.read(name) for name in self._names}

    def close(self) -> list[ChangeRecord]:
        outcomes = self._durable.back(self._host)
        self._now = {}
        self._journal.reverted(outcomes)
        return outcomes


def host_settings(*tables: HostTable) -> dict[str, SettingValue]:
    """Later tables win. Raises as Host.check does."""
    check = Host().check
    return {name: value for table in tables for name, value in check(table.settings).items()}


def check_host(study: Study) -> None:
    """StudyError where the study may not change the machine; raises as Host.check does."""
    named = [table.settings for table in study.host_tables]
    if any(named) and "host" not in study.remedies.allow:
        first = next(name for settings in named for name in settings)
        raise StudyError(
            f"host.settings: the study changes {first} of the whole machine, and remedies.allow does not name that",
            remedy='If the change is permitted on this machine, set remedies.allow = ["target", "process", "host"]. '
            "It is put back at the end.",
        )
    for settings in named:
        Host().check(settings)
