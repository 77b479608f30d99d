"""The study as declared: one frozen model per table of the TOML file. Unknown keys are refused. The docstrings of the
tables are in the output of `loadframe study schema`."""

from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import AfterValidator, Field, field_validator, model_validator

from loadframe.metrics import MOST_SHARDS
from loadframe.model import Declared, SettingValue
from loadframe.study.cage_tables import CageTable, ChangeCage, ComponentCage
from loadframe.study.fields import Duration, Table, named_once
from loadframe.study.load_tables import TIMES_OF_A_STEP, LoadTable, MeasureTable, ObjectiveTable
from loadframe.study.request_tables import MOST_REQUESTS, LoginTable, RequestTable, ThinkTime
from loadframe.study.service_tables import ServiceKeys

MOST_WORDS, LONGEST_WORD = 200, 8192
MOST_SQL_NODES = 4
NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
SHORTEST_S = 1.0


def _runnable(command: list[str]) -> list[str]:
    for number, word in enumerate(command):
        if "\0" in word or len(word) > LONGEST_WORD:
            raise ValueError(f"command: word {number + 1} has a NUL or more than {LONGEST_WORD:,} characters")
    if command and not command[0].strip():
        raise ValueError('command: its first word is empty; name the program, for example ["python3", "driver.py"]')
    return command


Command = Annotated[
    list[str],
    AfterValidator(_runnable),
    Field(max_length=MOST_WORDS, description="workloads that run a program of yours: it and its arguments"),
]


class About(Table):
    name: str = Field(pattern=NAME, description="lower case, digits and dashes: it names the run")
    question: str = Field(min_length=1)
    story: str = Field("", description="a sentence or two of background for the report")


class TargetTable(ServiceKeys):
    kind: str
    settings: dict[str, SettingValue] = Field(default_factory=dict, description="the state it starts in")
    shards: int | None = Field(
        None, ge=1, le=MOST_SHARDS, description="number of servers side by side, each in its own cage: [cage.shard]"
    )
    sql_nodes: int | None = Field(
        None,
        ge=1,
        le=MOST_SQL_NODES,
        description="kind ndb-sql: number of SQL nodes, each in its own cage: [cage.sql1], [cage.sql2]; default 1",
    )
    attach: str | None = Field(
        None,
        description="a running server: its socket or HOST:PORT. Its settings are changed while it runs, and "
        "put back at the end; the load has a schema of its own",
    )
    config: str | None = Field(
        None,
        description="attach: a file among the server's configuration that is not there: settings that need a restart "
        "are written into it, and it is gone at the end. It takes target.restart",
    )
    restart: list[str] = Field(default_factory=list, description="attach: the command that restarts the server")
    option_file: str = Field("", description="attach: a file with the account; otherwise from the environment")
    authorised: bool = Field(False, description="kind url, attach: a server on another machine may be loaded")
    owner: str = Field("", description="kind url, attach: who has authorised that")

    @property
    def is_running(self) -> bool:
        """Of which more than the address is known."""
        return self.attach is not None or self.is_running_service

    @property
    def form(self) -> str:
        """What a workload has to be able to load."""
        return self.kind if self.shards is None else f"sharded {self.kind}"


class WorkloadTable(Table):
    kind: str
    options: dict[str, SettingValue] = Field(default_factory=dict)
    command: Command = Field(default_factory=list)
    user: str = Field(
        "", description="who runs the load driver, if Loadframe is root: an account, or root; none: one without rights"
    )
    request: list[RequestTable] = Field([], max_length=MOST_REQUESTS, description="the requests, chosen by weight")
    login: LoginTable | None = None
    think_time: ThinkTime | None = Field(
        None, description="the pause of a user between an answer and the next request: 500ms, or { mean, spread }"
    )

    @field_validator("request")
    @classmethod
    def _distinct(cls, requests: list[RequestTable]) -> list[RequestTable]:
        names = [request.record().name for request in requests]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two requests are called {twice[0]!r}; give each a name of its own")
        return requests

    @property
    def declared(self) -> Declared:
        return Declared(
            request=tuple(request.record() for request in self.request),
            login=None if self.login is None else self.login.record(),
            think_time=None if self.think_time is None else self.think_time.record(),
            command=tuple(self.command),
        )


class RemediesTable(Table):
    allow: list[Literal["target", "process", "host"]] = Field(["target", "process"])
    durability: Literal["keep", "relax"] = "keep"


class HostTable(Table):
    settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="settings of the whole machine, reverted at the end; remedies.allow must name host",
    )


class TuneRange(Table):
    low: int | float | str = Field(alias="from")
    high: int | float | str = Field(alias="to")


class TuneTable(Table):
    """What `loadframe tune` may vary."""

    trials: int = Field(40, ge=1, le=10_000, description="maximum number of trials, if the budget allows them")
    settings: dict[str, TuneRange | list[SettingValue]] | list[str] = Field(
        default_factory=list,
        description="names of settings, or each with its values or { from = .., to = .. }; none: those that "
        "Loadframe knows to matter",
    )


class WatchTable(Table):
    every: Duration = Field(300.0, description="how often the unit of work is done; --every may ask for less, not more")
    load: str = Field("", max_length=300, description="the metric that is the load; none: the open connections")
    unit: Command = Field(
        default_factory=list, description="one small unit of work: a program, whose exit status 0 is a success"
    )

    @field_validator("every")
    @classmethod
    def _small(cls, every: float) -> float:
        if every < SHORTEST_S:
            raise ValueError(f"every = {every:g} s: a watch does at most one unit of work a second")
        return every


class StateTarget(Table):
    settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="what differs from target.settings or the change before it; all of another kind's",
    )


class StateTable(Table):
    """What differs from the study's own state, under a name."""

    name: str = Field(pattern=NAME)
    target: StateTarget = StateTarget()
    cage: ChangeCage = ChangeCage()
    host: HostTable = HostTable()


class AlternativeTarget(StateTarget):
    kind: str | None = Field(
        None, description="another kind of target, measured in the same cage as the study's target"
    )
    shards: int | None = Field(
        None,
        ge=1,
        le=MOST_SHARDS,
        description="of another kind: number of servers side by side, each in its own cage: [cage.shard]",
    )
    sql_nodes: int | None = Field(
        None, ge=1, le=MOST_SQL_NODES, description="kind ndb-sql: as target.sql_nodes; default 1"
    )


class AlternativeTable(StateTable):
    """What `loadframe compare STUDY` measures against the study's target. One that changes nothing shows the noise."""

    target: AlternativeTarget = AlternativeTarget()


class ChangeTable(StateTable):
    """A rung of `loadframe ladder STUDY`: what changes in the state before it."""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not (self.target.settings or self.cage.limits or self.cage.bound or self.host.settings):
            raise ValueError(f"the change {self.name!r} changes nothing; give it target.settings, cage, or host")
        return self


class Study(Table):
    """What to do, declared. Made by `load` or `resolve` in loadframe.study.reading."""

    study: About
    target: TargetTable
    cage: CageTable = CageTable()
    workload: WorkloadTable
    load: LoadTable
    objective: ObjectiveTable = ObjectiveTable()
    measure: MeasureTable = MeasureTable()
    remedies: RemediesTable = RemediesTable()
    host: HostTable = HostTable()
    tune: TuneTable = TuneTable()
    watch: WatchTable = WatchTable()
    alternative: Annotated[list[AlternativeTable], named_once("alternatives")] = Field([])
    change: Annotated[list[ChangeTable], named_once("changes")] = Field([])

    def around(self, kind: str) -> Self:
        """With its own target, or an alternative's, in as many pieces as the first one says."""
        if kind == self.target.kind:
            return self
        named = next(alternative.target for alternative in self.alternative if alternative.target.kind == kind)
        target = TargetTable(kind=kind, shards=named.shards, sql_nodes=named.sql_nodes)
        return self.model_copy(update={"target": target})

    @model_validator(mode="after")
    def _asks_at_a_level(self) -> Self:
        if self.objective.at is not None and self.objective.at not in self.levels:
            levels = ", ".join(f"{level:g}" for level in self.levels)
            raise ValueError(f"objective.at = {self.objective.at:g} is none of load.levels ({levels}); add it there")
        return self

    @property
    def target_cage(self) -> ComponentCage:
        """Of the target, or each of its pieces."""
        return self.cage if self.target.shards is None else self.cage.shard

    def allowed(self, component: str) -> ComponentCage:
        """component: "target", "driver", a shard by its name, or another one that has a table."""
        if component == "target":
            return self.cage
        return self.cage.components.get("shard" if component.startswith("shard") else component, ComponentCage())

    @property
    def target_limits(self) -> dict[str, int]:
        """Limits by name; of components in front of its shards with the component's name before it
        ("loader.cpu.max")."""
        others = {} if self.target.shards is None else self.cage.components  # else an alternative's
        in_front = {name: cage for name, cage in others.items() if name not in ("driver", "shard")}
        limits = {
            f"{name}.{limit}": most for name, cage in in_front.items() for limit, most in cage.group_limits().items()
        }
        nice = {} if self.cage.nice is None else {"nice": self.cage.nice}
        return {**self.target_cage.process_limits(), **nice, **self.target_cage.group_limits(), **limits}

    @property
    def target_cpus(self) -> dict[str, str]:
        """The CPUs of a running server; a private one is bound at its start."""
        return {} if not self.target.is_running or self.cage.cpus is None else {"cage.cpus": self.cage.cpus}

    @property
    def host_tables(self) -> tuple[HostTable, ...]:
        """At the start, by each alternative and by each change."""
        alternatives = (alternative.host for alternative in self.alternative)
        return (self.host, *alternatives, *(change.host for change in self.change))

    @property
    def levels(self) -> tuple[float, ...]:
        return self.load.resolve()

    def resolved(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)

    def as_toml(self) -> str:
        """Reads back as this study. Times of a step only where stated: not every workload takes them."""
        unstated = {"measure": set(TIMES_OF_A_STEP).difference(self.measure.stated_times)}
        return tomli_w.dumps(self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=unstated))
