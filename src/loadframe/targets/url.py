"""A server that runs already, known by its address alone: it is asked, and nothing of it is seen but its answers.

What answers there is somebody's: on another machine it is loaded only where the study says that its owner has
authorised it.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from loadframe.errors import StudyError, TargetError
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.targets.catalogue import Catalogue, SettingSpec

TIMEOUT_S = 10.0
PATH = re.compile(r"/[!-~]*")
"""Printable, without blanks: as it is sent."""

EXAMPLE = "For instance http://127.0.0.1:8080."

CATALOGUE = Catalogue(
    kind="url",
    source="url, for instance http://127.0.0.1:8080, and paths, for instance '/ /about'; it has no others",
    specs=(
        SettingSpec("url", "text", False, source="RFC 9110"),
        SettingSpec("paths", "text", False, default="/", source="RFC 9110; separated by blanks"),
    ),
)

UNSEEN = (
    "Of the target nothing is seen but its answers: no process, no counter, no limit. What gives in it cannot be named."
)


class UrlTarget:
    """See targets.base.Target. It is neither started nor stopped, and nothing of it is changed."""

    kind = "url"
    embedded = False
    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self) -> None:
        self._state: TargetState | None = None

    def create(self) -> None:
        """Nothing: it is there."""

    def check(self, state: TargetState) -> None:
        """It runs, whatever is asked of it."""
        check_settings(state.settings)

    def start(self, state: TargetState) -> None:
        """See that it answers."""
        self._state = TargetState(check_settings(state.settings), {})
        if not self.healthy():
            where, self._state = self.endpoint().address, None
            raise TargetError(f"Nobody answers at {where}", remedy="Start the server, or correct target.settings.url.")

    def apply(self, state: TargetState) -> None:
        """TargetError for any other state."""
        if check_settings(state.settings) != self._known().settings:
            raise TargetError("Nothing of a server that is known by its address alone can be changed")

    def reset(self) -> None:
        """Nothing that could be."""
        self._known()

    def stop(self) -> None:
        """It goes on; only we forget it."""
        self._state = None

    def destroy(self) -> None:
        self._state = None

    def effective(self) -> dict[str, SettingValue]:
        """What was asked for."""
        return dict(self._known().settings)

    def counters(self) -> dict[str, float]:
        """None. TargetError where it no longer answers."""
        self._known()
        return {}

    def pids(self) -> tuple[int, ...]:
        return ()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": ()}

    def endpoint(self) -> Endpoint:
        """address: host and port. options: `paths`, separated by blanks."""
        settings = self._known().settings
        host, port = address_of(str(settings["url"]))
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return Endpoint(self.kind, where, {"paths": str(settings["paths"])}, attached=True)

    def healthy(self) -> bool:
        return self._state is not None and self._answers()

    def version(self) -> str:
        return "url"

    def log_tail(self, lines: int = 20) -> str:
        return ""

    def describe(self) -> Mapping[str, str]:
        return {"data": str(self._known().settings["url"])}

    def _known(self) -> TargetState:
        if self._state is None:
            raise TargetError("The server's address is not known", remedy="Start it first.")
        return self._state

    def _answers(self) -> bool:
        """Whether anything comes back for what the load will be: a GET. Many a server drops or refuses HEAD."""
        connection = http.client.HTTPConnection(self.endpoint().address, timeout=TIMEOUT_S)
        try:
            connection.request("GET", self.endpoint().options["paths"].split()[0])
            connection.getresponse()  # not its body, which may have no end
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True


def check_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """In canonical form, complete. StudyError."""
    checked = {"paths": "/", **CATALOGUE.check(settings)}
    if "url" not in checked:
        raise StudyError("a target of kind url has no target.settings.url", remedy=EXAMPLE)
    address_of(str(checked["url"]))
    paths = str(checked["paths"]).split()
    if not paths or (wrong := next((path for path in paths if not PATH.fullmatch(path)), None)) is not None:
        raise StudyError(
            f"target.settings.paths: {wrong!r} is no path" if paths else "target.settings.paths names none",
            remedy="Paths begin with / and are separated by blanks: '/ /about'.",
        )
    return {"url": checked["url"], "paths": " ".join(paths)}


def address_of(url: str) -> tuple[str, int]:
    """Host and port. StudyError for what is not http://HOST[:PORT]."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, http.client.HTTP_PORT if parts.port is None else parts.port
    except ValueError as error:
        raise StudyError(f"target.settings.url = {url!r}: {error}", remedy=EXAMPLE) from error
    more = parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme != "http" or not host or not port or more:
        raise StudyError(
            f"target.settings.url = {url!r} is not http://HOST:PORT alone",
            remedy="Put what follows into target.settings.paths; TLS is not spoken.",
        )
    return host, port


def is_here(host: str) -> bool:
    """Whether every address of this name is one of this machine. StudyError for a name that nobody knows."""
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:  # the latter for an empty or too long part, "a..b"
        raise StudyError(f"{host} has no address: {error}", remedy="Correct the name.") from error
    return all(_is_own(str(address)) for address in found)


def _is_own(address: str) -> bool:
    """What is sent to an address of its own comes from there."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # nothing is sent
        except OSError:
            return False
        return bool(probe.getsockname()[0] == address)
