"""The values of a study's keys: durations, sizes, rates and CPUs, as they are written and as they are used."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from loadframe.formats.plain_numbers import is_number

DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*$")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST_S = 366 * 24 * 3600.0
"""A year: longer durations are mistakes, and overflow timers."""
SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*$")
BYTES = {
    "TiB": 2**40, "TB": 10**12, "GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6, "KiB": 2**10, "kB": 1000, "B": 1,
}  # fmt: skip
MOST_BYTES = 2**60
"""Kernels count sizes in 63 bits."""


def duration_s(value: object) -> float:
    """From "500ms", "3s", "10m" or "1h". ValueError, also for a bare number or more than a year."""
    if isinstance(value, str) and (match := DURATION.match(value)):
        seconds = float(match[1]) * SECONDS[match[2]]
        if seconds > LONGEST_S:
            raise ValueError(f"{value[:40]!r} is longer than a year")
        return seconds
    raise ValueError(f'{value!r} is not a duration; write it with its unit, for example "500ms", "3s" or "10m"')


def size_bytes(value: object) -> int:
    """From "512MiB" or "2GB". ValueError, also for a bare number, and above MOST_BYTES."""
    if isinstance(value, str) and (match := SIZE.match(value)):
        return _bytes(match, value)
    raise ValueError(f'{value!r} is not an amount of memory; write it with its unit, for example "512MiB" or "2GB"')


def rate_bytes_per_s(value: object) -> int:
    """From "40MB/s". ValueError."""
    if isinstance(value, str) and (match := SIZE.match(value.strip().removesuffix("/s"))) and "/s" in value:
        return _bytes(match, value)
    raise ValueError(f'{value!r} is not a rate; write it with its unit, for example "40MB/s" or "512KiB/s"')


def _bytes(match: re.Match[str], value: str) -> int:
    size = float(match[1]) * BYTES[match[2]]
    if size > MOST_BYTES:
        raise ValueError(f"{value[:40]!r} is more than {show_size(MOST_BYTES)}")
    return round(size)


def show_size(size: int) -> str:
    """Exactly: "512MiB", "1500B"."""
    unit = next(unit for unit, factor in BYTES.items() if size % factor == 0 and size >= factor)
    return f"{size // BYTES[unit]}{unit}"


def cpu_share(value: object) -> float:
    """CPUs' worth of time from 0.5, 2 or "50%" (of one CPU). ValueError."""
    if isinstance(value, str) and (match := re.match(r"^\s*(\d+(?:\.\d+)?)\s*%\s*$", value)):
        return float(match[1]) / 100
    if is_number(value):
        return float(value)
    raise ValueError(f'{value!r} is not an amount of CPU time; write CPUs, for example 0.5, or "50%" of one CPU')


def show_duration(seconds: float) -> str:
    """ "3s", "0.6s", "10m"."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:g}m"
    return f"{seconds:g}s"


def spread(low: float, high: float, count: int, growth: str, *, whole: bool) -> tuple[float, ...]:
    """Up to `count` distinct levels, "geometric" or "linear"."""
    if count == 1:
        levels: Sequence[float] = [low]
    elif growth == "geometric":
        ratio = math.log(high / low) / (count - 1)
        levels = [low * math.exp(ratio * i) for i in range(count)]
    else:
        levels = [low + (high - low) * i / (count - 1) for i in range(count)]
    rounded = [float(round(level)) if whole else float(f"{level:.6g}") for level in levels]
    return tuple(sorted(set(rounded)))


Duration = Annotated[
    float,
    BeforeValidator(duration_s),
    PlainSerializer(show_duration, return_type=str),
    Field(json_schema_extra={"type": "string", "examples": ["3s", "500ms", "10m"]}),
]
Warmup = Annotated[
    float | None,
    BeforeValidator(lambda value: None if value == "auto" else duration_s(value)),
    PlainSerializer(lambda seconds: "auto" if seconds is None else show_duration(seconds), return_type=str),
    Field(json_schema_extra={"type": "string", "examples": ["auto", "2s"]}),
]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


def named_once(what: str) -> AfterValidator:
    """what: the tables are, in the plural."""

    def check(tables: list[Any]) -> list[Any]:
        names = [table.name for table in tables]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two {what} are called {twice[0]!r}; each needs a name of its own")
        return tables

    return AfterValidator(check)


Cpus = Annotated[
    str | None,
    BeforeValidator(lambda value: str(value) if isinstance(value, int) and not isinstance(value, bool) else value),
]
"""A single CPU may be given as a number."""
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
