"""nginx as a web server for the files below `Endpoint.options["files"]`, and as a cache in front of an origin, whose
answers are files and survive a restart."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.own_counts import Waited
from loadframe.kinds.private_server import PrivateTarget, soft_nofile
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.recording.procfs import parse_process_stat
from loadframe_caches.nginx.server import (
    CACHE_CATALOGUE,
    CATALOGUE,
    COUNTERS,
    KEPT_FREE,
    NO_CONNECTION,
    NO_DESCRIPTOR,
    NO_WORKER,
    OWN_CONNECTIONS,
    REUSED,
    TUNABLES,
    NoRoom,
    Server,
    read_back,
    written,
)
from loadframe_caches.origin import CacheTarget, requirements

RELOAD_TIMEOUT_S = 30.0
SOMAXCONN = Path("/proc/sys/net/core/somaxconn")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
FETCHES = CounterSpec("fetches", "nginx.fetches", cumulative=True)


class NginxTarget(PrivateTarget, Server):
    """A change of state is a reload; a restart where a differing setting or limit needs one."""

    kind = "nginx"
    counter_specs = COUNTERS
    catalogue: Catalogue = CATALOGUE

    def __init__(self, lease: Lease, resources: Resources, *, port: int = 0) -> None:
        super().__init__(lease, self.kind, resources.run_by(lease.account("www-data", "nginx")), port)
        self.data = self.files
        self._looks = Looks()
        self._known: tuple[int, ...] = ()

    def check(self, state: TargetState) -> None:
        """`nginx -t` does not check workers, so a stopped one is started for 0.1 s."""
        wanted = self._wanted(state)
        allowance = self._allowed(wanted)
        if self.started:
            self.try_out(wanted, allowance)
            return
        try:
            self.begin(wanted, allowance, lambda: self._ready(wanted))
        except TargetError as error:
            raise (self.refusal(wanted, error.details) if error.details else error) from error
        finally:
            self.status.close()
        Server.stop(self)

    def effective(self) -> dict[str, SettingValue]:
        """Settings from `nginx -T`, with defaults; workers, their descriptors and the backlog from the kernel."""
        return {**super().effective(), "worker_processes": len(self._workers())}

    def counters(self) -> dict[str, float]:
        """stub_status, the new lines of the log, and the activity of the workers. While all connections are taken,
        nginx does not report its status: then only the number of open connections is known."""
        self._running()
        pids, per_worker = self._workers(), int(self._effective["worker_connections"])
        room = max(per_worker - OWN_CONNECTIONS, 0)
        try:
            counters = self.status.read()
        except NoRoom:
            counters = {"connections": float(len(pids) * room)}
        if not counters and (died := self.died()) is not None:
            raise died
        logged = self.logged()
        return {
            **counters,
            **self._looks.read(pids),
            "workers": float(len(pids)),
            "worker_connections": float(per_worker),
            "connections_allowed": float(len(pids) * max(room - per_worker // KEPT_FREE, 0)),
            "worker_rlimit_nofile": float(self._effective["worker_rlimit_nofile"]),
            "connections_refused": float(logged[NO_CONNECTION] - logged[REUSED]),
            "connections_reused": float(logged[REUSED]),
            "descriptors_refused": float(logged[NO_DESCRIPTOR]),
        }

    def pids(self) -> tuple[int, ...]:
        return () if self.pid is None else (self.pid, *self._workers())

    def endpoint(self) -> Endpoint:
        return Endpoint(self.kind, self.listens, {"files": str(self.files)})

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self.begin(wanted, allowance, lambda: self._ready(wanted))

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        assert self.pid is not None, "a server that runs has a process"
        self.configure(wanted, self._allowed(wanted))
        self._lost = self.logged()[NO_WORKER]
        before = set(self.workers())
        os.kill(self.pid, signal.SIGHUP)
        self.await_change(
            lambda: bool(now := set(self.workers())) and not now & before,
            RELOAD_TIMEOUT_S,
            "nginx has not changed its workers",
            new="new workers",
            remedy="A worker ends when its last request is done: is a client still connected?",
        )
        self._entered(wanted)

    def _answers(self) -> bool:
        return self.status.answers()

    def _left(self) -> None:
        super()._left()
        self._known = ()
        self.status.close()

    def _ready(self, wanted: TargetState) -> bool:
        return len(self.workers()) == workers_of(wanted) and self.status.answers()

    def _workers(self) -> tuple[int, ...]:
        """Looked up again only where one is missing or has ended, as a look walks over all processes."""
        count = workers_of(self._state) if self._state is not None else 1
        if len(self._known) < count or not all(Path(f"/proc/{pid}").exists() for pid in self._known):
            self._known = self.workers()
        return self._known

    def _entered(self, state: TargetState) -> None:
        self._state, self._known = state, ()
        self.watch_workers()
        command = self.command_for(self.configuration, "-T", "-q")  # as its user: root would give folders to "nobody"
        text = self.answer_of(command, "nginx does not tell its configuration", "What it said is below.")
        stands = read_back(text)
        values: dict[str, SettingValue] = {}
        for spec in self.catalogue.specs:
            value = "-1" if stands.get(spec.name) == "off" and spec.low == -1 else stands.get(spec.name)
            is_set = spec.name == "listen_reuseport" and value is not None
            values[spec.name] = is_set or self.catalogue.shown(spec.name, value)
        values["access_log"] = bool(state.settings.get("access_log", False))
        values["worker_rlimit_nofile"] = soft_nofile(next(iter(self._workers()), None))
        values["listen_backlog"] = min(
            int(values["listen_backlog"]), int(SOMAXCONN.read_text(encoding="utf-8", errors="replace"))
        )
        self._effective = values


def workers_of(state: TargetState) -> int:
    return int(state.settings.get("worker_processes", 1))


class Looks:
    """Adds up the activity of workers from look to look. root: for recorded trees. clock: CLOCK_MONOTONIC, in s."""

    def __init__(self, root: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._waited = Waited(["worker_blocked"], clock)

    def read(self, workers: Sequence[int]) -> dict[str, float]:
        """worker_cpu, worker_blocked: seconds, averaged over workers; worker_open_files: the most of one."""
        stats = []
        for pid in workers:
            with suppress(OSError):  # it has ended
                stats.append(parse_process_stat((self._root / str(pid) / "stat").read_bytes()))
        if not stats:
            return {}
        return {
            "worker_cpu": sum(stat.user_ticks + stat.system_ticks for stat in stats) / TICKS_PER_S / len(stats),
            **self._waited.look({"worker_blocked": sum(stat.state == "D" for stat in stats) / len(stats)}),
            "worker_open_files": float(max(map(self._open_files, workers))),
        }

    def _open_files(self, pid: int) -> int:
        try:
            return len(os.listdir(self._root / str(pid) / "fd"))  # noqa: PTH208 - thousands of paths would be made
        except OSError:
            return 0


class NginxCacheTarget(CacheTarget, NginxTarget):
    """A cache in front of an origin. origin: host:port, set before the start; any will do for a check."""

    kind = "nginx-cache"
    counter_specs = (*COUNTERS, FETCHES)
    catalogue = CACHE_CATALOGUE
    origin = "127.0.0.1:80"

    def __init__(self, lease: Lease, resources: Resources) -> None:
        super().__init__(lease=lease, resources=resources)
        self.data = self.folder / "store"

    def prepare(self) -> None:
        super().prepare()
        self.data.mkdir(mode=0o700)
        self.give(self.data)

    def answers_from(self, settings: Mapping[str, SettingValue]) -> tuple[list[str], list[str]]:
        complete = self._complete(settings)
        options = " ".join(written("cache", complete))
        passed_on = [f"proxy_pass http://{self.origin}", "proxy_http_version 1.1", 'proxy_set_header Connection ""']
        return (
            [f"proxy_cache_path {self.data} levels=1:2 use_temp_path=off {options}"],
            [*passed_on, "proxy_cache loadframe", *written("proxy", complete)],
        )

    def counters(self) -> dict[str, float]:
        self._origin.check()
        return {**super().counters(), "fetches": float(self._origin.requests())}

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self.origin = self._origin.listens
        super()._begin(wanted, allowance)


NGINX = KindOfTarget(
    NginxTarget.kind,
    NginxTarget,
    CATALOGUE,
    CATALOGUE.check,
    requirements,
    tunables=TUNABLES,
    listening=True,
    file=SettingsFile("tuned.conf", "{name} {value};"),
)
NGINX_CACHE = replace(
    NGINX,
    kind=NginxCacheTarget.kind,
    make=NginxCacheTarget,
    catalogue=CACHE_CATALOGUE,
    check_settings=CACHE_CATALOGUE.check,
    cache=True,
    ruled_as=NginxTarget.kind,
)
