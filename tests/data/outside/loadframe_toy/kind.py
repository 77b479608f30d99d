"""The server as a kind of target, and its registration."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.environment import python
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.private_server import PrivateTarget
from loadframe.model import CounterSpec, Endpoint, Requirement, SettingValue, TargetState
from loadframe_toy.settings import CATALOGUE, COUNTERS, TUNABLES


class ToyTarget(PrivateTarget):
    """See loadframe.kinds.base.Target. Every change restarts it."""

    kind = "toy"
    name = "the toy server"
    catalogue = CATALOGUE
    counter_specs: tuple[CounterSpec, ...] = COUNTERS

    def __init__(self, lease: Lease, resources: Resources) -> None:
        super().__init__(lease, "toy", resources.run_by(US))
        self.data = self.folder

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

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        used = {**CATALOGUE.defaults(), **wanted.settings}
        command = python("loadframe_toy.server", str(self.socket), str(used["slots"]), str(used["delay_ms"]))
        self.launch(command, allowance, self._answers)

    def _answers(self) -> bool:
        try:
            return self.ask("counters") != ""
        except TargetError:
            return False

    def reset(self) -> None:
        """The most slots in use begins again."""
        super().reset()
        self.ask("reset")

    def effective(self) -> dict[str, SettingValue]:
        """As the server itself says."""
        self._running()
        slots, delay_ms = self.ask("settings").split()
        return {"slots": int(slots), "delay_ms": int(delay_ms)}

    def counters(self) -> dict[str, float]:
        self._running()
        told = map(float, self.ask("counters").split())
        return {spec.name: value for spec, value in zip(COUNTERS, told, strict=True)}

    def endpoint(self) -> Endpoint:
        return Endpoint(self.kind, str(self.socket), {})

    def version(self) -> str:
        return "toy 1.5"


KIND = KindOfTarget(
    "toy",
    ToyTarget,
    CATALOGUE,
    CATALOGUE.check,
    lambda: [Requirement("toy", "Python", sys.version.split()[0], "https://www.python.org")],
    tunables=TUNABLES,
    file=SettingsFile("toy.conf", "{name} {value}"),
    loaded_by=frozenset({"toy-load"}),
)
