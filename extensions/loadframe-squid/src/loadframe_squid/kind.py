"""Squid as a kind of target."""

from loadframe.kinds import origin
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.model import Requirement
from loadframe_squid.server import PACKAGE
from loadframe_squid.settings import CATALOGUE, TUNABLES
from loadframe_squid.target import SquidTarget


def requirements() -> list[Requirement]:
    """Squid's and its origin's."""
    return [*PACKAGE.requirements("squid"), *origin.requirements()]


KIND = KindOfTarget(
    SquidTarget.kind,
    SquidTarget,
    CATALOGUE,
    CATALOGUE.check,
    requirements,
    cache=True,
    tunables=TUNABLES,
    file=SettingsFile("tuned.conf", "{name} {value}"),
    loaded_by=frozenset({"command", "http", "jmeter", "k6", "locust"}),
)
