"""The origin of a cache: a private nginx that serves files, outside of the cache's resources."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.private_server import PrivateTarget
from loadframe.model import Endpoint, Requirement, SettingValue, TargetState
from loadframe.system.files import Folder, Whose
from loadframe_caches.nginx.server import PACKAGE, NoRoom, Server

MOST_STORES = 1000
SETTINGS = {"worker_processes": 2, "worker_connections": 4096, "sendfile": True, "tcp_nopush": True}


def requirements() -> list[Requirement]:
    return PACKAGE.requirements("nginx")


class Origin(Server):
    """An nginx of its own for one cache; its port stays the same after the first start."""

    def __init__(self, lease: Lease, folder: str) -> None:
        self._allowance = Allowance(lease.account("www-data", "nginx"))
        super().__init__(lease, folder, self._allowance.user, 0)
        self._asked = self._answered = 0

    def start(self) -> None:
        """Start it unless it runs. TargetError."""
        if self.started and self.died() is None:
            return
        super().stop()
        self._asked = self._answered = 0
        self.begin(TargetState(SETTINGS), self._allowance, self._answers)
        self.watch_workers()

    def check(self) -> None:
        if (died := self.died()) is not None:
            raise TargetError(f"the cache's origin: {died.fact}", remedy=died.remedy, details=died.details)

    def requests(self) -> int:
        """Requests answered since its start, without those for its status; the last known number while it is busy."""
        with suppress(NoRoom):
            if counters := self.status.read():
                self._asked += 1
                self._answered = int(counters["requests"]) - self._asked
        return self._answered

    def _answers(self) -> bool:
        answered = self.status.answers()
        self._asked += answered
        return answered

    def stop(self) -> None:
        self.status.close()
        super().stop()

    def destroy(self) -> None:
        self.status.close()
        super().destroy()


class CacheTarget(PrivateTarget):
    """A cache in front of an origin of its own, which outlives the cache's restarts. Requests ask for files in
    `Endpoint.options["files"]`."""

    @cached_property
    def _origin(self) -> Origin:
        return Origin(self._lease, f"origin-of-{self.name.lower()}")

    def create(self) -> None:
        super().create()
        self._origin.create()

    def start(self, state: TargetState) -> None:
        self._origin.start()
        super().start(state)

    def empty(self) -> None:
        stored = Folder(self.data, Whose.ANOTHERS, TargetError)
        for name in stored.folders(MOST_STORES):
            stored.remove_tree(name)

    def stop(self) -> None:
        """Stop the cache and its origin; the origin's files stay, and what is cached on the disk."""
        super().stop()
        self._origin.stop()

    def destroy(self) -> None:
        super().destroy()
        self._origin.destroy()

    def endpoint(self) -> Endpoint:
        """options: `origin`, the origin's host and port; `files`, the folder that it serves."""
        options = {"files": str(self._origin.files), "origin": self._origin.listens}
        return Endpoint(self.kind, self.listens, options)

    def _complete(self, settings: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        return {**self.catalogue.defaults(), **settings}

    def describe(self) -> Mapping[str, str]:
        return {**super().describe(), "origin": f"a private nginx before {self._origin.files}"}
