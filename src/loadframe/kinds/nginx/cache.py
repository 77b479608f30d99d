"""nginx as a cache before an origin of its own: answers are kept as files on the disk, and sent from there.

What is asked for comes from the origin, an nginx that serves the files below `Endpoint.options["files"]`. What is
cached survives a restart.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.host.leases import Lease
from loadframe.host.own_user import User
from loadframe.host.processes import Allowance
from loadframe.kinds.nginx.server import Server, written
from loadframe.kinds.nginx.settings import CACHE_CATALOGUE
from loadframe.kinds.nginx.target import NginxTarget
from loadframe.kinds.origin import Origin
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState

FETCHES = CounterSpec("fetches", "nginx.fetches", cumulative=True)
"""Requests that the origin has answered, as nginx keeps no counter of what its cache lacked."""


class CacheServer(Server):
    """The same processes with a cache on the disk. origin: host:port, known before the start; until then any will do
    to have the configuration checked."""

    origin = "127.0.0.1:80"

    @property
    def store(self) -> Path:
        """Where answers are kept."""
        return self.folder / "store"

    def create(self) -> None:
        super().create()
        self.store.mkdir(mode=0o700)
        self.give(self.store)

    def empty(self) -> None:
        """Remove all answers that are kept."""
        for folder in self.store.iterdir():
            shutil.rmtree(folder)

    def before_servers(self, settings: Mapping[str, SettingValue]) -> list[str]:
        options = " ".join(written("cache", {**_defaults(), **settings}))
        return [f"proxy_cache_path {self.store} levels=1:2 use_temp_path=off {options}"]

    def what_it_serves(self, settings: Mapping[str, SettingValue]) -> list[str]:
        passed_on = [f"proxy_pass http://{self.origin}", "proxy_http_version 1.1", 'proxy_set_header Connection ""']
        return [*passed_on, "proxy_cache loadframe", *written("proxy", {**_defaults(), **settings})]


class NginxCacheTarget(NginxTarget):
    """See targets.base.Target, and NginxTarget."""

    kind = "nginx-cache"
    counter_specs: tuple[CounterSpec, ...] = (*NginxTarget.counter_specs, FETCHES)
    catalogue = CACHE_CATALOGUE

    def __init__(
        self, *, lease: Lease, allowance: Allowance, port: int = 0, log: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(lease=lease, allowance=allowance, port=port, folder="nginx-cache", log=log)
        self._origin = Origin(lease, "origin-of-nginx")

    def create(self) -> None:
        """MissingTool without nginx; TargetError where a folder cannot be made."""
        super().create()
        self._origin.create()

    def start(self, state: TargetState) -> None:
        """Start the origin, then the cache with these settings and limits."""
        self._origin.start()
        self._cache.origin = self._origin.address
        super().start(state)

    def empty(self) -> None:
        """Forget what is cached. It must not run."""
        self._cache.empty()

    def stop(self) -> None:
        """Stop the cache and its origin; what is cached stays."""
        super().stop()
        self._origin.stop()

    def destroy(self) -> None:
        """End both and remove their folders."""
        super().destroy()
        self._origin.destroy()

    def counters(self) -> dict[str, float]:
        """nginx's own, and what its origin was asked for. TargetError where either has died."""
        self._origin.check()
        return {**super().counters(), "fetches": float(self._origin.requests())}

    def endpoint(self) -> Endpoint:
        """address: host and port. options: `origin`, the same of the origin; `files`, the folder that it serves."""
        options = {"files": str(self._origin.files), "origin": self._origin.address}
        return Endpoint(self.kind, super().endpoint().address, options)

    def describe(self) -> Mapping[str, str]:
        return {**super().describe(), "origin": f"a private nginx before {self._origin.files}"}

    def _make_server(self, lease: Lease, user: User | None, port: int, folder: str) -> Server:
        self._cache = CacheServer(lease, user, port, folder)
        return self._cache


def check_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """In canonical form. StudyError."""
    return CACHE_CATALOGUE.check(settings)


def _defaults() -> dict[str, SettingValue]:
    """Those that are not nginx's own have to be written."""
    return {
        spec.name: spec.default
        for spec in CACHE_CATALOGUE.specs
        if spec.name.startswith("proxy_") and spec.default is not None
    }
