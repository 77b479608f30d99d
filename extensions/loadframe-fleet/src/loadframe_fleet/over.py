"""A study over a fleet: its hosts connected and set up around an experiment, with a bench that they drive; and whether
they limit its curve."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.checking import check_study
from loadframe.bench.declared import workload_of
from loadframe.bench.rig import kinds_of
from loadframe.errors import StudyError
from loadframe.experiments.frame import Executor
from loadframe.experiments.proof import compared
from loadframe.kinds import registry as targets
from loadframe.model import CLIENT_AXES, RATE_AXES, Curve, DriversLimit, FleetDrivers, Step, StepRequest, Verdict
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads.base import MakesObjects
from loadframe_fleet.bench import FleetBench
from loadframe_fleet.declaration import Fleet, Role
from loadframe_fleet.hosts import Hosts, serving_host
from loadframe_fleet.load import OBJECT_AXES, check_shared
from loadframe_fleet.part import is_private
from loadframe_fleet.records import DRIVERS
from loadframe_fleet.wire import Say


class DriversOver(Executor):
    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def check_study(self, study: Study) -> None:
        """What a private target and its drivers need was checked on their hosts."""
        far = self._hosts.serving is not None
        check_study(study, target_here=not far, driver_here=not far)

    def bench(self, study: Study, run: RunFolder, say: Say) -> FleetBench:
        return FleetBench(study, run, say, self._hosts)

    def compare_drivers(self, book: Bookkeeping, treatment: str, curve: Curve) -> FleetDrivers | None:
        """All against all but the last at one load; None for one host or too little budget. StepVoid."""
        bench = book.bench
        if not curve.points:
            return None
        assert isinstance(bench, FleetBench), "hosts drive it"
        bench.link_bytes_per_s()  # kept in the run, even where nothing else is measured
        if len(bench.drivers) < 2:
            return None
        # On an axis other than clients or rate the same clients ask for more, so the last point: what the curve shows.
        of_clients = bench.study.load.axis in CLIENT_AXES | RATE_AXES
        level = (curve.peak if of_clients else curve.points[-1]).load
        if level < len(bench.drivers) or not book.budget.affords([level] * 2 * bench.study.measure.blocks.min):
            return None
        return compare_with(book, treatment, level, bench.drivers[:-1])


@contextmanager
def drivers_over(fleet: Fleet, study: Study, say: Say = lambda _: None) -> Iterator[DriversOver]:
    """UserError where one is not reached, or several cannot drive it."""
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
    """StudyError where the study changes the machine of its target, or a service there, and the fleet file does not
    allow that. role: of the hosts on which the target runs."""
    machine = any(table.settings for table in study.host_tables) or "host" in study.remedies.allow
    service = study.target.is_running_service and (study.target.owned or study.target.restart)
    for changes, what, of, those, take in (
        (machine, "machine", "its target's machine", "those of", '"host" out of remedies.allow'),
        (service, "settings", "a service that runs already", "those on", "owned and restart out of [target]"),
    ):
        for host in fleet.with_role(role) if changes else ():
            if what not in host.may_change:
                raise StudyError(
                    f"the study may change settings of {of}, and the fleet file does not say that {those} host "
                    f"{host.name!r} may be changed",
                    remedy=f'If its owner permits it, set may_change = ["{what}"] in its [[host]]; else take {take}.',
                )


ALIKE = 0.5
"""Where drivers are the limit, all of n give n / m of what m give; they are not where the interval excludes half of
that."""
FULL = 0.85
"""Share of what a link carries by itself: HTTP, TCP and IP take the rest."""


def compare_with(book: Bookkeeping, treatment: str, level: float, fewer: tuple[str, ...]) -> FleetDrivers:
    """All drivers against these, with as many connections, kept in the run. StepVoid."""
    bench, blocks = book.bench, book.bench.study.measure.blocks
    assert isinstance(bench, FleetBench), "hosts drive it"
    everyone = bench.drivers
    less = book.next_treatment(f"driven by {', '.join(fewer)}", bench.start_state)
    sides = {treatment: everyone, less: fewer}
    book.progress.phase(f"{len(everyone)} drivers against {len(fewer)} at {level:g}", 2 * blocks.min)
    taken: list[Step] = []
    try:
        for block in range(1, blocks.max + 1):
            if block > blocks.min and not book.budget.affords([level] * 2):
                break
            for name in book.random.sample(list(sides), len(sides)):
                bench.drive_from(sides[name])
                taken.append(book.take(StepRequest(name, level, block=block, purpose="proof")))
    finally:
        bench.drive_from(everyone)
    drivers = judge(taken, treatment, less, everyone, fewer, bench.link_bytes_per_s())
    DRIVERS.add(bench.run, drivers)
    return drivers


def judge(
    steps: Sequence[Step],
    treatment: str,
    less: str,
    everyone: tuple[str, ...],
    fewer: tuple[str, ...],
    link_bytes_per_s: float | None,
) -> FleetDrivers:
    """From such steps, all of one level."""
    comparison = compared(steps, less, treatment)
    of_all = [step for step in steps if step.treatment == treatment]
    moved = [step.metrics["workload.bytes"] for step in of_all if "workload.bytes" in step.metrics]
    moved_bytes_per_s = fmean(moved) if len(moved) == len(of_all) else None
    limit = _limit(comparison.verdict, len(everyone) / len(fewer), moved_bytes_per_s, link_bytes_per_s)
    return FleetDrivers(
        of_all[0].level, everyone, fewer, limit, moved_bytes_per_s, link_bytes_per_s,
        verdict=comparison.verdict, levels=comparison.levels,
    )  # fmt: skip


def _limit(verdict: Verdict, more: float, moved: float | None, link: float | None) -> DriversLimit:
    """more: how many times as many drivers all of them are, hence the ratio where drivers are the limit."""
    if verdict.high < 1 + ALIKE * (more - 1):
        return "link" if moved is not None and link is not None and moved >= FULL * link else "target"
    return "drivers" if verdict.decision == "better" else "not proven"
