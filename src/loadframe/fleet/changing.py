"""Settings of this machine that a study changes for its steps, with the journal on this machine.

What was there is on the disk before anything is changed (changes/durable.py). It is put back when the coordinator says
so, when it is silent or gone, and, where this process is killed, by what cleans up after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadframe.changes.durable import NOT_ALONE, DurableJournal
from loadframe.changes.host import Host
from loadframe.errors import ChangeError
from loadframe.model import ChangeRecord, SettingValue
from loadframe.runs.formats import encode
from loadframe.study import Study


class Changing:
    """Made once per study; `close` puts everything back."""

    def __init__(self, study: Study, host: str) -> None:
        """host: its name in the fleet file."""
        self._place = Host()
        self._durable = DurableJournal(f"study {study.study.name} on host {host}", Path(f"fleet-{study.study.name}"))
        self._now: dict[str, SettingValue] = {}

    def change(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """This machine with these `settings`, all others as they were; what `names` are then. UserError."""
        wanted = self._place.check(dict(said.get("settings") or {}))
        gone = self._now.keys() - wanted.keys()
        moved = {other for name in gone for other in self._place.moves(name)}
        for outcome in self._durable.back(self._place, gone | moved - wanted.keys()):
            if outcome.status != "reverted":
                raise ChangeError(str(outcome), remedy=NOT_ALONE)
        before = {name: self._place.read(name) for name in wanted}
        for name, value in wanted.items():
            if self._now.get(name) != value:
                self._durable.set(self._place, name, value, self._place.moves(name))
        self._now = wanted
        names = [*wanted, *(str(each) for each in said.get("names") or ())]
        return {"before": before, "effective": {name: self._place.read(name) for name in names}}

    def back(self, names: Sequence[str] | None) -> dict[str, Any]:
        """These settings, or all, as they were; what has become of each."""
        outcomes = self._durable.back(self._place, names)
        self._now = {} if names is None else {each: self._now[each] for each in self._now if each not in names}
        return {"changes": [encode("change", outcome).decode() for outcome in outcomes]}

    def close(self) -> list[ChangeRecord]:
        """Everything as it was."""
        self._now = {}
        return self._durable.back(self._place)
