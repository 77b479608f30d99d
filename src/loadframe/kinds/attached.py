"""Running servers of the kinds that can be attached to; changes/durable.py puts their changed settings back."""

from collections.abc import Mapping
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.kinds import registry
from loadframe.kinds.base import Attached, ServerAddress
from loadframe.kinds.kind import Attachable

BY_OPTION, BY_STUDY = "--option-file or --user", "target.option_file"
"""How the user names an account: on the command line, in a study."""
READ_ONLY_REMEDY = "Change it by hand, or give the study a private server (leave out target.attach)."


def attachable(kind: str) -> Attachable | None:
    """How servers of a kind are attached to; None for an unknown kind and one that cannot be attached to."""
    row = registry.KINDS.get(kind)
    return None if row is None else row.attachable


def kinds() -> tuple[str, ...]:
    """Every kind that can be attached to, in alphabetical order."""
    return tuple(sorted(kind for kind, row in registry.KINDS.items() if row.attachable is not None))


def attach(where: str, *, option_file: Path | None = None, user: str = "", account: str = BY_OPTION) -> Attached:
    """Connect to KIND or KIND:ADDRESS, for example "mariadb:/run/mysqld/mysqld.sock" or "postgres:db.example:5432".
    account: how the user names an account. StudyError for an unknown kind, TargetError where refused."""
    kind, _, address = where.partition(":")
    known = attachable(kind)
    if known is None:
        raise StudyError(
            f"{where!r} does not begin with a kind of server that Loadframe can attach to",
            remedy=f"Write KIND:ADDRESS; kinds: {', '.join(kinds())}.",
        )
    return known.attach(ServerAddress(address, option_file, user, account))


def again(address: Mapping[str, str]) -> Attached:
    """Connect again by what Attached.address gave. KeyError for an unknown kind; otherwise raises as `attach` does."""
    option_file = Path(address["option_file"]) if address["option_file"] else None
    known = attachable(address["kind"])
    if known is None:
        raise KeyError(address["kind"])
    number = address.get("number", "")  # records of former versions have none
    return known.attach(ServerAddress(address["address"], option_file, address["user"], BY_OPTION, number))


__all__ = ["BY_OPTION", "BY_STUDY", "READ_ONLY_REMEDY", "Attached", "again", "attach", "attachable", "kinds"]
