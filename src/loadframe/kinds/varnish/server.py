"""The Varnish processes. Its counters are read from its shared memory, through its own library, as varnishstat does."""

import contextlib
import ctypes
import ctypes.util
import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loadframe.errors import MissingTool, TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege, rights_of
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import on_or_off
from loadframe.kinds.package import Package
from loadframe.kinds.private_server import PrivateServer
from loadframe.kinds.varnish.settings import CATALOGUE
from loadframe.model import SettingValue, TargetState
from loadframe.system.files import Folder, Whose

INSTALL = "apt-get install varnish"
OF_STORAGE = ("SMA.objects.", "SMF.objects.")
"""Of the storage that we call "objects": malloc's and the file's."""


class _Point(ctypes.Structure):
    """struct VSC_point of vapi/vsc.h, up to what is read here."""

    _fields_ = (("ptr", ctypes.POINTER(ctypes.c_uint64)), ("name", ctypes.c_char_p))


_EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Point))


def library() -> str | None:
    return ctypes.util.find_library("varnishapi")


class Counters:
    """Of the instance in this directory, read with its user's rights. group: see rights_of."""

    def __init__(self, directory: Path, user: Privilege, group: int | None) -> None:
        self._directory, self._user, self._group = directory, user, group
        self._api: Any = None
        self._vsm: Any = None
        self._vsc: Any = None

    def read(self) -> dict[str, int]:
        """By varnishstat's names; the storage's as STORAGE.*. Empty while no cache process runs."""
        self._api = self._api or _load()
        counters: dict[str, int] = {}

        def each(_: Any, point: Any) -> int:
            if point:  # the last call has no point
                counters[_known(point.contents.name.decode())] = int(point.contents.ptr[0])
            return 0

        with rights_of(self._user, self._group):
            if self._vsm is None:
                self._attach()
            self._api.VSM_Status(self._vsm)  # notices a cache process that was restarted
            self._api.VSC_Iter(self._vsc, self._vsm, _EACH(each), None)
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


def _known(name: str) -> str:
    return next((f"STORAGE.{name.removeprefix(kind)}" for kind in OF_STORAGE if name.startswith(kind)), name)


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


PACKAGE = Package("Varnish", ("varnishd", "varnishadm"), INSTALL, ("-V",), r"varnish-(\d[\w.]*)")
ANSWER_S = 30.0
STORAGE = "objects"
SETTINGS_OF_STORAGE = frozenset({"storage_kind", "storage_size", "storage_granularity"})


class Server(PrivateServer):
    """A manager and its cache process, of one unprivileged user and one process group. SIGTERM ends both
    (varnishd(1)); without its manager the cache process ends, too."""

    package, name = PACKAGE, PACKAGE.name
    stop_signal = signal.SIGTERM
    death_signal = signal.SIGTERM
    kill = PrivateServer.kill_group

    def __init__(self, lease: Lease, user: Privilege, port: int) -> None:
        """port: 0 for a free one."""
        super().__init__(lease, "varnish", user, port)
        self.directory = self.folder / "work"
        self.store = self.folder / "store"

    @property
    def socket(self) -> Path:
        """A second place where it accepts requests: whether it answers is asked there."""
        return self.folder / "run" / "varnish.sock"

    def prepare(self) -> None:
        self.make_folders(self.directory, self.store)

    def start(
        self, settings: Mapping[str, SettingValue], origin: str, allowance: Allowance, answers: Callable[[], bool]
    ) -> None:
        """Start with this origin (host:port); return once `answers` is true. TargetError."""
        self.take_port()
        command = (
            self.required(), "-F", "-j", "none", "-n", str(self.directory), "-T", "127.0.0.1:0",
            "-a", self.listens, "-a", f"{self.socket},HTTP", "-b", origin,
            *_storage(settings, self.store / "objects.bin"), *_parameters(settings),
        )  # fmt: skip
        self.launch(command, allowance, answers)

    def check(self, state: TargetState, settings: Mapping[str, SettingValue], allowance: Allowance) -> None:
        """TargetError, in Varnish's words, where it would not start with these settings. It reads all options before
        it compiles its configuration (`varnishd -C`). While it runs, its storage is not made a second time."""
        beside = self.store / "check.bin"
        storage = () if self.started else _storage(settings, beside)
        command = (self.required(), "-C", "-j", "none", "-n", str(self.directory), "-b", "127.0.0.1:80")
        try:
            status, said = self.said_to_its_end((*command, *storage, *_parameters(settings)), allowance)
        finally:
            Folder(self.store, Whose.ANOTHERS, TargetError).remove(beside.name)
        if status != 0:
            raise self.refusal(state, said)

    def parameters(self) -> dict[str, str]:
        """All parameters in effect, in Varnish's own spelling of numbers."""
        answered = json.loads(self.ask("param.show", "-j"))
        return {
            parameter["name"]: str(parameter["value"])
            for parameter in answered
            if isinstance(parameter, dict) and "value" in parameter
        }

    def stop(self) -> None:
        """TargetError where it had to be killed. A manager that gets SIGTERM while it starts a cache process waits
        for that for ever (Varnish 7.1.1, one of ten such stops): the cache process is stopped first."""
        if self.died() is None:
            with contextlib.suppress(TargetError):  # it also reports where there is none to stop
                self.ask("stop")
        super().stop()

    def ask(self, *words: str) -> str:
        """What varnishadm answers. TargetError, with Varnish's words, where it refuses."""
        command = (self.required("varnishadm"), "-n", str(self.directory), "-t", f"{ANSWER_S:.0f}", *words)
        try:
            return self.answer_of(command, f"Varnish does not take {' '.join(words)}", "Its words are below.")
        except TargetError as error:
            if (died := self.died()) is not None:
                raise died from error
            raise


def _storage(settings: Mapping[str, SettingValue], file: Path) -> tuple[str, str]:
    """The option that says where answers are kept."""
    kind, size = str(settings["storage_kind"]), str(settings["storage_size"])
    words = [kind, size] if kind != "file" else [kind, str(file), size, str(settings["storage_granularity"])]
    return "-s", f"{STORAGE}={','.join(words)}"


def _parameters(settings: Mapping[str, SettingValue]) -> list[str]:
    """Varnish takes one after the other, and refuses a thread_pool_min above the thread_pool_max of that moment: a
    ceiling that rises from its default goes first, one that falls goes last."""
    ceiling = "thread_pool_max"
    names = sorted(
        (name for name in settings if name not in SETTINGS_OF_STORAGE),
        key=lambda name: name == ceiling,
        reverse=float(settings[ceiling]) > float(CATALOGUE.defaults()[ceiling]),
    )
    return [part for name in names for part in ("-p", f"{name}={on_or_off(settings[name])}")]
