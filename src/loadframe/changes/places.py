"""Places of settings that outlive the process. Callers pass in the places they know; this module looks none up.

What this command has changed on other hosts, and as far as it knows has not put back. The journals of these changes
are on those hosts (fleet/), so the state directory of this machine does not tell.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from loadframe.errors import ChangeError
from loadframe.model import ChangeRecord, SettingValue


class Gone(ChangeError):  # noqa: N818 - it is a state, not an error
    """The place has ended, and what was changed of it with it."""


class Place(Protocol):
    """Where settings are that outlive us. All methods raise UserError where it does not let us."""

    @property
    def address(self) -> Mapping[str, str]:
        """How another command finds it again: `kind`, and what that kind needs; `thing`: what it is, by whatever
        address it was reached, where it can tell that. No secret: it is written to disk."""

    @property
    def words(self) -> str:
        """What it is, for people."""

    def read(self, name: str) -> SettingValue:
        """The value now. Gone where the place has ended."""

    def write(self, name: str, value: SettingValue) -> None:
        """Set it."""


Namespace = Literal["", "pid", "net", "mnt"]


def _anywhere(setting: str) -> Namespace:
    return ""


ON_HOST = "on_host"
"""In the place of what a fleet has changed: on which of its hosts. Its journal is there, too."""


def again(address: Mapping[str, str]) -> str:
    """What tries once more to put back what stands, in words, without a full stop."""
    host = address.get(ON_HOST)
    return f"`loadframe changes revert`{f' on host {host}' if host else ''} tries again"


def _again(address: Mapping[str, str]) -> str:
    return f"{again(address)}."


@dataclass(frozen=True, slots=True)
class PlaceKind:
    """How places of a kind are found again, and what holds for all of them.

    find: by an address; UserError where the place does not let us in, KeyError or ValueError for an address that is
    none. longest_s: what putting one setting back may take. ends_with_boot: a reboot has put everything back. moves: a
    setting may move others. namespace: in which an address means what it meant, by the setting; "" where in all.
    way_in: what to do where the place at an address does not let us in, in words.
    """

    find: Callable[[Mapping[str, str]], Place]
    longest_s: float = 0.0
    ends_with_boot: bool = False
    moves: bool = False
    namespace: Callable[[str], Namespace] = _anywhere
    way_in: Callable[[Mapping[str, str]], str] = _again


Places = Mapping[str, PlaceKind]
"""By the `kind` of an address."""


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
