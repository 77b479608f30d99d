"""A private server that plays somebody else's: with its owner's account and data. For crash.py and tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance
from loadframe.model import SettingValue, TargetState
from loadframe.targets import registry as targets
from loadframe.targets.attached import Attached, attach

KINDS = ("mariadb", "postgres")
STUDY = """\
[study]
name = "somebodys"
question = "What does a setting give?"
[workload]
kind = "oltp"
[workload.options]
rows = 100
tables = 1
[load]
axis = "concurrency"
levels = [1]
[target]
kind = "{kind}"
attach = "{address}"
option_file = "{option_file}"
{target}[measure]
window = "300ms"
profile = "off"
"""
"""Ends within [measure], which may go on."""


@dataclass(frozen=True)
class Server:
    """target: as we started it. folder: of its owner, with the account in option_file."""

    target: Any
    folder: Path
    address: str
    option_file: Path

    @property
    def kind(self) -> str:
        return str(self.target.kind)

    @property
    def password(self) -> str:
        """Of its owner: whoever changes settings needs the right to do so."""
        return str(self.target._server.control_account.password)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """What its owner asks, and is answered."""
        answered: list[tuple[Any, ...]] = self.target._control.ask(statement)
        return answered

    def study(self, target: str = "") -> str:
        """A study of it; target: lines that go into the table of this name."""
        return STUDY.format(kind=self.kind, address=self.address, option_file=self.option_file, target=target)

    def attached(self) -> Attached:
        """As Loadframe attaches to it; to be closed."""
        return attach(f"{self.kind}:{self.address}", option_file=self.option_file)

    def settings(self, names: Iterable[str]) -> dict[str, SettingValue]:
        """What is in effect."""
        server = self.attached()
        effective = server.effective()
        server.close()
        return {name: effective[name] for name in names}

    def schemas(self) -> set[str]:
        return {str(name) for (name,) in self.ask("SELECT schema_name FROM information_schema.schemata")}


@contextmanager
def running(kind: str) -> Iterator[Server]:
    """Such a server, with 7 in theirs.precious."""
    with Lease.acquire("somebody's server") as lease:
        target: Any = targets.make(kind, lease=lease, allowance=Allowance())
        try:
            target.create()
            target.start(TargetState({"max_connections": 50}))
            server = _owned(target, lease.folder / "theirs")
            server.ask("CREATE SCHEMA theirs")
            server.ask("CREATE TABLE theirs.precious AS SELECT 7 AS id")
            yield server
        finally:
            target.destroy()


def _owned(target: Any, folder: Path) -> Server:
    """With an option file of its owner's, and without the schema that a private MariaDB has for us."""
    folder.mkdir()
    folder.chmod(0o755)
    account, option_file = target._server.control_account, folder / "account"
    if target.kind == "mariadb":
        target._control.ask("DROP SCHEMA loadframe")
        address, section = target.endpoint().address, "client"
    else:
        address, section = str(target._server.socket), "owner"
    option_file.write_text(f"[{section}]\nuser={account.user}\npassword={account.password}\n")
    return Server(target, folder, address, option_file)
