"""Reverting what killed commands have left changed: by `loadframe changes revert`, and by all commands that measure.
Each change is handled by itself: what cannot be reverted stays on the disk with reason and time, and is reported. What
was changed from within other namespaces (a container) is reverted only where its address means the same here."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from loadframe.changes import lists
from loadframe.changes.durable import became, cannot, put_back, released, shown, without
from loadframe.changes.lists import Record
from loadframe.changes.places import Namespace, Place, Places
from loadframe.errors import ChangeError, UserError
from loadframe.host import identity
from loadframe.host.state import locked, remove_torn, state_directory
from loadframe.model import ChangeRecord

BY_HAND = (
    "Put it back where it was changed, with `loadframe changes revert`, or by hand (`loadframe changes list` shows "
    "what it was); then delete {file}."
)
OTHERS: Mapping[Namespace, str] = {"net": "network", "mnt": "mount"}


def revert(
    places: Callable[[], Places], *, again: bool = True, before: Callable[[str], None] = lambda _: None
) -> list[ChangeRecord]:
    """Revert what killed commands have left; changes of running commands are not touched. Idempotent, and safe in
    several processes at once. places: called only where something remains changed. again: also what recently could not
    be reverted (lists.AGAIN_AFTER_S). before: called before what may take long. CageError."""
    remove_torn(state_directory() / "changes")
    if not lists.files():
        return []
    with locked(lists.folder() / "lock"):
        chosen = [record for record in lists.read() if not record.alive() and (again or record.due())]
        known = places() if chosen else {}
        return [outcome for record in chosen for outcome in _revert_one(known, record, before)]


def forget(identifier: str) -> list[ChangeRecord]:
    """Give up what a killed command has left changed: it is never reverted. identifier: of its list. Returns what each
    change leaves. ChangeError where no list has it, and where the command runs. CageError."""
    with locked(lists.folder() / "lock"):
        known = {record.id: record for record in lists.read()}
        record = known.get(identifier)
        if record is None:
            raise ChangeError(
                f"No killed command left changes with the ID {identifier!r}.",
                remedy=f"`loadframe changes list` shows the changes and their IDs; now: {', '.join(known) or 'none'}.",
            )
        if record.alive():
            raise ChangeError(
                f"The command of {identifier} runs (pid {record.owner.pid}, {record.run}).",
                remedy="It reverts its changes when it ends.",
            )
        outcomes = []
        for change in record.changes:
            was, asked = shown(change.before), shown(change.after)
            because = f"forgotten: may still be {asked} (it was {was} before the run); nothing reverts it now"
            outcomes.append(became(change, "left", None, because))
        try:
            return _told(record, outcomes)
        finally:
            lists.save(replace(record, changes=()))


def unreverted() -> list[str]:
    """A sentence or two on each killed command's remaining changes, and on unusable files. CageError."""
    standing = [record.words() for record in lists.read() if not record.alive()]
    return [*standing, *map(str, lists.unreadable())]


def _revert_one(places: Places, record: Record, before: Callable[[str], None]) -> list[ChangeRecord]:
    kinds = (places.get(change.place["kind"]) for change in record.changes)
    if (most_s := sum(kind.longest_s for kind in kinds if kind is not None)) > 0:
        what = ", ".join(dict.fromkeys(f"{change.setting} of {change.words}" for change in record.changes))
        before(f"An earlier command was killed; restoring {what}. This may take up to {most_s:.0f} s.")
    changes = []
    for change in record.changes:
        kind = places.get(change.place["kind"])
        place = _found(places, record, change) if kind is not None and kind.moves else change
        changes.append(change if isinstance(place, ChangeRecord) else released(change, place))
    record = replace(record, changes=tuple(changes))
    outcomes = []
    for change in reversed(changes):
        place = _found(places, record, change)
        outcomes.append(place if isinstance(place, ChangeRecord) else put_back(change, place))
    failed = [outcome.because for outcome in outcomes if outcome.status == "failed"]
    left = replace(record, changes=tuple(without(record.changes, outcomes)))
    if failed:
        left = replace(left, tried_at=time.time(), because="; ".join(dict.fromkeys(failed)))
    try:
        return _told(record, outcomes)
    finally:
        lists.save(left)


def _told(record: Record, outcomes: list[ChangeRecord]) -> list[ChangeRecord]:
    """The outcomes, noted in the killed run's journal; where that fails, they say so."""
    from loadframe.changes.journal import tell  # most commands find nothing to put back

    try:
        tell(Path(record.run), [outcome for outcome in outcomes if outcome.status != "failed"])
    except UserError as error:
        return [
            replace(outcome, because=f"{outcome.because} (not noted in its run: {error.fact})") for outcome in outcomes
        ]
    return outcomes


def _found(places: Places, record: Record, change: ChangeRecord) -> Place | ChangeRecord:
    """Where a change is reverted, or its outcome where it cannot be, or need not."""
    if (kind := places.get(change.place["kind"])) is None:
        unknown = change.place["kind"]
        return became(change, "failed", None, f"{cannot(change)}: this version does not know what {unknown!r} is")
    if kind.ends_with_boot and record.boot != identity.boot_id():
        because = "the machine was restarted since, and the setting was not made again"
        return became(change, "reverted", None, because)
    needed, why = kind.namespace(change.setting), ""
    if needed == "pid" and not identity.here(record.owner):
        why = "its pid means another process here: it was changed in another PID namespace (a container)"
    if needed in OTHERS and record.namespaces.get(needed, identity.namespace(needed)) != identity.namespace(needed):
        why = f"it was changed in another {OTHERS[needed]} namespace (a container)"
    if why:
        file = lists.folder() / f"{record.id}.json"
        return became(change, "failed", None, f"{cannot(change)}: {why}. {BY_HAND.format(file=file)}")
    try:
        place = kind.find(change.place)
    except UserError as error:
        return became(change, "failed", None, f"{cannot(change)}: {error.fact}. {kind.way_in(change.place)}")
    except (KeyError, ValueError) as error:
        return became(change, "failed", None, f"{cannot(change)}: its address is not complete ({error})")
    was, now = change.place.get("thing", ""), place.address.get("thing", "")
    if was and was != now:
        return became(change, "failed", None, f"{cannot(change)}: there is another server now ({now}, was {was})")
    return place
