"""Which change gave which share of a gain."""

from dataclasses import dataclass, field

from loadframe.model.finding import Change
from loadframe.model.fleet import FleetHosts
from loadframe.model.investigation import Host, RunQuality, StudySummary
from loadframe.model.verdict import Compared, Verdict


@dataclass(frozen=True, slots=True)
class Rung:
    """One change of a ladder, in the study's order. changes: what it changes in the state before it.

    comparison: it against the state before it; of a kept one its fresh blocks are those that measured the whole ladder.
    None where it was not tried. refused: why the target cannot work with it; "" where it can. at_top: in the blocks of
    the whole, all that are kept against all but this one (leave-one-out); None where that was not measured. share: of
    the whole gain, in logarithms; None where the whole is not proven. gives_up: durability, in words.
    """

    change: str
    changes: tuple[Change, ...]
    kept: bool
    comparison: Compared | None = None
    refused: str = ""
    share: float | None = None
    at_top: Verdict | None = None
    gives_up: str | None = None

    @property
    def told(self) -> Verdict | None:
        """What is reported of it against the state before it."""
        return None if self.comparison is None else self.comparison.told


@dataclass(frozen=True, slots=True)
class Interaction:
    """A change is worth another factor in other company. verdict: how many times more it is worth at the top than in
    its place in the order; with a partner, how many times more with it than without it, all others in place."""

    change: str
    partner: str | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CpuUse:
    """name: of a component, or of a kind of thread. cores: its CPU time (s/s). of: the CPUs that it may use; 1 for a
    thread."""

    name: str
    cores: float
    of: float


@dataclass(frozen=True, slots=True)
class StateUse:
    """Where the CPU time went in a state of a ladder, the busiest first: medians over its steps at the highest level.

    state: its changes with " + " between them, "" for the start. threads: of each component the busiest one. kinds:
    what the target tells of its threads by what they do, averages over those of a kind; empty where it tells nothing.
    busy: 0..1, of all CPUs of the machine; others: of this the part of programs outside the study.
    """

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
    """The changes of a study, one on top of the other. total: all that are kept against the start, in the same blocks
    as their gains; None where nothing was kept or measured. finished: False for a run that was stopped or killed.
    hosts: how alike the hosts of a fleet are, on which its blocks were measured; None without a fleet. cpu_use: of each
    state that was measured, the start first. to_copy: what is kept as it is typed in, a line each."""

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
    def net_changes(self) -> tuple[Change, ...]:
        """What is different at the top, one for each setting: as it was at the start, and as it is."""
        net: dict[tuple[str, str], Change] = {}
        for rung in self.kept:
            for change in rung.changes:
                key = (change.layer, change.setting)
                net[key] = Change(*key, net[key].before if key in net else change.before, change.after)
        return tuple(net.values())

    @property
    def kept(self) -> tuple[Rung, ...]:
        """The rungs of the final state."""
        return tuple(rung for rung in self.rungs if rung.kept)
