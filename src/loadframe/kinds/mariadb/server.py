"""The mariadbd process: find the programs, make the data directory, start."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from loadframe.host.leases import Lease
from loadframe.host.own_user import User
from loadframe.host.processes import Allowance
from loadframe.kinds.database import SCHEMA
from loadframe.kinds.package import Package, ask
from loadframe.kinds.private_server import Account, PrivateServer, write_secret
from loadframe.model import TargetState

PACKAGE = Package(
    "MariaDB",
    ("mariadbd", "mariadb-install-db"),
    "apt-get install mariadb-server",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
)
NOT_TAKEN = "Error while setting value"
"""How mariadbd tells of an option's value that it does not take."""


@functools.cache
def known_options(mariadbd: str) -> frozenset[str]:
    """Every option with a value that this server knows, from its own help; names with underscores."""
    text = ask(mariadbd, "--no-defaults", "--verbose", "--help").stdout
    table = text.partition("\nVariables (--variable-name=value)\n")[2]
    rows = (line.split() for line in table.splitlines())
    names = (row[0] for row in rows if row and re.fullmatch(r"[a-z][a-z0-9_-]+", row[0]))
    return frozenset(name.replace("-", "_") for name in names)


class Server(PrivateServer):
    """A private mariadbd in a lease's folder."""

    package, name = PACKAGE, PACKAGE.name

    def __init__(self, lease: Lease, user: User | None, port: int | None) -> None:
        super().__init__(lease, "mariadb", user, port)
        self.data = self.folder / "data"
        self.option_file = self.folder / "workload.cnf"
        self.control_account = Account("loadframe_control")
        self.workload_account = Account("loadframe")
        self._accounts_file = self.folder / "accounts.sql"

    @property
    def socket(self) -> Path:
        return self.folder / "run" / "mariadb.sock"

    def prepare(self) -> None:
        """The folders and an empty data directory."""
        self.make_folders(self.data, self.folder / "tmp")
        self._write_accounts()
        command = [
            self.required("mariadb-install-db"),
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder / 'tmp'}",
        ]
        self.run_once(command, "install.log")

    def start(self, settings: Sequence[str], allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Start with these options (--name=value) and return when `answers` says yes. TargetError where it does not."""
        self.take_port()
        self.launch((self.required(), *self._own_options(), *settings), allowance, answers)
        self._accounts_file.unlink(missing_ok=True)  # its statements were executed by this first start

    def check(self, state: TargetState, settings: Sequence[str], allowance: Allowance) -> None:
        """TargetError, in the server's words, where it would not start with these options.

        While it does not run it is started in its bootstrap mode and ends at once: that takes 0.2 s, reads the data
        without changing them, and asks for the memory. While it runs, it only reads the options (--help --verbose);
        what a storage engine does not take is then told in a line that leaves the exit status at 0.
        """
        begin = (self.required(), *(each for each in self._own_options() if "--init-file" not in each), *settings)
        end = ("--help", "--verbose") if self.started else ("--bootstrap", "--innodb-read-only")
        status, said = self.said_to_its_end((*begin, *end), allowance)
        if status != 0 or NOT_TAKEN in said:
            raise self.refusal(state, "\n".join(line for line in said.splitlines() if "[ERROR]" in line) or said)

    def _write_accounts(self) -> None:
        """Accounts by way of files that only their readers may read, never by way of a command line.

        The root accounts go: they have no password, and others may be able to reach the socket.
        """
        control, workload = self.control_account, self.workload_account
        grants = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, LOCK TABLES, CREATE TEMPORARY TABLES"
        write_secret(
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
        self.give(self._accounts_file)
        write_secret(
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
