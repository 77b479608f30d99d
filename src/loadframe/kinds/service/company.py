"""The helpers of a service: its database, its cache. Those that Loadframe starts begin before it and end after it;
those that run already are only followed."""

from collections.abc import Mapping

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.behind import family
from loadframe.kinds.service.finding import Found, find
from loadframe.kinds.service.server import Server, started_by
from loadframe.kinds.service.words import places, texts_of
from loadframe.model import TargetState
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import WithTable


class Company:
    """All helpers of a service, in the order in which the study names them."""

    def __init__(self, target: TargetTable, lease: Lease | None, cpus: frozenset[int] | None) -> None:
        """lease: None where the service runs already, and so do they. cpus: those of the service."""
        self._cpus = cpus
        self._servers: dict[str, Server] = {}
        self._tables = {each.name: each for each in target.with_}
        self._found: dict[str, Found] = {}
        self._given: dict[str, dict[str, str]] = {}
        for name, table in self._tables.items():
            if table.command and lease is not None:
                self._servers[name] = Server(lease, started_by(table.user, lease), as_target(table), name)

    def create(self) -> None:
        for server in self._servers.values():
            server.create()

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Those that do not run yet, one after the other, each until it is ready; again those that were started with
        other values of the settings (by name) that stand in their braces; find the others. TargetError."""
        for name, table in self._tables.items():
            server = self._servers.get(name)
            given = {each: value for each, value in (settings or {}).items() if each in places(texts_of(table))}
            if server is not None and server.started and self._given[name] != given:
                server.stop()
            if server is not None and not server.started:
                self._given[name] = given
                server.start(TargetState(), Allowance(server.user, cpus=self._cpus), {**given, **self.places()})
            elif server is None and name not in self._found:
                self._found[name] = find(as_target(table))

    def check(self) -> None:
        """TargetError where one that was started has died."""
        for server in self._servers.values():
            if server.started and (died := server.died()) is not None:
                raise died
            server.bound_log()

    def destroy(self) -> None:
        """End those that were started, the last one first. Idempotent."""
        for server in reversed(self._servers.values()):
            server.kill()
            server.destroy()

    def noted(self) -> tuple[str, ...]:
        return tuple(note for server in self._servers.values() for note in server.noted)

    def places(self) -> dict[str, str]:
        """The port of each that was started, for what stands in braces: {NAME_port}."""
        return {f"{name.replace('-', '_')}_port": str(server.port) for name, server in self._servers.items()}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Of each, as they come and go."""
        pids = {name: server.pid for name, server in self._servers.items()}
        ours = {name: () if pid is None else family(pid) for name, pid in pids.items()}
        return {name: ours[name] if name in ours else self._of(name) for name in self._tables}

    def _of(self, name: str) -> tuple[int, ...]:
        """One that runs already; found again where it was restarted."""
        pids = self._found[name].pids() if name in self._found else ()
        if pids or name not in self._found or self._tables[name].pid is not None:
            return pids
        try:
            self._found[name] = find(as_target(self._tables[name]))
        except TargetError:
            return ()
        return self._found[name].pids()


def as_target(table: WithTable) -> TargetTable:
    """A helper is declared as a service is, without settings."""
    return TargetTable.model_validate({"kind": "service", **table.model_dump(by_alias=True, exclude={"name"})})
