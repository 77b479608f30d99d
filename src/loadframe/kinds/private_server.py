"""What all private servers have in common: package, folder of the lease, process, log, start and end; as targets their
states, too."""

import contextlib
import errno
import functools
import os
import re
import secrets
import signal
import socket as sockets
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO

from loadframe.connections.address import joined
from loadframe.errors import MissingTool, NotRecovered, RecordingError, TargetError
from loadframe.host import identity, to_its_end
from loadframe.host.environment import NO_FOLDER, SYSTEM, located
from loadframe.host.leases import Lease, filesystem
from loadframe.host.privilege import US, Privilege, ids_of
from loadframe.host.processes import Allowance, spawn, unreachable
from loadframe.kinds.catalogue import Catalogue, differing
from loadframe.masking import masked
from loadframe.model import CounterSpec, Requirement, SettingValue, TargetState
from loadframe.recording.procfs import parse_limits
from loadframe.system.files import Folder, Whose
from loadframe.system.trees import remove_tree

SOCKET_PATH_BYTES = 107  # unix(7): sun_path holds 108 bytes, the last one is the terminating null
START_TIMEOUT_S = 120.0  # recovery from a long log takes minutes at worst; a normal start 0.2 s
STOP_TIMEOUT_S = 120.0
KILL_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.005
NOFILE = "RLIMIT_NOFILE"
LAST_LINES = "Its last log lines say why."
DIED = "died"
"""The server had been ready; with other words it never was."""
TAIL_BYTES = 1 << 16
CHECK_TIMEOUT_S = 60.0  # a check takes 0.02 to 0.7 s


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a server's program; its output may hold any bytes."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, encoding="utf-8", errors="replace"
    )


@dataclass(frozen=True)
class Package:
    """programs: those needed, the server first. install: how to get them. asked: arguments that print the version.
    version_pattern: its group is the version. find: a program's path."""

    name: str
    programs: tuple[str, ...]
    install: str
    asked: tuple[str, ...]
    version_pattern: str
    find: Callable[[str], str | None] | None = None

    def program(self, name: str) -> str | None:
        return (self.find or installed)(name)

    def required(self, name: str = "") -> str:
        """The path of a program, by default of the server itself. MissingTool."""
        name = name or self.programs[0]
        path = self.program(name)
        if path is None:
            raise MissingTool(f"{name} is not installed", remedy=self.install)
        return path

    def version(self) -> str:
        match = re.search(self.version_pattern, _printed((self.required(), *self.asked)))
        return f"{self.name} {match[1]}" if match else f"{self.name} of unknown version"

    def requirements(self, kind: str) -> list[Requirement]:
        return [Requirement(kind, name, self.program(name), self.install) for name in self.programs]


@functools.cache
def _printed(command: tuple[str, ...]) -> str:
    done = ask(*command)
    return done.stdout + done.stderr


def installed(program: str) -> str | None:
    """The path of a program, also in /usr/sbin, which is often not in an ordinary user's PATH."""
    return located(program, SYSTEM)


@dataclass(frozen=True)
class Account:
    """A database account with a random password, which is never printed."""

    user: str
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)


class PrivateServer:
    """name: in messages. host: the numeric address on which it listens. stop_signal: asks it to end cleanly;
    kill_signal: at once. death_signal: what the kernel sends it when we end."""

    package: Package | None = None
    name: str
    host = "127.0.0.1"
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL
    death_signal = signal.SIGKILL

    def __init__(self, lease: Lease, folder: str, user: Privilege, port: int | None) -> None:
        """folder: its name in the lease's. port: also to listen on `host`, 0 for a free one."""
        self.folder = lease.folder / folder
        self.log = self.folder / "error.log"
        self.port = port
        self.command: tuple[str, ...] = ()
        self.user, self._lease = user, lease
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path | None:
        """None: it only listens on `host`."""
        return None

    def create(self) -> None:
        """MissingTool, TargetError."""
        for name in self.package.programs if self.package is not None else ():
            self.required(name)
        self.check_place()
        try:
            self.prepare()
        except OSError as error:
            raise TargetError(
                f"Cannot prepare {self.folder}: {error}", remedy="Free some disk space, or set LOADFRAME_SCRATCH."
            ) from error

    def prepare(self) -> None:
        self.make_folders()

    def required(self, program: str = "") -> str:
        assert self.package is not None, "it is of a package"
        return self.package.required(program)

    def version(self) -> str:
        return self.name if self.package is None else self.package.version()

    def check_place(self) -> None:
        """TargetError where the socket's path is too long for the kernel, or the server's user cannot reach it."""
        if self.socket is not None and len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES:
            raise TargetError(
                f"The socket's path has more than {SOCKET_PATH_BYTES} bytes: {self.socket}",
                remedy="Set LOADFRAME_SCRATCH to a folder with a shorter path.",
            )
        if (barrier := unreachable(self._lease.folder, self.user, self._lease.user)) is not None:
            raise TargetError(
                f"User {self.user} runs the server and may not enter {barrier}",
                remedy=f"chmod o+x {barrier}, or set LOADFRAME_SCRATCH to another folder.",
            )

    def make_folders(self, *private: Path) -> None:
        """private: for the server alone; that of its socket is open to all users."""
        self.folder.mkdir()
        self.folder.chmod(0o755)
        public = () if self.socket is None else ((self.socket.parent, 0o755),)
        for folder, mode in (*public, *((private_folder, 0o700) for private_folder in private)):
            folder.mkdir()
            folder.chmod(mode)
            self.give(folder)

    def give(self, path: Path) -> None:
        """Give a path to the user who runs the server. TargetError where our user namespace does not map that user."""
        if self.user == US:
            return
        ids = ids_of(self.user)
        try:
            os.chown(path, ids.uid, ids.gid)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise TargetError(
                f"{path} cannot be given to {self.user}, who runs the server: this user namespace does not map that "
                "user",
                remedy="Run Loadframe outside of it, or map more users (`unshare --map-auto`).",
            ) from error

    def run_once(self, command: Sequence[str], log: str) -> None:
        """Run a program as the server's user; its output is kept as `log`. TargetError where it fails."""
        with self.log.open("ab") as output:
            process = self._spawned(command, Allowance(self.user), output, death_signal=signal.SIGKILL)
            with self._abandoning(process):
                status = process.wait()
        if status != 0:
            raise self.failed(
                f"{Path(command[0]).name} failed with exit status {status}",
                "Its last lines say why; a full disk or a folder the server's user may not enter are usual.",
            )
        self.log.rename(self.folder / log)

    def answer_of(self, command: Sequence[str], fact: str, remedy: str) -> str:
        """What a program prints that the server's user runs. TargetError with this fact where it fails."""
        allowance = self._lease.admitted(Allowance(self.user), self.folder)
        with spawn(command, allowance, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=NO_FOLDER) as process:
            said, complained = (output.decode("utf-8", "replace") for output in process.communicate())
        if process.returncode != 0:
            raise TargetError(fact, remedy=remedy, details=complained)
        return said

    def said_to_its_end(
        self,
        command: Sequence[str],
        allowance: Allowance,
        env: Mapping[str, str] | None = None,
        *,
        within_s: float = CHECK_TIMEOUT_S,
    ) -> tuple[int, str]:
        """Run a checking program as the server would run: exit status, end of its output."""
        with (self.folder / "check.log").open("w+b") as output:
            process = self._spawned(command, allowance, output, env)
            with self._abandoning(process):
                if not to_its_end.ended(process, output, within_s):
                    self._end_group(process)
            return process.returncode, to_its_end.last_printed(output).strip()

    def refusal(self, state: TargetState, said: str) -> TargetError:
        """The error, with the settings that its output mentions, else all."""
        asked = {name: f"{name} = {value}" for name, value in (*state.settings.items(), *state.limits.items())}
        named = [words for name, words in asked.items() if name in said.replace("-", "_")] or asked.values()
        described = ", ".join(named) or "its default settings"
        return TargetError(
            f"{self.name} would not start with {described}",
            remedy="Give other values, or leave them out. Its own words are below.",
            details=said,
        )

    def take_port(self) -> None:
        """Choose a free port where 0 was asked for; TargetError where the requested one is in use."""
        if self.port is None:
            return
        with sockets.socket(sockets.AF_INET6 if ":" in self.host else sockets.AF_INET) as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                fact = f"Port {self.port} cannot be used: {error.strerror}"
                remedy = "Leave the port out (a socket is used), ask for port 0 (a free one), or end what listens."
                if error.errno == errno.EADDRNOTAVAIL:
                    fact = f"{self.name} cannot listen on {self.host}: it is no address of this machine"
                    remedy = "Correct the address of its host in the fleet file."
                raise TargetError(fact, remedy=remedy) from error
            self.port = int(probe.getsockname()[1])

    @property
    def listens(self) -> str:
        return joined(self.host, self.port or 0)

    def launch(
        self,
        command: Sequence[str],
        allowance: Allowance,
        answers: Callable[[], bool],
        *,
        within_s: float = START_TIMEOUT_S,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Return once `answers` is true. folder: its working directory; None: the lease's. TargetError, with the last
        log lines, where it ends instead or does not answer within within_s."""
        self.command = tuple(command)
        if self.socket is not None:
            Folder(self.socket.parent, Whose.ANOTHERS, TargetError).remove(self.socket.name)
        with self.log.open("ab") as log:
            self._process = self._spawned(self.command, allowance, log, env, folder)
        deadline = time.monotonic() + within_s
        while not ((self.socket is None or self.socket.exists()) and answers()):
            if (error := self.died("would not start")) is not None:
                self._process = None
                raise error
            if self.given_up():
                self.kill()
                raise self.failed(f"{self.name} would not start")
            if time.monotonic() > deadline:
                late = self.late(within_s)
                self.kill()
                raise late
            self._wait(0.01)

    def late(self, within_s: float) -> TargetError:
        return self.failed(f"{self.name} does not answer after {within_s:.0f} s")

    def failed(self, fact: str, remedy: str = LAST_LINES) -> TargetError:
        return TargetError(fact, remedy=remedy, details=self.log_tail())

    def died(self, how: str = DIED) -> TargetError | None:
        """Why the server is gone; None while its process lives."""
        if self._process is None:
            return self.failed(f"{self.name} is not running", "Start it first.")
        status = self._process.poll()
        if status is None:
            return None
        reason = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        remedy = f"Its last log lines say why; the command was: {' '.join(self.command)}"
        error = self.failed(f"{self.name} {how} ({reason})", remedy)
        return error if how != DIED else NotRecovered(error.fact, remedy=remedy, details=error.details, died=reason)

    def await_change(
        self, done: Callable[[], bool], within_s: float, fact: str, *, new: str = "server", remedy: str = LAST_LINES
    ) -> None:
        """TargetError where it dies or gives up (new: what did) before `done` is true, or after within_s."""
        deadline = time.monotonic() + within_s
        while not done():
            if (error := self.died()) is not None:
                raise error
            if self.given_up():
                raise self.failed(f"{self.name}'s {new} would not start")
            if time.monotonic() > deadline:
                raise self.failed(f"{fact} after {within_s:.0f} s", remedy)
            time.sleep(LOOK_EVERY_S)

    def given_up(self) -> bool:
        """Whether it reports that it will not answer, though its process lives."""
        return False

    def stop(self) -> None:
        """The data stay. TargetError where it had to be killed."""
        if self._process is None:
            return
        self.ask_to_end()
        if self._wait(STOP_TIMEOUT_S):
            self._process = None
            return
        self.kill()
        raise self.failed(f"{self.name} did not stop within {STOP_TIMEOUT_S:.0f} s: killed")

    def ask_to_end(self) -> None:
        assert self._process is not None
        self._process.send_signal(self.stop_signal)
        self._let_go_on()

    def kill(self) -> None:
        """Never raises."""
        if self._process is not None:
            family = identity.family(self._process.pid)
            self._process.send_signal(self.kill_signal)
            self._let_go_on()
            if not self._wait(KILL_TIMEOUT_S):
                self._process.kill()
                self._process.wait()
            self._process = None
            identity.end_all(family, 0.0)  # what it could not end itself

    def kill_group(self) -> None:
        """As `kill`, for a server whose processes are all in its process group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):  # all of them have ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _let_go_on(self) -> None:
        assert self._process is not None
        for process in identity.family(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def _abandoning(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._end_group(process)
            raise

    def _end_group(self, process: subprocess.Popen[bytes]) -> None:
        """An installer is a script, and the server that it runs would outlive it."""
        for number in (self.kill_signal, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
                os.killpg(process.pid, signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_TIMEOUT_S)
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while identity.runs(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)

    def destroy(self) -> None:
        """Never raises."""
        self.kill()
        remove_tree(self.folder)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def started(self) -> bool:
        """Whether a start succeeded and no stop followed; the process may have died since."""
        return self._process is not None

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of its log, empty without one; of an unbroken line the last TAIL_BYTES."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
                text = log.read(TAIL_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _spawned(
        self,
        command: Sequence[str],
        allowance: Allowance,
        output: IO[bytes],
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        death_signal: signal.Signals | None = None,
    ) -> subprocess.Popen[bytes]:
        """In the lease's record when this returns; ended where it cannot be written there."""
        process = spawn(
            command,
            self._lease.admitted(allowance, self.folder),
            stdout=output,
            stderr=output,
            cwd=folder or self._lease.folder,
            env=env,
            death_signal=death_signal or self.death_signal,
        )
        with self._abandoning(process):
            self._lease.add_process(process.pid)
        return process

    def _wait(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class PrivateTarget(PrivateServer, ABC):
    """A server that the subclass begins in a state, and changes while it runs where that gives the same effective
    values as a restart. data: where it keeps what it serves."""

    kind: str
    embedded = False
    counter_specs: tuple[CounterSpec, ...]
    catalogue: Catalogue
    data: Path
    _state: TargetState | None = None
    _effective: Mapping[str, SettingValue] = MappingProxyType({})

    def __init__(self, lease: Lease, folder: str, allowance: Allowance, port: int | None = None) -> None:
        super().__init__(lease, folder, allowance.user, port)
        self._allowance = allowance
        self.data = self.folder

    def check_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        return self.catalogue.check(settings)

    def check(self, state: TargetState) -> None:
        self._wanted(state)

    def start(self, state: TargetState) -> None:
        wanted = self._wanted(state)
        if self.started:
            raise TargetError(f"{self.name} is running already", remedy="Use apply, or stop it first.")
        self._begin(wanted, self._allowed(wanted))
        self._entered(wanted)

    def apply(self, state: TargetState) -> None:
        current, wanted = self._running(), self._wanted(state)
        changed = differing(self._complete(current.settings), self._complete(wanted.settings))
        if wanted.limits != current.limits or any(self.catalogue.needs_restart(name) for name in changed):
            PrivateTarget.stop(self)  # the server alone, not the origin behind it
            self.start(wanted)
        elif changed:
            self._change(wanted, changed)

    def reset(self) -> None:
        """Nothing to reset by default: what stays is part of what is measured."""
        self._running()

    def stop(self) -> None:
        self._left()
        super().stop()

    def destroy(self) -> None:
        self.kill()  # first: whoever is asking it something gets its end as the answer, and lets go of it
        self._left()
        super().destroy()

    def effective(self) -> dict[str, SettingValue]:
        self._running()
        return {**self._effective, NOFILE: soft_nofile(self.pid)}

    def pids(self) -> tuple[int, ...]:
        return () if self.pid is None else (self.pid,)

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids()}

    def healthy(self) -> bool:
        return self.pid is not None and self._answers()

    def describe(self) -> Mapping[str, str]:
        return {
            "data": f"{self.data} on {filesystem(self.folder)}",
            "user": str(self._allowance.user),
            "started": masked(" ".join(self.command)),
        }

    def listen_on(self, number: str) -> None:
        self.host = number

    @abstractmethod
    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        """Return once it answers. TargetError."""

    @abstractmethod
    def _answers(self) -> bool:
        """Never raises."""

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        """Also call `_entered`. changed: what differs, all dynamic."""
        raise NotImplementedError

    def _entered(self, state: TargetState) -> None:
        self._state = state

    def _complete(self, settings: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        """As they are compared: with defaults, for a server whose defaults are written too."""
        return settings

    def _left(self) -> None:
        """Close our connection to it, too. The server may have died, or never have been started."""
        self._state = None

    def _wanted(self, state: TargetState) -> TargetState:
        return TargetState(self.check_settings(state.settings), dict(state.limits))

    def _running(self) -> TargetState:
        if (died := self.died()) is not None:
            raise died
        assert self._state is not None, "a server that runs was started with a state"
        return self._state

    def _allowed(self, state: TargetState) -> Allowance:
        return replace(self._allowance, limits={**self._allowance.limits, **state.limits})


def do_all(actions: Iterable[Callable[[], None]]) -> None:
    """Call all, even where some fail; then the first TargetError is raised."""
    errors = []
    for action in actions:
        try:
            action()
        except TargetError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def write_readable(path: Path, text: str) -> None:
    """Write a file for the server's user, whatever our umask; the lease's folder is closed to others."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def write_secret(path: Path, text: str) -> None:
    """Write a file that only we may read; FileExistsError where there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)


def open_descriptors(pid: int | None) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - thousands of paths would be made
    except OSError as error:
        raise TargetError(f"Process {pid} has ended", remedy="The server's log says why.") from error


def soft_nofile(pid: int | None) -> int:
    """RLIMIT_NOFILE (soft). TargetError where the process is gone."""
    try:
        return int(parse_limits(Path(f"/proc/{pid}/limits").read_bytes())["Max open files"].soft)
    except (OSError, RecordingError) as error:  # empty while the process is ending
        raise TargetError(f"Process {pid} has ended", remedy="The server's log says why.") from error
