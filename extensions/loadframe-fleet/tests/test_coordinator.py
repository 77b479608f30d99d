"""The coordinator of a step over a transport without hosts: time goes on only where something is on its way."""

from __future__ import annotations

import base64
import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from loadframe.errors import StepVoid, TargetError
from loadframe_fleet.coordinator import PIECE_BYTES, Coordinator, shares_of
from loadframe_fleet.transport import Arrived, checked
from waiting import await_that

MOST = 64 << 20


@dataclass
class Far:
    """A host: its clock is ahead by offset_s at the beginning, and gains; a message takes there_s and back_s."""

    offset_s: float = 0.0
    there_s: float = 0.001
    back_s: float = 0.001
    log: bytes = b""
    gains: float = 0.0
    answers: dict[str, Callable[[float, Mapping[str, Any]], dict[str, Any] | Arrived | None]] = field(
        default_factory=dict
    )
    cancelled: int = 0
    start_s: float = 0.0
    """By our clock: when it would have begun."""

    def clock(self, at_s: float) -> float:
        return at_s + self.offset_s + self.gains * (at_s - 100.0)


class World:
    """See transport.Transport."""

    def __init__(self, **hosts: Far) -> None:
        self.hosts = hosts
        self.time_s = 100.0
        self._numbers = itertools.count(1)
        self._coming: list[tuple[float, int, Arrived]] = []
        self.asked: list[tuple[str, str]] = []

    def now_s(self) -> float:
        return self.time_s

    def ask(self, host: str, question: str, values: Mapping[str, Any]) -> int:
        number, far = next(self._numbers), self.hosts[host]
        self.asked.append((host, question))
        there_s = self.time_s + far.there_s
        special = far.answers.get(question)
        found = special(there_s, values) if special else self._usual(far, question, there_s, values)
        if isinstance(found, Arrived):
            self._send(found.at_s or there_s + far.back_s, found, number)
        elif found is not None:
            after_s = float(found.pop("after_s", 0.0))
            self._send(there_s + after_s + far.back_s, Arrived(host, number, 0.0, found), number)
        return number

    def arrived(self, until_s: float) -> Arrived | None:
        if not self._coming or self._coming[0][0] > until_s:
            self.time_s = max(self.time_s, until_s)
            return None
        at_s, _, came = heapq.heappop(self._coming)
        self.time_s = max(self.time_s, at_s)
        return replace(came, at_s=at_s)

    def _send(self, at_s: float, came: Arrived, number: int) -> None:
        numbered = replace(came, number=0 if came.gone else number, at_s=at_s)
        heapq.heappush(self._coming, (at_s, next(self._numbers), numbered))

    def _usual(self, far: Far, question: str, at_s: float, values: Mapping[str, Any]) -> dict[str, Any] | None:
        match question:
            case "clock":
                return {"monotonic_s": far.clock(at_s)}
            case "start":
                late_s = far.clock(at_s) - values["at_s"]
                far.start_s = at_s - late_s / (1.0 + far.gains)
                return {"late_s": late_s}
            case "ended":
                return {"after_s": far.start_s + 5 - at_s, "log_bytes": 3 * len(far.log), "sent_bytes": len(far.log)}
            case "read":
                piece = far.log[values["offset"] :][: values["size"]]
                return {"data": base64.b64encode(piece).decode()}
            case "cancel":
                far.cancelled += 1
        return {}


def taken(world: World, watched: tuple[str, ...] = ()) -> Any:
    drivers = [name for name in world.hosts if name not in watched]
    coordinator = Coordinator(world, drivers, watched)
    begun = coordinator.begin("step-1", shares_of(10, drivers), 5.0)
    await_that(lambda: coordinator.wait(1.0), "the step ends")
    return begun, coordinator.collect(MOST)


def voided(world: World, watched: tuple[str, ...] = ()) -> StepVoid:
    with pytest.raises(StepVoid) as error:
        taken(world, watched)
    assert error.value.remedy
    assert all(host.cancelled for name, host in world.hosts.items() if name not in watched)
    return error.value


def test_all_begin_at_one_instant_however_far_their_clocks_are_off() -> None:
    world = World(a=Far(3.0), b=Far(-40_000.0, 0.02, 0.02), c=Far(0.5, 0.1, 0.1))
    begun, logs = taken(world)
    for host in world.hosts.values():
        assert host.start_s == pytest.approx(begun.start_s, abs=1e-6)
    assert [each.share for each in logs] == [4, 3, 3]
    assert logs[1].clock.offset_s == pytest.approx(-40_000.0)
    assert logs[1].clock.uncertainty_s == pytest.approx(0.02)


def test_a_way_that_takes_longer_in_one_direction_is_within_the_bound() -> None:
    world = World(a=Far(0.0, 0.001, 0.201))
    begun, (log,) = taken(world)
    assert abs(world.hosts["a"].start_s - begun.start_s) <= log.clock.uncertainty_s == pytest.approx(0.101)


def test_logs_come_whole_in_pieces() -> None:
    data = bytes(range(256)) * (PIECE_BYTES // 100)
    world = World(a=Far(log=data), b=Far(log=b"x"), c=Far())
    _, logs = taken(world)
    assert [each.compressed for each in logs] == [data, b"x", b""]
    assert world.asked.count(("a", "read")) == -(-len(data) // PIECE_BYTES)


def test_a_drifting_clock_is_mapped_between_its_two_measurements() -> None:
    _, (log,) = taken(World(a=Far(7.0, gains=100e-6)))
    assert log.clock.ours_s(103 + 7 + 300e-6) == pytest.approx(103, abs=1e-6)


def test_what_is_lost_voids_the_step_and_ends_the_load_of_all() -> None:
    lost = Far()
    lost.answers["ended"] = lambda at_s, _: Arrived("a", 0, at_s + 2, gone="its agent has gone")
    error = voided(World(a=lost, b=Far()))
    assert (error.reason, error.host) == ("agent-lost", "a")
    assert "its agent has gone" in error.fact


def test_a_watched_host_that_is_lost_voids_it_too() -> None:
    target = Far()
    driver = Far()
    driver.answers["start"] = lambda at_s, _: Arrived("t", 0, at_s, gone="its link is cut")
    error = voided(World(a=driver, t=target), watched=("t",))
    assert (error.reason, error.host) == ("agent-lost", "t")


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("prepare", lambda at_s, _: Arrived("b", 0, 0.0, error="no wrk here"), "not-ready"),
        ("prepare", lambda at_s, _: None, "not-ready"),
        ("start", lambda at_s, _: {"late_s": 0.02}, "late-start"),
        ("start", lambda at_s, _: {}, "late-start"),
        ("start", lambda at_s, said: {"late_s": at_s - said["at_s"] - 0.02}, "clock-set"),
        ("start", lambda at_s, said: {"late_s": at_s - said["at_s"] + 0.02}, "clock-set"),
        ("ended", lambda at_s, _: Arrived("b", 0, 0.0, error="wrk was killed"), "load-failed"),
        ("ended", lambda at_s, _: Arrived("b", 0, 0.0, error="disk full", kind="RecordingError"), "recorder-failed"),
        ("ended", lambda at_s, _: None, "load-failed"),
        ("ended", lambda at_s, _: {"log_bytes": "1", "sent_bytes": 2}, "log-refused"),
        ("ended", lambda at_s, _: {"log_bytes": MOST + 1, "sent_bytes": 2}, "log-refused"),
        ("ended", lambda at_s, _: {"log_bytes": 16, "sent_bytes": 10**15}, "log-refused"),
        ("read", lambda at_s, _: {"data": "!"}, "log-refused"),
        ("read", lambda at_s, _: {"data": ""}, "log-refused"),
        ("clock", lambda at_s, _: {}, "agent-lost"),
        ("clock", lambda at_s, _: {"monotonic_s": at_s if at_s < 103 else at_s + 1}, "clock-set"),
    ],
)  # fmt: skip
def test_what_goes_wrong_on_one_host_voids_the_step(question: str, answer: Any, reason: str) -> None:
    wrong = Far(log=b"log")
    wrong.answers[question] = answer
    error = voided(World(a=Far(log=b"log"), b=wrong))
    assert (error.reason, error.host) == (reason, "b")


@pytest.mark.parametrize(
    ("level", "hosts", "found"),
    [(10, 3, [4, 3, 3]), (2, 3, [1, 1]), (1, 4, [1]), (9, 3, [3, 3, 3]), (4, 1, [4])],
)
def test_a_level_is_parted_whole(level: int, hosts: int, found: list[int]) -> None:
    parts = shares_of(level, [f"h{number}" for number in range(hosts)])
    assert list(parts.values()) == found
    assert sum(parts.values()) == level


def test_two_thousand_hosts_are_asked_as_two_are() -> None:
    world = World(**{f"h{number}": Far(float(number), log=b"l") for number in range(2000)})
    drivers = list(world.hosts)
    coordinator = Coordinator(world, drivers)
    begun = coordinator.begin("s", shares_of(2000, drivers), 5.0)
    await_that(lambda: coordinator.wait(1.0), "the step ends")
    assert len(coordinator.collect(MOST)) == 2000
    assert max(abs(host.start_s - begun.start_s) for host in world.hosts.values()) < 1e-6


def test_one_host_is_asked_while_the_load_of_another_ends() -> None:
    target, driver = Far(), Far(log=b"log")
    world = World(a=driver, t=target)
    target.answers["target"] = lambda at_s, _: {"at_s": at_s}
    coordinator = Coordinator(world, ["a"], ["t"])
    coordinator.begin("step-1", {"a": 1}, 5.0)
    while (now_s := world.now_s()) < 120:
        came = coordinator.ask("t", "target", {"do": "counters"}, 10.0, "agent-lost")
        assert came.answer is not None and came.answer["at_s"] >= now_s
    assert coordinator.wait(0.0), "the end of the load, which came meanwhile, is not forgotten"
    assert [each.compressed for each in coordinator.collect(MOST)] == [b"log"]


def test_an_error_of_the_host_that_is_asked_is_its_answer_and_its_loss_voids() -> None:
    target = Far()
    refused = Arrived("t", 0, 0.0, error="Varnish died", kind="TargetError", details="oom")
    target.answers["target"] = lambda at_s, _: refused
    coordinator = Coordinator(World(a=Far(), t=target), ["a"], ["t"])
    came = coordinator.ask("t", "target", {}, 10.0, "agent-lost")
    with pytest.raises(TargetError, match="host 't': Varnish died") as error:
        checked(came)
    assert error.value.details == "oom"
    for answer in (None, Arrived("t", 0, 0.0, gone="its link is cut")):
        target.answers["target"] = lambda at_s, _, answer=answer: answer
        with pytest.raises(StepVoid) as lost:
            coordinator.ask("t", "target", {}, 10.0, "agent-lost")
        assert (lost.value.host, lost.value.reason) == ("t", "agent-lost")


def test_a_host_puts_back_and_tells_it_where_another_one_is_lost() -> None:
    target = Far()
    target.answers["back"] = lambda at_s, _: {"changes": ["as before"]}
    world = World(a=Far(), t=target)
    world.hosts["a"].answers["cancel"] = lambda at_s, _: Arrived("a", 0, 0.0, gone="its agent has gone")
    coordinator = Coordinator(world, ["a"], ["t"])
    coordinator.cancel()
    assert coordinator.ask_place("t", {"do": "back"}) == {"changes": ["as before"]}
    target.answers["back"] = lambda at_s, _: Arrived("t", 0, 0.0, gone="its link is cut")
    with pytest.raises(StepVoid) as lost:
        coordinator.ask_place("t", {"do": "back"})
    assert (lost.value.host, lost.value.reason) == ("t", "agent-lost")
