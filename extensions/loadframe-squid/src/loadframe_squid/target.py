"""Squid as a cache in front of an origin of its own: own folder, own port of 127.0.0.1, an unprivileged user. Its store
on the disk (cache_dir_kind) survives a restart, that in memory does not."""

from collections.abc import Mapping, Sequence

from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.origin import CacheTarget, Origin
from loadframe.kinds.private_server import open_descriptors
from loadframe.model import SettingValue, TargetState
from loadframe_squid.manager import Manager, descriptors, mark, parse_config
from loadframe_squid.server import FEW_DESCRIPTORS, TOO_MANY_CONNECTIONS, Server
from loadframe_squid.settings import ALL_COUNTERS, CATALOGUE


class SquidTarget(CacheTarget[Server]):
    """See kinds.base.Target and CacheTarget. A change of state is a reconfiguration, or a restart where needed."""

    kind = "squid"
    catalogue = CATALOGUE
    counter_specs = ALL_COUNTERS

    def __init__(self, lease: Lease, resources: Resources) -> None:
        allowance = resources.run_by(lease.account("proxy", "squid"))
        server = Server(lease, allowance.user, 0)
        super().__init__(server, allowance, data=server.store)
        self._origin = Origin(lease, "origin-of-squid")
        self._manager = Manager()
        self._descriptors_allowed = 0
        self._stored_before = self._evicted = 0.0

    # --- life ---

    def check(self, state: TargetState) -> None:
        """By `squid -k parse`."""
        wanted = self._wanted(state)
        self._server.check(wanted, self._origin.address, self._allowed(wanted))

    # --- what it is and does now ---

    def counters(self) -> dict[str, float]:
        """The cache manager's; where it does not answer, only descriptors, ceilings and the log's counts."""
        self._running()
        self._origin.check()
        counters = self._manager.read()
        if not counters and (died := self._server.died()) is not None:
            raise died
        logged = self._server.logged()
        return {
            **counters,
            **self._following(counters),
            **self._held(),
            "connections_refused": float(logged[TOO_MANY_CONNECTIONS]),
            "descriptors_short": float(logged[FEW_DESCRIPTORS]),
        }

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self._manager.close()
        self._manager = Manager()
        self._server.start(wanted, self._origin.address, allowance, self._ready)
        self._stored_before, self._evicted = self._manager.read().get("objects_on_disk", 0.0), 0.0

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        self._server.reconfigure(wanted, self._origin.address, self._allowed(wanted), self._ready)
        self._entered(wanted)

    def _complete(self, settings: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        return {**CATALOGUE.defaults(), **settings}

    def _answers(self) -> bool:
        return self._manager.page("counters") is not None

    def _hang_up(self) -> None:
        self._manager.close()

    def _ready(self) -> bool:
        """Whether the configuration that was written last is in effect, for a client that connects now."""
        assert self._server.port is not None, "it listens on a port"
        self._manager.connect_to(self._server.port)
        return mark(self._manager.page("config") or "") == self._server.mark

    def _entered(self, state: TargetState) -> None:
        """After a start or a change: record the settings in use. TargetError where it does not report them."""
        pages = [self._manager.page(name) for name in ("config", "storedir", "info")]
        config, stores, info = (page or "" for page in pages)
        if not (config and stores and info):
            raise self._server.failed("Squid does not report its settings")
        most, reserved = descriptors(info)
        self._effective = {**parse_config(config, stores), "max_filedescriptors": most}
        self._descriptors_allowed = most - reserved
        self._state = state

    def _following(self, counters: Mapping[str, float]) -> dict[str, float]:
        if not counters:
            return {}
        gone = self._stored_before + counters["disk_writes"] - counters["objects_on_disk"]
        self._evicted = max(self._evicted, gone)  # an object is there before its writing is counted
        return {
            "misses": counters["requests"] - counters["hits"],
            "not_in_memory": counters["fetches"] + counters["disk_reads"],
            "evictions": self._evicted,
        }

    def _held(self) -> dict[str, float]:
        effective, allowed = self._effective, float(self._descriptors_allowed)
        clients = float(effective["client_ip_max_connections"])
        store = float(effective["cache_dir_size"]) if effective["cache_dir_kind"] != "none" else 0.0
        return {
            "memory_size": float(effective["cache_mem"]),
            "disk_allowed": store * float(effective["cache_swap_low"]) / 100,
            "descriptors": float(open_descriptors(self._server.pid)),
            "descriptors_allowed": allowed,
            "client_connections_allowed": allowed if clients < 0 else min(allowed, clients),
        }
