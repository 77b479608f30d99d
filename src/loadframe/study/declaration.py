"""The study as declared: one frozen model per table of the TOML file. Unknown keys are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import tomli_w
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from loadframe.metrics import MOST_SHARDS
from loadframe.model import SettingValue
from loadframe.study.quantities import (
    cpu_share,
    duration_s,
    rate_bytes_per_s,
    show_duration,
    show_size,
    size_bytes,
    spread,
)

Duration = Annotated[
    float,
    BeforeValidator(duration_s),
    PlainSerializer(show_duration, return_type=str),
    Field(json_schema_extra={"type": "string", "examples": ["3s", "500ms", "10m"]}),
]


def _warmup(value: object) -> float | None:
    return None if value == "auto" else duration_s(value)


Warmup = Annotated[
    float | None,
    BeforeValidator(_warmup),
    PlainSerializer(lambda seconds: "auto" if seconds is None else show_duration(seconds), return_type=str),
    Field(json_schema_extra={"type": "string", "examples": ["auto", "2s"]}),
]


class Table(BaseModel):
    """What every table of a study has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


LOWEST = 1e-9
HIGHEST = 1e9
"""No axis goes higher: a billion clients, jobs or bytes."""


class About(Table):
    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="lower case, digits and dashes: it names the run"
    )
    question: str = Field(min_length=1)
    story: str = Field("", description="a sentence or two of background for the report")


class TargetTable(Table):
    kind: str
    settings: dict[str, SettingValue] = Field(default_factory=dict, description="the state it starts in")
    shards: int | None = Field(
        None, ge=1, le=MOST_SHARDS, description="so many servers side by side, each in a cage of its own: [cage.shard]"
    )
    attach: str | None = Field(
        None,
        description="a server that runs already: its socket or HOST:PORT. Its settings are changed while it runs, and "
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
    def form(self) -> str:
        """What a workload has to be able to load."""
        return self.kind if self.shards is None else f"sharded {self.kind}"


def _as_list(value: object) -> object:
    """A single CPU may be given as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Cpus = Annotated[str | None, BeforeValidator(_as_list)]
Nice = Annotated[
    int | None, Field(ge=-20, le=19, description="attach: the server's nice value, from -20 (goes first) to 19")
]


Size = Annotated[
    int,
    BeforeValidator(size_bytes),
    PlainSerializer(show_size, return_type=str),
    Field(json_schema_extra={"type": "string", "examples": ["512MiB", "2GB"]}),
]
Rate = Annotated[
    int,
    BeforeValidator(rate_bytes_per_s),
    PlainSerializer(lambda rate: f"{show_size(rate)}/s", return_type=str),
    Field(json_schema_extra={"type": "string", "examples": ["40MB/s"]}),
]
CpuQuota = Annotated[
    float, BeforeValidator(cpu_share), Field(json_schema_extra={"type": ["number", "string"], "examples": [0.5, "50%"]})
]
QUOTA_PERIOD_US = 100_000


class ComponentCage(Table):
    """What one component is allowed. Everything but cpus and open_files needs control groups."""

    cpus: Cpus = Field(None, description='CPUs it may use, for instance "0-1"')
    cpu_quota: CpuQuota | None = Field(
        None, ge=0.01, le=8192, description='CPU time in CPUs, for instance 0.5 or "50%": used up, it waits'
    )
    memory: Size | None = Field(None, ge=1 << 20, description='memory, page cache included, for instance "512MiB"')
    read_rate: Rate | None = Field(None, ge=1024, description='bytes read from the disk, for instance "40MB/s"')
    write_rate: Rate | None = Field(None, ge=1024, description='bytes written to the disk, for instance "40MB/s"')
    read_iops: int | None = Field(None, ge=1, description="reads from the disk per second")
    write_iops: int | None = Field(None, ge=1, description="writes to the disk per second, flushes included")
    processes: int | None = Field(None, ge=1, description="processes and threads at once")
    open_files: int | None = Field(None, ge=32, description="RLIMIT_NOFILE")

    def group_limits(self) -> dict[str, int]:
        """Limits of its control group by their names in version 2 (cages/cage.py says their units)."""
        limits = {
            "cpu.max": None if self.cpu_quota is None else round(self.cpu_quota * QUOTA_PERIOD_US),
            "memory.max": self.memory,
            "pids.max": self.processes,
            "io.rbps": self.read_rate,
            "io.wbps": self.write_rate,
            "io.riops": self.read_iops,
            "io.wiops": self.write_iops,
        }
        return {name: value for name, value in limits.items() if value is not None}

    def process_limits(self) -> dict[str, int]:
        """Resource limits of each of its processes by their names in setrlimit(2)."""
        return {} if self.open_files is None else {"RLIMIT_NOFILE": self.open_files}


class CageTable(ComponentCage):
    """The target's cage, the driver's, and those of further components that a target may have, by their names."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, ComponentCage] = Field(init=False)

    driver: ComponentCage = ComponentCage()
    nice: Nice = None

    @property
    def components(self) -> dict[str, ComponentCage]:
        """Every component that has a cage of its own beside the target's, the driver included."""
        return {"driver": self.driver, **(self.__pydantic_extra__ or {})}

    @property
    def shard(self) -> ComponentCage:
        """What each shard of the target is allowed."""
        return self.components.get("shard", ComponentCage())


class WorkloadTable(Table):
    kind: str
    options: dict[str, SettingValue] = Field(default_factory=dict)


class Spread(Table):
    low: float = Field(alias="from", ge=LOWEST, le=HIGHEST)
    high: float = Field(alias="to", ge=LOWEST, le=HIGHEST)
    count: int = Field(ge=1, le=200)
    growth: Literal["geometric", "linear"] = "geometric"

    @model_validator(mode="after")
    def _ordered(self) -> Spread:
        if self.high < self.low:
            raise ValueError(f"levels go from {self.low:g} to {self.high:g}: `to` must not be below `from`")
        return self


def _levels_form(value: object) -> str:
    return "spread" if isinstance(value, dict | Spread) else "list"


Levels = Annotated[
    Annotated[list[float], Tag("list")] | Annotated[Spread, Tag("spread")],
    Discriminator(_levels_form),
]


def _no_switches(value: object) -> object:
    """A level is a number; true and false would pass for 1 and 0."""
    if isinstance(value, list) and any(isinstance(item, bool) for item in value):
        raise ValueError("a level must be a number, not true or false")
    return value


FEWEST_FORECAST_FROM = 2
"""One level tells nothing of what grows."""


class LoadTable(Table):
    axis: str = Field(description="what grows")
    levels: Annotated[Levels, BeforeValidator(_no_switches)]
    forecast_up_to: float | None = Field(
        None,
        gt=0,
        le=HIGHEST,
        description="levels up to this are measured first, and the others forecast from them before they are measured",
    )

    @field_validator("levels")
    @classmethod
    def _possible(cls, levels: list[float] | Spread) -> list[float] | Spread:
        if isinstance(levels, Spread):
            return levels
        if not levels:
            raise ValueError("there are no levels; give at least one, for instance levels = [1, 2, 4, 8]")
        for level in levels:
            if not LOWEST <= level <= HIGHEST:
                raise ValueError(f"level {level:g} is impossible; levels are positive numbers up to {HIGHEST:g}")
        if len(set(levels)) != len(levels):
            raise ValueError("a level is given twice; each level once")
        return sorted(levels)

    @model_validator(mode="after")
    def _parted(self) -> LoadTable:
        if self.forecast_up_to is not None:
            levels, up_to = self.resolve(), self.forecast_up_to
            low = sum(level <= up_to for level in levels)
            if low < FEWEST_FORECAST_FROM or low == len(levels):
                raise ValueError(
                    f"forecast_up_to = {up_to:g} leaves {low} of {len(levels)} levels to forecast from; there must be "
                    f"at least {FEWEST_FORECAST_FROM}, and others to forecast"
                )
        return self

    def resolve(self) -> tuple[float, ...]:
        """The levels in rising order; a spread is rounded to whole numbers, which every axis here counts in."""
        if isinstance(self.levels, Spread):
            given = self.levels
            return spread(given.low, given.high, given.count, given.growth, whole=True)
        return tuple(self.levels)


class Within(Table):
    latency_p95_ms: float | None = Field(None, gt=0)
    latency_mean_ms: float | None = Field(None, gt=0)
    latency_p50_ms: float | None = Field(None, gt=0)
    latency_p99_ms: float | None = Field(None, gt=0)
    latency_p999_ms: float | None = Field(None, gt=0)
    latency_max_ms: float | None = Field(None, gt=0)
    error_ratio: float | None = Field(None, ge=0, lt=1, description="share of the requests that may fail")
    loss_ratio: float | None = Field(
        None, ge=0, lt=1, description="share of the requests that may fail or, on the axis rate, not be served in time"
    )

    @property
    def latencies_ms(self) -> dict[str, float]:
        """What is asked of latencies other than p95, by their names in the records."""
        return {
            name: limit
            for name in ("mean_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms")
            if (limit := getattr(self, f"latency_{name}")) is not None
        }

    @property
    def asks(self) -> bool:
        """Whether anything is asked that more load could miss."""
        single = (self.latency_p95_ms, self.loss_ratio, self.error_ratio)
        return bool(self.latencies_ms) or any(limit is not None for limit in single)


class ObjectiveTable(Table):
    maximise: Literal["throughput"] = "throughput"
    within: Within = Within()


class Blocks(Table):
    min: int = Field(3, ge=2, le=100)
    max: int = Field(6, ge=2, le=100)

    @model_validator(mode="after")
    def _ordered(self) -> Blocks:
        if self.max < self.min:
            raise ValueError(f"blocks.max = {self.max} is below blocks.min = {self.min}")
        return self


TIMES_OF_A_STEP = ("warmup", "window")
"""Keys of `measure` that have no meaning where a step ends when its work is done."""


class MeasureTable(Table):
    warmup: Warmup = Field(None, description='"auto" detects it; "2s" fixes it')
    window: Duration = Field(3.0, description="measured after the warm-up")
    blocks: Blocks = Blocks()
    precision: float = Field(0.05, gt=0, lt=1, description="half-width of the interval at which blocks stop")
    budget: Duration = Field(600.0, description="for the whole command")
    profile: Literal["auto", "off"] = Field(
        "auto", description="extra steps below and past the bend that are sampled, where the budget has room"
    )

    cold: bool = Field(
        False, description="caches are measured beside each other with nothing cached, too: each step begins so"
    )

    @model_validator(mode="after")
    def _fits(self) -> MeasureTable:
        step_s = self.window + (self.warmup or 0.0)
        if step_s > self.budget:
            raise ValueError(f"a single step takes {step_s:g} s, more than the budget of {self.budget:g} s")
        return self

    @property
    def stated_times(self) -> tuple[str, ...]:
        """Those of the times of a step that the study states itself, by their keys here."""
        return tuple(name for name in TIMES_OF_A_STEP if name in self.model_fields_set)

    @field_validator("window")
    @classmethod
    def _long_enough(cls, window: float) -> float:
        if window < 0.3:
            raise ValueError(f"a window of {window:g} s is too short to measure in; use at least 300ms")
        return window


class RemediesTable(Table):
    allow: list[Literal["target", "process", "host"]] = ["target", "process"]
    durability: Literal["keep", "relax"] = "keep"


class HostTable(Table):
    settings: dict[str, SettingValue] = Field(
        default_factory=dict, description="of the whole machine, put back at the end; remedies.allow must name host"
    )


class TuneRange(Table):
    low: int | float | str = Field(alias="from")
    high: int | float | str = Field(alias="to")


class TuneTable(Table):
    """What `loadframe tune` may vary."""

    trials: int = Field(40, ge=1, le=10_000, description="the most there are, where the budget allows them")
    settings: dict[str, TuneRange | list[SettingValue]] | list[str] = Field(
        default_factory=list,
        description="names of settings, or each with its values or { from = .., to = .. }; none: those that "
        "Loadframe knows to matter",
    )


class AlternativeTarget(Table):
    kind: str | None = Field(None, description="another kind of target, measured in a cage like the study's target's")
    settings: dict[str, SettingValue] = Field(
        default_factory=dict, description="what differs from target.settings; all of another kind's"
    )


class ChangeDriver(Table):
    cpus: Cpus = Field(None, description='CPUs that the load driver may use, for instance "1"')


class ChangeCage(Table):
    """What an alternative or a change of a ladder gives the target's processes."""

    open_files: int | None = Field(None, ge=32, description="RLIMIT_NOFILE of the target")
    nice: Nice = None
    cpus: Cpus = Field(None, description='CPUs that the target may use, for instance "0"')
    driver: ChangeDriver = ChangeDriver()

    @property
    def limits(self) -> dict[str, int]:
        """What it changes of a state's limits."""
        given = {"RLIMIT_NOFILE": self.open_files, "nice": self.nice}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def bound(self) -> dict[str, str]:
        """The CPUs that it changes, by the keys of a study."""
        given = {"cage.cpus": self.cpus, "cage.driver.cpus": self.driver.cpus}
        return {name: cpus for name, cpus in given.items() if cpus is not None}


class AlternativeTable(Table):
    """What `loadframe compare STUDY` measures against the study's target. One that changes nothing shows the noise."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    target: AlternativeTarget = AlternativeTarget()
    cage: ChangeCage = ChangeCage()
    host: HostTable = HostTable()


class ChangeTarget(Table):
    settings: dict[str, SettingValue] = Field(default_factory=dict, description="what differs from the state before it")


class ChangeTable(Table):
    """A rung of `loadframe ladder STUDY`: what changes in the state before it."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    target: ChangeTarget = ChangeTarget()
    cage: ChangeCage = ChangeCage()
    host: HostTable = HostTable()

    @model_validator(mode="after")
    def _changes_something(self) -> ChangeTable:
        if not (self.target.settings or self.cage.limits or self.cage.bound or self.host.settings):
            raise ValueError(f"the change {self.name!r} changes nothing; give it target.settings, cage, or host")
        return self


Named = TypeVar("Named", AlternativeTable, ChangeTable)


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
    alternative: list[AlternativeTable] = []
    change: list[ChangeTable] = []

    @field_validator("alternative", "change")
    @classmethod
    def _named_once(cls, tables: list[Named], info: ValidationInfo) -> list[Named]:
        names = [each.name for each in tables]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two {info.field_name}s are called {name!r}; each needs a name of its own")
        return tables

    @property
    def target_cage(self) -> ComponentCage:
        """What the target is allowed; of several pieces, each of them."""
        return self.cage if self.target.shards is None else self.cage.shard

    def allowed(self, component: str) -> ComponentCage:
        """What a component is allowed: "target", "driver", a shard by its name, or another one that has a table."""
        if component == "target":
            return self.cage
        return self.cage.components.get("shard" if component.startswith("shard") else component, ComponentCage())

    @property
    def target_limits(self) -> dict[str, int]:
        """The limits of the target's processes and of its control groups, by their names; of a component in front of
        its shards with that component's name before ("loader.cpu.max")."""
        in_front = {name: cage for name, cage in self.cage.components.items() if name not in ("driver", "shard")}
        return {
            **self.target_cage.process_limits(),
            **({} if self.cage.nice is None else {"nice": self.cage.nice}),
            **self.target_cage.group_limits(),
            **{
                f"{name}.{limit}": most
                for name, cage in in_front.items()
                for limit, most in cage.group_limits().items()
            },
        }

    @property
    def target_cpus(self) -> dict[str, str]:
        """To which CPUs a server that runs already is bound; a private one is bound from its start on."""
        return {} if self.target.attach is None or self.cage.cpus is None else {"cage.cpus": self.cage.cpus}

    @property
    def host_tables(self) -> tuple[HostTable, ...]:
        """What is set of the machine: at the start, by each alternative and by each change."""
        alternatives = (each.host for each in self.alternative)
        return (self.host, *alternatives, *(each.host for each in self.change))

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels in rising order."""
        return self.load.resolve()

    def resolved(self) -> dict[str, Any]:
        """Every key with its value, defaults included, as JSON-ready data."""
        return self.model_dump(mode="json", by_alias=True)

    def as_toml(self) -> str:
        """The same as a study file: reading it gives this study again. Of the times of a step it has those alone that
        are stated: not every workload takes them."""
        unstated = {"measure": set(TIMES_OF_A_STEP).difference(self.measure.stated_times)}
        return tomli_w.dumps(self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=unstated))
