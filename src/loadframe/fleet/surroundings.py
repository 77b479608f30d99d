"""The machine around a target on another host: its settings are changed there, by its agent, with the journal there.

What the run folder has is a copy for the reader. What was there before is on that host's disk before anything is
changed, and its agent puts it back also where this command never returns (changing.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loadframe.bench.surroundings import Surroundings
from loadframe.changes.durable import DurableJournal
from loadframe.changes.journal import Reasons
from loadframe.changes.places import ON_HOST
from loadframe.errors import StepVoid, StudyError
from loadframe.fleet.declaration import Fleet, HostTable, Role
from loadframe.fleet.hosts import Hosts
from loadframe.model import ChangeRecord, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study

MACHINE, SETTINGS = "machine", "settings"
"""In may_change of the fleet file."""


class FarSurroundings(Surroundings):
    """See Surroundings."""

    def __init__(
        self,
        names: Iterable[str],
        durable: DurableJournal,
        run: RunFolder,
        reasons: Reasons,
        hosts: Hosts,
    ) -> None:
        """hosts: of which one is the target's."""
        super().__init__(names, durable, run, reasons)
        self._hosts = hosts
        self._asked = TargetState()

    def words(self) -> str:
        return f"host {self._hosts.machine()}"

    def apply(self, state: TargetState) -> None:
        """StepVoid where that host does not take it."""
        self._asked = state
        self._hosts.change(state.host, self._names)

    def effective(self) -> dict[str, SettingValue]:
        """What that host's kernel says; nothing is asked where no state names a setting."""
        if not self._names:
            return {}
        return self._hosts.change(self._asked.host, self._names)

    def close(self) -> list[ChangeRecord]:
        """Everything there as it was before; where the host is lost, its agent does that by itself, and it is not
        known here."""
        self._now, self._asked = {}, TargetState()
        if not self._names:
            return []
        place = {"kind": self.kind, ON_HOST: self._hosts.machine()}
        try:
            found = self._hosts.put_back()
        except StepVoid as error:
            because = f"is put back by the agent of that host, which does not tell it: {error.fact}"
            lost = ChangeRecord(", ".join(self._names), None, None, status="failed", because=because)
            outcomes = [replace(lost, place=place, words=self.words())]
        else:
            outcomes = [replace(each, place=place, words=self.words()) for each in found]
        self._journal.reverted(outcomes)
        return outcomes


def check_may_change(fleet: Fleet, study: Study, role: Role = "target") -> None:
    """StudyError where the study changes the machine of its target, or a service that runs there, and the fleet file
    does not say that it may be. role: of the hosts on which the target runs."""
    if any(table.settings for table in study.host_tables) or "host" in study.remedies.allow:
        for host in _without(fleet, role, MACHINE):
            raise StudyError(
                f"the study may change settings of its target's machine, and the fleet file does not say that those of "
                f"host {host.name!r} may be changed",
                remedy=f'If its owner permits it, set may_change = ["{MACHINE}"] in its [[host]]; else take "host" out '
                "of remedies.allow.",
            )
    if study.target.is_running_service and (study.target.owned or study.target.restart):
        for host in _without(fleet, role, SETTINGS):
            raise StudyError(
                "the study may change settings of a service that runs already, and the fleet file does not say that "
                f"those on host {host.name!r} may be changed",
                remedy=f'If its owner permits it, set may_change = ["{SETTINGS}"] in its [[host]]; else take owned and '
                "restart out of [target].",
            )


def _without(fleet: Fleet, role: Role, what: str) -> list[HostTable]:
    return [host for host in fleet.with_role(role) if what not in host.may_change]
