"""What has to be restarted so that a running cluster has other settings, and keeps its data.

Source of what a setting needs: settings.RESTARTS. With one copy of the data no data node can be restarted while the
others go on, and none can be started with an empty file system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loadframe.errors import TargetError
from loadframe.kinds.catalogue import differing
from loadframe.kinds.ndb.own_settings import CATALOGUE, setting_of
from loadframe.model import SettingValue

Restart = Literal["rolling", "rolling, initial", "system"]
"""The data nodes in turn, while the cluster answers; the same, each with an empty file system, which it fills from the
other node of its group; all at once, from their disks."""
OF_SETTING: Mapping[str, Restart] = {"N": "rolling", "IN": "rolling, initial", "S": "system", "": "system"}
"""By settings.RESTARTS; where it is not said, all of it restarts."""
NEVER = "IS"
"""Only a cluster without data can have another value."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A restart, and the settings with which the nodes come back."""

    restart: Restart
    settings: Mapping[str, SettingValue]


def changed(old: Mapping[str, SettingValue], new: Mapping[str, SettingValue]) -> list[str]:
    """The settings that are given differently. One that is left out counts as changed also where its default is given:
    defaults are the manual's, and those of a version may be others. Not so where no restart could follow."""
    names, defaults = differing(old, new), CATALOGUE.defaults()
    ends = differing({**defaults, **old}, {**defaults, **new})
    return [name for name in names if name in ends or setting_of(name).restart != NEVER]


def stages(old: Mapping[str, SettingValue], new: Mapping[str, SettingValue], replicas: int) -> Sequence[Stage]:
    """The restarts that lead from one to the other, in order. TargetError where the data would not survive them.

    A restart of all nodes comes first, with the old values of what needs an empty file system.
    """
    of: dict[Restart, list[str]] = {}
    for name in changed(old, new):
        of.setdefault(_restart(name, replicas), []).append(name)
    found = []
    initial = of.get("rolling, initial", [])
    if "system" in of:
        kept = {name: old[name] for name in initial if name in old}
        found.append(Stage("system", {**{name: new[name] for name in new if name not in initial}, **kept}))
    if initial:
        found.append(Stage("rolling, initial", new))
    if of.keys() == {"rolling"}:
        found.append(Stage("rolling", new))
    return found


def _restart(name: str, replicas: int) -> Restart:
    needed = setting_of(name).restart
    if needed == NEVER:
        raise TargetError(
            f"{name} cannot be changed in a cluster that has data",
            remedy="Give it in target.settings: the cluster starts with it.",
        )
    restart = OF_SETTING[needed]
    if replicas > 1:
        return restart
    if restart == "rolling, initial":
        raise TargetError(
            f"{name} takes a data node that starts with an empty file system, and with NoOfReplicas = 1 there is no "
            "other copy of its data",
            remedy="Give it in target.settings, or set NoOfReplicas = 2.",
        )
    return "system"
