"""Raise what the cage allows, as far as the machine goes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadframe.knowledge.remedy import Builder, Builders, Situation, raised, whole
from loadframe.metrics import IN_FRONT
from loadframe.model import Change, Price, Remedy
from loadframe.units import show

MIB = 1 << 20
QUOTA_PERIOD_US = 100_000
"""cpu.max is CPU time per period of this many microseconds."""


@dataclass(frozen=True, slots=True)
class CageLimit:
    """scale: cgroup units per unit of the ledger; ends_at: the machine's limit; rate: its demand without the limit
    cannot be estimated."""

    setting: str
    words: str
    scale: float = 1.0
    ends_at: str | None = None
    rate: bool = True
    whose: str = "the cage"


OF_THE_TARGET: Mapping[str, CageLimit] = {
    "cage.cpu_quota": CageLimit("cpu.max", "{:,.3g} CPUs' worth of time", QUOTA_PERIOD_US, "cpu.saturated"),
    "cage.memory": CageLimit("memory.max", "{} of memory", ends_at="system.memory", rate=False),
    "cage.pids": CageLimit("pids.max", "{:,.0f} processes and threads", rate=False),
    "cage.read_bytes": CageLimit("io.rbps", "{:,.0f} bytes/s read"),
    "cage.write_bytes": CageLimit("io.wbps", "{:,.0f} bytes/s written"),
    "cage.reads": CageLimit("io.riops", "{:,.0f} disk reads/s"),
    "cage.writes": CageLimit("io.wiops", "{:,.0f} disk writes/s"),
}
CAGE: Mapping[str, CageLimit] = {
    **OF_THE_TARGET,
    **{
        limit.replace("cage.", f"cage.{name}."): replace(
            row, setting=f"{name}.{row.setting}", whose=f"the {name}'s cage"
        )
        for name in IN_FRONT
        for limit, row in OF_THE_TARGET.items()
    },
}
"""Without the driver's cage: that is part of the study's question."""


def _raise_cage(limit: str, *reached_by: str) -> Builder:
    def build(situation: Situation) -> Remedy | None:
        row = CAGE[limit]
        size, of_memory = raised(situation, limit, row.setting), row.setting.endswith("memory.max")
        if size is None:
            return None
        wanted = 4 * situation.ceilings[limit] if row.rate else float(size)
        wanted = math.ceil(wanted / MIB) * MIB if of_memory else wanted  # whole pages: the kernel truncates the rest
        wanted = min(wanted, situation.ceilings.get(row.ends_at or "", math.inf))
        after = whole(situation.effective, row.setting, 0)
        if round(wanted * row.scale) <= after:
            return None  # the machine has no more
        allowed = row.words.format(show(wanted, "bytes") if of_memory else wanted)
        return Remedy(
            id=f"{limit}.raise",
            title=f"raise {row.whose} to {allowed}",
            addresses=(limit, *reached_by),
            changes=(
                Change("process", row.setting, after, round(wanted * row.scale), why="the cage's allowance is used up"),
            ),
            price=Price(note="the target may take it from the other processes of the machine"),
            source="Linux, Documentation/admin-guide/cgroup-v2.rst",
        )

    return build


BUILDERS: Builders = {
    **{limit: (_raise_cage(limit),) for limit in CAGE},
    "memory.mmap_page_faults": (_raise_cage("cage.memory", "memory.mmap_page_faults"),),
}
