"""The load of a study, made by the drivers of a fleet: to the bench a workload and a driver like any other. The
requests of all hosts are merged by the coordinator's clock: quantiles of hosts are never averaged."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from loadframe.errors import StepVoid, StudyError
from loadframe.model import CLIENT_AXES, RATE_AXES, Endpoint, SettingValue
from loadframe.runs.folder import MOST_REQUESTS_BYTES
from loadframe.study import Study
from loadframe.workloads import registry
from loadframe.workloads.base import ELSEWHERE, AsksForObjects, HasUsers, SendsRequests, TellsMore, Workload
from loadframe.workloads.request_log import FIELDS, RECORD, Requests
from loadframe.workloads.sessions import NAMED
from loadframe_fleet.coordinator import Begun, Coordinator, LogOf, shares_of
from loadframe_fleet.records import DriverInStep
from loadframe_fleet.transport import REMEDY
from loadframe_fleet.wire import Message

EARLY_SHARE, EARLY_LATENCIES = 0.2, 3.0
"""A driver has ended too early if its last request ended before the window did by more than this share of the window,
and this many times the longest latency."""
LONGER_WARMUP = "Give measure.warmup more time than the slowest driver takes from its start to its first request."


@dataclass(frozen=True)
class Merged:
    """requests: in the order of their ends; operations: their names by index."""

    requests: Requests
    operations: tuple[str, ...]
    drivers: tuple[DriverInStep, ...]

    @property
    def apart_s(self) -> float:
        """From the first driver's first request to the last one's first."""
        begun = [driver.began_s for driver in self.drivers if driver.requests]
        return max(begun) - min(begun) if begun else 0.0


def merge(logs: Sequence[LogOf], known: Sequence[str]) -> Merged:
    """known: operations that have their index already. StepVoid for an invalid log."""
    numbers: dict[str, int] = {}
    parts, drivers = [], []
    for name in known:
        numbers.setdefault(name, len(numbers))
    for log in logs:
        records = np.frombuffer(unpacked(log), dtype=FIELDS).copy()
        operations = [str(name) for name in log.answer.get("operations") or ()]
        for name in operations:
            numbers.setdefault(name, len(numbers))
        places = np.array([numbers[name] for name in operations] or [0], dtype=np.uint32)
        if len(records) and int(records["operation"].max()) >= max(len(operations), 1):
            raise _refused(log, "names a kind of request that it does not tell of")
        if not np.isfinite(records["end_s"]).all() or not np.isfinite(records["latency_ms"]).all():
            raise _refused(log, "has times that are no numbers")
        end_s: Any = records["end_s"]
        records["end_s"] = log.clock.ours_s(end_s)
        records["operation"] = places[records["operation"]]
        begins = records["end_s"] - records["latency_ms"] / 1000.0
        span = (float(begins.min()), float(records["end_s"].max())) if len(records) else (0.0, 0.0)
        own = log.host, log.share, log.clock, len(records)
        drivers.append(DriverInStep(*own, *span, log.size, len(log.compressed)))
        parts.append(records)
    whole = np.concatenate(parts) if parts else np.empty(0, dtype=FIELDS)
    whole = whole[np.argsort(whole["end_s"], kind="stable")]
    requests = Requests(*(whole[name].copy() for name, _ in FIELDS))
    return Merged(requests, tuple(numbers), tuple(drivers))


def check_all_along(merged: Merged, start_s: float, end_s: float) -> None:
    """For a closed loop without pauses: StepVoid for a driver that began after the window did, or ended long before
    it."""
    longest_s = float(merged.requests.latency_ms.max(initial=0.0)) / 1000.0
    for driver in merged.drivers:
        name = f"host {driver.host!r}"
        if not driver.requests:
            raise StepVoid(driver.host, "load-failed", f"{name} made no request", remedy=REMEDY)
        if driver.began_s > start_s:
            late = f"{name} made its first request {driver.began_s - start_s:.3g} s after the window began"
            raise StepVoid(driver.host, "late-start", late, remedy=LONGER_WARMUP)
        missing_s = end_s - driver.ended_s
        if missing_s > max(EARLY_SHARE * (end_s - start_s), EARLY_LATENCIES * longest_s):
            early = f"{name} made its last request {missing_s:.3g} s before the window ended"
            raise StepVoid(driver.host, "load-failed", early, remedy=REMEDY)


def unpacked(log: LogOf) -> bytes:
    """StepVoid for another size than announced."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(log.compressed) as reader:
            data = reader.read(log.size + 1)
    except zstandard.ZstdError as error:
        raise _refused(log, f"cannot be unpacked: {error}") from error
    if len(data) != log.size or len(data) % RECORD.size:
        raise _refused(log, f"has {len(data):,} bytes, and {log.size:,} were reported")
    return data


def _refused(log: LogOf, why: str) -> StepVoid:
    return StepVoid(log.host, "log-refused", f"the request log of host {log.host!r} {why}", remedy=REMEDY)


KINDS = ("command", "http")
"""Workloads whose drivers wait for a common start, and whose level can be divided."""
OBJECT_AXES = frozenset({"working_set"})
ASKED_WITHIN_S = 30.0


class FleetLoad:
    """See workloads.base.Workload; `inner` is the same on one machine."""

    one_lock = False
    runs_to_completion = False
    divides_level = True

    def __init__(
        self, study: Study, inner: Workload, coordinator: Coordinator, watch: Callable[[str], None] = lambda _: None
    ) -> None:
        """watch: called with the address before it is loaded. StudyError for a load that cannot be divided."""
        self._watch = watch
        self._study = study
        self._inner = inner
        self._coordinator = coordinator
        self.kind = inner.kind
        self.target_kinds = inner.target_kinds
        self.axes = inner.axes
        self.axis_unit = inner.axis_unit
        self.operations: tuple[str, ...] = tuple(inner.operations)
        """Of all hosts, as far as reported."""
        self._warmup_s = 0.0
        self.drivers: tuple[str, ...] = coordinator.drivers
        self.last: FleetDriver | None = None
        check_shared(study)

    @property
    def judged(self) -> tuple[str, ...]:
        """All: neither kind has any that do not count."""
        return self.operations

    def check_level(self, level: float) -> int:
        """See Workload. A driver's own limit applies to each share, not to the whole."""
        count = len(self.drivers)
        if level < 1 or not float(level).is_integer():
            return self._inner.check_level(level)
        share = math.ceil(level / count)
        try:
            self._inner.check_level(share)
        except StudyError as error:
            fact = f"level {level:g} over {count} drivers gives {share} to one of them. {error.fact}"
            raise StudyError(fact, remedy=error.remedy) from error
        return int(level)

    def trials(self) -> Sequence[Sequence[str]]:
        return ()

    def think_s(self) -> float:
        return self._inner.think_s() if isinstance(self._inner, HasUsers) else 0.0

    def expect(self, warmup_s: float) -> None:
        self._warmup_s = warmup_s

    def notes(self) -> tuple[str, ...]:
        return self._inner.notes() if isinstance(self._inner, TellsMore) else ()

    def check_requests(self, *, running: bool) -> None:
        if isinstance(self._inner, SendsRequests):
            self._inner.check_requests(running=running)

    def unchecked(self, target_kind: str) -> str:
        return self._inner.unchecked(target_kind) if isinstance(self._inner, SendsRequests) else ""

    def install(self, endpoint: Endpoint) -> None:
        """From here, so that errors are reported before any host begins; each host learns the pages by itself."""
        if ELSEWHERE in endpoint.options:
            self._on_host(endpoint, "install")
        else:
            self._inner.install(endpoint)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """From here, or on the host of a private target, with the largest task of a driver."""
        shares = self._shares(level)
        most = max(shares.values()) if self.divides_level else level
        if ELSEWHERE in endpoint.options:
            self._on_host(endpoint, "level", level=most)
        else:
            self._inner.set_level(endpoint, most)

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> "FleetDriver":
        """All drivers begin at one instant. StepVoid."""
        shares, name, coordinator = self._shares(level), folder.name, self._coordinator
        more = {
            "endpoint": asdict(endpoint), "warmup_s": min(self._warmup_s, duration_s), "level": float(level),
            "treatment": name,
        }  # fmt: skip
        self._watch(endpoint.address)
        mark = "mark", {**more, "step": name, "duration_s": duration_s}
        coordinator.ask_all(dict.fromkeys(coordinator.watched, mark), ASKED_WITHIN_S, "recorder-failed")
        begun = coordinator.begin(name, shares, duration_s, more, self._each(level, shares))
        self.last = FleetDriver(coordinator, begun, self)
        return self.last

    def merged(self, logs: Sequence[LogOf]) -> Merged:
        """The names of operations are known from then on."""
        merged = merge(logs, self.operations)
        self.operations = merged.operations
        return merged

    def after_step(self, endpoint: Endpoint) -> None:
        self._inner.after_step(endpoint)

    def remove(self, endpoint: Endpoint) -> None:
        self._inner.remove(endpoint)

    def _shares(self, level: float) -> dict[str, int]:
        return shares_of(self.check_level(level), self.drivers)

    def _on_host(self, endpoint: Endpoint, do: str, **values: Any) -> None:
        host = endpoint.options[ELSEWHERE]
        self._coordinator.ask_target(host, {**values, "kind": endpoint.kind, "do": do})

    @property
    def _options(self) -> Mapping[str, SettingValue]:
        return registry.options(self.kind, self._study.workload.options)

    def _each(self, level: float, shares: Mapping[str, int]) -> dict[str, Message]:
        """Connections that serve a rate are divided like it; a driver of the user's own gets a different seed on
        each."""
        options = self._options
        by_host: dict[str, Message] = {}
        for number, (host, share) in enumerate(shares.items()):
            own: dict[str, SettingValue] = {}
            if self.kind == "command":
                own["seed"] = (int(options["seed"]) + number) % 2**32
            elif self._study.load.axis in RATE_AXES:
                own["connections"] = math.ceil(int(options["connections"]) * share / sum(shares.values()))
            by_host[host] = {"options": own}
        return by_host


class FleetLoadOfObjects(FleetLoad):
    """Each driver requests all objects of the level: the connections are divided. A private target's cache is filled on
    its host."""

    divides_level = False

    def check_level(self, level: float) -> int:
        return self._inner.check_level(level)

    def objects_at(self, level: float) -> int:
        assert isinstance(self._inner, AsksForObjects), "its axis says so"
        return self._inner.objects_at(level)

    def warm(self, endpoint: Endpoint, level: float) -> None:
        self._on_host(endpoint, "warm", level=level)

    def _shares(self, level: float) -> dict[str, int]:
        return shares_of(int(self._options["connections"]), self.drivers)

    def _each(self, level: float, shares: Mapping[str, int]) -> dict[str, Message]:
        return {host: {"load": float(level), "options": {"connections": share}} for host, share in shares.items()}


class FleetDriver:
    """The drivers of all hosts as one: see workloads.base.Driver."""

    def __init__(self, coordinator: Coordinator, begun: Begun, load: FleetLoad) -> None:
        self._coordinator = coordinator
        self._load = load
        self.begun = begun
        self.logs: list[LogOf] = []
        self.merged: Merged | None = None
        self._over = False
        self._killed = False
        self.moved: dict[str, int] = {}

    def pids(self) -> tuple[int, ...]:
        return ()

    def running(self) -> bool:
        return not self.wait(0.0)

    def wait(self, timeout_s: float) -> bool:
        self._over = self._over or self._killed or self._coordinator.wait(timeout_s)
        return self._over

    def waiting(self) -> int:
        asked = {host: ("waiting", dict[str, Any]()) for host in self.begun.shares}
        answers = self._coordinator.ask_all(asked, ASKED_WITHIN_S, "load-failed")
        return sum(int(answer.get("waiting", 0)) for answer in answers.values())

    def offered(self, start_s: float, end_s: float) -> int | None:
        offered = self._counted("offered", start_s, end_s)
        return sum(offered.values()) if offered else None

    def moved_bytes(self, start_s: float, end_s: float) -> int | None:
        self.moved = self._counted("moved_bytes", start_s, end_s)
        return sum(self.moved.values()) if self.moved else None

    def requests(self) -> Requests:
        """By the coordinator's clock. StepVoid."""
        if self.merged is None:
            self.logs = self._coordinator.collect(MOST_REQUESTS_BYTES)
            self.merged = self._load.merged(self.logs)
        return self.merged.requests

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(mark) for log in self.logs for mark in log.answer.get("marks") or ()))

    def kill(self) -> None:
        if not self._over:
            self._killed = True
            self._coordinator.cancel()

    def _counted(self, what: str, start_s: float, end_s: float) -> dict[str, int]:
        return self.counted(what, {log.host: log.clock.window(start_s, end_s) for log in self.logs})

    def counted(self, what: str, between: Mapping[str, tuple[float, float]]) -> dict[str, int]:
        """What each host counts between two instants of its own clock; empty where one does not count it. StepVoid."""
        asked = {host: ("counted", {"from_s": from_s, "to_s": to_s}) for host, (from_s, to_s) in between.items()}
        answers = self._coordinator.ask_all(asked, ASKED_WITHIN_S, "load-failed")
        counts = {host: answer.get(what) for host, answer in answers.items()}
        known = {host: count for host, count in counts.items() if isinstance(count, int)}
        return known if len(known) == len(counts) else {}


def check_shared(study: Study) -> None:
    """StudyError for a load that cannot be divided over hosts."""
    if study.workload.kind not in KINDS:
        raise StudyError(
            f"the workload {study.workload.kind!r} cannot be driven from a fleet",
            remedy=f"Those that can: {', '.join(KINDS)}.",
        )
    if study.load.axis not in (axes := CLIENT_AXES | RATE_AXES | OBJECT_AXES):
        raise StudyError(
            f"load.axis = {study.load.axis!r} cannot be shared out over hosts",
            remedy=f"Choose one of {', '.join(sorted(axes))}.",
        )


def secrets_named(study: Study) -> frozenset[str]:
    """Variables of the environment that the study names ({ENV:NAME})."""

    def texts(value: Any) -> list[str]:
        if isinstance(value, str):
            return [value]
        if isinstance(value, Mapping):
            return [text for part in value.values() for text in texts(part)]
        return [text for part in value for text in texts(part)] if isinstance(value, list | tuple) else []

    return frozenset(name for text in texts(study.resolved()["workload"]) for name in NAMED.findall(text))
