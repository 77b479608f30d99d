"""The process of a private service; its helpers start before it and end after it, or run already."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from loadframe.connections.address import accepts
from loadframe.errors import MissingTool, TargetError
from loadframe.host import identity, listening
from loadframe.host.environment import located
from loadframe.host.leases import Lease
from loadframe.host.privilege import NamedUser, Privilege
from loadframe.host.processes import Allowance, runnable, unreachable
from loadframe.kinds.behind import family
from loadframe.kinds.private_server import CHECK_TIMEOUT_S, DIED, TAIL_BYTES, PrivateServer
from loadframe.kinds.service.discovery import Found, find, where
from loadframe.kinds.service.file_settings import Files
from loadframe.kinds.service.placeholders import filled, not_passed, of_environment, passed, places, shown, texts_of
from loadframe.kinds.service.read_back import Readiness
from loadframe.model import TargetState
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import ReadyTable, WithTable

MOST_TOLD = 5
MOST_LOG_BYTES = 64 << 20
MOST_LOOKS = 20
LOOK_AGAIN_S = 0.05
MARK = "LOADFRAME_SERVICE"
"""Variable in the environment of a service: all that it starts inherits it, also what leaves its session."""


def started_by(user: str, lease: Lease) -> Privilege:
    """The user that a study names; "": the lease's. TargetError, CageError where we may not."""
    if user and os.geteuid() != 0:
        raise TargetError(
            f"target.user = {user!r}: only root starts a service as another user", remedy="Omit it, or become root."
        )
    return NamedUser(user) if user else lease.runs_services_as


class Server(PrivateServer):
    def __init__(self, lease: Lease, user: Privilege, target: TargetTable, helper: str = "") -> None:
        """helper: the name of a helper, which is started like a service."""
        fixed = where(str(target.listen))[1] if target.listen is not None else 0
        super().__init__(lease, helper or "service", user, fixed)
        self.name = f"The helper {helper}" if helper else "The service"
        self._of_helpers: Mapping[str, str] = {}
        self.noted: dict[str, None] = {}
        """Sentences for the report, each once."""
        self.data = self.folder / "data"
        self.files = Files(target, self.folder / "files")
        self._target = target
        self.readiness: Readiness | None = None
        self._mark = f"{lease.id}.{self.folder.name}"
        self._looked_s = 0.0

    def prepare(self) -> None:
        self.make_folders(self.data)
        self.log.touch()
        self.give(self.log)  # a program may open its output once more
        self.files.make(self.user)

    def version(self) -> str:
        return f"service {Path(self._target.command[0]).name}"

    def begin(self, state: TargetState, allowance: Allowance, of_helpers: Mapping[str, str]) -> None:
        """Return once it is ready. of_helpers: values for its helpers' names in braces."""
        self.take_port()
        self._of_helpers = of_helpers
        values = self.values(state)
        self.files.write(state, values)
        within_s = (ready := self._target.ready or ReadyTable()).within
        until_s = time.monotonic() + within_s

        def exit_status(command: Sequence[str]) -> int:
            left_s = max(LOOK_AGAIN_S, until_s - time.monotonic())
            return self.said_to_its_end(self._findable(command), allowance, passed(self._target), within_s=left_s)[0]

        self.readiness = readiness = Readiness(ready, values, self.log, exit_status)
        own = {name: filled(value, values) for name, value in self._target.environment.items()}
        settings = {
            table.name or name.upper(): values[name]
            for name, table in self._target.setting.items()
            if table.apply == "environment" and name in state.settings
        }
        try:
            self.launch(
                self._argv(state, values),
                allowance,
                lambda: self._is_ready(readiness),
                within_s=within_s,
                env={**passed(self._target), **own, **settings, MARK: self._mark},
                folder=self._where(),
            )
        except TargetError as error:
            if barrier := unreachable(self._where(), self.user, self._lease.user):
                raise TargetError(
                    f"{error.fact}; the user {self.user}, who runs it, may not enter {barrier}",
                    remedy=f"chmod o+x {barrier}, move the service, or name who runs it: target.user.",
                    details=error.details,
                ) from error
            if name := not_passed(self._target, error.details):
                raise TargetError(
                    f"{error.fact}; its output names {name}, which is set here and is not passed on to it",
                    remedy=f'Where it needs that: target.pass_environment = ["{name}"].',
                    details=error.details,
                ) from error
            raise
        finally:
            if self._process is None:
                self._end_left(())

    def died(self, how: str = DIED) -> TargetError | None:
        """The error that it has died, also where its first process has ended while its children go on: nothing then
        says what belongs to it."""
        error = super().died(how)
        if error is None or self._process is None:
            return error
        left = self._remaining() or self._remaining()  # it may fork meanwhile
        pids = ", ".join(str(process.pid) for process in left[:MOST_TOLD])
        fact = f"{len(left)} of its processes go on ({pids})"
        fact = f"{self.name}'s command has ended (exit status {self._process.returncode}), and {fact}"
        remedy = "Give it the option that keeps it in the foreground, such as --foreground or --no-daemon."
        if not left and (self._process.returncode != 0 or how == DIED):
            return error
        if not left:
            fact = f"{self.name}'s command has ended by itself (exit status 0), and nothing of it goes on"
            remedy = "Name the command that stays and serves. Its last log lines may say why it ended."
        return self.failed(fact, remedy)

    def late(self, within_s: float) -> TargetError:
        first, readiness = self.pid, self.readiness
        fact = f"{self.name} is not ready after {within_s:g} s: {readiness.missing if readiness is not None else ''}"
        ports = listening.ports_of(process.pid for process in identity.family(first)) if first is not None else ()
        if ports and self.port not in ports:
            listed = ", ".join(map(str, ports))
            return self.failed(
                f"{self.name} listens on port {listed}, and was given {self.port}",
                "Put {port} into target.command or target.environment, where it takes its port.",
            )
        answers = "accepts connections" if self.accepts() else "is open, and no connection to 127.0.0.1 is accepted"
        seen = f"port {self.port} {answers}" if ports else "it listens on no port"
        return self.failed(f"{fact}; {seen}", "Correct target.ready, or give it longer (within).")

    def bound_log(self) -> None:
        """Drop all but the end of more than MOST_LOG_BYTES: its output would fill the disk."""
        with self.log.open("r+b") as log:
            if log.seek(0, os.SEEK_END) <= MOST_LOG_BYTES:
                return
            size = f"{MOST_LOG_BYTES >> 20} MiB"
            self.noted.setdefault(
                f"{self.name} writes much: of its output only the end is kept once it is longer than {size}."
            )
            log.seek(-TAIL_BYTES, os.SEEK_END)
            tail = log.read(TAIL_BYTES)
            log.truncate(0)  # the service appends
            log.seek(0)
            log.write(b"[what was written before is dropped]\n" + tail)

    def values(self, state: TargetState) -> dict[str, str]:
        """Values for names in braces."""
        settings = {name: shown(value) for name, value in state.settings.items()}
        own = {"port": str(self.port), "data": str(self.data)}
        return {**settings, **self._of_helpers, **self.files.places(), **own, **of_environment(self._target)}

    def run(self, command: Sequence[str], allowance: Allowance, fact: str) -> str:
        """Run a command of the study to its end, as the service's user. MissingTool, TargetError."""
        try:
            status, said = self.said_to_its_end(self._findable(command), allowance, passed(self._target))
        except MissingTool as error:
            raise MissingTool(f"{fact}: {error.fact}", remedy=error.remedy) from error
        if status != 0:
            ended = f"ended with exit status {status}"
            if status < 0:
                late = f"had not ended after {CHECK_TIMEOUT_S:g} s, printed without an end"
                ended = f"{late}, or was killed (signal {-status})"
            raise TargetError(
                f"{fact}: `{' '.join(command)}` {ended}",
                remedy=f"{'Its last lines say why; correct' if said else 'Correct'} the command in the study.",
                details=said[-2000:],
            )
        return said

    def accepts(self) -> bool:
        return accepts("127.0.0.1", self.port or 0)

    def stop(self) -> None:
        """Killed after target.stop_within; all that it has started ends with it."""
        if self._process is None:
            return
        family = identity.family(self._process.pid)
        self.ask_to_end()
        if not self._wait(self._target.stop_within):
            late = f"{self.name} did not end within {self._target.stop_within:g} s of SIGTERM and was killed"
            self.noted.setdefault(f"{late}; what it does at its end is left out.")
            self._process.kill()
            self._process.wait()
        self._process = None
        self._end_left(family)

    def kill(self) -> None:
        if self._process is not None:
            super().kill()
        self._end_left(())

    def _remaining(self) -> tuple[identity.Identity, ...]:
        return identity.marked(f"{MARK}={self._mark}")

    def _end_left(self, family: Sequence[identity.Identity]) -> None:
        """It may fork meanwhile: it has ended once nothing is found twice in a row."""
        identity.end_all(family, 1.0)
        absent = 0
        for _ in range(MOST_LOOKS):
            left = self._remaining()
            absent = 0 if left else absent + 1
            if absent == 2:
                return
            identity.end_all(left, 1.0)

    def _argv(self, state: TargetState, values: Mapping[str, str]) -> list[str]:
        """Settings without a place in braces, also in helpers' commands, are at its end."""
        words = [filled(word, values) for word in self._target.command]
        placed = places([*self._target.command, *(text for helper in self._target.with_ for text in texts_of(helper))])
        for name, table in self._target.setting.items():
            if table.apply == "argument" and name in state.settings and name not in placed:
                value = values[name]
                words += [f"{table.name}{value}"] if table.name.endswith("=") or not table.name else [table.name, value]
        return self._findable(words)

    def _findable(self, command: Sequence[str]) -> list[str]:
        """With the path of its program, where PATH has one that the user of the service may run."""
        if "/" in command[0]:
            return list(command)
        program, first = runnable(command[0], self.user, self._lease.user), located(command[0])
        if program is not None and first is not None and program != first:
            why = f"the first one in PATH, {first}, cannot be run by the user {self.user}, who runs the service"
            self.noted.setdefault(f"{command[0]} is {program}: {why}.")
        return [program or command[0], *command[1:]]

    def _where(self) -> Path:
        folder = Path(self._target.folder or os.curdir).absolute()
        if not folder.is_dir():
            raise TargetError(f"target.folder: there is no folder {folder}", remedy="Correct it.")
        return folder

    def _is_ready(self, readiness: Readiness) -> bool:
        """Rate-limited: a look costs the service a connection, or us a process."""
        if time.monotonic() < self._looked_s + LOOK_AGAIN_S:
            return False
        self._looked_s = time.monotonic()
        self.bound_log()
        return readiness.look()


class Company:
    """All helpers of a service, in the study's order."""

    def __init__(self, target: TargetTable, lease: Lease | None, cpus: frozenset[int] | None) -> None:
        """lease: None where the service runs already, and so do they. cpus: those of the service."""
        self._cpus = cpus
        self._servers: dict[str, Server] = {}
        self._tables = {helper.name: helper for helper in target.with_}
        self._found: dict[str, Found] = {}
        self._given: dict[str, dict[str, str]] = {}
        for name, table in self._tables.items():
            if table.command and lease is not None:
                self._servers[name] = Server(lease, started_by(table.user, lease), as_target(table), name)

    def create(self) -> None:
        for server in self._servers.values():
            server.create()

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start those that do not run, restart those with changed commands, find the others. TargetError."""
        for name, table in self._tables.items():
            server = self._servers.get(name)
            given = {
                setting: value for setting, value in (settings or {}).items() if setting in places(texts_of(table))
            }
            if server is not None and server.started and self._given[name] != given:
                server.stop()
            if server is not None and not server.started:
                self._given[name] = given
                server.begin(TargetState(), Allowance(server.user, cpus=self._cpus), {**given, **self.places()})
            elif server is None and name not in self._found:
                self._found[name] = find(as_target(table))

    def check(self) -> None:
        for server in self._servers.values():
            if server.started and (died := server.died()) is not None:
                raise died
            server.bound_log()

    def destroy(self) -> None:
        for server in reversed(self._servers.values()):
            server.kill()
            server.destroy()

    def noted(self) -> tuple[str, ...]:
        return tuple(note for server in self._servers.values() for note in server.noted)

    def places(self) -> dict[str, str]:
        return {f"{name.replace('-', '_')}_port": str(server.port) for name, server in self._servers.items()}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: self._pids(name) for name in self._tables}

    def _pids(self, name: str) -> tuple[int, ...]:
        if name in self._servers:
            pid = self._servers[name].pid
            return () if pid is None else family(pid)
        if name not in self._found:
            return ()
        if not self._found[name].pids() and self._tables[name].pid is None:
            with suppress(TargetError):
                self._found[name] = find(as_target(self._tables[name]))
        return self._found[name].pids()


def as_target(table: WithTable) -> TargetTable:
    return TargetTable.model_validate({"kind": "service", **table.model_dump(by_alias=True, exclude={"name"})})
