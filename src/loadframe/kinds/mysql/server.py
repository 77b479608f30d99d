"""The mysqld process: where it is, how it is installed and checked."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.kinds.mysql_private import FamilyServer
from loadframe.kinds.package import Package, ask, installed


def _program(name: str) -> str | None:
    """Where a MySQL's mysqld is: a link of that name may lead to a MariaDB (mariadb-server-compat)."""
    found = installed(name)
    return None if found is None or "MariaDB" in ask(found, "--no-defaults", "--version").stdout else found


PACKAGE = Package(
    "MySQL",
    ("mysqld",),
    "MySQL's own package mysql-community-server, or scripts/unpack-mysql FOLDER and FOLDER/bin first in PATH; Debian "
    "12 has no package",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
    _program,
)
PRIVATE = ("--mysqlx=OFF", "--secure-file-priv=NULL")
"""No second protocol, and no files that statements read or write."""


class Server(FamilyServer):
    """A private mysqld in a lease's folder."""

    package, name, short = PACKAGE, PACKAGE.name, "mysql"

    def installing(self) -> Sequence[str]:
        """The accounts are made with the data, before a socket is open."""
        return [
            self.required(),
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder / 'tmp'}",
            *PRIVATE,
            "--initialize-insecure",
            f"--init-file={self.accounts_file}",
        ]

    def without_others(self) -> str:
        """The root account has no password."""
        return "DROP USER 'root'@'localhost';\n"

    def checking(self) -> Sequence[str]:
        """It reads the options, also those of its storage engines, and leaves the data alone. It asks for no memory."""
        return ("--validate-config",)

    def own_options(self) -> Sequence[str]:
        return [*super().own_options(), *PRIVATE]

    def workload_grants(self) -> Sequence[str]:
        return (*super().workload_grants(), "SELECT ON performance_schema.*")
