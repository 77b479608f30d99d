"""Putting back what killed commands have left changed: by `loadframe changes revert`, and by all commands that measure.

Each list is dealt with by itself, and each change of it: what cannot be put back stays on the disk with the reason and
the time, and is said. What was changed from within other namespaces (a container) is put back from here only where it
means the same here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.changes import lists
from loadframe.changes.durable import Outcome, Place, cannot, put_back, released, without
from loadframe.changes.host import Host
from loadframe.changes.lists import Record, Standing
from loadframe.changes.process import ServerProcess
from loadframe.errors import UserError
from loadframe.host import identity
from loadframe.host.state import locked, remove_torn, state_directory

if TYPE_CHECKING:
    from loadframe.kinds.attached import Attached

BY_HAND = (
    "Put it back where it was changed, with `loadframe changes revert`, or by hand (`loadframe changes list` shows "
    "what it was); then delete {file}."
)
SERVER_S = 40.0
"""Connecting takes up to 10 s, and a server's own work of before (settle) up to 30 s."""


def revert(*, again: bool = True, before: Callable[[str], None] = lambda _: None) -> list[Outcome]:
    """Put back what killed commands have left; what belongs to a command that runs is not touched. Idempotent, and safe
    to run at the same time in several processes. again: also what could not be put back a moment ago
    (lists.AGAIN_AFTER_S). before: is told of what may take long before it is begun. CageError."""
    remove_torn(state_directory() / "changes")
    if not lists.files():
        return []
    with locked(lists.folder() / "lock"):
        chosen = [record for record in lists.read() if not record.alive() and (again or record.due())]
        return [outcome for record in chosen for outcome in _revert_one(record, before)]


def unreverted() -> list[str]:
    """What killed commands have left changed, and files that cannot be used: a sentence or two for each. CageError."""
    standing = [record.words() for record in lists.read() if not record.alive()]
    return [*standing, *map(str, lists.unreadable())]


def _revert_one(record: Record, before: Callable[[str], None]) -> list[Outcome]:
    if (most_s := sum(_longest_s(change) for change in record.changes)) > 0:
        what = ", ".join(dict.fromkeys(f"{each.setting} of {each.words}" for each in record.changes))
        before(f"An earlier command was killed; restoring {what}. This may take up to {most_s:.0f} s.")
    changes = [_released(record, change) for change in record.changes]
    record = replace(record, changes=tuple(changes))
    outcomes = [_put_back(record, change) for change in reversed(changes)]
    failed = [outcome for outcome in outcomes if outcome.what == "failed"]
    left = replace(record, changes=tuple(without(record.changes, outcomes)))
    if failed:
        left = replace(left, tried_at=time.time(), because="; ".join(dict.fromkeys(each.because for each in failed)))
    try:
        return _told(record, outcomes)
    finally:
        lists.save(left)


def _told(record: Record, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes, once they are in the journal of the killed run; where that takes no more, they say so."""
    from loadframe.changes.journal import tell  # most commands find nothing to put back

    try:
        tell(Path(record.run), [outcome for outcome in outcomes if outcome.what != "failed"])
    except UserError as error:
        return [replace(each, because=f"{each.because} (not noted in its run: {error.fact})") for each in outcomes]
    return outcomes


def _longest_s(change: Standing) -> float:
    if change.place["kind"] == "config":
        from loadframe.changes.config_file import LONGEST_S

        return LONGEST_S
    return 0.0 if change.place["kind"] in ("host", "process") else SERVER_S


def _released(record: Record, change: Standing) -> Standing:
    if change.place["kind"] != "host" or _rebooted(record, change) or _elsewhere(record, change) is not None:
        return change
    try:
        return released(change, _host(change.place))
    except KeyError:
        return change  # `_put_back` says so


def _rebooted(record: Record, change: Standing) -> bool:
    return change.place["kind"] in ("host", "process") and record.boot != identity.boot_id()


def _elsewhere(record: Record, change: Standing) -> str | None:
    """Why the address of a change means another thing here, in words; None where it means the same, as far as it was
    noted."""
    kind = change.place["kind"]
    if kind == "process" and not identity.here(record.owner):
        return "its pid means another process here: it was changed in another PID namespace (a container)"
    net = kind == "host" and change.setting.startswith("net.")
    needed = "net" if net else "mnt" if kind == "config" else ""
    if needed and record.namespaces.get(needed, identity.namespace(needed)) != identity.namespace(needed):
        what = {"net": "network", "mnt": "mount"}[needed]
        return f"it was changed in another {what} namespace (a container)"
    return None


def _put_back(record: Record, change: Standing) -> Outcome:
    if _rebooted(record, change):
        return Outcome("reverted", change, None, "the machine was restarted since, and the setting was not made again")
    if (why := _elsewhere(record, change)) is not None:
        file = lists.folder() / f"{record.id}.json"
        return Outcome("failed", change, None, f"{cannot(change)}: {why}. {BY_HAND.format(file=file)}")
    kind = change.place["kind"]
    if (find := _way_to(kind)) is None:
        return Outcome("failed", change, None, f"{cannot(change)}: this version does not know what {kind!r} is")
    try:
        place = find(change.place)
    except UserError as error:
        return Outcome("failed", change, None, f"{cannot(change)}: {error.fact}. {_way_in(change)}")
    except (KeyError, ValueError) as error:
        return Outcome("failed", change, None, f"{cannot(change)}: its address is not complete ({error})")
    was, now = change.place.get("thing", ""), place.address.get("thing", "")
    if was and was != now:
        return Outcome("failed", change, None, f"{cannot(change)}: there is another server now ({now}, was {was})")
    return put_back(change, place)


def _host(address: Mapping[str, str]) -> Place:
    return Host(Path(address["root"]))


def _way_to(kind: str) -> Callable[[Mapping[str, str]], Place] | None:
    """How a place of a kind, one of KINDS or a server that can be attached to, is found again; None for any other."""
    if kind in KINDS:
        return KINDS[kind]
    from loadframe.kinds.attached import attachable  # as in `_server`

    return _server if attachable(kind) is not None else None


def _way_in(change: Standing) -> str:
    """What to see to where a server does not let us in."""
    from loadframe.kinds.attached import attachable  # as in `_server`

    known = attachable(change.place.get("server", change.place["kind"]))
    password = f" ({known.password})" if known is not None else ""
    return (
        f"It may be down, or its password may be neither in the option file nor in the environment now{password}: "
        "`loadframe changes revert` tries again."
    )


def _server(address: Mapping[str, str]) -> Attached:
    from loadframe.kinds.attached import again  # most commands change no server, and need none of its packages

    return again(address)


def _config_file(address: Mapping[str, str]) -> Place:
    from loadframe.changes.config_file import ConfigFile

    return ConfigFile.at(address)


def _schema(address: Mapping[str, str]) -> Place:
    from loadframe.changes.schema import OwnSchema

    server = _server({**address, "kind": address["server"]})
    server.settle()
    return OwnSchema(server.endpoint(), server)


KINDS: Mapping[str, Callable[[Mapping[str, str]], Place]] = {
    "host": _host,
    "process": ServerProcess.at,
    "config": _config_file,
    "schema": _schema,
}
"""How a place is found again by its address, beside the kinds of servers that can be attached to. UserError where it
does not let us in; KeyError, ValueError for an address that is none."""
