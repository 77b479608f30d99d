"""A target in its cage: what is its own to do, what the cage has, and why it died."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loadframe.bench.checking import check_study
from loadframe.bench.rig import MORE_MEMORY, CagedTarget
from loadframe.cages import groups
from loadframe.errors import CageError, StudyError, TargetError
from loadframe.model import CounterSpec, TargetState
from loadframe.study import parse


class Cage:
    """Remembers its limits; `ended` processes were ended for memory."""

    component = "target"

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.ended = 0
        self.set_times = 0

    def set(self, limits: dict[str, int]) -> None:
        self.now = dict(limits)
        self.set_times += 1

    def begin(self) -> None:
        pass

    def limits(self) -> dict[str, int]:
        return self.now

    def ended_for_memory(self) -> int:
        return self.ended


class Target:
    """Remembers its states; `dead`: it died."""

    kind = "mariadb"
    embedded = False
    counter_specs = (CounterSpec("Questions", "mariadb.questions", True),)

    def __init__(self) -> None:
        self.states: list[TargetState] = []
        self.dead = False

    def start(self, state: TargetState) -> None:
        self.states.append(state)

    apply = start

    def effective(self) -> dict[str, Any]:
        return {"table_open_cache": 64, "RLIMIT_NOFILE": 1024}

    def counters(self) -> dict[str, float]:
        if self.dead:
            raise TargetError("MariaDB died (SIGKILL)", details="the log")
        return {"Questions": 1.0}


@pytest.fixture
def parts() -> tuple[Target, Cage, CagedTarget]:
    target, cage = Target(), Cage()
    return target, cage, CagedTarget(target, cage)  # type: ignore[arg-type]


STATE = TargetState({"table_open_cache": 64}, {"RLIMIT_NOFILE": 1024, "memory.max": 64 << 20, "cpu.max": 50_000})


def test_the_state_is_parted_between_target_and_cage(parts: tuple[Target, Cage, CagedTarget]) -> None:
    target, cage, caged = parts
    caged.start(STATE)
    assert target.states == [TargetState({"table_open_cache": 64}, {"RLIMIT_NOFILE": 1024})]
    assert cage.now == {"memory.max": 64 << 20, "cpu.max": 50_000}
    assert caged.effective() == {"table_open_cache": 64, **STATE.limits}
    caged.apply(TargetState(STATE.settings, {**STATE.limits, "cpu.max": 200_000}))
    assert cage.now["cpu.max"] == 200_000
    assert target.states[-1] == target.states[0], "the target need not know"
    caged.apply(TargetState({"table_open_cache": 400}, {**STATE.limits, "cpu.max": 200_000}))
    assert cage.set_times == 2, "a cage that stays is left alone"


def test_a_component_in_front_of_the_shards_has_limits_of_its_own() -> None:
    target, loader, shards = Target(), Cage(), (Cage(), Cage())
    loader.component = "loader"
    caged = CagedTarget(target, *shards, in_front=[loader])  # type: ignore[arg-type,list-item]
    limits = {"cpu.max": 30_000, "loader.cpu.max": 40_000, "loader.memory.max": 64 << 20}
    caged.start(TargetState({}, limits))
    assert loader.now == {"cpu.max": 40_000, "memory.max": 64 << 20}
    assert [shard.now for shard in shards] == [{"cpu.max": 30_000}] * 2
    assert target.states == [TargetState()]
    assert limits.items() <= caged.effective().items()
    caged.apply(TargetState({}, {**limits, "loader.cpu.max": 160_000}))
    assert loader.now["cpu.max"] == 160_000
    assert [shard.set_times for shard in shards] == [1, 1], "what stays is left alone"


def test_a_target_that_its_cage_has_ended_is_told_why(parts: tuple[Target, Cage, CagedTarget]) -> None:
    target, cage, caged = parts
    caged.start(STATE)
    target.dead = True
    with pytest.raises(TargetError) as unexplained:
        caged.counters()
    assert unexplained.value.fact == "MariaDB died (SIGKILL)"
    cage.ended = 1
    with pytest.raises(TargetError, match="its cage of 64 MiB was full, and the kernel ended 1") as caught:
        caged.counters()
    assert "cage.memory" in caught.value.remedy
    assert caught.value.details == "the log"


def test_a_target_that_the_kernel_has_ended_without_a_limit_of_its_own_is_told_why_too(
    parts: tuple[Target, Cage, CagedTarget],
) -> None:
    target, cage, caged = parts
    caged.start(TargetState({}, {}))
    target.dead, cage.ended = True, 1
    with pytest.raises(TargetError, match="the machine or a group around its cage had no memory left") as caught:
        caged.counters()
    assert caught.value.remedy == MORE_MEMORY


STUDY = """
[study]
name = "q"
question = "?"
[target]
kind = "{kind}"
[workload]
kind = "{workload}"
[load]
axis = "concurrency"
levels = [1]
[cage]
memory = "64MiB"
"""


def test_a_component_that_the_target_does_not_have_is_refused() -> None:
    study = parse(STUDY.format(kind="sqlite", workload="job-queue") + '[cage.shard]\nmemory = "1GiB"\n')
    with pytest.raises(StudyError, match="sqlite has no component 'shard'") as caught:
        check_study(study)
    assert "cage.driver" in caught.value.remedy


def test_an_embedded_target_has_one_cage_with_its_driver() -> None:
    study = parse(STUDY.format(kind="sqlite", workload="job-queue") + "[cage.driver]\nprocesses = 5\n")
    with pytest.raises(StudyError, match="inside the driver"):
        check_study(study)


def test_a_machine_that_cannot_cage_says_so_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none: Callable[..., dict[str, None]] = lambda root=None: dict.fromkeys(groups.CONTROLLERS)  # noqa: E731
    monkeypatch.setattr(groups, "available", none)
    with pytest.raises(CageError, match="memory") as caught:
        check_study(parse(STUDY.format(kind="sqlite", workload="job-queue")))
    assert "Delegate=yes" in caught.value.remedy


class Forgetful(Target):
    """Loses its data with every other state."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def endpoint(self) -> str:
        return "here"

    def has_lost_data(self) -> bool:
        before, self.seen = self.seen, len(self.states)
        return before > 0 and self.seen > before


class Load:
    """Remembers where it made its data."""

    def __init__(self) -> None:
        self.made: list[object] = []

    def install(self, endpoint: object) -> None:
        self.made.append(endpoint)


def test_what_a_target_has_lost_is_made_again() -> None:
    caged, load = CagedTarget(Forgetful(), Cage()), Load()  # type: ignore[arg-type]
    caged.start(STATE)
    caged.install(load)  # type: ignore[arg-type]
    assert load.made == ["here"]
    caged.apply(TargetState({"table_open_cache": 128}))
    assert load.made == ["here", "here"]
    caged.start(STATE)
    assert len(load.made) == 3
