"""MariaDB, as a private instance."""

from __future__ import annotations

from collections.abc import Mapping

from loadframe.kinds.mariadb.counters import COUNTERS, COUNTING
from loadframe.kinds.mariadb.server import Server
from loadframe.kinds.mariadb.settings import CATALOGUE
from loadframe.kinds.mysql_private import FamilyTarget, checked
from loadframe.model import CounterSpec, SettingValue


class MariadbTarget(FamilyTarget):
    """See targets.base.Target."""

    kind = "mariadb"
    catalogue, counting, make = CATALOGUE, COUNTING, Server
    counter_specs: tuple[CounterSpec, ...] = COUNTERS


def check_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """In canonical form; what the catalogue does not hold is asked of the installed server. StudyError."""
    return checked(CATALOGUE, Server, settings)
