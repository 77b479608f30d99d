"""What the keys of a study hold: durations, sizes, rates and CPUs, as they are written and as they are used."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from loadframe.study.quantities import cpu_share, duration_s, rate_bytes_per_s, show_duration, show_size, size_bytes

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
