"""Varnish as a private cache in front of an origin of its own; a restart leaves a cold cache. Its counters are read
from its shared memory, through its own library."""

import contextlib
import ctypes
import ctypes.util
import http.client
import json
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadframe.connections.http_connection import ERRORS, Connection
from loadframe.errors import MissingTool, TargetError
from loadframe.host.identity import children
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege, rights_of
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.catalogue import catalogue_in, counters_in, on_or_off, tunables_in
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.private_server import NOFILE, Package, PrivateServer, installed, soft_nofile
from loadframe.model import Requirement, SettingValue, TargetState
from loadframe.system.files import Folder, Whose
from loadframe_caches import origin
from loadframe_caches.origin import CacheTarget

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)

COUNTERS = counters_in(_METRICS, "vsc")
ALL_COUNTERS = tuple(counters_in(_METRICS).values())

INSTALL = "apt-get install varnish"
PACKAGE = Package("Varnish", ("varnishd", "varnishadm"), INSTALL, ("-V",), r"varnish-(\d[\w.]*)")
ANSWER_S = 30.0
STORAGE = "objects"
OF_DASH_S = "storage_"
"""How the names of what is no parameter begin: the parts of -s."""
TIMEOUT_S = 5.0


class _Point(ctypes.Structure):
    """Of vapi/vsc.h, up to what is read here."""

    _fields_ = (("ptr", ctypes.POINTER(ctypes.c_uint64)), ("name", ctypes.c_char_p))


_EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Point))


def library() -> str | None:
    return ctypes.util.find_library("varnishapi")


class Counters:
    """Counters of the instance in this directory, read with its user's rights. group: see rights_of."""

    def __init__(self, directory: Path, user: Privilege, group: int | None) -> None:
        self._directory, self._user, self._group = directory, user, group
        self._api: Any = None
        self._vsm: Any = None
        self._vsc: Any = None

    def read(self) -> dict[str, int]:
        """Counters by varnishstat's names; the storage's as STORAGE.*. Empty while no cache process runs."""
        self._api = self._api or _load()
        counters: dict[str, int] = {}

        def note(_: Any, point: Any) -> int:
            if point:  # the last call has no point
                name = re.sub(r"^SM[AF]\.objects\.", "STORAGE.", point.contents.name.decode())
                counters[name] = int(point.contents.ptr[0])
            return 0

        with rights_of(self._user, self._group):
            if self._vsm is None:
                self._attach()
            self._api.VSM_Status(self._vsm)  # notices a cache process that was restarted
            self._api.VSC_Iter(self._vsc, self._vsm, _EACH(note), None)
        return counters

    def close(self) -> None:
        if self._vsm is not None:
            self._api.VSC_Destroy(ctypes.byref(ctypes.c_void_p(self._vsc)), self._vsm)
            self._api.VSM_Destroy(ctypes.byref(ctypes.c_void_p(self._vsm)))
            self._vsm = self._vsc = None

    def _attach(self) -> None:
        api = self._api
        vsm = api.VSM_New()
        if api.VSM_Arg(vsm, b"n", str(self._directory).encode()) < 0 or api.VSM_Attach(vsm, -1) < 0:
            why = ctypes.cast(api.VSM_Error(vsm), ctypes.c_char_p).value or b"no reason given"
            api.VSM_Destroy(ctypes.byref(ctypes.c_void_p(vsm)))
            raise TargetError(
                f"Varnish's counters in {self._directory} cannot be read: {why.decode()}",
                remedy="Its log says whether it still runs.",
            )
        self._vsm, self._vsc = vsm, api.VSC_New()


def _load() -> Any:
    name = library()
    if name is None:
        raise MissingTool("Varnish's library libvarnishapi is not installed", remedy=INSTALL)
    api = ctypes.CDLL(name)
    signatures: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
        "VSM_New": (ctypes.c_void_p, ()),
        "VSM_Arg": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_char, ctypes.c_char_p)),
        "VSM_Attach": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)),
        "VSM_Status": (ctypes.c_uint, (ctypes.c_void_p,)),
        "VSM_Error": (ctypes.c_void_p, (ctypes.c_void_p,)),
        "VSM_Destroy": (None, (ctypes.c_void_p,)),
        "VSC_New": (ctypes.c_void_p, ()),
        "VSC_Destroy": (None, (ctypes.c_void_p, ctypes.c_void_p)),
        "VSC_Iter": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p, _EACH, ctypes.c_void_p)),
    }
    for symbol, (answer, arguments) in signatures.items():
        function = getattr(api, symbol)
        function.restype, function.argtypes = answer, arguments
    return api


class VarnishTarget(CacheTarget):
    """A manager and its cache process, of one user and process group; SIGTERM ends both."""

    kind = "varnish"
    catalogue = CATALOGUE
    counter_specs = ALL_COUNTERS
    package, name = PACKAGE, PACKAGE.name
    death_signal = signal.SIGTERM
    kill = PrivateServer.kill_group

    def __init__(self, lease: Lease, resources: Resources) -> None:
        super().__init__(lease, "varnish", resources.run_by(lease.account("vcache", "varnish")), 0)
        self.data = self.folder / "store"
        self._work = self.folder / "work"
        self._counters = Counters(self._work, self.user, lease.user)
        self._cache: int | None = None

    @property
    def socket(self) -> Path:
        """A second place where it accepts requests: whether it answers is asked there."""
        return self.folder / "run" / "varnish.sock"

    def prepare(self) -> None:
        self.make_folders(self._work, self.data)

    def check(self, state: TargetState) -> None:
        """`varnishd -C` reads all options, then compiles. While a server runs, its storage is not made a second
        time."""
        wanted = self._wanted(state)
        settings, spare = self._complete(wanted.settings), self.data / "check.bin"
        storage = () if self.started else _storage(settings, spare)
        command = (self.required(), "-C", "-j", "none", "-n", str(self._work), "-b", "127.0.0.1:80")
        try:
            status, said = self.said_to_its_end((*command, *storage, *_parameters(settings)), self._allowed(wanted))
        finally:
            Folder(self.data, Whose.ANOTHERS, TargetError).remove(spare.name)
        if status != 0:
            raise self.refusal(wanted, said)

    def ask_to_end(self) -> None:
        """End the cache process first: a manager that is starting one waits for it for ever (Varnish 7.1.1, one of
        ten)."""
        if self.died() is None:
            with contextlib.suppress(TargetError):  # it also reports where there is none to stop
                self._ask("stop")
        super().ask_to_end()

    def empty(self) -> None:
        """Its stop has emptied it."""

    def effective(self) -> dict[str, SettingValue]:
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
        return tuple(pid for pid in (self.pid, self._cache) if pid is not None and self.pid is not None)

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        settings = self._complete(wanted.settings)
        self.take_port()
        command = (
            self.required(), "-F", "-j", "none", "-n", str(self._work), "-T", "127.0.0.1:0",
            "-a", self.listens, "-a", f"{self.socket},HTTP", "-b", self._origin.listens,
            *_storage(settings, self.data / "objects.bin"), *_parameters(settings),
        )  # fmt: skip
        self.launch(command, allowance, self._answers)

    def _ask(self, *words: str) -> str:
        command = (self.required("varnishadm"), "-n", str(self._work), "-t", f"{ANSWER_S:.0f}", *words)
        try:
            return self.answer_of(command, f"Varnish does not take {' '.join(words)}", "Its words are below.")
        except TargetError as error:
            if (died := self.died()) is not None:
                raise died from error
            raise

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        for name in changed:
            self._ask("param.set", name, on_or_off(self._complete(wanted.settings)[name]))
        self._entered(wanted)

    def _left(self) -> None:
        super()._left()
        self._counters.close()

    def _running(self) -> TargetState:
        state = super()._running()
        if not Path(f"/proc/{self._cache}").exists():
            raise self.failed(
                "Varnish's cache process has ended, and with it what was cached; its manager starts another one",
                "Was it out of memory? Its last log lines say so.",
            )
        return state

    def _answers(self) -> bool:
        connection = Connection(self.socket, within_s=TIMEOUT_S, silent_s=TIMEOUT_S)
        with contextlib.closing(connection), contextlib.suppress(*ERRORS):
            return connection.get("/loadframe-is-it-there").status == http.client.NOT_FOUND
        return False

    def _entered(self, state: TargetState) -> None:
        manager = self.pid
        self._state, self._cache = state, next(iter(children(manager)), None) if manager is not None else None
        answered = json.loads(self._ask("param.show", "-j"))
        rows = (row for row in answered if isinstance(row, dict) and "value" in row)
        stands = {row["name"]: str(row["value"]) for row in rows}
        self._effective = {
            name: value if name.startswith(OF_DASH_S) else CATALOGUE.shown(name, stands.get(name))
            for name, value in self._complete(state.settings).items()
        }


def _storage(settings: Mapping[str, SettingValue], file: Path) -> tuple[str, str]:
    kind, size = str(settings["storage_kind"]), str(settings["storage_size"])
    words = [kind, size] if kind != "file" else [kind, str(file), size, str(settings["storage_granularity"])]
    return "-s", f"{STORAGE}={','.join(words)}"


def _parameters(settings: Mapping[str, SettingValue]) -> list[str]:
    """Varnish takes one after the other, and refuses a thread_pool_min above the thread_pool_max of that moment: a
    ceiling that rises from its default goes first, one that falls goes last."""
    ceiling = "thread_pool_max"
    names = sorted(
        (name for name in settings if not name.startswith(OF_DASH_S)),
        key=lambda name: name == ceiling,
        reverse=float(settings[ceiling]) > float(CATALOGUE.defaults()[ceiling]),
    )
    return [part for name in names for part in ("-p", f"{name}={on_or_off(settings[name])}")]


def requirements() -> list[Requirement]:
    compiler = Requirement("varnish", "cc", installed("cc"), PACKAGE.install)
    shared = Requirement("varnish", "libvarnishapi", library(), PACKAGE.install)
    return [*PACKAGE.requirements("varnish"), compiler, shared, *origin.requirements()]


KIND = KindOfTarget(
    VarnishTarget.kind,
    VarnishTarget,
    CATALOGUE,
    CATALOGUE.check,
    requirements,
    cache=True,
    listening=True,
    tunables=TUNABLES,
    file=SettingsFile("tuned.args", "-p {name}={value}"),
)
