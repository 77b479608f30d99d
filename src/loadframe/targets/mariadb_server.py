"""The mariadbd process: find the programs, make the data directory, start, wait until it answers, stop."""

from __future__ import annotations

import functools
import os
import pwd
import re
import secrets
import shutil
import signal
import socket as sockets
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance, spawn, unreachable
from loadframe.errors import MissingTool, TargetError

SOCKET_PATH_BYTES = 107  # unix(7): sun_path holds 108 bytes, the last one is the terminating null
START_TIMEOUT_S = 120.0  # crash recovery of a large redo log takes minutes at worst; a normal start 0.2 s
STOP_TIMEOUT_S = 120.0
INSTALL = "apt-get install mariadb-server"
SCHEMA = "loadframe"


def program(name: str) -> str | None:
    """Where a program of MariaDB is; /usr/sbin is often not in an ordinary user's PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def required(name: str) -> str:
    """Where it is, MissingTool where it is not."""
    found = program(name)
    if found is None:
        raise MissingTool(f"{name} is not installed", remedy=INSTALL)
    return found


@functools.cache
def known_options(mariadbd: str) -> frozenset[str]:
    """Every option with a value that this server knows, from its own help; names with underscores."""
    text = _output([mariadbd, "--no-defaults", "--verbose", "--help"])
    table = text.partition("\nVariables (--variable-name=value)\n")[2]
    rows = (line.split() for line in table.splitlines())
    names = (row[0] for row in rows if row and re.fullmatch(r"[a-z][a-z0-9_-]+", row[0]))
    return frozenset(name.replace("-", "_") for name in names)


@functools.cache
def version(mariadbd: str) -> str:
    """Name and version, for instance "MariaDB 10.11.6"."""
    found = re.search(r"Ver (\d+\.\d+\.\d+)", _output([mariadbd, "--no-defaults", "--version"]))
    return f"MariaDB {found[1]}" if found else "MariaDB of unknown version"


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout


@dataclass(frozen=True)
class Account:
    """A database account with a random password; the password is never part of a printed record."""

    user: str
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)


class Server:
    """A private mariadbd in a lease's folder."""

    def __init__(self, lease: Lease, user: str | None, port: int | None) -> None:
        """user: runs the server; None for ourselves. port: also listen on 127.0.0.1, None for the socket alone."""
        self.folder = lease.folder / "mariadb"
        self.data = self.folder / "data"
        self.socket = self.folder / "run" / "mariadb.sock"
        self.log = self.folder / "error.log"
        self.option_file = self.folder / "workload.cnf"
        self.control_account = Account("loadframe_control")
        self.workload_account = Account("loadframe")
        self.port = port
        self._accounts_file = self.folder / "accounts.sql"
        self._lease, self._user = lease, user
        self._process: subprocess.Popen[bytes] | None = None
        self.command: tuple[str, ...] = ()

    def create(self) -> None:
        """Make the folders and an empty data directory. MissingTool, TargetError."""
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES:
            raise TargetError(
                f"The socket's path has more than {SOCKET_PATH_BYTES} bytes: {self.socket}",
                remedy="Set LOADFRAME_SCRATCH to a folder with a shorter path.",
            )
        required("mariadbd")
        installer = required("mariadb-install-db")
        if (barrier := unreachable(self._lease.folder, self._user)) is not None:
            raise TargetError(
                f"User {self._user} runs the server and may not enter {barrier}",
                remedy=f"chmod o+x {barrier}, or set LOADFRAME_SCRATCH to another folder.",
            )
        try:
            self._make_folders()
            self._write_accounts()
            self._install(installer)
        except OSError as error:
            raise TargetError(
                f"Cannot prepare {self.folder}: {error}", remedy="Make room, or set LOADFRAME_SCRATCH."
            ) from error

    def start(self, settings: Sequence[str], allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Start with these options (--name=value) and return when `answers` says yes.

        TargetError with the last log lines where it ends instead, or does not answer within START_TIMEOUT_S.
        """
        self._check_port()
        self.command = (required("mariadbd"), *self._own_options(), *settings)
        self.socket.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = spawn(self.command, allowance, stdout=log, stderr=log, cwd=self._lease.folder)
        self._lease.add_process(self._process.pid)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not (self.socket.exists() and answers()):
            if (error := self.died("would not start")) is not None:
                self._process = None
                raise error
            if time.monotonic() > deadline:
                self.kill()
                raise TargetError(f"MariaDB does not answer after {START_TIMEOUT_S:.0f} s", details=self.log_tail())
            self._wait(0.01)
        self._accounts_file.unlink(missing_ok=True)  # its statements were executed by this first start

    def died(self, how: str = "died") -> TargetError | None:
        """Why the server is gone, None while its process lives."""
        if self._process is None:
            return TargetError("MariaDB is not running", remedy="Start it first.", details=self.log_tail())
        status = self._process.poll()
        if status is None:
            return None
        reason = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return TargetError(
            f"MariaDB {how} ({reason})",
            remedy=f"Its last log lines say why; the command was: {' '.join(self.command)}",
            details=self.log_tail(),
        )

    def stop(self) -> None:
        """Ask it to end and wait; the data stay. TargetError where it had to be killed."""
        if self._process is None:
            return
        self._process.terminate()
        if self._wait(STOP_TIMEOUT_S):
            self._process = None
            return
        self.kill()
        raise TargetError(f"MariaDB did not stop within {STOP_TIMEOUT_S:.0f} s: killed", details=self.log_tail())

    def kill(self) -> None:
        """End it at once. Never raises."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def destroy(self) -> None:
        """End it and remove its folder. Never raises."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The process, None where none runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def started(self) -> bool:
        """Whether a start succeeded and no stop followed; the process may have died since."""
        return self._process is not None

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the error log; empty where there is none."""
        if not self.log.exists():
            return ""
        with self.log.open(errors="replace") as log:
            return "".join(deque(log, maxlen=lines)).rstrip()

    def _wait(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _make_folders(self) -> None:
        self.folder.mkdir()
        self.folder.chmod(0o755)
        for folder, mode in ((self.data, 0o700), (self.folder / "tmp", 0o700), (self.socket.parent, 0o755)):
            folder.mkdir()
            folder.chmod(mode)
            self._give(folder)

    def _give(self, path: Path) -> None:
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(path, account.pw_uid, account.pw_gid)

    def _install(self, installer: str) -> None:
        command = [
            installer,
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder / 'tmp'}",
        ]
        with self.log.open("ab") as log:
            process = spawn(command, Allowance(user=self._user), stdout=log, stderr=log, cwd=self._lease.folder)
            self._lease.add_process(process.pid)
            status = process.wait()
        if status != 0:
            raise TargetError(
                f"mariadb-install-db failed with exit status {status}",
                remedy="Its last lines say why; a full disk or a folder the server's user may not enter are usual.",
                details=self.log_tail(),
            )
        self.log.rename(self.folder / "install.log")

    def _write_accounts(self) -> None:
        """Accounts by way of files that only their readers may read, never by way of a command line.

        The root accounts go: they have no password, and others may be able to reach the socket.
        """
        control, workload = self.control_account, self.workload_account
        grants = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, LOCK TABLES, CREATE TEMPORARY TABLES"
        _write_secret(
            self._accounts_file,
            "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\n"
            "FLUSH PRIVILEGES;\n"
            f"CREATE DATABASE IF NOT EXISTS {SCHEMA};\n"
            f"CREATE USER '{control.user}'@'localhost' IDENTIFIED BY '{control.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{control.user}'@'localhost';\n"
            + "".join(
                f"CREATE USER '{workload.user}'@'{host}' IDENTIFIED BY '{workload.password}';\n"
                f"GRANT PROCESS, RELOAD ON *.* TO '{workload.user}'@'{host}';\n"
                f"GRANT {grants} ON `{SCHEMA}`.* TO '{workload.user}'@'{host}';\n"
                f"GRANT {grants} ON `{SCHEMA}\\_%`.* TO '{workload.user}'@'{host}';\n"
                for host in ("localhost", "127.0.0.1")
            ),
        )
        self._give(self._accounts_file)
        _write_secret(
            self.option_file,
            f"[client]\nuser={workload.user}\npassword={workload.password}\nsocket={self.socket}\n"
            f"[mysql]\ndatabase={SCHEMA}\n",
        )

    def _own_options(self) -> list[str]:
        network = ["--skip-networking"]
        if self.port is not None:
            network = ["--bind-address=127.0.0.1", f"--port={self.port}"]
        first = [f"--init-file={self._accounts_file}"] if self._accounts_file.exists() else []
        return [
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--pid-file={self.socket.with_name('mariadb.pid')}",
            f"--tmpdir={self.folder / 'tmp'}",
            "--skip-name-resolve",
            "--skip-log-bin",
            *network,
            *first,
        ]

    def _check_port(self) -> None:
        """Take a free port where 0 was asked for; TargetError where the one asked for is taken."""
        if self.port is None:
            return
        with sockets.socket() as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise TargetError(
                    f"Port {self.port} cannot be used: {error.strerror}",
                    remedy="Leave the port out (a socket is used), ask for port 0 (a free one), or end what listens.",
                ) from error
            self.port = int(probe.getsockname()[1])


def _write_secret(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
