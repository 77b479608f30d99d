"""Servers that run already, by kind. They are read, and their settings are changed one by one while they run (by way of
changes/durable.py, which puts them back). To add one, write its file and a row in KINDS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from loadframe.errors import StudyError
from loadframe.kinds.mariadb import attached as mariadb_attached
from loadframe.kinds.mariadb.attached import AttachedMariadb
from loadframe.kinds.postgres import attached as postgres_attached
from loadframe.kinds.postgres.attached import AttachedPostgres
from loadframe.model import CounterSpec, Endpoint, SettingValue


class Attached(Protocol):
    """A connection to a server that somebody else started. All methods raise TargetError where it does not answer."""

    kind: str
    address: Mapping[str, str]
    """How it is found again: kind, address, option_file, user, number (of its name; "" for a socket). No secret."""
    words: str
    """Where it is, for people."""
    counter_specs: tuple[CounterSpec, ...]

    def counters(self) -> dict[str, float]:
        """The counters now, by CounterSpec.name; one that this server does not have is absent."""

    def effective(self) -> dict[str, SettingValue]:
        """The settings as the server uses them."""

    def read(self, name: str) -> SettingValue:
        """A setting of the catalogue, as `write` takes it, once the server has settled."""

    def write(self, name: str, value: SettingValue) -> None:
        """Set it for all new connections, without a restart. TargetError where the server refuses that."""

    def settle(self) -> None:
        """Wait until no other connection of the account changes a setting or the load's schema: a server goes on with
        the statement of a client that was killed, or did not wait. TargetError where it does so for too long."""

    def configured(self) -> dict[str, SettingValue]:
        """The settings as asked for, as far as that can be read."""

    def pid(self) -> int | None:
        """Its process; None where it is on another machine or hidden."""

    def listener(self) -> int | None:
        """The same for certain, as the kernel knows who listens at a socket; None by network, where only the server's
        word says which process it is."""

    def pids(self) -> tuple[int, ...]:
        """All its processes, that one first; empty where it is out of sight."""

    def local(self) -> bool:
        """Whether it is on this machine."""

    def endpoint(self) -> Endpoint:
        """How a load driver reaches it, with a schema of its own; `attached`."""

    def version(self) -> str:
        """Name and version."""

    def describe(self) -> str:
        """Where it is, in words."""

    def close(self) -> None:
        """Let go of the connection. Never raises."""


BY_OPTION, BY_STUDY = "--option-file or --user", "target.option_file"
"""With what an account is named."""


class Attach(Protocol):
    """Connects to servers of one kind. account: with what the user names an account, for advice. number: the address
    of its name, where that was decided before."""

    def __call__(
        self, address: str, *, option_file: Path | None, user: str, account: str, number: str = ""
    ) -> Attached:
        """Raises as `attach` does."""


KINDS: Mapping[str, Attach] = {"mariadb": AttachedMariadb, "postgres": AttachedPostgres}


HOSTS: Mapping[str, Callable[[str, Path | None], str]] = {
    "mariadb": mariadb_attached.host_of,
    "postgres": postgres_attached.host_of,
}
"""By the address in a study and the option file: the host, "" for a socket of this machine."""


def attach(where: str, *, option_file: Path | None = None, user: str = "", account: str = BY_OPTION) -> Attached:
    """Connect to KIND or KIND:ADDRESS, for example "mariadb:/run/mysqld/mysqld.sock" or "postgres:db.example:5432".

    account: with what the user names an account, BY_OPTION or BY_STUDY.
    StudyError for an unknown kind, TargetError where the server does not let us in.
    """
    kind, _, address = where.partition(":")
    if kind not in KINDS:
        raise StudyError(
            f"{where!r} does not begin with a kind of server that can be attached to",
            remedy=f"Write KIND:ADDRESS; kinds: {', '.join(sorted(KINDS))}.",
        )
    return KINDS[kind](address, option_file=option_file, user=user, account=account)


def again(address: Mapping[str, str]) -> Attached:
    """Connect to a server by an address that it once gave. Raises as `attach` does."""
    option_file = Path(address["option_file"]) if address["option_file"] else None
    return KINDS[address["kind"]](
        address["address"],
        option_file=option_file,
        user=address["user"],
        account=BY_OPTION,
        number=address.get("number", ""),  # records of former versions have none
    )
