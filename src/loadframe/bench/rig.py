"""A target on the bench: in its cages, brought to one state at a time, every change of it through the journal."""

from dataclasses import replace

from loadframe.bench.base import OnBench
from loadframe.changes.journal import Journal, Reasons
from loadframe.kinds.exposed import Reading
from loadframe.model import ChangeRecord, CounterSpec, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads.base import Workload


def kinds_of(study: Study) -> tuple[str, ...]:
    """All kinds of target that a study names, its own first."""
    named = (study.target.kind, *(each.target.kind for each in study.alternative))
    return tuple(dict.fromkeys(kind for kind in named if kind is not None))


def prefix_of(study: Study, kind: str) -> str:
    """What stands before the names of a target's counters: two servers may call theirs alike."""
    return "" if len(kinds_of(study)) == 1 else f"{kind}."


class Rig:
    """target: created already, not started yet; whoever made it destroys it. Start at a state with `bring`.

    One that runs already is there in the state in which it is found: every state is reached from there by changes."""

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
        """The target's counters as they are recorded, with all that it has exposed so far."""
        specs = (*self.target.counter_specs, *self.target.exposure.counter_specs)
        return tuple(replace(spec, name=f"{self._prefix}{spec.name}") for spec in specs)

    def counters(self) -> dict[str, float]:
        """What the target counts now, by the names of `counter_specs`. Raises as Target.counters does."""
        return {f"{self._prefix}{name}": value for name, value in self.target.counters().items()}

    def exposed(self) -> list[Reading]:
        """What it has exposed since the last call, by the same names, each with its time."""
        return [
            replace(reading, counters={f"{self._prefix}{name}": value for name, value in reading.counters.items()})
            for reading in self.target.exposure.readings()
        ]

    def check(self, state: TargetState) -> None:
        """Raises as Target.check does for a state with which the target would not start. Each state is looked at once,
        and one that the target has been in not at all."""
        state = replace(state, cpus={}) if self.target.private else state
        if state not in self._checked:
            self.target.check(state)
            self._checked.append(state)

    def bring(self, treatment: str, state: TargetState, workload: Workload) -> dict[str, SettingValue]:
        """The target in this state, with the workload's data in it; answers what it really uses."""
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
            except Exception:  # Ctrl-C is none: then everything ends, and `close` follows at once
                self._note(self.target.abandon())
                raise
        self._now = state
        return self.target.effective()

    def kill(self) -> None:
        """SIGKILL for its processes, as a crash would have it; `stop` has to follow."""
        self.target.kill()

    def stop(self) -> None:
        """End the target, whatever has become of it; the next `bring` starts it again."""
        self._note(self.target.abandon())
        self._ended()

    def empty(self) -> None:
        """End the target and have it forget what it has cached; the next `bring` starts it again."""
        self.stop()
        self.target.empty()

    def close(self) -> list[ChangeRecord]:
        """The target has ended, or is about to: what was changed since its first start ends with it. One that goes on
        is made as it was before; what has become of each change of it."""
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
