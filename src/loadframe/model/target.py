"""The target, its settings and needs; and what a study declares of its workload besides the options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SettingValue = str | int | float | bool
"""One configuration value, in the target's own spelling and unit."""

Layer = Literal["host", "process", "server", "application"]
"""Where a change is made. `process` covers rlimits, affinity and the cage, `server` the target's own settings."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """Everything that Loadframe decides about a target: what a treatment is made of. settings: the target's own, as
    configured. limits: resource limits of the process by their name in setrlimit(2), for example {"RLIMIT_NOFILE":
    1024}, and of its control group by their name in version 2, for example {"cpu.max": 50000} (units: cages/cage.py);
    of a running server also "nice". host: settings of the machine, for example {"vm.swappiness": 10} (changes/host.py);
    all others are as before the run. cpus: of the target ("cage.cpus") and the load driver ("cage.driver.cpus");
    options: of a workload that is itself studied (workers of a pipeline's stages); missing ones are as declared."""

    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    host: Mapping[str, SettingValue] = field(default_factory=dict, kw_only=True)
    cpus: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    options: Mapping[str, SettingValue] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a load driver reaches a target. address: a socket path, a file path or host:port, as `kind` needs it.
    options: further words, for example the user, the schema, or SQLite's per-connection pragmas. shards: the pieces of
    a target, in order, or empty. fronts: several servers in front of the same data, this one first, or empty. attached:
    a server that Loadframe did not start, with its owner's data: a workload uses a schema of its own, refuses to begin
    where it exists already, and drops it at the end."""

    kind: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict)
    shards: "tuple[Endpoint, ...]" = ()
    attached: bool = False
    fronts: "tuple[Endpoint, ...]" = ()


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """One number that a target can be asked for while it runs. metric: its name afterwards (units.py). cumulative: it
    only grows, and its rate (1/s) counts; else its largest value in the window."""

    name: str
    metric: str
    cumulative: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one source at one moment, by CounterSpec.name. at_s: CLOCK_MONOTONIC."""

    at_s: float
    counters: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a kind, or a part of Loadframe, needs on the machine. found: where or which version; None if missing."""

    kind: str
    what: str
    found: str | None
    how_to_get_it: str


Checked = Literal["bytes", "length", "size", "status"]
"""What of an answer is checked: all of it, status and length, status and rough length, or the status."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that a workload sends. name: its operation in the request log. path: with its query. headers: name
    and value, in sending order; a value may hold {ENV:NAME}. body: "": none. body_file: the file that has it. weight:
    relative frequency. expect: the status of a right answer; None: 200 for GET, any from 200 to 299 for others.
    checked: None: by the workload's options for GET, the status for others and for those with known words. contains:
    words of a right answer; fails: words of a wrong one."""

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
    """The pause of a user between an answer and the next request. spread: constant, or random with that mean."""

    mean_s: float
    spread: Literal["fixed", "exponential"]


@dataclass(frozen=True, slots=True)
class Login:
    """What each connection sends before the load. Of the answers it keeps cookies, and the bearer token in a field of
    the last one's JSON (token: "access_token", "data.token")."""

    requests: tuple[Request, ...]
    token: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """The tables of `[workload]` that a workload takes only if it says so (KindOfWorkload.tables)."""

    request: tuple[Request, ...] = ()
    login: Login | None = None
    think_time: Think | None = None
    command: tuple[str, ...] = ()
    """The program that makes the load, with its arguments."""

    @property
    def given(self) -> tuple[str, ...]:
        """The names of those that the study has, as it spells them."""
        return tuple(name for name in self.__slots__ if getattr(self, name))
