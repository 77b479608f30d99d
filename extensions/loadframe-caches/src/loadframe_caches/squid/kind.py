"""Squid as a private cache in front of an origin of its own, with one process. Its store on the disk (cache_dir_kind)
survives a restart, that in memory does not."""

import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host import shared_memory
from loadframe.host.leases import Lease
from loadframe.host.privilege import US, ids_of
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.catalogue import on_or_off
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.own_counts import LogCounts
from loadframe.kinds.private_server import Package, open_descriptors
from loadframe.model import SettingValue, TargetState
from loadframe_caches import origin
from loadframe_caches.configured import ConfiguredServer
from loadframe_caches.origin import CacheTarget
from loadframe_caches.squid.manager import (
    ALL_COUNTERS,
    CATALOGUE,
    MARK,
    TUNABLES,
    Manager,
    descriptors,
    mark,
    parse_config,
)

PACKAGE = Package("Squid", ("squid",), "apt-get install squid", ("-v",), r"Version (\S+)")
RECONFIGURE_TIMEOUT_S = 30.0
UNKNOWN_PORT = 80
"""While a configuration is only checked: Squid refuses 0, and the port is chosen at the first start."""
UNITS = {"bytes": " bytes", "duration": " seconds"}
STORE_IS_READ = b"Completed Validation Procedure"
"""Until its log says so, it fetches again what it has on the disk."""
TOO_MANY_CONNECTIONS = b" attempting more than "
"""A client's connection was closed at once: it has client_ip_max_connections."""
FEW_DESCRIPTORS = b" running out of filedescriptors"
"""Connections are not accepted for a while; it says so once in 15 s at most."""
FIXED = """\
cache_peer {origin} no-query no-digest originserver name=origin
http_access allow all
cachemgr_passwd none config
cache deny manager
collapsed_forwarding_access deny manager
logformat unused %ts
visible_hostname loadframe
access_log none
netdb_filename none
digest_generation off
pinger_enable off
hosts_file none
dns_nameservers 127.0.0.1
shutdown_lifetime 0 seconds
"""
"""The same in all states. logformat: without one Squid 5.7 crashes when asked for mgr:config (null pointer). deny
manager: else it also caches, or collapses, the manager's pages."""


class SquidTarget(CacheTarget, ConfiguredServer):
    """A change of state is a reconfiguration (SIGHUP), or a restart where needed. SIGTERM ends it a second later, with
    its index written (squid(8)). It uses named shared memory."""

    kind = "squid"
    catalogue = CATALOGUE
    counter_specs = ALL_COUNTERS
    package, name = PACKAGE, PACKAGE.name
    file, checking = "squid.conf", ("-k", "parse")
    death_signal = signal.SIGTERM

    def __init__(self, lease: Lease, resources: Resources) -> None:
        super().__init__(lease, "squid", resources.run_by(lease.account("proxy", "squid")), 0)
        self.data = self.folder / "store"
        self._work = self.folder / "work"
        self._service = lease.shared_name
        self._configured = 0
        self._log_counts = LogCounts(self.log, (STORE_IS_READ, TOO_MANY_CONNECTIONS, FEW_DESCRIPTORS))
        self._manager = Manager()
        self._descriptors_allowed = 0
        self._stored_before = self._evicted = 0.0

    def prepare(self) -> None:
        self.make_folders(self.data, self._work)
        self.log.touch()
        self.give(self.log)

    def check(self, state: TargetState) -> None:
        wanted = self._wanted(state)
        self.try_out(wanted, self._allowed(wanted))

    def destroy(self) -> None:
        super().destroy()
        shared_memory.remove(self._service, () if self.user == US else (ids_of(self.user).uid,))

    def counters(self) -> dict[str, float]:
        """Where the cache manager does not answer, only descriptors, ceilings and the log's counts."""
        self._running()
        self._origin.check()
        counters = self._manager.read()
        if not counters and (died := self.died()) is not None:
            raise died
        return {
            **counters,
            **self._following(counters),
            **self._held(),
            "connections_refused": float(self._logged(TOO_MANY_CONNECTIONS)),
            "descriptors_short": float(self._logged(FEW_DESCRIPTORS)),
        }

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        """It has begun once it answers and its store is read."""
        self._manager.close()
        self._manager = Manager()
        self.take_port()
        self.configure(wanted, allowance)
        self._make_store(self._complete(wanted.settings), allowance)
        reads = self._logged(STORE_IS_READ) + (wanted.settings.get("cache_dir_kind", "none") != "none")
        command = self.command_for(self.configuration)
        self.launch(command, allowance, lambda: self._logged(STORE_IS_READ) >= reads and self._ready())
        self._stored_before, self._evicted = self._manager.read().get("objects_on_disk", 0.0), 0.0

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        assert self.pid is not None, "a server that runs has a process"
        self.configure(wanted, self._allowed(wanted))
        os.kill(self.pid, signal.SIGHUP)
        self.await_change(self._ready, RECONFIGURE_TIMEOUT_S, "Squid has not taken its new settings")
        self._entered(wanted)

    def _answers(self) -> bool:
        return self._manager.page("counters") is not None

    def _left(self) -> None:
        super()._left()
        self._manager.close()

    def _ready(self) -> bool:
        """Whether the last configuration is in effect, for a client that connects now."""
        assert self.port is not None, "it listens on a port"
        self._manager.connect_to(self.port)
        return mark(self._manager.page("config") or "") == self._mark

    def _entered(self, state: TargetState) -> None:
        """Record the settings in use. TargetError where it does not report them."""
        pages = [self._manager.page(name) for name in ("config", "storedir", "info")]
        config, stores, info = (page or "" for page in pages)
        if not (config and stores and info):
            raise self.failed("Squid does not report its settings")
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
            "descriptors": float(open_descriptors(self.pid)),
            "descriptors_allowed": allowed,
            "client_connections_allowed": allowed if clients < 0 else min(allowed, clients),
        }

    def _logged(self, words: bytes) -> int:
        return self._log_counts.read()[words]

    @property
    def _mark(self) -> str:
        return f"state-{self._configured}"

    def command_for(self, configuration: Path, *options: str) -> tuple[str, ...]:
        return (self.required(), "-N", "-n", self._service, "-f", str(configuration), *options)

    def refusal(self, state: TargetState, said: str) -> TargetError:
        complaints = [line for line in said.splitlines() if re.search("FATAL|ERROR|Bungled", line)]
        return super().refusal(state, "\n".join(complaints) or said)

    def configure(self, state: TargetState, allowance: Allowance) -> None:
        self._configured += 1
        super().configure(state, allowance)

    def _make_store(self, settings: Mapping[str, SettingValue], allowance: Allowance) -> None:
        place = self._place(settings)
        if place is None or place.exists():
            return
        for command in (("mkdir", "--mode=0700", "--", str(place)), self.command_for(self.configuration, "-z")):
            status, said = self.said_to_its_end(command, allowance)  # by its user, whose folder it is in
            if status != 0:
                raise TargetError(
                    f"Squid cannot prepare {place}",
                    remedy="Free some disk space, or set LOADFRAME_SCRATCH.",
                    details=said,
                )

    def _place(self, settings: Mapping[str, SettingValue]) -> Path | None:
        """Where it stores; another one for each layout, None without a store on the disk."""
        kind, size, *folders = (settings[f"cache_dir_{part}"] for part in ("kind", "size", "l1", "l2"))
        if kind == "none":
            return None
        return self.data / ("-".join(map(str, (kind, size) if kind == "rock" else (kind, *folders))))

    def text(self, settings: Mapping[str, SettingValue]) -> str:
        complete = self._complete(settings)
        host, _, port = self._origin.listens.partition(":")
        return (
            f"http_port 127.0.0.1:{self.port or UNKNOWN_PORT} accel no-vhost defaultsite=loadframe\n"
            + FIXED.format(origin=f"{host} parent {int(port) or UNKNOWN_PORT} 0")
            + f"{MARK} {self._mark}\n"
            + f"pid_filename {self._work / 'squid.pid'}\ncoredump_dir {self._work}\ncache_log {self.log}\n"
            + "".join(f"{line}\n" for line in written(complete, self._place(complete)))
        )


def written(settings: Mapping[str, SettingValue], place: Path | None) -> list[str]:
    """The directives for complete settings. place: where it stores, None without a store on the disk."""
    lines = [
        f"{spec.name} {on_or_off(settings[spec.name])}{UNITS.get(spec.kind, '')}"
        for spec in CATALOGUE.specs
        if spec.name in settings and not spec.name.startswith(("cache_dir_", "refresh_pattern_"))
    ]
    fresh = settings["refresh_pattern_min"]
    lines.append(f"refresh_pattern . {fresh} 100% {fresh} override-lastmod")  # else what has just changed is soon stale
    if place is not None:
        kind, folders = settings["cache_dir_kind"], f"{settings['cache_dir_l1']} {settings['cache_dir_l2']}"
        megabytes = int(settings["cache_dir_size"]) >> 20
        lines.append(f"cache_dir {kind} {place} {megabytes} {'' if kind == 'rock' else folders}".rstrip())
    return lines


KIND = KindOfTarget(
    SquidTarget.kind,
    SquidTarget,
    CATALOGUE,
    CATALOGUE.check,
    lambda: [*PACKAGE.requirements("squid"), *origin.requirements()],
    cache=True,
    tunables=TUNABLES,
    file=SettingsFile("tuned.conf", "{name} {value}"),
    loaded_by=frozenset({"command", "http", "jmeter", "k6", "locust"}),
)
