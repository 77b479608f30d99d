"""Squid as a kind of target."""

from loadframe.kinds import origin
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.squid.server import PACKAGE
from loadframe.kinds.squid.settings import CATALOGUE, TUNABLES
from loadframe.kinds.squid.target import SquidTarget
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    """Squid's and its origin's."""
    return [*PACKAGE.requirements("squid"), *origin.requirements()]


KINDS = (
    KindOfTarget(
        SquidTarget.kind,
        SquidTarget,
        CATALOGUE,
        CATALOGUE.check,
        requirements,
        cache=True,
        tunables=TUNABLES,
        file=SettingsFile("tuned.conf", "{name} {value}"),
    ),
)
