"""What the workloads that replay recorded requests have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from loadframe.connections.http_words import METHODS, NOT_SENT, SAFE
from loadframe.errors import StudyError
from loadframe.model import Endpoint
from loadframe.workloads import asking, by_address
from loadframe.workloads.asking import ask
from loadframe.workloads.base import demand
from loadframe.workloads.by_address import ByAddress
from loadframe.workloads.http_driver import Ask, ByWrk, Order, Plan, requirements

Options = TypeVar("Options", bound=Any)


class Recorded(ByWrk[Options]):
    """The options have `file`, `keep_alive` and `writes`."""

    target_kinds = by_address.KINDS
    order: Order

    def set_up(self) -> None:
        """The study may declare a login. The file is read later."""
        self._sessions = ByAddress(self.declared, writes=self.options.writes)

    @abstractmethod
    def recalled(self) -> Sequence[Ask]:
        """The requests in the file. StudyError if it cannot be used."""

    @abstractmethod
    def notes(self) -> tuple[str, ...]: ...

    @property
    def file(self) -> Path:
        """StudyError for a path without meaning."""
        try:
            return Path(self.options.file).expanduser().absolute()
        except RuntimeError as error:  # a ~name that has no home
            raise StudyError(
                f"workload.options.file = {self.options.file!r}: {error}.", remedy="Give its path."
            ) from None

    def not_sent(self, method: str) -> str:
        """Why; "" if they are sent."""
        if method not in METHODS:
            return f"{method}, because {NOT_SENT.get(method, 'it is not one that Loadframe sends')}"
        if method in SAFE or self.options.writes:
            return ""
        return f"{method}, which changes data (workload.options.writes = true sends it)"

    def check_requests(self, *, running: bool) -> None:
        """What changes data is left out unless the study allows it."""
        self._sessions.prepare(running=running)
        self.recalled()

    def install(self, endpoint: Endpoint) -> None:
        demand(requirements(self.kind))
        self._sessions.check_secrets(endpoint)
        self.check_requests(running=endpoint.attached)
        ask(endpoint, self._first())

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        self.check_level(level)
        path = self._first()
        asking.met(endpoint, path, lambda: ask(endpoint, path))

    def plan(self, endpoint: Endpoint, level: int, folder: Path) -> Plan:
        sessions = self._sessions.open_sessions(endpoint, self.clients(level))
        return Plan(self.recalled(), sessions, order=self.order, secret=self._sessions.secret)

    def _first(self) -> str:
        return next((request.path for request in self.recalled() if request.method == "GET"), "/")


def http_parts(url: str) -> tuple[SplitResult, str] | None:
    """The parts of an HTTP address, and its path with the query; None for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return None
    return parts, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def left_out_sentences(counts: Mapping[str, int]) -> Iterable[str]:
    for why, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        yield f"{count:,} {'request was' if count == 1 else 'requests were'} left out: {why}"
