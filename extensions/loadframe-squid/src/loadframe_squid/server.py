"""The Squid process: find the program, check the configuration, start, reconfigure."""

import os
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host import shared_memory
from loadframe.host.leases import Lease
from loadframe.host.privilege import US, Privilege, ids_of
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import on_or_off
from loadframe.kinds.own_counts import LogCounts
from loadframe.kinds.package import Package
from loadframe.kinds.private_server import PrivateServer, write_readable
from loadframe.model import SettingValue, TargetState
from loadframe_squid.manager import MARK
from loadframe_squid.settings import CATALOGUE

PACKAGE = Package("Squid", ("squid",), "apt-get install squid", ("-v",), r"Version (\S+)")
RECONFIGURE_TIMEOUT_S = 30.0
UNKNOWN_PORT = 80
"""While a configuration is only checked: Squid refuses 0, and the port is chosen at the first start."""
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


class Server(PrivateServer):
    """A private Squid in a lease's folder: one process, with threads where cache_dir_kind is aufs. SIGTERM ends it a
    second later, with its index written; SIGHUP reconfigures it (squid(8)). It uses named shared memory."""

    package, name = PACKAGE, PACKAGE.name
    stop_signal = signal.SIGTERM
    death_signal = signal.SIGTERM

    def __init__(self, lease: Lease, user: Privilege, port: int) -> None:
        """port: on 127.0.0.1, 0 for a free one."""
        super().__init__(lease, "squid", user, port)
        self.store = self.folder / "store"
        self.configuration = self.folder / "squid.conf"
        self._aside = self.folder / "next.conf"
        self._work = self.folder / "work"
        self._service = lease.shared_name
        self._configured = 0
        self._log_counts = LogCounts(self.log, (STORE_IS_READ, TOO_MANY_CONNECTIONS, FEW_DESCRIPTORS))

    def prepare(self) -> None:
        self.make_folders(self.store, self._work)
        self.log.touch()
        self.give(self.log)

    def check(self, state: TargetState, origin: str, allowance: Allowance) -> None:
        """TargetError, in Squid's words, where it would not start in this state (`squid -k parse`)."""
        write_readable(self._aside, self._text({**CATALOGUE.defaults(), **state.settings}, origin, self.mark))
        status, said = self.said_to_its_end(self._command(self._aside, "-k", "parse"), allowance)
        if status != 0:
            complaints = [line for line in said.splitlines() if re.search("FATAL|ERROR|Bungled", line)]
            raise self.refusal(state, "\n".join(complaints) or said)

    def start(self, state: TargetState, origin: str, allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Start with this origin (host:port); return once `answers` is true and its store is read. TargetError."""
        self.take_port()
        self._configure(state, origin, allowance)
        self._make_store({**CATALOGUE.defaults(), **state.settings}, allowance)
        reads = self.logged()[STORE_IS_READ] + (state.settings.get("cache_dir_kind", "none") != "none")
        command = self._command(self.configuration)
        self.launch(command, allowance, lambda: self.logged()[STORE_IS_READ] >= reads and answers())

    def reconfigure(self, state: TargetState, origin: str, allowance: Allowance, entered: Callable[[], bool]) -> None:
        """Have it take new settings; return once `entered` is true. TargetError, with nothing changed."""
        assert self.pid is not None, "a server that runs has a process"
        self._configure(state, origin, allowance)
        os.kill(self.pid, signal.SIGHUP)
        self.await_change(entered, RECONFIGURE_TIMEOUT_S, "Squid has not taken its new settings")

    def logged(self) -> dict[bytes, int]:
        """How many lines of the log have each of STORE_IS_READ, TOO_MANY_CONNECTIONS and FEW_DESCRIPTORS."""
        return self._log_counts.read()

    def destroy(self) -> None:
        super().destroy()
        shared_memory.remove(self._service, () if self.user == US else (ids_of(self.user).uid,))

    @property
    def mark(self) -> str:
        """Identifies the configuration that was written last."""
        return f"state-{self._configured}"

    def _command(self, configuration: Path, *options: str) -> tuple[str, ...]:
        return (self.required(), "-N", "-n", self._service, "-f", str(configuration), *options)

    def _configure(self, state: TargetState, origin: str, allowance: Allowance) -> None:
        """Write the configuration for what comes next; TargetError where Squid would not start with it."""
        self._configured += 1
        self.check(state, origin, allowance)
        self._aside.replace(self.configuration)

    def _make_store(self, settings: Mapping[str, SettingValue], allowance: Allowance) -> None:
        """Create its folders or file on the disk, where they do not exist yet."""
        place = self._place(settings)
        if place is None or place.exists():
            return
        for command in (("mkdir", "--mode=0700", "--", str(place)), self._command(self.configuration, "-z")):
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
        return self.store / ("-".join(map(str, (kind, size) if kind == "rock" else (kind, *folders))))

    def _text(self, settings: Mapping[str, SettingValue], origin: str, mark: str) -> str:
        host, _, port = origin.partition(":")
        return (
            f"http_port 127.0.0.1:{self.port or UNKNOWN_PORT} accel no-vhost defaultsite=loadframe\n"
            + FIXED.format(origin=f"{host} parent {int(port) or UNKNOWN_PORT} 0")
            + f"{MARK} {mark}\n"
            + f"pid_filename {self._work / 'squid.pid'}\ncoredump_dir {self._work}\ncache_log {self.log}\n"
            + "".join(f"{line}\n" for line in written(settings, self._place(settings)))
        )


def written(settings: Mapping[str, SettingValue], place: Path | None) -> list[str]:
    """The directives for complete settings. place: where it stores, None without a store on the disk."""
    lines = [
        f"{spec.name} {on_or_off(settings[spec.name])}{_unit(spec.kind)}"
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


def _unit(kind: str) -> str:
    return {"bytes": " bytes", "duration": " seconds"}.get(kind, "")
