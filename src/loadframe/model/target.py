"""The target, its settings and needs; and what a study declares of its workload besides the options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SettingValue = str | int | float | bool
Layer = Literal["host", "process", "server", "application"]
"""Where a change is made: `process` covers rlimits, affinity and the cage, `server` the target's own settings."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a treatment is made of. settings: the target's own. limits: of the process by their name in setrlimit(2),
    {"RLIMIT_NOFILE": 1024}, and of its control group, {"cpu.max": 50000} (units: cages/cage.py); of a running server
    also "nice". host: of the machine, {"vm.swappiness": 10} (changes/host.py). cpus: of the target ("cage.cpus") and
    the driver ("cage.driver.cpus"); options: of a workload that is itself studied. Missing ones are as declared."""

    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    host: Mapping[str, SettingValue] = field(default_factory=dict, kw_only=True)
    cpus: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    options: Mapping[str, SettingValue] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a driver reaches a target. address: a socket path, a file path or host:port. options: the user, the schema,
    ... fronts: several servers in front of the same data, this one first. attached: not started by Loadframe, with its
    owner's data: a workload uses a schema of its own, refuses where it exists, and drops it at the end."""

    kind: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict)
    shards: "tuple[Endpoint, ...]" = ()
    attached: bool = False
    fronts: "tuple[Endpoint, ...]" = ()


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """metric: its name afterwards. cumulative: its rate (1/s) counts; else its largest value."""

    name: str
    metric: str
    cumulative: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters by CounterSpec.name. at_s: CLOCK_MONOTONIC."""

    at_s: float
    counters: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Requirement:
    """Of a kind, or Loadframe. present: where or which version; None if missing."""

    kind: str
    what: str
    present: str | None = field(metadata={"alias": "found"})
    how_to_get_it: str


Checked = Literal["bytes", "length", "size", "status"]
"""What of an answer is checked: all of it, status and length, status and rough length, or the status."""


@dataclass(frozen=True, slots=True)
class Request:
    """name: in the request log. path: with its query. headers: a value may hold {ENV:NAME}. weight: relative frequency.
    expect: None: 200 for GET, 200 to 299 for others. checked: None: by the workload's options for GET, the status for
    others. contains: words of a right answer; fails: of a wrong one."""

    name: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    body_file: str = ""
    weight: float = 1.0
    expect: int | None = None
    checked: Checked | None = None
    contains: str = ""
    fails: str = ""


@dataclass(frozen=True, slots=True)
class Think:
    """A user's pause between an answer and the next request. spread: constant, or random with that mean."""

    mean_s: float
    spread: Literal["fixed", "exponential"]


@dataclass(frozen=True, slots=True)
class Login:
    """What each connection sends first; it keeps cookies, and the bearer token in a field of the last answer's JSON
    (token: "data.token")."""

    requests: tuple[Request, ...]
    token: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """Tables of `[workload]` that a workload takes only if it says so (KindOfWorkload.tables)."""

    request: tuple[Request, ...] = ()
    login: Login | None = None
    think_time: Think | None = None
    command: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        return tuple(name for name in self.__slots__ if getattr(self, name))
