"""nginx as two kinds of target: a web server, and a cache before an origin."""

from __future__ import annotations

from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.nginx import cache, target
from loadframe.kinds.nginx.server import requirements
from loadframe.kinds.nginx.settings import CACHE_CATALOGUE, CATALOGUE
from loadframe.kinds.nginx.tunables import TUNABLES

FILE = SettingsFile("tuned.conf", "{name} {value};")
KINDS = (
    KindOfTarget(
        target.NginxTarget.kind,
        lambda lease, allowance: target.NginxTarget(lease=lease, allowance=allowance),
        CATALOGUE,
        target.check_settings,
        requirements,
        embedded=target.NginxTarget.embedded,
        tunables=TUNABLES,
        file=FILE,
    ),
    KindOfTarget(
        cache.NginxCacheTarget.kind,
        lambda lease, allowance: cache.NginxCacheTarget(lease=lease, allowance=allowance),
        CACHE_CATALOGUE,
        cache.check_settings,
        requirements,
        embedded=cache.NginxCacheTarget.embedded,
        cache=True,
        tunables=TUNABLES,
        file=FILE,
        ruled_as=target.NginxTarget.kind,
    ),
)
