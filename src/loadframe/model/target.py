"""The target, what it is set to, and what it needs; and what a study declares of its workload beside the options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SettingValue = str | int | float | bool
"""One configuration value, in the target's own spelling and unit."""

Layer = Literal["host", "process", "server", "application"]
"""Where a change is made. `process` covers rlimits, affinity and the cage, `server` the target's own settings."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """Everything that Loadframe decides about a target: what a treatment is made of.

    settings: the target's own settings, as configured (asked for, not necessarily what it gets).
    limits: resource limits of the process by their name in setrlimit(2), for example {"RLIMIT_NOFILE": 1024}, and of
    its control group by their name in version 2, for example {"cpu.max": 50000} (cages/cage.py says the units); of a
    running server also its value of "nice".
    host: settings of the machine, for example {"vm.swappiness": 10} (changes/host.py); what it does not name is as it
    was before the run.
    cpus: to which CPUs the target ("cage.cpus") and the load driver ("cage.driver.cpus") are bound; one that is not
    there is bound as the study declares it.
    options: of the workload, where these are part of what is studied (the workers of a pipeline's stages); one that is
    not there is as the study declares it.
    """

    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    host: Mapping[str, SettingValue] = field(default_factory=dict, kw_only=True)
    cpus: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    options: Mapping[str, SettingValue] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a load driver reaches a target.

    address: a socket path, a file path or host:port, as `kind` needs it.
    options: further words, for example the user, the schema, or SQLite's per-connection pragmas.
    shards: of a target of several pieces, each of them in order; empty for one of one piece.
    fronts: of one with several servers in front of the same data, each of them, this one first; empty for a single one.
    attached: a server that Loadframe did not start, with its owner's data: a workload works in a schema of
    its own, refuses to begin where there is one already, and drops it at the end.
    """

    kind: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict)
    shards: "tuple[Endpoint, ...]" = ()
    attached: bool = False
    fronts: "tuple[Endpoint, ...]" = ()


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """One number that a target can be asked for while it runs.

    metric: the name under which it is known afterwards (units.py). cumulative: True where it only ever grows and its
    rate (1/s) is what matters; False where its largest value in the window is.
    """

    name: str
    metric: str
    cumulative: bool


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a kind of target or workload, or a part of Loadframe, needs on the machine. found: where or which version;
    None where it is missing."""

    kind: str
    what: str
    found: str | None
    how_to_get_it: str


Checked = Literal["bytes", "length", "size", "status"]
"""What of an answer is looked at: all of it, its status and how long it is, its status and roughly how long it is, its
status alone."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that a workload sends. name: of the operation that it is in the request log. path: with its query.
    headers: name and value, in the order in which they are sent; a value may hold {ENV:NAME}. body: what is sent; "":
    none. body_file: the file that has it. weight: how often it is sent beside the others. expect: the status of a right
    answer; None: 200 of GET, any from 200 to 299 of others. checked: None: as the workload's options say of GET, the
    status alone of others and of those whose words are known. contains: words that a right answer has; fails: words
    that no right answer has; "": none."""

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
    """The pause of a user between an answer and the next request. spread: the same each time, or random with that
    mean."""

    mean_s: float
    spread: Literal["fixed", "exponential"]


@dataclass(frozen=True, slots=True)
class Login:
    """What each connection sends before the load, and what it keeps of the answers: cookies always, and the bearer
    token in a field of the last answer's JSON ("access_token", "data.token"); "": none."""

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
