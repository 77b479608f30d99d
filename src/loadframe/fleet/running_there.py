"""A running service on this host whose settings a study changes for its steps, with the journal on this host.

As for settings of the machine (changing.py): what was there is on the disk before anything is changed, and is put back
when the coordinator says so, when it is silent or gone, and, where this process is killed, by what cleans up after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadframe.changes.durable import DurableJournal
from loadframe.connections.host_port import joined
from loadframe.errors import ChangeError, TargetError
from loadframe.kinds.base import Attached
from loadframe.kinds.registry import of_study
from loadframe.model import ChangeRecord
from loadframe.runs.formats import encode
from loadframe.study import Study


class RunningThere:
    """Made once per study; `close` puts everything back. The server is found with the first question."""

    def __init__(self, study: Study, host: str) -> None:
        """host: its name in the fleet file."""
        self._study = study
        self._address = ""
        self._server: Attached | None = None
        what = f"server of study {study.study.name} on host {host}"
        self._durable = DurableJournal(what, Path(f"fleet-{study.study.name}"))

    def look(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """What it is and has now."""
        return self._tried(said, self._looked)

    def read(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """One setting."""
        return self._tried(said, lambda server: {"value": server.read(str(said["name"]))})

    def set(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """One setting, noted first."""
        return self._tried(
            said, lambda server: {"read_back": self._durable.set(server, str(said["name"]), said["value"])}
        )

    def back(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """These settings, or all, as they were."""
        names = said.get("names")

        def put_back(server: Attached) -> dict[str, Any]:
            outcomes = self._durable.back(server, None if names is None else [str(each) for each in names])
            return {"changes": [encode("change", each).decode() for each in outcomes]}

        return self._tried(said, put_back)

    def close(self) -> list[ChangeRecord]:
        """Everything as it was."""
        if self._server is None:
            return []
        outcomes = self._durable.back(self._server)
        self._server.close()
        self._server = None
        return outcomes

    def _looked(self, server: Attached) -> dict[str, Any]:
        return {
            "kind": server.kind,
            "words": server.words,
            "version": server.version(),
            "effective": server.effective(),
            "endpoint": asdict(server.endpoint()),
        }

    def _tried(self, said: Mapping[str, Any], work: Callable[[Attached], dict[str, Any]]) -> dict[str, Any]:
        """What a server refuses is an answer, and not a fault of this host."""
        try:
            return work(self._found(str(said["address"])))
        except (ChangeError, TargetError) as error:
            told = {"kind": type(error).__name__, "fact": error.fact, "remedy": error.remedy}
            return {"refused": told}

    def _found(self, address: str) -> Attached:
        """address: of this host, at which a service listens whose study names its port alone. TargetError."""
        if self._server is None:
            table, row = self._study.target, of_study(self._study)
            if row.running is None:
                raise TargetError(f"{table.kind} is not a server that runs already", remedy="Name one (target.listen).")
            if table.listen is not None and str(table.listen).isdigit():
                table = table.model_copy(update={"listen": joined(address, int(table.listen))})
            self._server = row.running(table)
        return self._server
