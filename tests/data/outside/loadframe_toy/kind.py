"""The server as a kind of target, and its registration."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from loadframe import metrics
from loadframe.errors import TargetError
from loadframe.host.environment import python
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.private_server import PrivateServer
from loadframe.kinds.private_target import PrivateTarget
from loadframe.model import CounterSpec, Endpoint, Requirement, SettingValue, TargetState

metrics.register("toy.requests | 1/s | requests that the toy server answered")
CATALOGUE = Catalogue(
    "toy",
    (
        SettingSpec("slots", "integer", False, 1, 64, (), 1, source="server.py"),
        SettingSpec("delay_ms", "integer", False, 0, 1000, (), 20, source="server.py"),
    ),
    "slots and delay_ms",
)
SERVED = CounterSpec("served", "toy.requests", cumulative=True)


class Server(PrivateServer):
    """The process, in a folder of the lease."""

    name = "the toy server"

    @property
    def socket(self) -> Path:
        return self.folder / "run" / "toy.sock"

    def ask(self, word: str) -> str:
        """One word, one line. TargetError where it does not answer."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(10)
                connection.connect(str(self.socket))
                connection.sendall(f"{word}\n".encode())
                return connection.makefile().readline().strip()
        except OSError as error:
            raise TargetError(f"The toy server does not answer: {error}", details=self.log_tail()) from error

    def answers(self) -> bool:
        try:
            return self.ask("served") != ""
        except TargetError:
            return False


class ToyTarget(PrivateTarget[Server]):
    """See loadframe.kinds.base.Target. Every change restarts it."""

    kind = "toy"
    catalogue = CATALOGUE
    counter_specs: tuple[CounterSpec, ...] = (SERVED,)

    def __init__(self, lease: Lease, allowance: Allowance) -> None:
        server = Server(lease, "toy", None, None)
        super().__init__(server, allowance, data=server.folder)

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        used = {**CATALOGUE.defaults(), **wanted.settings}
        command = python("loadframe_toy.server", str(self._server.socket), str(used["slots"]), str(used["delay_ms"]))
        self._server.launch(command, allowance, self._server.answers)

    def _answers(self) -> bool:
        return self._server.answers()

    def effective(self) -> dict[str, SettingValue]:
        """As the server itself says."""
        self._running()
        slots, delay_ms = self._server.ask("settings").split()
        return {"slots": int(slots), "delay_ms": int(delay_ms)}

    def counters(self) -> dict[str, float]:
        self._running()
        return {SERVED.name: float(self._server.ask("served"))}

    def endpoint(self) -> Endpoint:
        return Endpoint(self.kind, str(self._server.socket), {})

    def version(self) -> str:
        return "toy 1.5"


KIND = KindOfTarget(
    "toy",
    ToyTarget,
    CATALOGUE,
    CATALOGUE.check,
    lambda: [Requirement("toy", "Python", sys.version.split()[0], "https://www.python.org")],
    loaded_by=frozenset({"toy-load"}),
)
