"""Requests to a web server, cache or service, sent by wrk with http.lua: for objects that we make, or to one known by
its address for paths or the study's requests. A wrong answer is no throughput."""

import http.client
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from loadframe.connections.http_connection import ERRORS, Connection, parts
from loadframe.errors import StudyError, TargetError
from loadframe.formats.said import why
from loadframe.model import Checked, Endpoint
from loadframe.workloads import by_address, step_files
from loadframe.workloads.asking import HEADERS_BYTES, LARGEST_OBJECT, TIMEOUT_S, WHOLE_S, ask, strange
from loadframe.workloads.base import ELSEWHERE, demand
from loadframe.workloads.by_address import ITS_LOG, ByAddress, alike, other_size
from loadframe.workloads.common import AtRate, registration, thinking
from loadframe.workloads.http_driver import CHECKED, MOST_CONNECTIONS, ByWrk, Plan, requirements
from loadframe.workloads.objects import MOST_OBJECTS, Folder, Objects, path_of
from loadframe.workloads.options import choice, number, switch, text, whole, whole_level

LARGEST_SET_MIB = 1 << 20
AUTO = "auto"
CLIENTS = 8
SMALLER = (
    "Lower the level, ask for fewer or smaller ones (workload.options), or set LOADFRAME_SCRATCH to another place."
)
UNCHECKED = {
    checked: f"Of an answer no more than its status{what} checked (workload.options.checked)."
    for checked, what in {"size": " and about its size were", "length": " and its length was", "status": " was"}.items()
}


@dataclass(frozen=True)
class HttpOptions:
    objects: int = whole(1000, 1, MOST_OBJECTS, "number of objects; on the axis working_set it follows from the level")
    smallest_bytes: int = whole(16_384, 1, LARGEST_OBJECT, "size of the smallest object in bytes")
    largest_bytes: int = whole(
        0, 0, LARGEST_OBJECT, "size of the largest object, sizes between by their logarithms; 0: all as the smallest"
    )
    popularity: str = choice("uniform", ("uniform", "zipf"), "how often each object is requested")
    exponent: float = number(1.0, 0.1, 3.0, "of Zipf's law: the n-th object is requested 1 / n ^ exponent as often")
    keep_alive: bool = switch(True, "connections stay open; false: a new one for each request")
    compared: int = whole(8, 1, 1_000_000, "one in this many responses is compared with its object byte by byte")
    checked: str = choice(
        AUTO,
        (AUTO, *sorted(CHECKED)),
        "of an answer: all of that, status and length, status and about the size, or the status alone; auto: all of "
        "objects that Loadframe makes, status and about the size of others",
    )
    seed: int = whole(1, 0, 2**32 - 1, "contents and sizes follow from it")
    connections: int = whole(32, 1, MOST_CONNECTIONS, "axes rate and working_set: number of client connections")
    paths: str = text("", "of a server known by its address: what is requested, separated by blanks")
    writes: bool = switch(False, "[[workload.request]] may have methods that change data of a server that runs already")


class Http(ByWrk[HttpOptions]):
    kind = "http"
    target_kinds = frozenset({"nginx", "nginx-cache", "varnish"}) | by_address.KINDS
    axes = frozenset({"concurrency"})
    axis_unit = "connections"
    operations: tuple[str, ...] = ("get",)
    model = HttpOptions
    _installed: int | None = None

    def set_up(self) -> None:
        given, declared = self.options, self.declared
        largest = given.largest_bytes or given.smallest_bytes
        if largest < given.smallest_bytes:
            raise StudyError(
                f"workload.options.largest_bytes = {largest} is below smallest_bytes = {given.smallest_bytes}.",
                remedy="Give at least smallest_bytes, or 0 for objects of one size.",
            )
        exponent = given.exponent if given.popularity == "zipf" else 0.0
        self.objects = Objects(given.smallest_bytes, largest, exponent, given.seed)
        checked = cast(Checked, "size" if given.checked == AUTO else given.checked)
        self._asked = ByAddress(declared, given.paths, checked, exponent, writes=given.writes)
        if self._asked.given:
            self.target_kinds = self.target_kinds & by_address.KINDS
        self.operations = self._asked.operations or Http.operations
        self._think = declared.think_time
        if self._think is not None and self.rate(self.levels[0]) is not None:
            raise StudyError(
                "workload.think_time: on the axis rate requests arrive when they should, whatever users think.",
                remedy="Leave it out, or choose the axis concurrency.",
            )

    def think_s(self) -> float:
        return 0.0 if self._think is None else self._think.mean_s

    def check_requests(self, *, running: bool) -> None:
        self._asked.prepare(running=running)

    def unchecked(self, target_kind: str) -> str:
        if not self._asked.operations:
            by_itself = self.options.checked == AUTO and target_kind in by_address.KINDS
            return UNCHECKED.get("size" if by_itself else self.options.checked, "")
        kinds: dict[Checked, str] = {"status": "the status was", "size": "the status and about the size were"}
        return " ".join(
            f"Of the answers to {', '.join(names)} no more than {what} checked."
            for checked, what in kinds.items()
            if (names := self._asked.names_checked(checked))
        )

    def notes(self) -> tuple[str, ...]:
        return (*(() if self._think is None else (thinking(self._think.mean_s),)), *self._asked.notes)

    def install(self, endpoint: Endpoint) -> None:
        demand(requirements(self.kind))
        if not self._is_ours(endpoint):
            self._asked.learn(endpoint)
        elif ELSEWHERE not in endpoint.options:
            self.make_objects(endpoint)

    def make_objects(self, endpoint: Endpoint) -> None:
        ask(endpoint, "/")
        with _explained(endpoint):
            self._folder(endpoint).clear()
        self._make(endpoint, self._installed or self.options.objects)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        self.check_level(level)
        self._check_answer(endpoint)

    def plan(self, endpoint: Endpoint, level: int, folder: Path) -> Plan:
        options, owner = self.options, self.allowance.user
        if self._is_ours(endpoint):
            table, text = folder / "objects.bin", folder / "objects.text"
            step_files.write(table, self.objects.table(self._count(level)).tobytes(), owner)
            if ELSEWHERE in endpoint.options:
                step_files.write(text, self.objects.text, owner)
            else:
                text = self._folder(endpoint).text
            return Plan(
                table=table,
                text=text,
                checked=self._of_objects,
                largest_bytes=self.objects.largest,
                compared=options.compared,
                think=self._think,
            )
        asks = self._asked.asks(endpoint)
        sessions = self._asked.open_sessions(endpoint, self.clients(level))
        return Plan(asks, sessions, compared=options.compared, think=self._think, secret=self._asked.secret)

    def remove(self, endpoint: Endpoint) -> None:
        if "files" in endpoint.options:
            self._folder(endpoint).remove()

    @property
    def _of_objects(self) -> Checked:
        known: dict[str, Checked] = {AUTO: "bytes", "size": "length"}
        return known.get(self.options.checked) or cast(Checked, self.options.checked)

    def _count(self, level: int) -> int:
        return self.options.objects

    def _make(self, endpoint: Endpoint, count: int) -> None:
        with _explained(endpoint):
            folder = self._folder(endpoint)
            lacking, place = folder.lacking_bytes(count), Path(endpoint.options["files"])
            step_files.check_room(place, lacking, "The objects take", SMALLER, TargetError)
            folder.fill(count)

    def _folder(self, endpoint: Endpoint) -> Folder:
        return Folder(Path(endpoint.options["files"]), self.objects)

    def _is_ours(self, endpoint: Endpoint) -> bool:
        ours = "files" in endpoint.options or ELSEWHERE in endpoint.options
        if ours and self._asked.given:
            raise StudyError(
                f"A target of kind {endpoint.kind} serves the objects that Loadframe makes, and nothing else.",
                remedy="Leave out [[workload.request]], [workload.login] and workload.options.paths, or load a target "
                f"of kind {' or '.join(sorted(by_address.KINDS))}.",
            )
        return ours

    def _check_answer(self, endpoint: Endpoint) -> None:
        if not self._is_ours(endpoint):
            self._asked.check(endpoint)
            return
        (size,) = self.objects.sizes(1).tolist()
        path, wanted = path_of(0), self.objects.content(0, size)
        answer = ask(endpoint, path)
        if answer.status != http.client.OK:
            raise strange(endpoint, path, f"status {answer.status}", ITS_LOG)
        if not alike(answer.body, wanted, self._of_objects):
            remedy = "Does it serve the folder that its endpoint names, and nothing else on this port?"
            raise strange(endpoint, path, other_size(len(answer.body), size), remedy)


class HttpAtRate(AtRate, Http): ...


class HttpByWorkingSet(Http):
    """The level is the total size of the objects in MiB."""

    target_kinds = Http.target_kinds - by_address.KINDS
    axes = frozenset({"working_set"})
    axis_unit = "MiB"
    _installed = 1

    def check_level(self, level: float) -> int:
        """The level in bytes. StudyError if that takes too many objects."""
        total = whole_level(self.kind, "working_set", level, 1, LARGEST_SET_MIB) << 20
        if total > MOST_OBJECTS * self.objects.smallest:
            raise StudyError(
                f"The level {level:g} on the axis working_set takes more than {MOST_OBJECTS} objects.",
                remedy=f"Raise workload.options.smallest_bytes = {self.objects.smallest}, or lower the level.",
            )
        return total

    def objects_at(self, level: float) -> int:
        return self.objects.within(self.check_level(level))

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        if ELSEWHERE not in endpoint.options:
            self._make(endpoint, self.objects_at(level))
        self._check_answer(endpoint)

    def warm(self, endpoint: Endpoint, level: float) -> None:
        ask_for_all(endpoint.address, self.objects_at(level), clients=min(CLIENTS, self.options.connections))

    def clients(self, level: int) -> int:
        return self.options.connections

    def _count(self, level: int) -> int:
        return self.objects.within(level)


@contextmanager
def _explained(endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TargetError(
            f"The objects of the server at {endpoint.address} cannot be made: {error}",
            remedy="Free some disk space, or set LOADFRAME_SCRATCH to another place.",
        ) from error


def ask_for_all(address: str, count: int, clients: int = CLIENTS) -> None:
    """Ask for each object once: a cache fetches what it lacks. Several `clients` ask at a time, so that one waiting for
    the disk does not delay the others. TargetError if it does not answer, or sends less than announced."""
    ended = threading.Event()
    with ThreadPoolExecutor(clients) as pool:
        asking = [
            pool.submit(_ask_for_each, address, range(first, count, clients), ended)
            for first in range(min(clients, count))
        ]
        try:
            wait(asking, return_when=FIRST_EXCEPTION)
        finally:  # if one has failed, or we are interrupted, the others stop
            ended.set()
    for future in asking:
        future.result()


def _ask_for_each(address: str, numbers: Iterable[int], ended: threading.Event) -> None:
    most = LARGEST_OBJECT + HEADERS_BYTES
    connection = Connection(address, most_bytes=most, within_s=WHOLE_S, silent_s=TIMEOUT_S)
    try:
        for number in numbers:
            if ended.is_set():
                return
            answer = connection.get(path_of(number))
            for _ in parts(answer):
                pass
            if answer.status != http.client.OK:
                raise TargetError(
                    f"The cache at {address} answers {path_of(number)} with status {answer.status}", remedy=ITS_LOG
                )
    except ERRORS as error:
        raise TargetError(
            f"The cache at {address} stopped answering while it was filled: {why(error)}",
            remedy="Its log says why; is there room for the objects and for what it keeps of them?",
        ) from error
    finally:
        connection.close()


KIND = registration(
    Http,
    requirements,
    other_axes={"rate": HttpAtRate, "working_set": HttpByWorkingSet},
    tables=frozenset({"login", "request", "think_time"}),
)
