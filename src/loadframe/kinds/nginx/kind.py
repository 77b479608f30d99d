"""nginx as two kinds of target: a web server, and a cache in front of an origin."""

from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.nginx.settings import CACHE_CATALOGUE, CATALOGUE, TUNABLES
from loadframe.kinds.nginx.target import NginxCacheTarget, NginxTarget
from loadframe.kinds.origin import requirements

FILE = SettingsFile("tuned.conf", "{name} {value};")


KINDS = (
    KindOfTarget(
        NginxTarget.kind,
        NginxTarget,
        CATALOGUE,
        CATALOGUE.check,
        requirements,
        tunables=TUNABLES,
        listening=True,
        file=FILE,
    ),
    KindOfTarget(
        NginxCacheTarget.kind,
        NginxCacheTarget,
        CACHE_CATALOGUE,
        CACHE_CATALOGUE.check,
        requirements,
        cache=True,
        tunables=TUNABLES,
        listening=True,
        file=FILE,
        ruled_as=NginxTarget.kind,
    ),
)
