"""Varnish, as a private instance in front of an origin of its own. Its store ends with its cache process, whatever
the storage: a restart leaves a cold cache."""

import http.client
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadframe.connections.http_connection import ERRORS, Connection
from loadframe.host.identity import children
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.catalogue import on_or_off
from loadframe.kinds.origin import CacheTarget, Origin
from loadframe.kinds.private_server import soft_nofile
from loadframe.kinds.private_target import NOFILE
from loadframe.kinds.varnish.server import SETTINGS_OF_STORAGE, Counters, Server
from loadframe.kinds.varnish.settings import ALL_COUNTERS, CATALOGUE, COUNTERS
from loadframe.model import SettingValue, TargetState

TIMEOUT_S = 5.0


class VarnishTarget(CacheTarget[Server]):
    """See kinds.base.Target and CacheTarget. A change of state sets parameters, or restarts where needed."""

    kind = "varnish"
    catalogue = CATALOGUE
    counter_specs = ALL_COUNTERS

    def __init__(self, lease: Lease, resources: Resources) -> None:
        allowance = resources.run_by(lease.account("vcache", "varnish"))
        server = Server(lease, allowance.user, 0)
        super().__init__(server, allowance, data=server.store)
        self._origin = Origin(lease, "origin-of-varnish")
        self._counters = Counters(server.directory, server.user, lease.user)
        self._cache: int | None = None

    # --- life ---

    def check(self, state: TargetState) -> None:
        """By `varnishd -C`."""
        wanted = self._wanted(state)
        self._server.check(wanted, self._complete(wanted.settings), self._allowed(wanted))

    def empty(self) -> None:
        """Nothing to do: its stop has emptied it."""

    # --- what it is and does now ---

    def effective(self) -> dict[str, SettingValue]:
        """From `param.show`, with the storage as it was started, and the descriptors as the kernel has them."""
        return {**super().effective(), NOFILE: soft_nofile(self._cache)}

    def counters(self) -> dict[str, float]:
        self._running()
        self._origin.check()
        counters = self._counters.read()
        effective = self._effective
        return {
            **{spec.name: float(counters[vsc]) for vsc, spec in COUNTERS.items() if vsc in counters},
            "threads_allowed": float(effective["thread_pools"]) * float(effective["thread_pool_max"]),
            "storage_size": float(effective["storage_size"]),
        }

    def pids(self) -> tuple[int, ...]:
        return tuple(pid for pid in (self._server.pid, self._cache) if pid is not None and self._server.pid is not None)

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self._server.start(self._complete(wanted.settings), self._origin.address, allowance, self._answers)

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        for name in changed:
            self._server.ask("param.set", name, on_or_off(self._complete(wanted.settings)[name]))
        self._entered(wanted)

    def _complete(self, settings: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        return {**CATALOGUE.defaults(), **settings}

    def _hang_up(self) -> None:
        self._counters.close()

    def _running(self) -> TargetState:
        state = super()._running()
        if not Path(f"/proc/{self._cache}").exists():
            raise self._server.failed(
                "Varnish's cache process has ended, and with it what was cached; its manager starts another one",
                "Was it out of memory? Its last log lines say so.",
            )
        return state

    def _answers(self) -> bool:
        """Whether a request for a missing page gets a 404."""
        connection = Connection(self._server.socket, within_s=TIMEOUT_S, silent_s=TIMEOUT_S)
        try:
            return connection.get("/loadframe-is-it-there").status == http.client.NOT_FOUND
        except ERRORS:
            return False
        finally:
            connection.close()

    def _entered(self, state: TargetState) -> None:
        manager = self._server.pid
        self._state, self._cache = state, next(iter(children(manager)), None) if manager is not None else None
        stands = self._server.parameters()
        settings = {name: CATALOGUE.shown(name, stands.get(name)) for name in CATALOGUE.names()}
        self._effective = settings | {name: self._complete(state.settings)[name] for name in SETTINGS_OF_STORAGE}
