"""A running server that is known by its address alone; its processes are recorded where it is on this machine. On
another machine its owner has to authorise the load."""

import http.client
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from loadframe.connections import address
from loadframe.connections.address import joined
from loadframe.connections.http_connection import ERRORS, Connection
from loadframe.connections.http_words import wrong_path
from loadframe.errors import StudyError, TargetError
from loadframe.formats.said import why
from loadframe.kinds.base import Target
from loadframe.kinds.behind import Behind
from loadframe.kinds.catalogue import catalogue_in
from loadframe.kinds.kind import ByAddress, KindOfTarget
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.study import exposed_tables

CATALOGUE = catalogue_in(Path(__file__).with_name("settings.toml"))
TIMEOUT_S = 10.0
EXAMPLE = "For example http://127.0.0.1:8080."

UNSEEN = (
    "Loadframe sees only this target's responses: no process, no counter, no limit. It cannot name a cause inside it."
)
ELSEWHERE = "It is not on this machine, so its processes are not recorded."


class UrlTarget(Target):
    """Never started, stopped or changed."""

    kind = "url"
    embedded = False
    counter_specs = ()

    def __init__(self) -> None:
        self._state: TargetState | None = None
        self._place: address.Place | None = None
        self._behind: Behind | None = None
        self._why_not = ""

    def create(self) -> None:
        """Nothing to create: it runs already."""

    def check(self, state: TargetState) -> None:
        check_settings(state.settings)

    def start(self, state: TargetState) -> None:
        self._state = TargetState(check_settings(state.settings), {})
        self._place = address.decide(*address_of(str(self._state.settings["url"])))
        if (silent := self._silent()) is not None:
            where, self._state = self.endpoint().address, None
            raise TargetError(
                f"No server answers at {where}: {silent}", remedy="Start the server, or correct target.settings.url."
            )
        self._behind, self._why_not = None, ELSEWHERE
        if self._place.here:
            try:
                self._behind, self._why_not = Behind(self._place.number, self._place.port), ""
            except TargetError as error:
                self._why_not = f"Its processes are not recorded: {error.fact}. {error.remedy}"

    def notes(self) -> tuple[str, ...]:
        """Why its processes are not recorded; empty where they are."""
        return (self._why_not,) if self._why_not else ()

    def apply(self, state: TargetState) -> None:
        """TargetError for any other state."""
        if check_settings(state.settings) != self._known().settings or state.limits:
            raise TargetError(
                "A server known only by its address cannot be changed",
                remedy="Omit the change, or let Loadframe start a server of its own.",
            )

    def reset(self) -> None:
        self._known()

    def stop(self) -> None:
        self._state = None

    def destroy(self) -> None:
        self._state = None

    def effective(self) -> dict[str, SettingValue]:
        return dict(self._known().settings)

    def counters(self) -> dict[str, float]:
        self._known()
        return {}

    def pids(self) -> tuple[int, ...]:
        return () if self._state is None or self._behind is None else self._behind.pids()

    def endpoint(self) -> Endpoint:
        """address: numeric, and the port. options: `paths`, separated by blanks; `host`, for that header."""
        settings, place = self._known().settings, self._place
        assert place is not None, "what is known has a place"
        named = joined(place.host, place.port)
        options = {"paths": str(settings["paths"]), "host": named.removesuffix(f":{http.client.HTTP_PORT}")}
        return Endpoint(self.kind, joined(place.number, place.port), options, attached=True)

    def healthy(self) -> bool:
        return self._state is not None and self._silent() is None

    def version(self) -> str:
        return "url"

    def describe(self) -> Mapping[str, str]:
        return {"data": str(self._known().settings["url"])}

    def _known(self) -> TargetState:
        if self._state is None:
            raise TargetError("The server's address is not known", remedy="Start it first.")
        return self._state

    def _silent(self) -> str | None:
        """Why a GET, as the load will send, gets no answer; None where it does. Many servers drop or refuse HEAD."""
        endpoint = self.endpoint()
        connection = Connection(endpoint.address, host=endpoint.options["host"], within_s=TIMEOUT_S, silent_s=TIMEOUT_S)
        try:
            with closing(connection):
                connection.get(endpoint.options["paths"].split()[0])  # not its body, which may have no end
        except ERRORS as error:
            return why(error)
        return None


def check_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The settings in canonical form, complete. StudyError."""
    checked = {"paths": "/", **CATALOGUE.check(settings)}
    if "url" not in checked:
        raise StudyError("a target of kind url has no target.settings.url", remedy=EXAMPLE)
    address_of(str(checked["url"]))
    paths = str(checked["paths"]).split()
    if not paths or (wrong := next((path for path in paths if wrong_path(path)), None)) is not None:
        raise StudyError(
            f"target.settings.paths: {wrong!r} is not a path" if paths else "target.settings.paths names none",
            remedy="Paths begin with / and are separated by blanks: '/ /about'.",
        )
    return {"url": checked["url"], "paths": " ".join(paths)}


def host_of(settings: Mapping[str, SettingValue]) -> str:
    """The host in the address that a study gives. StudyError."""
    return address_of(str(check_settings(settings)["url"]))[0]


def address_of(url: str) -> tuple[str, int]:
    """Host and port. StudyError for anything but http://HOST[:PORT]."""
    why = ""
    try:
        parsed = exposed_tables.address_of(url)
        if parsed.port is not None and parsed.path == "/":
            return parsed.host, parsed.port
    except ValueError as error:
        why = f": {error}"
    raise StudyError(
        f"target.settings.url = {url!r} is not http://HOST:PORT alone{why}",
        remedy="Put what follows into target.settings.paths; TLS is not spoken.",
    )


KINDS = (
    KindOfTarget(
        UrlTarget.kind,
        lambda lease, resources: UrlTarget(),
        CATALOGUE,
        check_settings,
        list,
        by_address=ByAddress(host_of, UNSEEN),
    ),
)
