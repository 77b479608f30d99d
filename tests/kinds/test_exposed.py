"""Counters that a service exposes, read from real addresses: one that is honest, and many that are not."""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.kinds import exposed as sources
from loadframe.kinds.exposed import GIVEN_UP_FOR_GOOD, Exposure, sources_of
from loadframe.study.exposed_tables import MetricsTable
from peers import HTTP, peer
from waiting import await_that

SERVICE = Path(__file__).with_name("exposing.py")

Answer = Callable[[BaseHTTPRequestHandler, int], None]


@contextmanager
def lying(answer: Answer) -> Iterator[int]:
    """A server whose answers are these: given the request and its number, from 0 on."""
    asked = iter(range(10**9))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, next(asked))

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def text(*bodies: str, status: int = 200, content_type: str = "text/plain") -> Answer:
    """One body after the other, the last one from then on."""

    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        body = bodies[min(number, len(bodies) - 1)].encode()
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def exposure(port: int, wanted: dict[str, str] | None = None, **table: Any) -> Exposure:
    given = table or {"prometheus": "http://127.0.0.1:{port}/metrics"}
    tables = [MetricsTable.model_validate(given)]
    return Exposure(sources_of(tables, list(wanted or {}), lambda: port, lambda: Allowance(US)), wanted or {})


def told(asked: Exposure, times: int) -> list[dict[str, float]]:
    """What was told in so many readings."""
    return [asked.now() for _ in range(times)]


def test_a_service_tells_what_it_exposes_while_it_works() -> None:
    with subprocess.Popen([sys.executable, str(SERVICE), "4"], stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            port = int(service.stdout.readline())
            asked = exposure(port, {"app_pool_in_use": "target.limit pool", "app_pol_size": "target.limit pool"})
            with asked.watching(1.0):
                for _ in range(5):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).read()
            readings = asked.readings()
        finally:
            service.kill()
    assert len(readings) >= 2 and [one.at_s for one in readings] == sorted(one.at_s for one in readings)
    assert readings[0].counters["service.app_pool_size"] == 4.0
    assert (
        readings[0].counters["service.app_requests_total"] <= readings[-1].counters["service.app_requests_total"] == 5.0
    )
    assert "service.app_pool_size" not in readings[-1].counters, (
        "once the load has ended a level is not that of the load"
    )
    cumulative = {spec.metric: spec.cumulative for spec in asked.counter_specs}
    assert cumulative["service.app_requests_total"] and not cumulative["service.app_pool_in_use"]
    (missing,) = asked.missing()
    assert "target.limit pool speaks of app_pol_size" in missing and "did you mean app_pool_size?" in missing


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (text("broken", status=500), "it answered 500"),
        (text("", status=302), "it answered 302"),
        (text("<html></html>", content_type="text/html"), "a page of HTML"),
        (text("what?!\n"), "not in Prometheus' format"),
        (text(""), "there is no number in it"),
        (text("# HELP a what it is\n# TYPE a gauge\n"), "there is no number in it"),
        (text("in_use 1\n", content_type="application/openmetrics-text; version=1.0.0"), "Missing # EOF"),
    ],
    ids=["500", "redirect", "html", "no metrics", "empty", "comments", "other form"],
)
def test_an_address_without_counters_is_named(answer: Answer, said: str) -> None:
    with lying(answer) as port:
        asked = exposure(port)
        assert asked.now() == {}
    (missing,) = asked.missing()
    assert said in missing and f"http://127.0.0.1:{port}/metrics" in missing and "1 of 1 readings failed" in missing


def test_an_address_where_nothing_listens_is_named() -> None:
    with lying(text("a 1\n")) as port:
        pass
    asked = exposure(port)
    assert asked.now() == {} and "refused" in asked.missing()[0]


def test_an_address_that_hangs_or_never_ends_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ANSWER_S", 0.2)
    let_go = threading.Event()

    def silent(handler: BaseHTTPRequestHandler, number: int) -> None:
        let_go.wait()

    def endless(handler: BaseHTTPRequestHandler, number: int) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
        while not let_go.wait(0.01):
            handler.wfile.write(b"# still here\n")

    for answer in (silent, endless):
        let_go.clear()
        with lying(answer) as port:
            asked = exposure(port)
            with asked.watching(1.0):
                pass
            assert not asked.readings()
            let_go.set()
        assert "no answer ended within 0.2 s" in asked.missing()[0]


@pytest.mark.parametrize("way", HTTP)
def test_whatever_an_address_does_it_is_left_in_time_and_named(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ANSWER_S", 0.3)
    monkeypatch.setattr(sources, "ANSWER_BYTES", 1 << 20)
    with peer("http", way) as server:
        asked = exposure(server.port)
        assert asked.now() == {}
    assert "1 of 1 readings failed" in asked.missing()[0] and asked.missing()[0].isprintable()


def test_a_source_that_never_answers_is_not_asked_for_ever() -> None:
    """A service that makes a million lines in vain has less time for requests."""
    asked = []

    def fails(handler: BaseHTTPRequestHandler, number: int) -> None:
        asked.append(number)
        handler.send_error(500)

    with lying(fails) as port:
        found = exposure(port)
        for _ in range(10):
            with found.watching(10.0):
                pass
    assert len(asked) == GIVEN_UP_FOR_GOOD
    assert "not asked again after 6 failures in a row" in " ".join(found.missing())


def test_an_answer_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ANSWER_BYTES", 10_000)
    with lying(text("in_use 1\n" * 10_000)) as port:
        asked = exposure(port)
        assert asked.now() == {}
    assert "longer than 10000 bytes" in asked.missing()[0]


@pytest.mark.long
def test_a_million_series_are_left_out_and_counted() -> None:
    series = "".join(f'n{{i="{number}"}} 1\n' for number in range(60_000))
    with lying(text(f"# TYPE n gauge\n{series}")) as port:
        asked = exposure(port)
        assert len(asked.now()) == 2_000 == len(asked.counter_specs)
    assert any("are beyond the first 2,000" in one for one in asked.missing())


def test_no_more_series_are_kept_however_they_change() -> None:
    bodies = ["".join(f'n{{i="{name}"}} 1\n' for name in range(at, at + 1_500)) for at in (0, 1_500, 3_000)]
    with lying(text(*bodies)) as port:
        asked = exposure(port)
        told(asked, 3)
        assert len(asked.counter_specs) == 2_000


def test_a_counter_that_goes_back_is_named_and_a_type_that_changes_ends_it() -> None:
    first = "# TYPE a_total counter\na_total 9\n# TYPE b gauge\nb 1\n# TYPE c gauge\nc 1\n"
    second = "# TYPE a_total counter\na_total 3\n# TYPE b counter\nb 2\n# TYPE c gauge\nc 2\n"
    with lying(text(first, second)) as port:
        asked = exposure(port)
        found = told(asked, 3)
    assert [one.get("service.a_total") for one in found] == [9, 3, 3]
    assert [one.get("service.c") for one in found] == [1, 2, 2]
    assert [one.get("service.b", one.get("service.b_total")) for one in found] == [1, None, None]
    missing = " ".join(asked.missing())
    assert "a_total went back once" in missing and "b was a gauge, then a counter" in missing


def test_what_is_no_number_is_named() -> None:
    with lying(text("a NaN\nb 1\n", "a 2\nb 1\n")) as port:
        asked = exposure(port)
        assert told(asked, 2) == [{"service.b": 1.0}, {"service.a": 2.0, "service.b": 1.0}]
    assert "1 series are not finite numbers and are left out: a." in asked.missing()[0]


def test_json_and_a_command_tell_counters_too() -> None:
    with lying(text('{"pool": {"in_use": 2}, "done": 5}', content_type="application/json")) as port:
        assert exposure(port, json="http://127.0.0.1:{port}/stats", counters=["done"]).now() == {
            "service.pool.in_use": 2.0,
            "service.done_total": 5.0,
        }
    with lying(text('{"pool": {"in_use": "2"}}', content_type="application/json")) as port:
        words = exposure(port, json="http://127.0.0.1:{port}/stats")
        assert words.now() == {} and "1 of 1 readings failed: there is no number in it" in words.missing()[0]
    with lying(text("a 1\n")) as port:
        other = exposure(port, prometheus="http://127.0.0.1:{port}/", select=["b"])
        assert other.now() == {} and "it has none of the names of `select`" in other.missing()[0]
    printing = [sys.executable, "-c", "print('port', {port}); print('done 5')"]
    assert exposure(81, command=printing, counters=["done"]).now() == {"service.port": 81.0, "service.done_total": 5.0}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "signal 15"),
        ("print('three words here')", "line 1 is not a name and a number"),
        ("import time\nwhile True: print('a 1', flush=True); time.sleep(0.01)", "did not end within"),
        ("import sys, time; sys.stdout.close(); import os; os.close(1); time.sleep(60)", "did not end within"),
        ("while True: print('a 1')", "longer than"),
    ],
)
def test_a_command_that_fails_is_named_and_ended(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "ANSWER_S", 0.5)
    monkeypatch.setattr(sources, "ANSWER_BYTES", 100_000)
    noted = tmp_path / "pid"
    asked = exposure(
        0, command=[sys.executable, "-c", f"import os; open({str(noted)!r}, 'w').write(str(os.getpid()))\n{program}"]
    )
    assert asked.now() == {}
    assert said in asked.missing()[0]
    assert not Path(f"/proc/{noted.read_text()}").exists()


@pytest.mark.long
def test_what_a_command_has_started_ends_with_it(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {noted}; echo a 1"
    assert exposure(0, command=["sh", "-c", script]).now() in ({}, {"service.a": 1.0})
    child = Path(f"/proc/{noted.read_text().strip()}")
    await_that(lambda: not child.exists() or "Z" in (child / "stat").read_text().rpartition(")")[2][:3], "it has ended")


def test_a_program_that_is_not_there_is_named() -> None:
    asked = exposure(0, command=["no-such-program"])
    assert asked.now() == {} and "no-such-program" in asked.missing()[0]
