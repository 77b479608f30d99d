"""The machine around the target: settings that the study changes, and that are reverted."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from loadframe.changes.durable import NOT_ALONE, DurableJournal
from loadframe.changes.host import Host
from loadframe.changes.journal import Journal, Reasons
from loadframe.changes.places import Place
from loadframe.errors import ChangeError, StudyError
from loadframe.model import ChangeRecord, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.study.declaration import HostTable


class Machine(Place, Protocol):
    def moves(self, name: str) -> tuple[str, ...]:
        """The settings that may change along with this one."""


class Surroundings:
    """Bring it to a state with `bring`; `close` reverts everything."""

    kind = "host"

    def __init__(
        self,
        machine: Machine,
        names: Iterable[str],
        durable: DurableJournal,
        run: RunFolder,
        reasons: Reasons | None,
    ) -> None:
        """machine: the target's. names: all settings that any state may set. reasons: see Journal."""
        self._names = tuple(dict.fromkeys(names))
        self._host = machine
        self._durable = durable
        far = not isinstance(machine, Host)
        self._journal = Journal(run, self, private=False, reasons=reasons, words=lambda: machine.words if far else "")
        self._now: Mapping[str, SettingValue] = {}

    def bring(self, treatment: str, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Set these settings, and all others as they were; returns the effective ones."""
        if settings != self._now:
            self._journal.go(treatment, TargetState(host=self._now), TargetState(host=settings))
            self._now = dict(settings)
        return self.effective()

    def apply(self, state: TargetState) -> None:
        """ChangeError where the kernel rejects a value, or another program changes it too."""
        gone = self._now.keys() - state.host.keys()
        moved = {other for name in gone for other in self._host.moves(name)}
        for outcome in self._durable.back(self._host, gone | moved - state.host.keys()):
            if outcome.status != "reverted":
                raise ChangeError(str(outcome), remedy=NOT_ALONE)
        for name, value in state.host.items():
            if self._now.get(name) != value:
                self._durable.set(self._host, name, value, self._host.moves(name))

    def effective(self) -> dict[str, SettingValue]:
        return {name: self._host.read(name) for name in self._names}

    def close(self) -> list[ChangeRecord]:
        outcomes = self._durable.back(self._host)
        self._now = {}
        self._journal.reverted(outcomes)
        return outcomes


def host_settings(*tables: HostTable) -> dict[str, SettingValue]:
    """Settings of the machine in these tables, of which later ones win. Raises as Host.check does."""
    check = Host().check
    return {name: value for table in tables for name, value in check(table.settings).items()}


def check_host(study: Study) -> None:
    """StudyError where the study changes the machine without permission; raises as Host.check does."""
    named = [table.settings for table in study.host_tables]
    if any(named) and "host" not in study.remedies.allow:
        first = next(name for settings in named for name in settings)
        raise StudyError(
            f"host.settings: the study changes {first} of the whole machine, and remedies.allow does not name that",
            remedy='If the change is permitted on this machine, set remedies.allow = ["target", "process", "host"]. '
            "It is put back at the end.",
        )
    for settings in named:
        Host().check(settings)
