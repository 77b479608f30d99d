"""nginx: its processes, settings, configuration, and status (stub_status)."""

import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Literal

from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.host.identity import children, command_of
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import SettingSpec, catalogue_in, counters_in, on_or_off, tunables_in
from loadframe.kinds.own_counts import LogCounts
from loadframe.kinds.private_server import Package, PrivateServer
from loadframe.knowledge.rows import toml_rows
from loadframe.model import SettingValue, TargetState
from loadframe_caches.configured import ConfiguredServer

Context = Literal["main", "events", "http", "listen", "cache", "proxy"]

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
CACHE_CATALOGUE = catalogue_in(_FILE, Path(__file__).with_name("cache_settings.toml"))
"""Settings of a cache in front of an origin. Our defaults differ from nginx's: with these nothing expires or is fetched
twice in the middle of a study."""

_ROWS = toml_rows(_FILE)
DIRECTIVES: Mapping[Context, list[str]] = {
    context: [form if "{" in form else f"{form} {{{form}}}" for form in forms]
    for context, forms in _ROWS["directives"].items()
}
LEFT_OUT = frozenset(_ROWS["left_out"])

COUNTERS = tuple(counters_in(_METRICS).values())
"""status: stub_status; our own reading is counted too. ceiling: clients before idle connections are closed; descriptors
that a worker may have, and those of the worker that has most. work: seconds of CPU, and in uninterruptible sleep
(sampled), averaged over the workers. log: counted in the error log, as nginx keeps no counter."""

PACKAGE = Package("nginx", ("nginx",), "apt-get install nginx", ("-v",), r"nginx/(\S+)")
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
NO_DESCRIPTOR = b"(24: "
"""EMFILE, as nginx writes errno into a line of its log."""
NO_CONNECTION = b" worker_connections are not enough"
"""A client's connection was closed at once, or, where REUSED is in the line too, idle ones were closed for it."""
NO_WORKER = b" cannot be respawned"
"""A worker has ended at its start, for example because there is no memory for its connections; its master lives on."""
REUSED = b"reusing connections"
"""A worker without a free connection closes idle ones that clients keep open (ngx_drain_connections)."""
KEPT_FREE = 16
"""A worker with less than 1/16 of its connections free closes idle ones (ngx_drain_connections)."""
OWN_CONNECTIONS = 3
TIMEOUT_S = 5.0
TRIES = 5
PAUSE_S = 0.01
PATTERN = re.compile(
    r"Active connections: (\d+)\s+server accepts handled requests\s+(\d+) (\d+) (\d+)\s+"
    r"Reading: (\d+) Writing: (\d+) Waiting: (\d+)"
)
NAMES = ("connections", "accepts", "handled", "requests", "reading", "writing", "waiting")


class Server(ConfiguredServer):
    """An nginx master and its workers. SIGQUIT ends it after its requests, SIGTERM at once; SIGKILL leaves workers."""

    package, name = PACKAGE, PACKAGE.name
    file, checking = "nginx.conf", ("-t", "-q")
    kill_signal = signal.SIGTERM
    death_signal = signal.SIGTERM
    kill = PrivateServer.kill_group

    def __init__(self, lease: Lease, folder: str, user: Privilege, port: int | None) -> None:
        super().__init__(lease, folder, user, port)
        self.files = self.folder / "files"
        self.status = Status(self.socket)
        self._temporary = self.folder / "tmp"
        self._log_counts = LogCounts(self.log, (NO_CONNECTION, NO_DESCRIPTOR, REUSED, NO_WORKER))
        self._lost = 0

    @property
    def socket(self) -> Path:
        return self.folder / "run" / "status.sock"

    def prepare(self) -> None:
        self.make_folders(self._temporary)
        self.files.mkdir()
        self.files.chmod(0o755)

    def begin(self, state: TargetState, allowance: Allowance, answers: Callable[[], bool]) -> None:
        """Return once `answers` is true. TargetError, with nginx's words, where it fails."""
        self.take_port()
        self.configure(state, allowance)
        self._lost = self.logged()[NO_WORKER]
        self.launch(self.command_for(self.configuration, "-g", "daemon off;"), allowance, answers)

    def given_up(self) -> bool:
        return self.logged()[NO_WORKER] > self._lost

    def workers(self) -> tuple[int, ...]:
        """The present workers, without the two processes of a cache that manage and load it."""
        pids = () if self.pid is None else children(self.pid)
        return tuple(pid for pid in pids if any("worker process" in word for word in command_of(pid)))

    def watch_workers(self) -> None:
        """Have the next command end them should we and the master be killed alike."""
        for pid in () if self.pid is None else children(self.pid):
            self._lease.add_process(pid)

    def logged(self) -> dict[bytes, int]:
        return self._log_counts.read()

    def command_for(self, configuration: Path, *options: str) -> tuple[str, ...]:
        return (self.required(), "-p", f"{self.folder}/", "-e", "stderr", "-c", str(configuration), *options)

    def text(self, settings: Mapping[str, SettingValue]) -> str:
        lines = {context: written(context, settings) for context in ("main", "events", "http")}
        listening = " ".join(["listen", self.listens, *written("listen", settings)])
        temporary = [f"{name}_temp_path {self._temporary / name}" for name in TEMPORARY]
        log = f"access_log {self._temporary / 'access.log' if settings.get('access_log') else 'off'}"
        before, location = self.answers_from(settings)
        http = [log, "default_type application/octet-stream", *temporary, *lines["http"], *before]
        return (
            _lines(0, [f"pid {self.socket.with_name('nginx.pid')}", "error_log stderr warn", *lines["main"]])
            + "events {\n" + _lines(1, lines["events"]) + "}\n"
            + "http {\n" + _lines(1, http)
            + "    server {\n" + _lines(2, [listening])
            + "        location / {\n" + _lines(3, location) + "        }\n    }\n"
            + "    server {\n" + _lines(2, [f"listen unix:{self.socket}", "stub_status", "access_log off"]) + "    }\n"
            + "}\n"
        )  # fmt: skip

    def answers_from(self, settings: Mapping[str, SettingValue]) -> tuple[list[str], list[str]]:
        """Further directives of the context http, and those of where answers come from; without semicolons."""
        return [], [f"root {self.files}"]


def _lines(depth: int, directives: list[str]) -> str:
    return "".join(f"{'    ' * depth}{directive};\n" for directive in directives)


def written(context: Context, settings: Mapping[str, SettingValue]) -> list[str]:
    """The directives of a context, without their semicolons; one without a configured setting is left out."""
    directives = []
    for form in DIRECTIVES[context]:
        specs = [CACHE_CATALOGUE.known(name) for name in names_of(form)]  # it has all of the web server's
        is_off = any(spec.name in LEFT_OUT and settings.get(spec.name) in (None, spec.default) for spec in specs)
        if not is_off and any(spec.name in settings for spec in specs):
            directives.append(form.format(**{spec.name: word(spec, settings.get(spec.name)) for spec in specs}))
    return directives


def read_back(text: str) -> dict[str, str]:
    """The settings in a configuration as `written` forms them, each as its text."""
    settings: dict[str, str] = {}
    for form in chain.from_iterable(DIRECTIVES.values()):
        pattern = re.escape(form)
        for name in names_of(form):
            value = "reuseport" if name == "listen_reuseport" else r"[^\s;]+"
            pattern = pattern.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{value})")
        if (match := re.search(rf"(?:^|\s){pattern}(?=[\s;])", text, re.M)) is not None:
            settings |= match.groupdict()
    return settings


def names_of(form: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(form) if name]


def word(spec: SettingSpec, value: SettingValue | None) -> str:
    if spec.name == "listen_reuseport":
        return "reuseport"
    value = spec.default if value is None else value
    assert value is not None, "what stands in a directive has a default"
    return "off" if value == -1 else f"{on_or_off(value)}{spec.unit}"


class Status:
    """The status of one nginx; safe to use from several threads, one at a time."""

    def __init__(self, socket: Path) -> None:
        self._connection = Connection(socket, within_s=TIMEOUT_S, silent_s=TIMEOUT_S)
        self._lock = threading.Lock()

    def read(self) -> dict[str, float]:
        """The counters by NAMES; empty where it does not answer. NoRoom where nginx closes the connection each time."""
        with self._lock:
            for attempt in range(TRIES):
                if attempt:
                    time.sleep(PAUSE_S)
                try:
                    return parse(body(self._connection.get("/")).decode(errors="replace"))
                except (FileNotFoundError, ConnectionRefusedError, TimeoutError):  # it is gone, or busy
                    self._connection.close()
                    return {}
                except ERRORS:  # the kept one may have been closed for a client
                    self._connection.close()
        raise NoRoom

    def answers(self) -> bool:
        try:
            return bool(self.read())
        except NoRoom:
            return False

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class NoRoom(Exception):  # noqa: N818 - it is a state of nginx
    """nginx accepts connections and closes them at once: none of a worker's is free."""


def parse(text: str) -> dict[str, float]:
    match = PATTERN.search(text)
    return dict(zip(NAMES, map(float, match.groups()), strict=True)) if match else {}
