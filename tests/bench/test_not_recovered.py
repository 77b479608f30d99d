"""A service that does not recover from a step: the investigation concludes on what it has, and says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import loadframe
from loadframe.errors import NotRecovered, TargetError
from loadframe.model import NOT_RECOVERED, Investigation
from loadframe.reporting.case_study import render_page
from loadframe.study import parse
from loadframe.workloads import by_address

pytestmark = pytest.mark.server

STUDY = """
[study]
name = "broken"
question = "What does it take?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:{port}"
[load]
axis = "concurrency"
levels = [1, 2, 4]
[workload]
kind = "http"
[measure]
warmup = "100ms"
window = "300ms"
blocks = {{ min = 2, max = 2 }}
budget = "8s"
profile = "off"
"""


class Server(ThreadingHTTPServer):
    """Answers until it was once asked `breaks` things at a time; from the end of that load on it refuses, for ever."""

    daemon_threads = True

    def __init__(self, breaks: int) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.breaks, self.asked, self.most = breaks, 0, 0
        self.lock = threading.Lock()


class Answering(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1
    server: Server

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.asked += 1
            self.server.most = max(self.server.most, self.server.asked)
            self.broken = self.server.most >= self.server.breaks and self.server.asked == 1

    def finish(self) -> None:
        super().finish()
        with self.server.lock:
            self.server.asked -= 1

    def do_GET(self) -> None:
        body = b"out of workers\n" if self.broken else b"seven items\n"
        self.send_response(503 if self.broken else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(breaks: int) -> Iterator[str]:
    """The study of such a service."""
    server = Server(breaks)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield STUDY.format(port=server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """75 s are as long for a person."""
    monkeypatch.setattr(by_address, "RECOVERS_WITHIN_S", 0.5)


def investigated(folder: Path, text: str) -> Investigation:
    return loadframe.investigate(parse(text), folder / "runs")


def test_the_steps_before_are_concluded_from_and_the_load_and_the_time_are_told(tmp_path: Path) -> None:
    with serving(breaks=4) as text:
        found = investigated(tmp_path, text)
    assert found.outcome.kind == "stopped-answering"
    assert found.stop is not None
    assert (found.stop.level, found.stop.treatment, found.stop.path, found.stop.status) == (4.0, "A", "/", 503)
    assert 0 < found.stop.waited_s < 10
    run = loadframe.open_run(Path(found.run))
    steps = run.steps()
    flagged = [step for step in steps if NOT_RECOVERED in step.flags]
    assert [step.number for step in flagged] == [found.stop.step] == [steps[-1].number]
    assert flagged[0].level == 4 and found.quality.flags[NOT_RECOVERED] == 1
    assert run.closed(), "it ended as it should"
    text_, page = (" ".join(said.split()) for said in (loadframe.render_text(found, details=True), render_page(found)))
    for said in (text_, page):
        assert "The service stopped answering after the step at 4 " in said
        assert "answered / with status 503 for" in said and "no proved cause" in said
        assert "restart it, and measure again with lower levels" in said
        assert "No limit was reached" not in said
    assert loadframe.investigation_json(found)["stop"]["level"] == 4.0
    assert not any(finding.status == "confirmed" for one in found.rounds for finding in one.findings)
    assert loadframe.conclude(run) == found, "the same from the run folder"


def test_another_verb_ends_with_the_error_and_its_report_names_the_step(tmp_path: Path) -> None:
    # a look at the target, and the driver, are two at a time
    with serving(breaks=4) as text, pytest.raises(NotRecovered, match="with status 503, and did so for") as caught:
        loadframe.measure(parse(text), tmp_path / "runs")
    assert caught.value.status == 503 and caught.value.remedy
    (folder,) = (tmp_path / "runs").iterdir()
    run = loadframe.open_run(folder)
    stop, found = run.stop(), run.investigation()
    assert stop is not None and stop.level >= 2 and NOT_RECOVERED in run.steps()[-1].flags
    assert found is not None and found.stop == stop and found.outcome.kind == "stopped-answering"


def test_nothing_is_concluded_where_nothing_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks by the first look at it."""
    with serving(breaks=1) as text, pytest.raises(loadframe.errors.TargetError, match="status 503"):
        investigated(tmp_path, text)


def test_a_service_that_recovers_is_measured_to_the_end(tmp_path: Path) -> None:
    with serving(breaks=99) as text:
        found = investigated(tmp_path, text)
    assert found.stop is None and found.outcome.kind != "stopped-answering"
    assert not (Path(found.run) / "stop.json").exists()
    assert NOT_RECOVERED not in found.quality.flags


DYING = """
import http.server, os, sys, time
class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize, last, served = "HTTP/1.1", True, -1, time.monotonic(), 0
    def do_GET(self):
        if Answering.served > 20 and time.monotonic() - Answering.last > 0.1:
            print("out of tokens", flush=True)
            os._exit(7)
        Answering.last, Answering.served = time.monotonic(), Answering.served + 1
        time.sleep(0.002)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok!")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answering).serve_forever()
"""


def test_a_service_of_ours_that_dies_as_it_is_asked_again_says_its_last_words(tmp_path: Path) -> None:
    text = STUDY.replace(
        'kind = "url"', f"kind = 'service'\ncommand = ['python3', '-c', {json.dumps(DYING)}, '{{{{port}}}}']"
    )
    text = text.replace('[target.settings]\nurl = "http://127.0.0.1:{port}"\n', "")
    with pytest.raises(TargetError, match=r"The service died \(exit status 7\)") as caught:
        investigated(tmp_path, text.replace("{{", "{").replace("}}", "}"))
    assert "out of tokens" in caught.value.details
