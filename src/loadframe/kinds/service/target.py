"""A service of the user's own, started privately as an unprivileged user."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.behind import family
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.exposed import Exposure
from loadframe.kinds.exposed_sources import sources_of, stage_files
from loadframe.kinds.private_target import PrivateTarget
from loadframe.kinds.service.read_back import read
from loadframe.kinds.service.server import Company, Server, started_by
from loadframe.kinds.service.words import KIND, filled, passed, shown
from loadframe.model import CounterSpec, Endpoint, TargetState
from loadframe.study.declaration import TargetTable


class ServiceTarget(PrivateTarget, Server):
    kind = KIND
    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self, target: TargetTable, catalogue: Catalogue, lease: Lease, resources: Resources) -> None:
        self._allowance = resources.run_by(started_by(target.user, lease))
        Server.__init__(self, lease, self._allowance.user, target)
        self.catalogue = catalogue
        asker = replace(self._allowance, groups=(), cpus=None)  # the cost of asking is not the service's
        names = target.exposed_names
        asked = sources_of(target.metrics, tuple(names), lambda: self.port or 0, lambda: asker, lambda: passed(target))
        self.exposure = Exposure(asked, names)
        self._company = Company(target, lease, resources.cpus)

    def create(self) -> None:
        self._company.create()
        super().create()

    def start(self, state: TargetState) -> None:
        self._company.start({name: shown(value) for name, value in self._wanted(state).settings.items()})
        super().start(state)

    def destroy(self) -> None:
        super().destroy()
        self._company.destroy()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids(), **self._company.processes()}

    def counters(self) -> dict[str, float]:
        self._running()
        self._company.check()
        self.bound_log()
        return {}

    def notes(self) -> tuple[str, ...]:
        return (*self.noted, *self._company.noted())

    def stage_files(self) -> Sequence[Path]:
        return stage_files(self._target.metrics, self.log)

    def pids(self) -> tuple[int, ...]:
        first = self.pid
        return () if first is None else family(first)

    def endpoint(self) -> Endpoint:
        address = f"127.0.0.1:{self.port}"
        return Endpoint(self.kind, address, {"paths": self._target.paths or "/", "host": address})

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self.begin(wanted, allowance, self._company.places())
        self._run_commands(wanted, wanted.settings, allowance)

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        """Without a restart: watched files, commands. A setting that a state leaves out needs a start."""
        if any(name not in wanted.settings for name in changed):
            PrivateTarget.stop(self)
            self.start(wanted)
            return
        self.files.write(wanted, self.values(wanted))
        self._run_commands(wanted, changed, self._allowed(wanted))
        self._entered(wanted)

    def _run_commands(self, wanted: TargetState, names: Iterable[str], allowance: Allowance) -> None:
        values = self.values(wanted)
        for name in names:
            with_value = {**values, "value": values[name]}
            if command := [filled(word, with_value) for word in self._target.setting[name].command]:
                self.run(command, allowance, f"{name} was not applied")

    def _answers(self) -> bool:
        return self.accepts()

    def _entered(self, state: TargetState) -> None:
        self._effective = used = dict(state.settings)
        values = self.values(state)
        run = functools.partial(self.run, allowance=self._allowed(state))
        for name, table in self._target.setting.items():
            if table.read_back is not None:
                fill = functools.partial(filled, values=values)
                run_it = functools.partial(run, fact=f"target.setting.{name}.read_back")
                value = read(name, table.read_back, run_it, fill, self.files.text_of)
                used[name] = self.catalogue.shown(name, shown(value))
        self._state = replace(state)
