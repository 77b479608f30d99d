"""Servers that run already, of the kinds that can be attached to. They are read, and their settings are changed one by
one while they run (by way of changes/durable.py, which puts them back)."""

from collections.abc import Mapping
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.kinds import registry
from loadframe.kinds.base import Attached, ServerAddress
from loadframe.kinds.kind import Attachable

BY_OPTION, BY_STUDY = "--option-file or --user", "target.option_file"
"""With what an account is named."""
READ_ONLY_REMEDY = "Change it by hand, or give the study a private server (leave out target.attach)."


def attachable(kind: str) -> Attachable | None:
    """How servers of a kind are attached to; None where they are not, or the kind is not known."""
    row = registry.KINDS.get(kind)
    return None if row is None else row.attachable


def kinds() -> tuple[str, ...]:
    """Every kind that can be attached to, in alphabetical order."""
    return tuple(sorted(kind for kind, row in registry.KINDS.items() if row.attachable is not None))


def attach(where: str, *, option_file: Path | None = None, user: str = "", account: str = BY_OPTION) -> Attached:
    """Connect to KIND or KIND:ADDRESS, for example "mariadb:/run/mysqld/mysqld.sock" or "postgres:db.example:5432".

    account: with what the user names an account, BY_OPTION or BY_STUDY.
    StudyError for an unknown kind, TargetError where the server does not let us in.
    """
    kind, _, address = where.partition(":")
    known = attachable(kind)
    if known is None:
        raise StudyError(
            f"{where!r} does not begin with a kind of server that Loadframe can attach to",
            remedy=f"Write KIND:ADDRESS; kinds: {', '.join(kinds())}.",
        )
    return known.attach(ServerAddress(address, option_file, user, account))


def again(address: Mapping[str, str]) -> Attached:
    """Connect to a server by an address that it once gave. KeyError for one that is none; raises as `attach` does."""
    option_file = Path(address["option_file"]) if address["option_file"] else None
    known = attachable(address["kind"])
    if known is None:
        raise KeyError(address["kind"])
    number = address.get("number", "")  # records of former versions have none
    return known.attach(ServerAddress(address["address"], option_file, address["user"], BY_OPTION, number))


__all__ = ["BY_OPTION", "BY_STUDY", "READ_ONLY_REMEDY", "Attached", "again", "attach", "attachable", "kinds"]
