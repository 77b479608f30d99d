"""A target on the bench, brought to one state at a time, with every change in the journal."""

from dataclasses import replace

from loadframe.bench.base import OnBench
from loadframe.changes.journal import Journal, Reasons
from loadframe.model import ChangeRecord, CounterSpec, Reading, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads.base import Workload


def kinds_of(study: Study) -> tuple[str, ...]:
    named = (study.target.kind, *(alternative.target.kind for alternative in study.alternative))
    return tuple(dict.fromkeys(kind for kind in named if kind is not None))


def prefix_of(study: Study, kind: str) -> str:
    """Prefix of a target's counter names: two servers' may be equal."""
    return "" if len(kinds_of(study)) == 1 else f"{kind}."


class Rig:
    """target: created, not started; destroyed by its maker. One that runs already is changed from its found state."""

    def __init__(self, target: OnBench, run: RunFolder, prefix: str = "", reasons: Reasons | None = None) -> None:
        """prefix: see prefix_of. reasons: see Journal."""
        self.target = target
        self._prefix = prefix
        self._journal = Journal(run, target, private=target.private, reasons=reasons)
        self._first: TargetState | None = None
        self._now: TargetState | None = None
        self._installed = False
        self._put_back: list[ChangeRecord] = []
        self._checked: list[TargetState] = []

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        """The target's recorded counters, including all that it has exposed so far."""
        specs = (*self.target.counter_specs, *self.target.exposure.counter_specs)
        return tuple(replace(spec, name=f"{self._prefix}{spec.name}") for spec in specs)

    def counters(self) -> dict[str, float]:
        """Current counters, by the names of `counter_specs`. Raises as Target.counters does."""
        return {f"{self._prefix}{name}": value for name, value in self.target.counters().items()}

    def exposed(self) -> list[Reading]:
        return [
            replace(reading, counters={f"{self._prefix}{name}": value for name, value in reading.counters.items()})
            for reading in self.target.exposure.readings()
        ]

    def check(self, state: TargetState) -> None:
        """Raises as Target.check does. Each state is checked once, and none that the target has been in."""
        state = replace(state, cpus={}) if self.target.private else state
        if state not in self._checked:
            self.target.check(state)
            self._checked.append(state)

    def bring(self, treatment: str, state: TargetState, workload: Workload) -> dict[str, SettingValue]:
        """Bring the target to this state, with the workload's data; returns its effective settings."""
        if self._now is None:
            begin = self.target.found_in(state)
            self.target.start(begin)
            self._first = begin if self._first is None else self._first
            self._now = begin
            self._checked.append(replace(begin, cpus={}) if self.target.private else begin)
        if not self._installed:
            self.target.install(workload)
            self._installed = True
        if self._now != state:
            self.check(state)
            before, self._now = self._now, None  # not known until the change has succeeded
            try:
                self._journal.go(treatment, before, state)
            except Exception:  # not Ctrl-C: then `close` follows at once
                self._note(self.target.abandon())
                raise
        self._now = state
        return self.target.effective()

    def stop(self) -> None:
        self._note(self.target.abandon())
        self._ended()

    def empty(self) -> None:
        """End the target and empty its cache; the next `bring` starts it again."""
        self.stop()
        self.target.empty()

    def close(self) -> list[ChangeRecord]:
        """Changes of a private target end with it; one that goes on is restored. Returns the outcome of each change."""
        self._note(self.target.leave())
        self._ended()
        return self._put_back

    def _ended(self) -> None:
        if self._first is not None and self._now is not None:
            self._journal.close(self._now, self._first)
        self._now = None

    def _note(self, outcomes: list[ChangeRecord]) -> None:
        self._put_back += outcomes
        self._journal.reverted(outcomes)
