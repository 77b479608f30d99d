"""What this command has changed on other hosts, and as far as it knows has not put back. The journals of these changes
are on those hosts (fleet/), so the state directory of this machine does not tell."""

from __future__ import annotations

from collections.abc import Iterable

from loadframe.changes.places import ON_HOST
from loadframe.model import ChangeRecord

_left: dict[tuple[str, str], ChangeRecord] = {}


def note(outcomes: Iterable[ChangeRecord]) -> None:
    """What became of changes that were to be put back; those of this machine are in its own lists."""
    for outcome in outcomes:
        if host := outcome.place.get(ON_HOST):
            _left.pop((host, outcome.setting), None)
            if outcome.status == "failed":
                _left[host, outcome.setting] = outcome


def left() -> dict[str, list[str]]:
    """The settings, by the name of their host in the fleet file."""
    found: dict[str, list[str]] = {}
    for host, setting in _left:
        found.setdefault(host, []).append(setting)
    return found
