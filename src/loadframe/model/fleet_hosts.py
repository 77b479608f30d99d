"""How alike the hosts of a fleet are, on which trials run side by side."""

from dataclasses import dataclass
from typing import Literal

Likeness = Literal["alike", "differ", "unknown"]
"""alike: the whole interval lies within the margin. differ: the ratio is beyond the margin, and its interval leaves out
1. unknown: neither is proved."""


@dataclass(frozen=True, slots=True)
class HostRatio:
    """Throughput as given of one host beside another one, or of a host beside itself, with an interval. blocks: their
    number."""

    host: str
    beside: str
    ratio: float
    low: float
    high: float
    blocks: int
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class FleetHosts:
    """How alike the hosts of a search are (A/A: the same settings on each). levels: at which. margin: ratios from
    1 / margin to margin are alike. hosts: each beside the middle one, measured one after another. together: each while
    all are loaded beside itself while the others rest."""

    levels: tuple[float, ...]
    margin: float
    hosts: tuple[HostRatio, ...]
    together: tuple[HostRatio, ...]
