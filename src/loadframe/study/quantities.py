"""Durations, integers sets and other quantities as a study file writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*$")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


LONGEST_S = 366 * 24 * 3600.0
"""A year. Whatever is longer was given by mistake, and what waits so long cannot count it."""


def duration_s(value: object) -> float:
    """Seconds from "500ms", "3s", "10m" or "1h". ValueError for everything else, a bare number included, and for more
    than a year."""
    if isinstance(value, str) and (match := DURATION.match(value)):
        seconds = float(match[1]) * SECONDS[match[2]]
        if seconds > LONGEST_S:
            raise ValueError(f"{value[:40]!r} is longer than a year")
        return seconds
    raise ValueError(f'{value!r} is not a duration; write it with its unit, for example "500ms", "3s" or "10m"')


SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*$")
BYTES = {
    "TiB": 2**40, "TB": 10**12, "GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6, "KiB": 2**10, "kB": 1000, "B": 1,
}  # fmt: skip


MOST_BYTES = 2**60
"""An exbibyte. Kernels count sizes in 63 bits."""


def size_bytes(value: object) -> int:
    """Bytes from "512MiB" or "2GB". ValueError for everything else, a bare number included, and for more than
    MOST_BYTES."""
    if isinstance(value, str) and (match := SIZE.match(value)):
        return _bytes(match, value)
    raise ValueError(f'{value!r} is not an amount of memory; write it with its unit, for example "512MiB" or "2GB"')


def rate_bytes_per_s(value: object) -> int:
    """Bytes per second from "40MB/s". ValueError for everything else."""
    if isinstance(value, str) and (match := SIZE.match(value.strip().removesuffix("/s"))) and "/s" in value:
        return _bytes(match, value)
    raise ValueError(f'{value!r} is not a rate; write it with its unit, for example "40MB/s" or "512KiB/s"')


def _bytes(match: re.Match[str], value: str) -> int:
    size = float(match[1]) * BYTES[match[2]]
    if size > MOST_BYTES:
        raise ValueError(f"{value[:40]!r} is more than {show_size(MOST_BYTES)}")
    return round(size)


def show_size(size: int) -> str:
    """The way back, exactly: "512MiB", "1500B"."""
    unit = next(unit for unit, factor in BYTES.items() if size % factor == 0 and size >= factor)
    return f"{size // BYTES[unit]}{unit}"


def cpu_share(value: object) -> float:
    """CPUs' worth of time from 0.5, 2 or "50%" (of one CPU). ValueError for everything else."""
    if isinstance(value, str) and (match := re.match(r"^\s*(\d+(?:\.\d+)?)\s*%\s*$", value)):
        return float(match[1]) / 100
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f'{value!r} is not an amount of CPU time; write CPUs, for example 0.5, or "50%" of one CPU')


def show_duration(seconds: float) -> str:
    """The way back: "3s", "0.6s", "10m"."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:g}m"
    return f"{seconds:g}s"


def spread(low: float, high: float, count: int, growth: str, *, whole: bool) -> tuple[float, ...]:
    """`count` levels from low to high, "geometric" or "linear", rounded to whole numbers where asked; duplicates that
    rounding makes are dropped."""
    if count == 1:
        levels: Sequence[float] = [low]
    elif growth == "geometric":
        ratio = math.log(high / low) / (count - 1)
        levels = [low * math.exp(ratio * i) for i in range(count)]
    else:
        levels = [low + (high - low) * i / (count - 1) for i in range(count)]
    rounded = [float(round(level)) if whole else float(f"{level:.6g}") for level in levels]
    return tuple(sorted(set(rounded)))
