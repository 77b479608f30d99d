"""A study's changes of this machine, or of a service on it, with the journal here (changes/durable.py): previous values
are put back when the coordinator says so, or is silent or gone."""

from dataclasses import asdict
from pathlib import Path

from loadframe.changes.durable import DurableJournal
from loadframe.changes.host import Host
from loadframe.connections.address import joined
from loadframe.errors import TargetError
from loadframe.kinds.base import Attached
from loadframe.kinds.registry import of_study
from loadframe.runs.formats import encode
from loadframe.study import Study
from loadframe_fleet.wire import Message

MACHINE, SERVER = "machine", "server"


class Changing:
    """The server is looked up with the first question for it; `close` puts everything back."""

    def __init__(self, study: Study, host: str) -> None:
        self._study = study
        self._durable = DurableJournal(f"study {study.study.name} on host {host}", Path(f"fleet-{study.study.name}"))
        self._machine = Host()
        self._of_machine: set[str] = set()
        self._server: Attached | None = None

    def asked(self, said: Message) -> Message:
        """said: place, do, and its arguments. ChangeError, StudyError, TargetError where the place refuses."""
        if said["place"] == MACHINE:
            return self._of_the_machine(said)
        server = self._found(said["address"])
        if said["do"] == "look":
            own = {"kind": server.kind, "words": server.words, "version": server.version()}
            return {**own, "effective": server.effective(), "endpoint": asdict(server.endpoint())}
        return self._done(server, said)

    def close(self) -> None:
        try:
            if self._server is not None:
                self._durable.back(self._server)
                self._server.close()
                self._server = None
        finally:
            self._durable.back(self._machine)

    def _of_the_machine(self, said: Message) -> Message:
        """Putting a setting back includes those that it moves, without those that the study sets itself."""
        if said["do"] == "set":
            self._machine.check({said["name"]: said["value"]})
            self._of_machine.add(said["name"])
        elif said["do"] == "back":
            gone = set(said["names"])
            self._of_machine -= gone
            moved = {other for name in gone for other in self._machine.moves(name)}
            said = {**said, "names": gone | moved - self._of_machine}
        return self._done(self._machine, said)

    def _done(self, place: Host | Attached, said: Message) -> Message:
        if said["do"] == "back":
            outcomes = self._durable.back(place, said["names"])
            return {"changes": [encode("change", outcome).decode() for outcome in outcomes]}
        name = said["name"]
        if said["do"] == "read":
            return {"value": place.read(name)}
        moves = place.moves(name) if isinstance(place, Host) else ()
        return {"read_back": self._durable.set(place, name, said["value"], moves)}

    def _found(self, address: str) -> Attached:
        """address: of this host, for a study that names only the service's port."""
        if self._server is None:
            table, row = self._study.target, of_study(self._study)
            if row.running is None:
                raise TargetError(f"{table.kind} is not a server that runs already", remedy="Name one (target.listen).")
            if table.listen is not None and str(table.listen).isdigit():
                table = table.model_copy(update={"listen": joined(address, int(table.listen))})
            self._server = row.running(table)
        return self._server
