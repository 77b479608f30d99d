"""The study's private servers on this host, in their cages, as the coordinator asks for them; and the objects that they
serve.

The code is that of the local bench. What is asked for is one of a list of names, each with plain values: see
far_target.py for the other end.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from loadframe.bench.caged import CagedTarget, make_target
from loadframe.bench.checking import check_study
from loadframe.bench.rig import kinds_of
from loadframe.fleet.routes import listening_number
from loadframe.formats.json_text import write_json
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.signals import told
from loadframe.kinds import registry as targets
from loadframe.model import TargetState
from loadframe.recording.control import Recorder
from loadframe.recording.metrics import specs_text
from loadframe.study import Study
from loadframe.workloads.base import AsksForObjects, MakesObjects, Workload

Said = Mapping[str, Any]


class Serving:
    """Whoever makes it closes it. Its methods raise as those of the targets do."""

    def __init__(
        self, study: Study, address: str, lease: Lease, recorder: Recorder, workload: Workload, user: Privilege
    ) -> None:
        """address: of this host, the only one on which they take connections. workload: makes what they serve. user:
        the driver's. UserError where the study cannot be carried out here."""
        check_study(study, driver_here=False)
        self._study, self._lease, self._recorder, self._workload = study, lease, recorder, workload
        number = listening_number(address)
        self._targets: dict[str, CagedTarget] = {}
        self._kind = study.target.kind
        for kind in kinds_of(study):
            self._targets[kind] = target = make_target(study, lease, kind, user)
            target.listen_on(number)
        self._does: Mapping[str, Callable[[CagedTarget, Said], dict[str, Any] | None]] = {
            "create": self._create,
            "check": lambda target, said: target.check(state_of(said)),
            "start": lambda target, said: target.start(state_of(said)),
            "apply": lambda target, said: target.apply(state_of(said)),
            "reset": lambda target, _: target.reset(),
            "forget": lambda target, _: target.forget(),
            "empty": lambda target, _: target.empty(),
            "kill": lambda target, _: target.kill(),
            "stop": lambda target, _: target.stop(),
            "destroy": lambda target, _: target.destroy(),
            "effective": lambda target, _: {"effective": target.effective()},
            "counters": self._counters,
            "endpoint": lambda target, _: {"address": target.endpoint().address},
            "healthy": lambda target, _: {"healthy": target.healthy()},
            "version": lambda target, _: {"version": target.version()},
            "log": lambda target, said: {"log": target.log_tail(int(said["lines"]))},
            "describe": lambda target, _: {"words": dict(target.describe())},
            "notes": lambda target, _: {"notes": list(target.notes())},
            "free": lambda *_: {"bytes": shutil.disk_usage(self._lease.folder).free},
            "follow": self._follow,
            "install": self._install,
            "level": lambda target, said: self._workload.set_level(target.endpoint(), float(said["level"])),
            "warm": self._warm,
        }

    def close(self) -> None:
        """All of them have ended, and their folders are gone."""
        for target in self._targets.values():
            target.destroy()

    def asked(self, said: Said) -> dict[str, Any]:
        """said: kind, do, and what that needs."""
        does = self._does.get(str(said.get("do")))
        target = self._targets.get(str(said.get("kind")))
        if does is None or target is None:
            raise ValueError(f"no target here does {said.get('do')!r}")
        found = does(target, said) or {}
        return {**found, "first": list(target.pids()[:1])}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Of the one that is loaded, by component."""
        return self._targets[self._kind].processes()

    def _create(self, target: CagedTarget, said: Said) -> dict[str, Any]:
        target.create()
        prefix = str(said["prefix"])
        specs = [replace(spec, name=f"{prefix}{spec.name}") for spec in target.counter_specs]
        self._recorder.note("counters", specs_text(specs))
        return {"specs": [asdict(spec) for spec in target.counter_specs]}

    def _counters(self, target: CagedTarget, said: Said) -> dict[str, Any]:
        """Into this host's recording, too: what is measured of the target comes from one clock."""
        found = target.counters()
        prefix = str(said["prefix"])
        self._recorder.note("service", write_json({f"{prefix}{name}": value for name, value in found.items()}))
        return {"counters": found, "stopped": told(target.pids()) or ""}

    def _follow(self, target: CagedTarget, said: Said) -> None:
        self._kind = str(said["kind"])
        for cage in target.cages:
            self._recorder.follow_cgroup(cage.component, cage.folders)

    def _install(self, target: CagedTarget, _said: Said) -> None:
        assert isinstance(self._workload, MakesObjects), "it was checked before"
        self._workload.make_objects(target.endpoint())

    def _warm(self, target: CagedTarget, said: Said) -> None:
        assert isinstance(self._workload, AsksForObjects), "a cache is asked for objects"
        self._workload.warm(target.endpoint(), float(said["level"]))


def is_private(study: Study) -> bool:
    """Whether the study's target is one that Loadframe starts."""
    return not study.target.is_running and targets.kind_named(study.target.kind).by_address is None


def state_of(said: Said) -> TargetState:
    """From what the coordinator sends of it."""
    given = said["state"]
    limits = {str(name): int(value) for name, value in given["limits"].items()}
    return TargetState(dict(given["settings"]), limits, cpus={str(k): str(v) for k, v in given["cpus"].items()})


def state_told(state: TargetState) -> dict[str, Any]:
    """So that `state_of` gives it again."""
    whole = asdict(state)
    return {"state": {name: dict(whole[name]) for name in ("settings", "limits", "cpus")}}
