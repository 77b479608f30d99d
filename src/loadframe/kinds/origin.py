"""The origin of a cache: a private nginx that serves files, beside the cache and outside of its cage."""

from __future__ import annotations

from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, unprivileged_user
from loadframe.kinds.nginx import server
from loadframe.kinds.nginx.server import Server
from loadframe.kinds.nginx.status import Status
from loadframe.model import Requirement

SETTINGS = {"worker_processes": 2, "worker_connections": 4096, "sendfile": True, "tcp_nopush": True}


def requirements() -> list[Requirement]:
    """What it needs on this machine, and whether it is there."""
    return server.requirements()


class Origin:
    """An nginx of its own for one cache. user: runs it; None for ourselves."""

    def __init__(self, lease: Lease, folder: str) -> None:
        """folder: its name in the lease's."""
        self._allowance = Allowance(user=unprivileged_user(("www-data", "nginx")))
        self._server = Server(lease, self._allowance.user, 0, folder)
        self._status = Status(self._server.socket)
        self._asked = self._answered = 0

    @property
    def files(self) -> Path:
        """What it serves."""
        return self._server.files

    @property
    def address(self) -> str:
        """host:port; its port stays the same from the first start on."""
        return f"127.0.0.1:{self._server.port}"

    def create(self) -> None:
        """Make its folders. MissingTool, TargetError."""
        self._server.create()

    def start(self) -> None:
        """Start it, if it does not run. TargetError."""
        if self._server.started and self._server.died() is None:
            return
        self._server.stop()
        self._asked = self._answered = 0
        self._server.start(SETTINGS, self._allowance, self._answers)
        self._server.watch_workers()

    def check(self) -> None:
        """TargetError where it has died."""
        if (died := self._server.died()) is not None:
            raise TargetError(f"the cache's origin: {died.fact}", remedy=died.remedy, details=died.details)

    def requests(self) -> int:
        """How many it has answered since its start, without those that asked for its status; what it said last while
        it is too busy to say."""
        if (found := self._status.read()) is not None:
            self._asked += 1
            self._answered = int(found["requests"]) - self._asked
        return self._answered

    def _answers(self) -> bool:
        answered = self._status.answers()
        self._asked += answered
        return answered

    def stop(self) -> None:
        """Stop it; the files stay."""
        self._status.close()
        self._server.stop()

    def destroy(self) -> None:
        """End it and remove its folder. Never raises."""
        self._status.close()
        self._server.destroy()
