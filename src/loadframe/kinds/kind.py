"""A kind of server: its record in `kinds/NAME/kind.py`, or at an entry point of the group `loadframe.kinds`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Attach, Attached, Target
from loadframe.kinds.catalogue import Catalogue, SettingSpec, Tunable
from loadframe.model import Knob, Requirement, SettingValue
from loadframe.study.declaration import TargetTable

Settings = Mapping[str, SettingValue]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """head: its first lines. line: with {name} and {value} in it. quotes: around a word. size: after a number of bytes.
    words: for false and true. statement: the SQL that sets it on a running server; "" for none."""

    file: str
    line: str
    head: str = ""
    quotes: str = ""
    size: str = ""
    words: tuple[str, str] = ("off", "on")
    statement: str = ""


OF_STUDY = SettingsFile(
    "tuned.toml", "{name} = {value}", head="[target.settings]\n", quotes='"', words=("false", "true")
)
"""Settings as a study writes them: for servers whose own are in several files, or in no known one."""


@dataclass(frozen=True, slots=True)
class Attachable:
    """How a running server is read and changed. host_of: from the address in a study and the option file; "" for a
    socket; raises as `attach` does. head: the first lines of a configuration file that its restart reads. password: the
    environment variable that may hold one. read_only: why not to change it."""

    attach: Attach
    host_of: Callable[[str, Path | None], str]
    head: str
    password: str
    read_only: str = ""


@dataclass(frozen=True, slots=True)
class ByAddress:
    """A running server that is loaded, never changed. host_of: from the settings that name it; StudyError. unseen: what
    a study of it cannot observe, in a sentence or two."""

    host_of: Callable[[Settings], str]
    unseen: str


@dataclass(frozen=True, slots=True)
class KindOfTarget:
    """docs/writing-a-target.md explains the fields. check_settings and declared raise StudyError, running TargetError,
    again KeyError, ValueError or TargetError."""

    kind: str
    make: Callable[[Lease, Resources], Target]
    catalogue: Catalogue
    check_settings: Callable[[Settings], dict[str, SettingValue]]
    requirements: Callable[[], list[Requirement]]
    embedded: bool = False
    make_shards: Callable[[Lease, Mapping[str, Resources]], Target] | None = None
    before: tuple[str, ...] = ()
    more_before: tuple[str, ...] = ()
    cache: bool = False
    tunables: tuple[Tunable, ...] = ()
    file: SettingsFile | None = None
    attachable: Attachable | None = None
    by_address: ByAddress | None = None
    worked_out: frozenset[str] = frozenset()
    ruled_as: str = ""
    loaded_by: frozenset[str] = frozenset()
    declared: "Callable[[KindOfTarget, TargetTable], KindOfTarget] | None" = None
    knobs: tuple[Knob, ...] = ()
    notes: tuple[str, ...] = ()
    running: Callable[[TargetTable], Attached] | None = None
    again: Callable[[Mapping[str, str]], Attached] | None = None
    listening: bool = False
    one_system: bool = False

    def setting(self, name: str) -> SettingSpec | None:
        return self.catalogue.get(name)

    def gives_up(self, settings: Settings) -> str | None:
        """The durability that these settings give up, in words; None for none. StudyError."""
        rows = ((self.setting(name), value) for name, value in self.check_settings(settings).items())
        weak = (f"{spec.name} = {value}; {spec.gives_up}" for spec, value in rows if spec and spec.weakens(value))
        return "; ".join(weak) or None
