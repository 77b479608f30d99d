"""Varnish's counters, read where varnishstat reads them: in the memory that it shares, through its own library."""

import ctypes
import ctypes.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadframe.errors import MissingTool, TargetError
from loadframe.host.privilege import Privilege, rights_of

INSTALL = "apt-get install varnish"
STORAGE = ("SMA.objects.", "SMF.objects.")
"""Of the storage that we call "objects": malloc's and the file's."""


class _Point(ctypes.Structure):
    """struct VSC_point of vapi/vsc.h, up to what is read here."""

    _fields_ = (("ptr", ctypes.POINTER(ctypes.c_uint64)), ("name", ctypes.c_char_p))


_EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Point))


def library() -> str | None:
    return ctypes.util.find_library("varnishapi")


class Counters:
    """The counters of the instance whose working directory this is. user: whose it is, and with whose rights it is
    read. group: see rights_of."""

    def __init__(self, directory: Path, user: Privilege, group: int | None) -> None:
        self._directory, self._user, self._group = directory, user, group
        self._api: Any = None
        self._vsm: Any = None
        self._vsc: Any = None

    def read(self) -> dict[str, int]:
        """All counters now, by the names that varnishstat has for them; those of the storage as STORAGE.*. Empty while
        no cache process runs. MissingTool, TargetError."""
        self._api = self._api or _load()
        found: dict[str, int] = {}

        def each(_: Any, point: Any) -> int:
            if point:  # it is called with nothing after the last one
                found[_known(point.contents.name.decode())] = int(point.contents.ptr[0])
            return 0

        with rights_of(self._user, self._group):
            if self._vsm is None:
                self._attach()
            self._api.VSM_Status(self._vsm)  # notices a cache process that was restarted
            self._api.VSC_Iter(self._vsc, self._vsm, _EACH(each), None)
        return found

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
    return next((f"STORAGE.{name.removeprefix(kind)}" for kind in STORAGE if name.startswith(kind)), name)


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
