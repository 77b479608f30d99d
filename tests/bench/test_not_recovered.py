"""A service that does not recover from a step: the investigation concludes on what it has, and says so."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import loadframe
from loadframe.cages import groups
from loadframe.errors import NotRecovered, RunError, TargetError
from loadframe.model import NOT_RECOVERED, Investigation, Stop
from loadframe.reporting import answers
from loadframe.reporting.reports import render_page
from loadframe.study import parse
from loadframe.workloads import asking

pytestmark = pytest.mark.server

RECORDED = Path(__file__).parents[1] / "data/runs"
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
    monkeypatch.setattr(asking, "RECOVERS_WITHIN_S", 0.5)


def investigated(folder: Path, text: str) -> Investigation:
    return loadframe.investigate(parse(text), folder / "runs")


@pytest.mark.long
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
        assert "At 4 connections the service failed: it " in said
        assert "answered / with status 503, and still did" in said
        assert "restart it, and measure again with lower levels" in said
        assert "No limit was reached" not in said
    assert loadframe.investigation_json(found)["stop"]["level"] == 4.0
    assert not any(finding.status == "confirmed" for one in found.rounds for finding in one.findings)
    assert loadframe.conclude(run).answer == found, "the same from the run folder"


@pytest.mark.long
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


def test_a_run_without_a_step_that_counts_says_where_it_fell(tmp_path: Path) -> None:
    """It asked for a window of 0 s."""
    run = Path(shutil.copytree(RECORDED / "job-queue", tmp_path / "fell"))
    first = json.loads((run / "steps.jsonl").read_text().splitlines()[0])
    (run / "steps.jsonl").write_text(json.dumps({**first, "flags": [NOT_RECOVERED]}) + "\n")
    for name in ("investigation.json", "conduct.json", "rounds.json"):
        (run / name).unlink(missing_ok=True)
    with pytest.raises(RunError, match=f"no step that counts: at {first['level']:g} the target did not serve again"):
        loadframe.conclude(loadframe.open_run(run))


@pytest.mark.long
def test_a_service_that_recovers_is_measured_to_the_end(tmp_path: Path) -> None:
    with serving(breaks=99) as text:
        found = investigated(tmp_path, text)
    assert found.stop is None and found.outcome.kind != "stopped-answering"
    assert not (Path(found.run) / "stops.jsonl").exists()
    assert NOT_RECOVERED not in found.quality.flags


DYING = """
import http.server, os, sys, time
class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize, last, served = "HTTP/1.1", True, -1, time.monotonic(), 0
    def do_GET(self):
        if Answering.served > 8 and time.monotonic() - Answering.last > 0.1:
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


@pytest.mark.long
def test_a_service_of_ours_that_dies_as_it_is_asked_again_says_its_last_words(tmp_path: Path) -> None:
    text = STUDY.replace(
        'kind = "url"', f"kind = 'service'\ncommand = ['python3', '-c', {json.dumps(DYING)}, '{{{{port}}}}']"
    )
    text = text.replace('[target.settings]\nurl = "http://127.0.0.1:{port}"\n', "")
    try:  # where a lower load was measured first, that is concluded from
        stop = investigated(tmp_path, text.replace("{{", "{").replace("}}", "}")).stop
        assert stop is not None
        died, last_words = stop.died, "\n".join(stop.log)
    except TargetError as error:
        died, last_words = error.fact, error.details
    assert "exit status 7" in died and "out of tokens" in last_words


SERVICE = """
import http.server, os, sys, threading, time
busy, fell, lock = 0, threading.Event(), threading.Lock()
class Serving(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128
class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1
    def do_GET(self):
        global busy
        with lock:
            busy += 1
            if busy >= 6 and not fell.is_set():
                print("the pool is empty, password=s3cret-9", flush=True)
                fell.set()
        if fell.is_set():
            FALLS
        time.sleep(0.005)
        with lock:
            busy -= 1
        self.send_response(503 if fell.is_set() else 200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok!")
    def log_message(self, *_):
        pass
Serving(("127.0.0.1", int(sys.argv[1])), Answering).serve_forever()
"""
FILLS = "kept = bytearray(300 << 20); kept[::4096] = bytes(len(kept[::4096]))"


def of_ours(falls: str, *, more: str = "", levels: str = "[1, 2, 8]") -> str:
    """The study of a service that we start, and what it does once six requests are in flight."""
    command = json.dumps(["python3", "-c", SERVICE.replace("FALLS", falls), "{port}"])
    return f"""
[study]
name = "falls"
question = "What does it take?"
[target]
kind = "service"
command = {command}
{more}
[load]
axis = "concurrency"
levels = {levels}
[workload]
kind = "http"
[measure]
warmup = "100ms"
window = "500ms"
blocks = {{ min = 2, max = 2 }}
budget = "30s"
profile = "off"
"""


def falls_at_8(found: Investigation) -> str:
    """What is told of a service of ours that falls at 8: it was measured below that, and the answer has three lines."""
    assert found.outcome.kind == "stopped-answering" and found.stop is not None
    assert (found.stop.level, found.stop.went_on, found.stop.log[-1]) == (8.0, True, "the pool is empty, password=***")
    steps = loadframe.open_run(Path(found.run)).steps()
    assert {step.level for step in steps if step.counts} == {1.0, 2.0}
    assert [point.load for point in found.rounds[0].curve.points] == [1.0, 2.0]
    assert loadframe.conclude(loadframe.open_run(Path(found.run))).answer == found, "the same from the run folder"
    text = " ".join(loadframe.render_text(found).split())
    first, before, do = answers.lines(found)
    assert text.startswith(first) and "Its log: the pool is empty" in text
    assert before.startswith("Below that: ") and do.endswith("keep it below 8 connections.")
    assert "the pool is empty" in render_page(found)
    return first


@pytest.mark.long
def test_one_of_ours_that_dies_is_started_again_and_measured_below_that_load(tmp_path: Path) -> None:
    assert falls_at_8(investigated(tmp_path, of_ours("os._exit(3)"))) == (
        "At 8 connections the service died (exit status 3); its last words: 'the pool is empty, password=***'."
    )


def test_a_killed_one_had_no_time_for_last_words() -> None:
    """The last line of its log is of what was asked before, as of our own look at an nginx without an index."""
    log = ('directory index of "/srv/" is forbidden',)
    killed = Stop(1, 8.0, "A", "/", 0, 0.0, died="SIGKILL", log=log)
    assert answers.stop_sentence(killed, "connections") == "At 8 connections the service died (SIGKILL)."
    said = answers.stop_sentence(replace(killed, died="exit status 1"), "connections")
    assert said.endswith(f"its last words: {log[0]!r}.")
    full = replace(killed, full="the machine or a group around its cage had no memory left, and the kernel ended 1")
    assert "died of memory: the machine or a group around its cage had no memory left." in answers.stop_sentence(
        full, "connections"
    )


@pytest.mark.long
def test_one_of_ours_that_hangs_too(tmp_path: Path) -> None:
    first = falls_at_8(investigated(tmp_path, of_ours("threading.Event().wait()")))
    assert first.startswith("At 8 connections the service failed: no answer (")


@pytest.mark.long
def test_one_of_ours_that_refuses_too(tmp_path: Path) -> None:
    first = falls_at_8(investigated(tmp_path, of_ours("pass")))
    assert first.startswith("At 8 connections the service failed: it answered / with status 503, and still did ")


@pytest.mark.long
@pytest.mark.skipif(groups.available()["memory"] is None, reason="no control group limits memory here")
def test_one_that_fills_its_cage_died_of_memory(tmp_path: Path) -> None:
    found = investigated(tmp_path, of_ours(FILLS, more='[cage]\nmemory = "128MiB"'))
    assert falls_at_8(found) == "At 8 connections the service died of memory: its cage of 128 MiB was full."
    assert found.stop is not None and found.stop.died == "SIGKILL"


@pytest.mark.long
def test_where_no_level_is_left_lower_ones_are_measured(tmp_path: Path) -> None:
    found = investigated(tmp_path, of_ours("os._exit(3)", levels="[8, 16]"))
    assert found.stop is not None and found.stop.level == 8
    assert [point.load for point in found.rounds[0].curve.points] == [2.0, 4.0]
