"""A study over a fleet: its hosts connected and set up around an experiment, with a bench that they drive."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from loadframe.bench.checking import check_study
from loadframe.bench.declared import workload_of
from loadframe.bench.rig import kinds_of
from loadframe.errors import StudyError
from loadframe.experiments.frame import Executor
from loadframe.kinds import registry as targets
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads.base import MakesObjects
from loadframe_fleet.bench import FleetBench
from loadframe_fleet.declaration import Fleet, HostTable, Role
from loadframe_fleet.hosts import Hosts, serving_host
from loadframe_fleet.load import OBJECT_AXES, check_shared
from loadframe_fleet.part import is_private

MACHINE, SETTINGS = "machine", "settings"
"""In may_change of the fleet file."""


class DriversOver(Executor):
    """Has the fleet's hosts drive the steps, while they are connected."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def check_study(self, study: Study) -> None:
        """A private target's and its drivers' requirements have been checked on their hosts."""
        far = self._hosts.serving is not None
        check_study(study, target_here=not far, driver_here=not far)

    def bench(self, study: Study, run: RunFolder, say: Callable[[str], None]) -> FleetBench:
        return FleetBench(study, run, say, self._hosts)


@contextmanager
def drivers_over(fleet: Fleet, study: Study, say: Callable[[str], None] = lambda _: None) -> Iterator[DriversOver]:
    """Has the fleet's hosts drive this study. UserError where one is not reached, or several cannot drive it."""
    check_shared(study)
    _check_target(fleet, study)
    check_may_change(fleet, study)
    with Hosts(fleet, study, say) as hosts:
        yield DriversOver(hosts)


def _check_target(fleet: Fleet, study: Study) -> None:
    if not is_private(study):
        if study.load.axis in OBJECT_AXES:
            raise StudyError(
                f"load.axis = {study.load.axis!r} needs a server that Loadframe starts, and this one runs already",
                remedy="Choose the axis concurrency, or a target without an address.",
            )
        return
    able = sorted(kind for kind, row in targets.KINDS.items() if row.listening)
    for kind in kinds_of(study):
        if kind not in able or study.target.shards is not None:
            raise StudyError(
                f"a fleet cannot load a server of kind {kind!r} that Loadframe starts",
                remedy=f"It starts these on the target's host: {', '.join(able)}. Others are started there by "
                'hand, and named: kind = "url" with target.settings.url, target.attach, or target.listen of a service.',
            )
    if not isinstance(workload_of(study), MakesObjects):
        raise StudyError(
            f"the workload {study.workload.kind!r} cannot load a server that is started on another host",
            remedy="Use the workload http, or name the address of a server that runs already.",
        )
    serving_host(fleet)


def check_may_change(fleet: Fleet, study: Study, role: Role = "target") -> None:
    """StudyError where the study changes the machine of its target, or a service that runs there, and the fleet file
    does not allow that. role: of the hosts on which the target runs."""
    if any(table.settings for table in study.host_tables) or "host" in study.remedies.allow:
        for host in _without(fleet, role, MACHINE):
            raise StudyError(
                f"the study may change settings of its target's machine, and the fleet file does not say that those of "
                f"host {host.name!r} may be changed",
                remedy=f'If its owner permits it, set may_change = ["{MACHINE}"] in its [[host]]; else take "host" out '
                "of remedies.allow.",
            )
    if study.target.is_running_service and (study.target.owned or study.target.restart):
        for host in _without(fleet, role, SETTINGS):
            raise StudyError(
                "the study may change settings of a service that runs already, and the fleet file does not say that "
                f"those on host {host.name!r} may be changed",
                remedy=f'If its owner permits it, set may_change = ["{SETTINGS}"] in its [[host]]; else take owned and '
                "restart out of [target].",
            )


def _without(fleet: Fleet, role: Role, what: str) -> list[HostTable]:
    return [host for host in fleet.with_role(role) if what not in host.may_change]
