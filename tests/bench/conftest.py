"""A bench without a machine: throughput comes from a function, time from a counter."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loadframe.analysis.disturbance import exceeded
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.budget import Budget
from loadframe.errors import NotRecovered, TargetError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import (
    WORK,
    Ending,
    Endpoint,
    Latency,
    ProfiledStep,
    ProfilePlace,
    Remedy,
    SettingValue,
    Step,
    StepRequest,
    TargetState,
)
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse
from loadframe.workloads import registry as workloads
from loadframe.workloads.base import Workload

STUDY = """
[study]
name = "simulated"
question = "?"
[target]
kind = "mariadb"
[target.settings]
table_open_cache = 64
[workload]
kind = "render-farm"
[load]
axis = "active_jobs"
levels = [4, 8, 16, 32]
[measure]
window = "1s"
blocks = { min = 3, max = 5 }
budget = "1000s"
"""

Model = Callable[[TargetState, float], tuple[float, Mapping[str, float]]]


@dataclass
class Clock:
    """Seconds that pass only when somebody says so."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class SimulatedBench:
    """See loadframe.bench.base.Bench; `model` gives throughput and metrics of a state at a level."""

    study: Study
    run: RunFolder
    model: Model
    clock: Clock
    make_step: Callable[..., Step]
    refuses: Callable[[TargetState], bool] = lambda state: False
    step_s: float = 1.5
    noise: float = 0.02
    kills: Callable[[TargetState], bool] = lambda state: False
    dead: bool = False
    falls: Callable[[TargetState, float], bool] = lambda state, level: False
    """Whether the target dies of a level in a state."""
    flags: tuple[str, ...] = ()
    needs_s: Callable[[str, float], float] = lambda treatment, level: 0.0
    """The warm-up after which a treatment has settled at a level; `lacks` of the throughput is missing before."""
    lacks: float = 0.2
    needs_window_s: Callable[[str, float], float] = lambda treatment, level: 0.0
    """The shortest window in which enough happens; in another one nothing ends."""
    windows_s: list[tuple[float, float]] = field(default_factory=list)
    """Level and window of each step, in order."""
    p95_ms: Callable[[TargetState, float], float] = lambda state, level: 2.0
    asked: list[tuple[str, float, float]] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    served: str = ""
    states: dict[str, TargetState] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(7))
    is_local: bool = True
    free_disk_bytes: float = math.inf

    @property
    def workload(self) -> Workload:
        table = self.study.workload
        return workloads.make(table.kind, table.options, Allowance(US), axis=self.study.load.axis)

    @property
    def axis_unit(self) -> str:
        return self.workload.axis_unit

    @property
    def work_unit(self) -> str:
        return WORK

    @property
    def kind(self) -> str:
        return self.study.target.kind

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.kind, "nowhere", {})

    @property
    def start_state(self) -> TargetState:
        return TargetState(dict(self.study.target.settings), {})

    @property
    def treatments(self) -> int:
        return len(self.states)

    def declare(
        self,
        name: str,
        title: str,
        state: TargetState,
        kind: str | None = None,
        *,
        cold_of: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        self.states[name] = state

    def check(self, state: TargetState, kind: str | None = None) -> None:
        if self.refuses(state):
            raise TargetError("the server would not start with this")

    def use(self, name: str) -> dict[str, SettingValue]:
        if self.dead:
            raise TargetError("the server has died")
        if self.refuses(self.states[name]):
            raise TargetError("the server will not start with this")
        if not self.used or self.used[-1] != name:
            self.used.append(name)
        return {
            "RLIMIT_NOFILE": 1_000_000,
            "open_files_limit": 500_000,
            "max_connections": 151,
            **self.states[name].settings,
        }

    def starts_fresh(self, name: str) -> bool:
        self.use(name)
        return self.served != name

    def carries_over(self, name: str) -> bool:
        return True

    def recover(self, name: str) -> None:
        self.dead, self.served = False, ""
        self.use(name)

    def is_cache(self, name: str) -> bool:
        return False

    def counters(self) -> dict[str, float]:
        return {}

    def end(self, how: Ending) -> None:
        self.served = ""

    def leave_alone(self, seconds: float) -> None:
        self.clock.now_s += seconds

    def take_step(self, request: StepRequest) -> Step:
        treatment, level, warmup_s = request.treatment, request.level, request.warmup_s
        self.use(treatment)
        if self.kills(self.states[treatment]):
            self.dead = True
            raise WorkloadError("the driver lost its connection")
        if self.falls(self.states[treatment], level):
            self.dead = True
            fallen = NotRecovered("the server died", remedy="", details="out of beds\n", died="SIGKILL")
            fallen.level, fallen.treatment = level, treatment
            raise fallen
        self.clock.now_s += self.step_s
        self.served = treatment
        throughput, metrics = self.model(self.states[treatment], level)
        throughput *= 1 + self.random.gauss(0, self.noise)
        cold = warmup_s < self.needs_s(treatment, level)
        window_s = self.study.measure.window if request.window_s is None else request.window_s
        needed_s = self.needs_window_s(treatment, level)
        few = window_s < needed_s
        self.clock.now_s += warmup_s + window_s - self.study.measure.window
        self.windows_s.append((level, window_s))
        self.asked.append((treatment, level, warmup_s))
        return self.make_step(
            level,
            0.0 if few else (1 - self.lacks) * throughput if cold else throughput,
            metrics,
            number=self.random.randrange(10**9),
            round=request.round_number,
            block=request.block,
            purpose=request.purpose,
            treatment=treatment,
            latency=Latency(1, 1, self.p95_ms(self.states[treatment], level), 1000, 1000),
            flags=(
                *self.flags,
                *exceeded(metrics, 1.0),
                *(["not-settled"] if cold else []),
                *(["too-few"] if few else []),
            ),
            needed_s=needed_s if few else 0.0,
            ended_s=1.2 + warmup_s,
            window_start_s=0.2 + warmup_s,
            window_end_s=1.2 + warmup_s,
            errors=round(metrics.get("workload.errors", 0.0)),
        )

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        self.use(treatment)
        throughput, _ = self.model(self.states[treatment], level)
        done = ProfiledStep(place, treatment, level, window_s, round(throughput * window_s), throughput, ())
        self.run.add_profiled(done)
        return done


@pytest.fixture
def simulated(make_step: Callable[..., Step], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Bookkeeping]:
    """A book over a simulated bench; `overrides` as for --set."""

    def make(model: Model, *overrides: str, **bench: object) -> Bookkeeping:
        clock = Clock()
        study = parse(STUDY, overrides)
        run = RunFolder.create(tmp_path_factory.mktemp("runs"), "simulated")
        fake = SimulatedBench(study, run, model, clock, make_step, **bench)  # type: ignore[arg-type]
        budget = Budget(study.measure.budget, study.measure.window, clock=clock)
        book = Bookkeeping(fake, budget, Silent(), random.Random(1))
        book.next_treatment("as given", fake.start_state)
        return book

    return make


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[Study], RunFolder]:
    """Run folders that know their studies, as each command begins one."""

    def make(study: Study) -> RunFolder:
        run = RunFolder.create(tmp_path, study.study.name)
        run.write_record("study.json", "study", study.resolved())
        run.write_text("study.toml", study.as_toml())
        return run

    return make
