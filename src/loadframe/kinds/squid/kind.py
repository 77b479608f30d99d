"""Squid as a kind of target."""

from __future__ import annotations

from loadframe.kinds import origin
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.squid.server import INSTALL, program
from loadframe.kinds.squid.settings import CATALOGUE
from loadframe.kinds.squid.target import SquidTarget, check_settings
from loadframe.kinds.squid.tunables import TUNABLES
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    """An origin, too."""
    return [Requirement("squid", "squid", program(), INSTALL), *origin.requirements()]


KINDS = (
    KindOfTarget(
        SquidTarget.kind,
        lambda lease, allowance: SquidTarget(lease=lease, allowance=allowance),
        CATALOGUE,
        check_settings,
        requirements,
        embedded=SquidTarget.embedded,
        cache=True,
        tunables=TUNABLES,
        file=SettingsFile("tuned.conf", "{name} {value}"),
    ),
)
