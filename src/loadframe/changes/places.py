"""Places of settings that outlive the process. Also what this command has changed on other hosts and not reverted:
those journals are on the hosts (fleet/)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from loadframe.errors import ChangeError
from loadframe.model import ChangeRecord, SettingValue


class Gone(ChangeError):  # noqa: N818 - a state, not an error
    """The place has ended, and with it what was changed there."""


class Place(Protocol):
    """Where settings are that outlive us. All methods raise UserError where access is refused."""

    @property
    def address(self) -> Mapping[str, str]:
        """How another command finds it: `kind`, what that kind needs, and where known `thing`: its identity, whatever
        the address. No secret: it is written to disk."""

    @property
    def words(self) -> str: ...

    def read(self, name: str) -> SettingValue:
        """Gone where the place has ended."""

    def write(self, name: str, value: SettingValue) -> None: ...


class OwnPlace(Place, Protocol):
    """What a workload makes in a server that is not ours; its only setting, `name`, is whether it is there. It can only
    be set to absent."""

    name: str

    @property
    def options(self) -> Mapping[str, str]:
        """The endpoint's options, for who loads the server."""


Namespace = Literal["", "pid", "net", "mnt"]

ON_HOST = "on_host"
"""Key of a place on a host of a fleet, where its journal is, too."""


def again(address: Mapping[str, str]) -> str:
    """How to try again, without a full stop."""
    host = address.get(ON_HOST)
    return f"`loadframe changes revert`{f' on host {host}' if host else ''} tries again"


@dataclass(frozen=True, slots=True)
class PlaceKind:
    """find: by an address; UserError where access is refused, KeyError or ValueError for an invalid one. longest_s: of
    one revert. ends_with_boot: a reboot reverts everything. moves: a setting may move others. namespace: in which an
    address keeps its meaning, by setting; "" for all. way_in: what to do where access is refused."""

    find: Callable[[Mapping[str, str]], Place]
    longest_s: float = 0.0
    ends_with_boot: bool = False
    moves: bool = False
    namespace: Callable[[str], Namespace] = lambda _: ""
    way_in: Callable[[Mapping[str, str]], str] = lambda address: f"{again(address)}."


Places = Mapping[str, PlaceKind]
"""By the `kind` of an address."""

_left: dict[str, list[str]] = {}


def note(outcomes: Iterable[ChangeRecord]) -> None:
    """Note reverts on other hosts; those of this machine are in its own lists."""
    for outcome in outcomes:
        if host := outcome.place.get(ON_HOST):
            others = [setting for setting in _left.pop(host, []) if setting != outcome.setting]
            if settings := [*others, *([outcome.setting] if outcome.status == "failed" else [])]:
                _left[host] = settings


def left() -> Mapping[str, Sequence[str]]:
    """By host."""
    return _left
