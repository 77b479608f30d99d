"""Varnish as a kind of target."""

from __future__ import annotations

from loadframe.kinds import origin
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.varnish.counters import INSTALL, library
from loadframe.kinds.varnish.server import program
from loadframe.kinds.varnish.settings import CATALOGUE
from loadframe.kinds.varnish.target import VarnishTarget, check_settings
from loadframe.kinds.varnish.tunables import TUNABLES
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    """An origin, too, and a compiler, with which it makes its configuration."""
    programs = [Requirement("varnish", name, program(name), INSTALL) for name in ("varnishd", "varnishadm", "cc")]
    return [*programs, Requirement("varnish", "libvarnishapi", library(), INSTALL), *origin.requirements()]


KINDS = (
    KindOfTarget(
        VarnishTarget.kind,
        lambda lease, allowance: VarnishTarget(lease=lease, allowance=allowance),
        CATALOGUE,
        check_settings,
        requirements,
        embedded=VarnishTarget.embedded,
        cache=True,
        tunables=TUNABLES,
        file=SettingsFile("tuned.args", "-p {name}={value}"),
    ),
)
