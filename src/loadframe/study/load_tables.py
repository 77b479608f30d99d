"""`[load]`, `[objective]` and `[measure]`: the levels, the objective, and how each level is measured."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from loadframe.model.verdict import MOST_BLOCKS
from loadframe.study.fields import Duration, Table, Warmup, spread

LOWEST = 1e-9
HIGHEST = 1e9
FEWEST_FORECAST_FROM = 2
"""One level does not show how throughput changes with load."""
TIMES_OF_A_STEP = ("warmup", "window")


class Spread(Table):
    low: float = Field(alias="from", ge=LOWEST, le=HIGHEST)
    high: float = Field(alias="to", ge=LOWEST, le=HIGHEST)
    count: int = Field(ge=1, le=200)
    growth: Literal["geometric", "linear"] = "geometric"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"levels go from {self.low:g} to {self.high:g}: `to` must not be below `from`")
        return self


Levels = Annotated[
    Annotated[list[float], Tag("list")] | Annotated[Spread, Tag("spread")],
    Discriminator(lambda value: "spread" if isinstance(value, dict | Spread) else "list"),
]


def _no_switches(value: object) -> object:
    if isinstance(value, list) and any(isinstance(item, bool) for item in value):
        raise ValueError("a level must be a number, not true or false")
    return value


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
            raise ValueError("there are no levels; give at least one, for example levels = [1, 2, 4, 8]")
        for level in levels:
            if not LOWEST <= level <= HIGHEST:
                raise ValueError(f"level {level:g} is impossible; levels are positive numbers up to {HIGHEST:g}")
        if len(set(levels)) != len(levels):
            raise ValueError("a level is given twice; each level once")
        return sorted(levels)

    @model_validator(mode="after")
    def _parted(self) -> Self:
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
        """Rising; a spread is rounded to whole numbers, in which every axis counts."""
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
    error_ratio: float | None = Field(None, ge=0, lt=1, description="share of requests that may fail")
    loss_ratio: float | None = Field(
        None, ge=0, lt=1, description="share of requests that may fail or, on the axis rate, not be served in time"
    )

    @property
    def latencies_ms(self) -> dict[str, float]:
        """Other than p95, by their names in the records."""
        return {
            name: limit
            for name in ("mean_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms")
            if (limit := getattr(self, f"latency_{name}")) is not None
        }

    @property
    def asks_latency(self) -> bool:
        return bool(self.latencies_ms) or self.latency_p95_ms is not None

    @property
    def asks(self) -> bool:
        return self.asks_latency or self.loss_ratio is not None or self.error_ratio is not None


class ObjectiveTable(Table):
    maximise: Literal["throughput"] = "throughput"
    within: Within = Within()
    at: float | None = Field(None, gt=0, description="the load that the answer is about; the highest if omitted")


class Blocks(Table):
    min: int = Field(3, ge=2, le=MOST_BLOCKS)
    max: int = Field(6, ge=2, le=MOST_BLOCKS)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"blocks.max = {self.max} is below blocks.min = {self.min}")
        return self


class MeasureTable(Table):
    warmup: Warmup = Field(None, description='"auto" detects it; "2s" fixes it')
    window: Duration = Field(3.0, description="measured after the warm-up")
    blocks: Blocks = Blocks()
    precision: float = Field(0.05, gt=0, lt=1, description="half-width of the interval at which blocks stop")
    budget: Duration = Field(600.0, description="for the whole command")
    profile: Literal["auto", "off"] = Field(
        "auto", description="extra steps below and past the bend that are sampled, where the budget has room"
    )

    cold: bool = Field(False, description="caches are also compared cold: each step starts with nothing cached")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        step_s = self.window + (self.warmup or 0.0)
        if step_s > self.budget:
            raise ValueError(f"a single step takes {step_s:g} s, more than the budget of {self.budget:g} s")
        return self

    @property
    def stated_times(self) -> tuple[str, ...]:
        return tuple(name for name in TIMES_OF_A_STEP if name in self.model_fields_set)

    @field_validator("window")
    @classmethod
    def _long_enough(cls, window: float) -> float:
        if window < 0.3:
            raise ValueError(f"a window of {window:g} s is too short to measure in; use at least 300ms")
        return window
