"""The bench over a fleet: drivers on their hosts make the load; measurements, also of interfaces, come from the hosts'
recordings."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from loadframe.bench.attached import AttachedTarget, RunningTarget
from loadframe.bench.base import OnBench
from loadframe.bench.bench import RealBench
from loadframe.bench.evaluation import Evaluated, is_late
from loadframe.bench.loading import Loaded
from loadframe.bench.rig import Surroundings, host_settings, prefix_of
from loadframe.changes.durable import DurableJournal
from loadframe.errors import FleetError, StepVoid
from loadframe.host.processes import Allowance
from loadframe.model import ProfiledStep, ProfilePlace, Step, StepRequest
from loadframe.recording.frames import Tick
from loadframe.recording.snapshot_machine import InterfaceCounts, parse_interfaces
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads.base import Workload
from loadframe_fleet.clocks import ClockInStep
from loadframe_fleet.coordinator import Begun
from loadframe_fleet.far import FarJournal, FarMachine, FarServer, FarTarget
from loadframe_fleet.hosts import HostRecordings, Hosts, Way
from loadframe_fleet.load import OBJECT_AXES, FleetDriver, FleetLoad, FleetLoadOfObjects, check_all_along
from loadframe_fleet.looking import LOOPBACK
from loadframe_fleet.records import ENCRYPTS, LINKS, STEPS, FleetLink, FleetStep, LinkUse, VoidReason, watched_of
from loadframe_fleet.wire import Say

INTERFACES = "system:/proc/net/dev"
Between = Mapping[str, tuple[float, float]]
Bodies = Callable[[Between], Mapping[str, int]]
"""Bytes of answers that ended at each driver between two instants of its own clock; empty where one does not count."""


@dataclass(frozen=True, slots=True)
class Loading:
    """started_s, ended_s: by the coordinator's clock. answers_per_s, under_way: of all drivers together; shares: of the
    level, by driver. clocks, ticks: of each host."""

    started_s: float
    ended_s: float
    answers_per_s: float
    under_way: float
    shares: Mapping[str, int]
    clocks: Mapping[str, ClockInStep]
    ticks: Mapping[str, Sequence[Tick]]


@dataclass(frozen=True, slots=True)
class Carried(InterfaceCounts):
    """What an interface carried between two instants (CLOCK_MONOTONIC of that machine)."""

    from_s: float
    to_s: float


def carried(ticks: Sequence[Tick], name: str, start_s: float, end_s: float) -> Carried | None:
    """Between the outer readings within start_s..end_s; None without two, without the interface, or after a reset."""
    inside = [tick for tick in ticks if start_s <= tick.monotonic_s <= end_s and INTERFACES in tick.entries]
    if len(inside) < 2:
        return None
    first, last = (parse_interfaces(tick.entries[INTERFACES]).get(name) for tick in (inside[0], inside[-1]))
    if first is None or last is None:
        return None
    fields = InterfaceCounts.__dataclass_fields__
    grown = {field: getattr(last, field) - getattr(first, field) for field in fields}
    if min(grown.values()) < 0:
        return None
    return Carried(**grown, from_s=inside[0].monotonic_s, to_s=inside[-1].monotonic_s)


def link_uses(load: Loading, ways: Mapping[str, Way], target: str | None, bodies: Bodies) -> dict[str, LinkUse]:
    """Traffic to each driver from the target's host, and from that host to all. Empty without such a host. StepVoid."""
    if target is None:
        return {}
    read = {host: _carried(load, ways, host) for host in dict.fromkeys((*load.shares, target))}
    uses = {host: LinkUse(why_not=answer) for host, answer in read.items() if isinstance(answer, str)}
    seen = {host: answer for host, answer in read.items() if not isinstance(answer, str)}
    at_target = seen.pop(target, None)
    if seen:
        moved = bodies({host: (traffic.from_s, traffic.to_s) for host, traffic in seen.items()})
        whole = sum(load.shares.values())
        for host, traffic in seen.items():
            share = load.shares[host] / whole
            uses[host] = _use(traffic, traffic.received_bytes, traffic.received_packets, moved.get(host), load, share)
    if at_target is not None:
        ours_s = load.clocks[target].ours_s
        window = ours_s(at_target.from_s), ours_s(at_target.to_s)
        moved = bodies({host: load.clocks[host].window(*window) for host in load.shares if host != target})
        sent = sum(moved.values()) if moved else None
        uses[target] = _use(at_target, at_target.sent_bytes, at_target.sent_packets, sent, load, 1.0)
    return uses


def _carried(load: Loading, ways: Mapping[str, Way], host: str) -> Carried | str:
    way = ways.get(host)
    if way is None or not way.interface:
        return "the interface by which it exchanges with the target is not known"
    if way.interface == LOOPBACK:
        return "the load does not leave the machine"
    sharing = Counter(way.network for way in ways.values())
    if sharing[way.network] > 1:
        return "other hosts of the fleet have the same interfaces"
    traffic = carried(load.ticks[host], way.interface, *load.clocks[host].window(load.started_s, load.ended_s))
    return traffic or f"its interface {way.interface} was read less than twice while the load went on"


def _use(carried: Carried, counted: int, packets: int, bodies: int | None, load: Loading, share: float) -> LinkUse:
    if bodies is None:
        return LinkUse(why_not="a driver does not count the bytes of its answers")
    seconds = carried.to_s - carried.from_s
    answers = load.answers_per_s * seconds * share
    return other_traffic(seconds, counted, packets, bodies, answers, load.under_way * share)


FRAME_HEADERS = (54, 106)
"""Bytes of a frame that are no payload: Ethernet 14, IP 20 (IPv6: 40), TCP 20 to 52 with the options of a stream."""
ANSWER_HEADERS = (17, 1000)
"""Bytes of an answer before its body: from a bare status line (RFC 9112) to more than servers usually send."""


def other_traffic(seconds: float, counted: int, packets: int, bodies: int, answers: float, under_way: float) -> LinkUse:
    """counted, packets: of an interface in one direction. bodies: bytes of the answers that ended in that time;
    answers: their number; under_way: this many more may have arrived in part. ValueError for no time."""
    if seconds <= 0:
        raise ValueError(f"nothing is carried in {seconds} s")
    edge = under_way * bodies / answers if answers > 0 else 0.0
    low, high = (
        counted - packets * frame - bodies - answers * answer + sign * edge
        for frame, answer, sign in zip(reversed(FRAME_HEADERS), reversed(ANSWER_HEADERS), (-1, 1), strict=True)
    )
    low, high = max(0.0, low) / seconds, max(0.0, high) / seconds
    return LinkUse(bodies / seconds, (low + high) / 2, (high - low) / 2)


OF_THE_TARGET = ("system.", "target.", "recorder.")
TIMES = "started_s", "ended_s", "window_start_s", "window_end_s"
LAG, WAITED, CORES = "workload.driver_lag", "driver.cpu.run_delay", "driver.cpu.cores"


class FleetBench(RealBench):
    """See RealBench. Enter it while the hosts are set up."""

    def __init__(self, study: Study, run: RunFolder, say: Say, hosts: Hosts) -> None:
        self.hosts = hosts
        super().__init__(study, run, say)
        self._recordings = HostRecordings(hosts.coordinator, run)
        self._links: tuple[FleetLink, ...] | None = None
        self._level = 0.0
        self._taken: FleetStep

    @property
    def drivers(self) -> tuple[str, ...]:
        return self.hosts.coordinator.drivers

    def drive_from(self, hosts: Sequence[str]) -> None:
        self._load_of_fleet.drivers = tuple(hosts)

    def link_bytes_per_s(self) -> float | None:
        """The highest rate that one link from the target carries by itself, measured at the first call. None where the
        target is on no host, or encryption and not the link limited a measurement."""
        if self._links is None:
            self._links = self.hosts.links()
            for link in self._links:
                LINKS.add(self.run, link)
        links = self._links
        known = [link.back_bytes_per_s for link in links if not link.why_not and link.back_cpu < ENCRYPTS]
        return max(known) if known and len(known) == len(links) else None

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, *self.hosts.notes())

    def __exit__(self, *what: object) -> None:
        try:
            super().__exit__(*what)  # type: ignore[arg-type]
        finally:
            self._recordings.close()

    def take_step(self, request: StepRequest) -> Step:
        """StepVoid where a host is lost, or what it did is no measurement."""
        self._level = request.level
        try:
            step = super().take_step(request)
        except StepVoid as error:
            STEPS.add(self.run, self._void(request.level, error))
            if error.reason == "load-failed" and isinstance(self._target, FarTarget):
                self._target.counters()  # where it has died, this reports it with its last words
            raise
        STEPS.add(self.run, self._taken)
        return step

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        """FleetError where nothing of it runs on this machine."""
        if isinstance(self._target, FarTarget):
            raise FleetError(f"nothing is sampled on host {self.hosts.serving}", remedy='Set measure.profile = "off".')
        return super().take_profile(place, treatment=treatment, level=level, window_s=window_s)

    def _make_workload(self, allowance: Allowance | None) -> Workload:
        """Each host limits its driver; what is prepared from here runs as the driver's user."""
        inner = super()._make_workload(allowance and Allowance(allowance.user))
        made = FleetLoadOfObjects if self.study.load.axis in OBJECT_AXES else FleetLoad
        return made(self.study, inner, self.hosts.coordinator, self.hosts.watch)

    def _make_target(self, kind: str) -> OnBench:
        if (host := self.hosts.serving) is None:
            return super()._make_target(kind)
        return FarTarget(self.hosts.coordinator, host, kind, prefix_of(self.study, kind))

    def _follow_cages(self) -> None:
        if isinstance(self._target, FarTarget):
            self._target.follow()
        else:
            super()._follow_cages()

    @property
    def free_disk_bytes(self) -> float:
        return self._target.free_bytes() if isinstance(self._target, FarTarget) else super().free_disk_bytes

    def _make_journal(self) -> DurableJournal:
        return FarJournal(self._what, self.run.path)

    def _make_running(self) -> AttachedTarget:
        if self.study.target.is_running_service:
            return RunningTarget(self.study, self._durable, FarServer(self.hosts))
        return super()._make_running()

    def _make_surroundings(self) -> Surroundings:
        names = host_settings(*self.study.host_tables)
        return Surroundings(FarMachine(self.hosts), names, self._durable, self.run, self._reasons)

    @property
    def _load_of_fleet(self) -> FleetLoad:
        assert isinstance(self.workload, FleetLoad), "the load is the fleet's"
        return self.workload

    def _void(self, level: float, error: StepVoid) -> FleetStep:
        driver, reason = self._load_of_fleet.last, cast(VoidReason, error.reason)
        begun = Begun("", {}, 0.0, 0.0, {}) if driver is None else driver.begun
        when = begun.start_s, begun.duration_s
        return FleetStep(begun.name, level, *when, void=reason, void_host=error.host, void_fact=error.fact)

    def _seen(self, loaded: Loaded, study: Study) -> tuple[Evaluated, bool]:
        driver = self._load_of_fleet.last
        assert driver is not None and driver.merged is not None, "its requests were read"
        begun, merged, whole = driver.begun, driver.merged, loaded.summary
        if loaded.offered is None and not self._load_of_fleet.think_s() and not loaded.ended_early:
            check_all_along(merged, whole.window_start_s, whole.window_end_s)
        coordinator = self.hosts.coordinator
        self._recordings.fetch((*begun.shares, *coordinator.watched))
        here, late = super()._seen(loaded, study)
        clocks = {log.host: log.clock for log in driver.logs} | coordinator.watched_clocks
        evaluated: dict[str, Evaluated] = {}
        seen: dict[str, Sequence[Tick]] = {}
        for host, clock in clocks.items():
            times: dict[str, Any] = {name: clock.theirs_s(getattr(whole, name)) for name in TIMES}
            summary = replace(whole, **times)
            ticks = seen[host] = self._recordings.ticks(host, summary.window_start_s, summary.window_end_s)
            evaluated[host] = self._evaluate(replace(loaded, summary=summary), ticks, study)
            late = late or is_late(ticks, summary)
        load = Loading(
            whole.started_s, whole.ended_s, whole.throughput, whole.concurrency, begun.shares, clocks, seen
        )  # fmt: skip
        metrics = {host: watched_of(of_host.metrics) for host, of_host in evaluated.items()}
        window_s = whole.window_end_s - whole.window_start_s
        unsure = sorted(max(part.clock.uncertainty_s, part.clock.later_uncertainty_s) for part in merged.drivers)
        self._taken = FleetStep(
            begun.name, self._level, begun.start_s, begun.duration_s, merged.drivers, merged.apart_s, sum(unsure[-2:]),
            coordinator.watched_clocks, metrics, target=self.hosts.target or "",
            moved_bytes_per_s={host: count / window_s for host, count in driver.moved.items()},
            links=link_uses(load, self.hosts.ways(), self.hosts.target, partial(driver.counted, "moved_bytes")),
        )  # fmt: skip
        return self._together(here, evaluated, driver), late

    def _together(self, here: Evaluated, evaluated: Mapping[str, Evaluated], driver: FleetDriver) -> Evaluated:
        """The target's from its host, the driver's from those that drove; the service's own from here."""
        target = self.hosts.target
        at = evaluated.get(target) if target is not None else None
        own = (*OF_THE_TARGET, "driver.")
        metrics = {name: value for name, value in here.metrics.items() if not name.startswith(own)}
        if at is not None:
            metrics |= {name: value for name, value in at.metrics.items() if not name.startswith("driver.")}
        of_drivers = [evaluated[host].metrics for host in driver.begun.shares]
        for name in ("driver.saturation", "driver.cpu.hottest_thread", CORES):
            if values := [of_host[name] for of_host in of_drivers if name in of_host]:
                metrics[name] = sum(values) if name == CORES else max(values)
        metrics.pop(LAG, None)
        concurrency = metrics.get("workload.concurrency", 0.0)
        whole = sum(driver.begun.shares.values())
        lags = [
            evaluated[host].metrics[WAITED] / (concurrency * share / whole)
            for host, share in driver.begun.shares.items()
            if concurrency > 0 and WAITED in evaluated[host].metrics
        ]
        if lags:
            metrics[LAG] = max(lags)
        if target is not None and "system.cpu.foreign" in metrics:
            # Hosts of one kernel see each other's processes: our drivers do not count as foreign to the target.
            kernel = self.hosts.boot(target)
            others = [host for host in evaluated if kernel and host != target and self.hosts.boot(host) == kernel]
            ours = sum(evaluated[host].metrics.get(CORES, 0.0) for host in others)
            ours /= max(1.0, metrics.get("system.cpu.count", 1.0))
            metrics["system.cpu.foreign"] = max(0.0, metrics["system.cpu.foreign"] - ours)
        return Evaluated(metrics, at.blind if at is not None else here.blind)
