"""nginx as a cache before an origin of its own: answers are kept as files on the disk, and sent from there.

What is asked for comes from the origin, an nginx that serves the files below `Endpoint.options["files"]`. What is
cached survives a restart.
"""

from collections.abc import Mapping
from pathlib import Path

from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.nginx.server import Server, written
from loadframe.kinds.nginx.settings import CACHE_CATALOGUE
from loadframe.kinds.nginx.target import NginxTarget
from loadframe.kinds.origin import CacheTarget, Origin
from loadframe.model import CounterSpec, SettingValue, TargetState

FETCHES = CounterSpec("fetches", "nginx.fetches", cumulative=True)
"""Requests that the origin has answered, as nginx keeps no counter of what its cache lacked."""
DEFAULTS = {name: value for name, value in CACHE_CATALOGUE.defaults().items() if name.startswith("proxy_")}
"""Those that are not nginx's own have to be written."""


class CacheServer(Server):
    """The same processes with a cache on the disk. origin: host:port, known before the start; until then any will do
    to have the configuration checked."""

    origin = "127.0.0.1:80"

    @property
    def store(self) -> Path:
        """Where answers are kept."""
        return self.folder / "store"

    def prepare(self) -> None:
        super().prepare()
        self.store.mkdir(mode=0o700)
        self.give(self.store)

    def before_servers(self, settings: Mapping[str, SettingValue]) -> list[str]:
        options = " ".join(written("cache", {**DEFAULTS, **settings}))
        return [f"proxy_cache_path {self.store} levels=1:2 use_temp_path=off {options}"]

    def what_it_serves(self, settings: Mapping[str, SettingValue]) -> list[str]:
        passed_on = [f"proxy_pass http://{self.origin}", "proxy_http_version 1.1", 'proxy_set_header Connection ""']
        return [*passed_on, "proxy_cache loadframe", *written("proxy", {**DEFAULTS, **settings})]


class NginxCacheTarget(CacheTarget[Server], NginxTarget):
    """See targets.base.Target, CacheTarget and NginxTarget."""

    kind = "nginx-cache"
    counter_specs: tuple[CounterSpec, ...] = (*NginxTarget.counter_specs, FETCHES)
    catalogue = CACHE_CATALOGUE

    def __init__(self, lease: Lease, resources: Resources) -> None:
        super().__init__(lease=lease, resources=resources)
        self._data = self._cache.store
        self._origin = Origin(lease, "origin-of-nginx")

    def counters(self) -> dict[str, float]:
        """nginx's own, and what its origin was asked for. TargetError where either has died."""
        self._origin.check()
        return {**super().counters(), "fetches": float(self._origin.requests())}

    def _make_server(self, lease: Lease, user: Privilege, port: int) -> Server:
        self._cache = CacheServer(lease, user, port, "nginx-cache")
        return self._cache

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self._cache.origin = self._origin.address
        super()._begin(wanted, allowance)
