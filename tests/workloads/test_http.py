"""GET requests: asked as often as they should be, and no answer counts that is not what it should be."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from loadframe.errors import StudyError, TargetError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import registry
from loadframe.workloads.arrivals import ARRIVALS, READY_WITHIN_S
from loadframe.workloads.base import ELSEWHERE
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.http import HttpByWorkingSet, ask_for_all
from loadframe.workloads.http_driver import OUTCOMES
from loadframe.workloads.objects import Objects, path_of
from loadframe.workloads.request_log import Requests

SECONDS = 0.5
SIZE = 1000

server = pytest.mark.server


def drive(
    endpoint: Endpoint, folder: Path, level: float, axis: str = "concurrency", **options: SettingValue
) -> ProcessDriver:
    """A step, to its end. What is there already is taken as it is."""
    workload = registry.make("http", {"smallest_bytes": SIZE, "objects": 10, **options}, Allowance(US), axis=axis)
    driver = workload.start(endpoint, level, folder, SECONDS)
    assert isinstance(driver, ProcessDriver)
    try:
        assert driver.wait(30)
    finally:
        driver.kill()
    return driver


def installed(endpoint: Endpoint, axis: str = "concurrency", level: float = 1, **options: SettingValue) -> Endpoint:
    workload = registry.make("http", {"smallest_bytes": SIZE, "objects": 10, **options}, Allowance(US), axis=axis)
    workload.install(endpoint)
    workload.set_level(endpoint, level)
    return endpoint


class Site:
    """A web server of a few lines that answers as it is told: what real ones do when they are broken."""

    def __init__(self, files: Path) -> None:
        self.objects = Objects(SIZE, SIZE, 0.0, 1)
        self.asked: Counter[str] = Counter()
        self.connections = 0
        self.answer = lambda number, body: answer(body)
        self.endpoint = Endpoint("nginx", "", {"files": str(files)})
        (files / ".text").write_bytes(self.objects.text)

    def serve(self, connection: socket.socket) -> None:
        self.connections += 1
        stream = connection.makefile("rb")
        while line := stream.readline():
            closing = b"Connection: close" in [head.strip() for head in iter(stream.readline, b"\r\n")]
            path = line.split()[1].decode()
            self.asked[path] += 1
            number = int(path.rpartition("/")[2] or 0)
            said = self.answer(number, self.objects.content(number, SIZE))
            if not said:
                return
            connection.sendall(said.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) if closing else said)
            if closing or b"Connection: close" in said:
                return


def answer(body: bytes, status: str = "200 OK", length: int | None = None, more: str = "") -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n{more}\r\n".encode() + body


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    files = tmp_path / "files"
    files.mkdir()
    made = Site(files)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                made.serve(self.request)
            except OSError:  # the driver has gone
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
        made.endpoint = Endpoint("nginx", f"127.0.0.1:{listening.server_address[1]}", made.endpoint.options)
        yield made
        listening.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


def outcomes(requests: Requests) -> Counter[str]:
    return Counter(OUTCOMES[code] for code in requests.outcome)


# --- objects that others have made ---


@server
@pytest.mark.parametrize("axis", ["concurrency", "working_set"])
def test_objects_on_another_machine_are_known_without_their_files(site: Site, folder: Path, axis: str) -> None:
    elsewhere = Endpoint("nginx", site.endpoint.address, {ELSEWHERE: "north"})
    (Path(site.endpoint.options["files"]) / ".text").unlink()
    installed(elsewhere, axis, compared=1)
    right = drive(elsewhere, folder, 1, axis, compared=1, connections=1).requests()
    assert outcomes(right).keys() == {"done"} and not any(Path(site.endpoint.options["files"]).iterdir())
    site.answer = lambda number, body: answer(body[:-1] + bytes([body[-1] ^ 1]))
    with pytest.raises(WorkloadError, match="without a single successful request") as error:
        drive(elsewhere, folder, 1, axis, compared=1, connections=1).requests()
    assert "other bytes than there should be" in str(error.value), "the last byte of each is another one"


# --- filling a cache ---


@server
@pytest.mark.parametrize("count", [3, 50])
def test_a_cache_is_asked_for_each_object_once_by_several_at_a_time(site: Site, count: int) -> None:
    together = threading.Barrier(min(count, 8), timeout=10)
    waited = Counter[int]()

    def at_the_same_time(number: int, body: bytes) -> bytes:
        waited[threading.get_ident()] += 1
        if waited[threading.get_ident()] == 1:  # passes only where so many have asked
            together.wait()
        return answer(body)

    site.answer = at_the_same_time
    ask_for_all(site.endpoint.address, count)
    assert site.asked == {path_of(number): 1 for number in range(count)}
    assert site.connections == min(count, 8)


@server
def test_a_cache_is_not_asked_by_more_than_load_it(site: Site) -> None:
    workload = registry.make("http", {"smallest_bytes": 1 << 15, "connections": 3}, Allowance(US), axis="working_set")
    assert isinstance(workload, HttpByWorkingSet)
    workload.warm(site.endpoint, 1)
    assert sum(site.asked.values()) == 32
    assert site.connections == 3


@server
def test_a_cache_that_lacks_an_object_is_said(site: Site) -> None:
    site.answer = lambda number, body: answer(b"", "404 Not Found") if number == 21 else answer(body)
    with pytest.raises(TargetError, match=f"{path_of(21)} with status 404"):
        ask_for_all(site.endpoint.address, 40)


@server
def test_a_cache_that_stops_answering_is_said(site: Site) -> None:
    site.answer = lambda number, body: b"" if number == 30 else answer(body)
    with pytest.raises(TargetError, match="stopped answering while it was filled"):
        ask_for_all(site.endpoint.address, 40)


@server
def test_a_cache_that_answers_with_less_than_it_says_is_said(site: Site) -> None:
    cut = lambda body: answer(body[:10], length=SIZE, more="Connection: close\r\n")  # noqa: E731
    site.answer = lambda number, body: cut(body) if number == 39 else answer(body)
    with pytest.raises(TargetError, match="stopped answering"):
        ask_for_all(site.endpoint.address, 40)


@server
def test_where_one_client_fails_the_others_do_not_go_on(site: Site) -> None:
    failed = threading.Event()

    def once_it_has_failed(number: int, body: bytes) -> bytes:
        if number == 7:
            failed.set()
            return answer(b"", "503 Service Unavailable")
        failed.wait(10)
        time.sleep(0.01)
        return answer(body)

    site.answer = once_it_has_failed
    with pytest.raises(TargetError, match="status 503"):
        ask_for_all(site.endpoint.address, 8000)
    assert sum(site.asked.values()) < 4000


# --- what is checked ---


@server
def test_right_answers_are_throughput_and_their_bytes_are_counted(site: Site, folder: Path) -> None:
    driver = drive(site.endpoint, folder, 3)
    requests = driver.requests()
    assert outcomes(requests) == {"done": len(requests)}
    assert len(requests) >= 20
    assert driver.moved_bytes(0, time.monotonic()) == SIZE * len(requests)
    assert driver.moved_bytes(requests.end_s[9], requests.end_s[19]) == 10 * SIZE
    assert abs(len(requests) - sum(site.asked.values())) <= 3, "the server saw what was logged"


WRONG = {
    "wrong status": lambda number, body: answer(body, "500 Internal Server Error"),
    "wrong length": lambda number, body: answer(body[:-1]),
    "wrong bytes": lambda number, body: answer(body[:-1] + bytes([body[-1] ^ 1])),
}


@server
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_is_an_error(site: Site, folder: Path, kind: str) -> None:
    wrong = WRONG[kind]
    site.answer = lambda number, body: (wrong if number == 4 else lambda _, right: answer(right))(number, body)
    seen = outcomes(drive(site.endpoint, folder, 2, compared=1).requests())
    assert seen.keys() == {"done", kind}
    assert seen[kind] == pytest.approx(site.asked[path_of(4)], abs=2)


@server
@pytest.mark.parametrize(("checked", "wrong"), [("length", ["wrong length"]), ("status", [])])
def test_no_more_of_an_answer_is_checked_than_asked_for(
    site: Site, folder: Path, checked: str, wrong: list[str]
) -> None:
    answers = [lambda _, right: answer(right), *WRONG.values()]
    site.answer = lambda number, body: answers[number % 4](number, body)
    seen = outcomes(drive(site.endpoint, folder, 2, compared=1, checked=checked).requests())
    assert seen.keys() == {"done", "wrong status", *wrong}


@server
def test_another_object_of_the_same_length_is_wrong(site: Site, folder: Path) -> None:
    site.answer = lambda number, body: answer(site.objects.content(number ^ 1, SIZE))
    with pytest.raises(WorkloadError) as caught:
        drive(site.endpoint, folder, 2, compared=1).requests()
    assert "other bytes than there should be" in caught.value.details


@server
def test_only_so_many_answers_are_compared_as_asked_for(site: Site, folder: Path) -> None:
    site.answer = lambda number, body: WRONG["wrong bytes"](number, body)
    seen = outcomes(drive(site.endpoint, folder, 1, compared=4).requests())
    assert seen["wrong bytes"] == pytest.approx((seen["done"] + seen["wrong bytes"]) / 4, abs=1)


@server
def test_answers_are_compared_where_no_connection_gets_so_many(site: Site, folder: Path) -> None:
    def slowly(number: int, body: bytes) -> bytes:
        time.sleep(0.01)
        return WRONG["wrong bytes"](number, body)

    site.answer = slowly
    seen = outcomes(drive(site.endpoint, folder, 8, compared=64).requests())
    assert seen["wrong bytes"] == pytest.approx((seen["done"] + seen["wrong bytes"]) / 64, abs=3)
    assert seen["wrong bytes"] > 0


@server
def test_an_answer_that_breaks_off_is_an_error(site: Site, folder: Path) -> None:
    site.answer = lambda number, body: answer(body[:10], length=SIZE, more="Connection: close\r\n")
    seen = outcomes(drive(site.endpoint, folder, 2).requests())
    assert seen.keys() == {"no answer"}
    assert seen["no answer"] > 10


@server
def test_a_refused_connection_is_an_error_and_asked_again_after_a_pause(site: Site, folder: Path) -> None:
    site.answer = lambda number, body: b""
    requests = drive(site.endpoint, folder, 2).requests()
    assert outcomes(requests).keys() == {"no answer"}
    assert 2 * 10 < len(requests) <= 2 * SECONDS / 0.01 + 2, "no more often than each 10 ms"


# --- how it is asked ---


@server
def test_connections_are_kept_or_not_as_asked_for(site: Site, folder: Path) -> None:
    drive(site.endpoint, folder, 3)
    assert site.connections <= 3 + 3, "each thread keeps its own; wrk looks first whether anybody is there"
    site.connections = 0
    requests = drive(site.endpoint, folder, 3, keep_alive=False).requests()
    assert outcomes(requests) == {"done": len(requests)}
    assert site.connections == pytest.approx(len(requests), abs=6)


@server
@pytest.mark.parametrize(("popularity", "share"), [("uniform", 0.1), ("zipf", 1 / sum(1 / n for n in range(1, 11)))])
def test_objects_are_asked_for_as_often_as_their_popularity_says(
    site: Site, folder: Path, popularity: str, share: float
) -> None:
    drive(site.endpoint, folder, 4, popularity=popularity)
    asked = sum(site.asked.values())
    assert site.asked.keys() <= {path_of(number) for number in range(10)} | {"/"}
    assert site.asked[path_of(0)] / asked == pytest.approx(share, abs=5 * (share / asked) ** 0.5)


@server
def test_latencies_are_those_of_the_server(site: Site, folder: Path) -> None:
    def slowly(number: int, body: bytes) -> bytes:
        time.sleep(0.02)
        return answer(body)

    site.answer = slowly
    requests = drive(site.endpoint, folder, 3).requests()
    assert requests.latency_ms.min() >= 20
    assert 10 < len(requests) <= 3 * SECONDS / 0.02 + 3


@server
def test_a_step_ends_when_its_time_is_up(site: Site, folder: Path) -> None:
    """wrk's own time is that of a script that hangs, and much longer."""
    began = time.monotonic()
    drive(site.endpoint, folder, 8)
    assert time.monotonic() - began < SECONDS + READY_WITHIN_S


@server
def test_in_an_open_loop_requests_begin_when_they_should(web_server: Endpoint, folder: Path) -> None:
    driver = drive(installed(web_server), folder, 300, "rate", connections=8)
    requests = driver.requests()
    begun = np.sort(requests.end_s - requests.latency_ms.astype(np.float64) / 1000)
    arrivals = np.fromfile(folder / ARRIVALS).reshape(-1, 2)[: int(300 * SECONDS), 0]
    assert len(begun) >= 0.9 * len(arrivals)
    assert np.abs(begun[:, None] - arrivals[None, :]).min(axis=1).max() < 1e-4
    assert driver.offered(0, time.monotonic()) == len(arrivals)


@server
def test_in_an_open_loop_a_server_that_falls_behind_is_seen(site: Site, folder: Path) -> None:
    def slowly(number: int, body: bytes) -> bytes:
        time.sleep(0.02)
        return answer(body)

    site.answer = slowly
    driver = drive(site.endpoint, folder, 1000, "rate", connections=2)
    requests = driver.requests()
    assert driver.waiting() > 0.5 * 1000 * SECONDS
    assert requests.latency_ms[-1] > 0.5 * 1000 * SECONDS


@server
def test_a_working_set_is_made_as_it_grows_and_asked_for_no_further(web_server: Endpoint, folder: Path) -> None:
    size = 1 << 15  # 32 of them are a MiB
    installed(web_server, "working_set", 4, smallest_bytes=size)
    objects = Path(web_server.options["files"]) / "objects"
    assert len(list(objects.rglob("*/*"))) == 128
    installed(web_server, "working_set", 2, smallest_bytes=size)
    workload = registry.make("http", {"smallest_bytes": size}, Allowance(US), axis="working_set")
    workload.set_level(web_server, 3)
    workload.set_level(web_server, 1)
    assert len(list(objects.rglob("*/*"))) == 96
    for path in list(objects.rglob("*/*"))[:]:
        if int(path.name) >= 32:
            path.unlink()
    requests = drive(web_server, folder, 1, "working_set", connections=2, smallest_bytes=size).requests()
    assert outcomes(requests) == {"done": len(requests)}


@server
@pytest.mark.parametrize("connections", [1, 2, 3, 8, 300])
def test_every_connection_asks(web_server: Endpoint, folder: Path, connections: int) -> None:
    requests = drive(installed(web_server), folder, connections).requests()
    assert outcomes(requests) == {"done": len(requests)}
    assert all((folder / f"requests-{thread}.log").stat().st_size for thread in range(connections))


# --- what is refused ---


def test_sizes_that_contradict_one_another_are_refused() -> None:
    with pytest.raises(StudyError, match="largest_bytes = 10 is below smallest_bytes = 20"):
        registry.make("http", {"smallest_bytes": 20, "largest_bytes": 10}, Allowance(US))


@pytest.mark.parametrize(("option", "value"), [("keep_alive", 1), ("exponent", "much"), ("exponent", True)])
def test_options_of_the_wrong_kind_are_refused(option: str, value: SettingValue) -> None:
    with pytest.raises(StudyError, match=option):
        registry.make("http", {option: value}, Allowance(US))


def test_a_working_set_of_too_many_objects_is_refused() -> None:
    with pytest.raises(StudyError, match="working_set"):
        registry.make("http", {"smallest_bytes": 1}, Allowance(US), axis="working_set").check_level(2)


@server
def test_objects_that_would_fill_the_disk_are_refused(site: Site) -> None:
    workload = registry.make("http", {"smallest_bytes": 1 << 24, "objects": 1_000_000}, Allowance(US))
    with pytest.raises(TargetError, match=r"take 15625\.0 GiB"):
        workload.install(site.endpoint)
    assert not (Path(site.endpoint.options["files"]) / "objects").exists()


def test_a_server_that_answers_something_else_is_refused_before_the_step(site: Site) -> None:
    site.answer = lambda number, body: answer(b"hello")
    workload = registry.make("http", {"smallest_bytes": SIZE}, Allowance(US))
    with pytest.raises(TargetError, match="5 bytes"):
        workload.set_level(site.endpoint, 3)
