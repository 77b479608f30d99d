"""The share of each change in a gain."""

from dataclasses import dataclass, field

from loadframe.model.finding import Change
from loadframe.model.investigation import Host, RunQuality, StudySummary
from loadframe.model.verdict import Compared, FleetHosts, Verdict


@dataclass(frozen=True, slots=True)
class Rung:
    """changes, comparison: against the state before it; for a kept change its fresh blocks are those of the whole
    ladder. refused: why the target cannot work with it. at_top: all kept changes against all but this. share: of the
    whole gain, in logarithms, if proven."""

    change: str
    changes: tuple[Change, ...]
    kept: bool
    comparison: Compared | None = None
    refused: str = ""
    share: float | None = None
    at_top: Verdict | None = None
    gives_up: str | None = None

    @property
    def reported(self) -> Verdict | None:
        return None if self.comparison is None else self.comparison.reported


@dataclass(frozen=True, slots=True)
class Interaction:
    """A change whose factor depends on others. verdict: at the top over that in its place; with a partner over that
    without."""

    change: str
    partner: str | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CpuUse:
    """name: of a component, or a kind of thread. cores: CPU time (s/s). of: CPUs that it may use; 1 for a thread."""

    name: str
    cores: float
    of: float


@dataclass(frozen=True, slots=True)
class StateUse:
    """The busiest first: medians over steps at the highest level. state: its changes with " + " between them. threads:
    the busiest of each component. kinds: means over threads of a kind. busy: 0..1, of all CPUs; others: outside the
    study."""

    state: str
    level: float
    throughput: float
    steps: int
    threads: tuple[CpuUse, ...]
    kinds: tuple[CpuUse, ...]
    components: tuple[CpuUse, ...]
    busy: float | None
    others: float | None = None


@dataclass(frozen=True, slots=True)
class Ladder:
    """total: all kept changes against the start, in the same blocks as their gains. finished: False for a run that was
    stopped. hosts: of a fleet, how equal they are. to_copy: what is kept."""

    run: str
    report: str
    study: StudySummary
    host: Host
    rungs: tuple[Rung, ...]
    total: Compared | None
    interactions: tuple[Interaction, ...]
    keeps_all: bool
    finished: bool
    quality: RunQuality | None = field(default=None, metadata={"alias": "conduct"})
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    hosts: FleetHosts | None = None
    cpu_use: tuple[StateUse, ...] = ()
    to_copy: tuple[str, ...] = ()

    @property
    def reported(self) -> Verdict | None:
        return None if self.total is None else self.total.reported

    @property
    def net_changes(self) -> tuple[Change, ...]:
        net: dict[tuple[str, str], Change] = {}
        for rung in self.kept:
            for change in rung.changes:
                key = (change.layer, change.setting)
                net[key] = Change(*key, net[key].before if key in net else change.before, change.after)
        return tuple(net.values())

    @property
    def kept(self) -> tuple[Rung, ...]:
        return tuple(rung for rung in self.rungs if rung.kept)
