"""The process of a private service: how its command is made of what the study declares, when it is ready, how it
ends."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadframe.connections.host_port import parted
from loadframe.connections.http_connection import ERRORS
from loadframe.errors import TargetError
from loadframe.host import identity
from loadframe.host.environment import environment
from loadframe.host.leases import Lease
from loadframe.host.own_user import User
from loadframe.host.processes import Allowance, runnable
from loadframe.kinds.log_counts import LogCounts
from loadframe.kinds.private_server import PrivateServer
from loadframe.kinds.service.files import Files
from loadframe.kinds.service.read_back import get, here
from loadframe.kinds.service.settings import shown
from loadframe.kinds.service.words import filled, places
from loadframe.model import TargetState
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import ReadyTable

LOOK_AGAIN_S = 0.05
"""Between two looks at whether it is ready, which cost it a connection or us a process."""
MARK = "LOADFRAME_SERVICE"
"""In the environment of a service: what it starts inherits that, also what leaves its session."""


class Server(PrivateServer):
    """A service that the study's command starts."""

    name = "The service"

    def __init__(self, lease: Lease, user: User | None, target: TargetTable) -> None:
        super().__init__(lease, "service", user, 0)
        self.data = self.folder / "data"
        self.files = Files(target, self.folder / "files")
        self._target = target
        self._ready = target.ready or ReadyTable()
        self._mark = f"{lease.id}.{self.folder.name}"
        self._looked_s = 0.0

    def prepare(self) -> None:
        self.make_folders(self.data)
        self.files.make(self.give, self._user)

    def version(self) -> str:
        """Its command: it has no version that we know of."""
        return f"{Path(self._target.command[0]).name} (service)"

    def start(self, state: TargetState, allowance: Allowance) -> None:
        """Start it in this state and return once it is ready. TargetError."""
        self.take_port()
        values = self.values(state)
        self.files.write(state, values)
        known = LogCounts(self.log, (self._ready.log.encode(),)) if self._ready.log else None
        before = known.read() if known is not None else {}
        self.launch(
            self._argv(state, values),
            allowance,
            lambda: (known is None or known.read() != before) and self._answers(allowance),
            within_s=self._ready.within,
            env=self._environment(state, values),
            folder=self._where(),
        )

    def values(self, state: TargetState) -> dict[str, str]:
        """What stands in braces, in a state."""
        settings = {name: shown(value) for name, value in state.settings.items()}
        return {**settings, **self.files.places(), "port": str(self.port), "data": str(self.data)}

    def run(self, command: Sequence[str], allowance: Allowance, fact: str) -> str:
        """Run a command that the study gives, as the service's user, to its end; what it prints. TargetError."""
        status, said = self.said_to_its_end(command, allowance)
        if status != 0:
            raise TargetError(
                f"{fact}: `{' '.join(command)}` ended with exit status {status}",
                remedy="Its last lines say why; correct the command in the study.",
                details=said[-2000:],
            )
        return said

    def accepts(self) -> bool:
        """Whether its port accepts a connection. Never raises."""
        return _accepts("127.0.0.1", self.port or 0)

    def stop(self) -> None:
        """Ask it to end and wait; it is killed where it does not within target.stop_within. Whatever it has started
        ends with it; the data stay."""
        if self._process is None:
            return
        family = identity.family(self._process.pid)
        self._process.send_signal(self.stop_signal)
        self._let_go_on()
        if not self._wait(self._target.stop_within):
            self._process.kill()
            self._process.wait()
        self._process = None
        self._end_left(family)

    def kill(self) -> None:
        if self._process is not None:
            super().kill()
        self._end_left(())

    def _end_left(self, family: Sequence[identity.Identity]) -> None:
        """What has come from it and goes on, whatever has become of its parent."""
        identity.end_all((*family, *identity.marked(f"{MARK}={self._mark}")), 1.0)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _argv(self, state: TargetState, values: Mapping[str, str]) -> list[str]:
        """The command with its settings in it: those of which it has no place in braces are put at its end."""
        words = [filled(word, values) for word in self._target.command]
        if "/" not in words[0]:
            words[0] = runnable(words[0], self._user, self._lease.user) or words[0]
        placed = places(self._target.command)
        for name, table in self._target.setting.items():
            if table.apply == "argument" and name in state.settings and name not in placed:
                value = values[name]
                words += [f"{table.name}{value}"] if table.name.endswith("=") or not table.name else [table.name, value]
        return words

    def _environment(self, state: TargetState, values: Mapping[str, str]) -> dict[str, str]:
        own = {name: filled(value, values) for name, value in self._target.environment.items()}
        settings = {
            table.name or name.upper(): values[name]
            for name, table in self._target.setting.items()
            if table.apply == "environment" and name in state.settings
        }
        return {**environment(), **own, **settings, MARK: self._mark}

    def _where(self) -> Path:
        folder = Path(self._target.folder or os.curdir).absolute()
        if not folder.is_dir():
            raise TargetError(f"target.folder: there is no folder {folder}", remedy="Correct it.")
        return folder

    def _answers(self, allowance: Allowance) -> bool:
        """Whether it is ready, as the study says how that is seen; a look costs something, so not at each turn."""
        if time.monotonic() < self._looked_s + LOOK_AGAIN_S:
            return False
        self._looked_s = time.monotonic()
        ready, values = self._ready, {"port": str(self.port), "data": str(self.data)}
        if ready.http and not _answers_http(filled(ready.http, values)):
            return False
        if ready.tcp:
            host, port = parted(filled(ready.tcp, values), "80")
            if not _accepts(here(host, int(port)).number, int(port)):
                return False
        if ready.command:
            status, _ = self.said_to_its_end([filled(word, values) for word in ready.command], allowance)
            if status != 0:
                return False
        return self.accepts()


def _answers_http(url: str) -> bool:
    try:
        return get(url, within_s=2.0)[0] < 500
    except ERRORS:
        return False


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True
