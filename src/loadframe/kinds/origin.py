"""The origin of a cache: a private nginx that serves files, outside of the cache's resources."""

from collections.abc import Mapping
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.nginx.server import PACKAGE, Server, Status
from loadframe.kinds.private_target import PrivateTarget
from loadframe.kinds.private_target import Server as OfTarget
from loadframe.model import Endpoint, Requirement, TargetState
from loadframe.system.files import Folder, Whose

MOST_STORES = 1000
"""A cache has one for each layout that it used."""
SETTINGS = {"worker_processes": 2, "worker_connections": 4096, "sendfile": True, "tcp_nopush": True}


def requirements() -> list[Requirement]:
    return PACKAGE.requirements("nginx")


class Origin:
    """An nginx of its own for one cache."""

    def __init__(self, lease: Lease, folder: str) -> None:
        self._allowance = Allowance(lease.account("www-data", "nginx"))
        self._server = Server(lease, self._allowance.user, 0, folder)
        self._status = Status(self._server.socket)
        self._asked = self._answered = 0

    @property
    def files(self) -> Path:
        return self._server.files

    @property
    def address(self) -> str:
        """host:port; the port stays the same after the first start."""
        return self._server.listens

    def create(self) -> None:
        self._server.create()

    def start(self) -> None:
        """Unless it runs. TargetError."""
        if self._server.started and self._server.died() is None:
            return
        self._server.stop()
        self._asked = self._answered = 0
        self._server.start(SETTINGS, self._allowance, self._answers)
        self._server.watch_workers()

    def check(self) -> None:
        if (died := self._server.died()) is not None:
            raise TargetError(f"the cache's origin: {died.fact}", remedy=died.remedy, details=died.details)

    def requests(self) -> int:
        """Answered since its start, without those for its status; the last known number while it is busy."""
        if (counters := self._status.read()) is not None:
            self._asked += 1
            self._answered = int(counters["requests"]) - self._asked
        return self._answered

    def _answers(self) -> bool:
        answered = self._status.answers()
        self._asked += answered
        return answered

    def stop(self) -> None:
        self._status.close()
        self._server.stop()

    def destroy(self) -> None:
        """Never raises."""
        self._status.close()
        self._server.destroy()


class CacheTarget(PrivateTarget[OfTarget]):
    """A cache in front of an origin of its own, `_origin`, which outlives the cache's restarts. Requests ask for
    files of the origin, which serves the folder `Endpoint.options["files"]`."""

    _origin: Origin

    def create(self) -> None:
        super().create()
        self._origin.create()

    def start(self, state: TargetState) -> None:
        self._origin.start()
        super().start(state)

    def empty(self) -> None:
        stored = Folder(self._data, Whose.ANOTHERS, TargetError)
        for name in stored.folders(MOST_STORES):
            stored.remove_tree(name)

    def stop(self) -> None:
        """The origin's files stay, and what is cached on the disk."""
        super().stop()
        self._origin.stop()

    def destroy(self) -> None:
        super().destroy()
        self._origin.destroy()

    def endpoint(self) -> Endpoint:
        """address: host and port. options: `origin`, the origin's host and port; `files`, the folder that it serves."""
        options = {"files": str(self._origin.files), "origin": self._origin.address}
        return Endpoint(self.kind, self._server.listens, options)

    def describe(self) -> Mapping[str, str]:
        return {**super().describe(), "origin": f"a private nginx before {self._origin.files}"}
