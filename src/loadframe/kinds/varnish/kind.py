"""Varnish as a kind of target."""

from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.origin import requirements as of_origin
from loadframe.kinds.package import installed
from loadframe.kinds.varnish.server import PACKAGE, library
from loadframe.kinds.varnish.settings import CATALOGUE, TUNABLES
from loadframe.kinds.varnish.target import VarnishTarget
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    """Varnish's and its origin's, and the compiler of its configuration."""
    compiler = Requirement("varnish", "cc", installed("cc"), PACKAGE.install)
    shared = Requirement("varnish", "libvarnishapi", library(), PACKAGE.install)
    return [*PACKAGE.requirements("varnish"), compiler, shared, *of_origin()]


KINDS = (
    KindOfTarget(
        VarnishTarget.kind,
        VarnishTarget,
        CATALOGUE,
        CATALOGUE.check,
        requirements,
        cache=True,
        listening=True,
        tunables=TUNABLES,
        file=SettingsFile("tuned.args", "-p {name}={value}"),
    ),
)
