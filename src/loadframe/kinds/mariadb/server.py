"""The mariadbd process: where its programs are, how it is installed and checked."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.kinds.mysql_private import FamilyServer
from loadframe.kinds.package import Package

PACKAGE = Package(
    "MariaDB",
    ("mariadbd", "mariadb-install-db"),
    "apt-get install mariadb-server",
    ("--no-defaults", "--version"),
    r"Ver (\d+\.\d+\.\d+)",
)


class Server(FamilyServer):
    """A private mariadbd in a lease's folder."""

    package, name, short = PACKAGE, PACKAGE.name, "mariadb"

    def installing(self) -> Sequence[str]:
        return [
            self.required("mariadb-install-db"),
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder / 'tmp'}",
        ]

    def without_others(self) -> str:
        """The root accounts have no password, and others may be able to reach the socket."""
        return "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n"

    def checking(self) -> Sequence[str]:
        """While it does not run it is started in its bootstrap mode and ends at once: that takes 0.2 s, reads the data
        without changing them, and asks for the memory. While it runs, it only reads the options."""
        return ("--help", "--verbose") if self.started else ("--bootstrap", "--innodb-read-only")

    def own_options(self) -> Sequence[str]:
        first = [f"--init-file={self.accounts_file}"] if self.accounts_file.exists() else []
        return [*super().own_options(), "--skip-log-bin", *first]
