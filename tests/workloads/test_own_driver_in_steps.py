"""A study with a driver of the user's own: what its steps and its curve say, and what they do not."""

from __future__ import annotations

import os
import pwd
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import loadframe
from loadframe.bench.checking import check_study
from loadframe.errors import StudyError, WorkloadError
from loadframe.lab import Measurement
from loadframe.model import NO_LATENCIES, TIME_UNIT, WHOLE_SECONDS
from loadframe.runs.histograms import bin_latencies_ms
from loadframe.study import parse

USER = pwd.getpwuid(os.geteuid()).pw_name
"""The driver is in a folder of pytest's that only we may enter."""
STUDY = """
[study]
name = "own-driver"
question = "How many orders a second?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:{port}"
[load]
axis = "{axis}"
levels = [2, 4]
[workload]
kind = "command"
user = "{user}"
command = ["{python}", "{driver}"]
[workload.options]
loop = "{loop}"
[measure]
warmup = "200ms"
window = "600ms"
blocks = {{ min = 2, max = 2 }}
budget = "20s"
profile = "off"
"""
DRIVER = """
import json, os, time
level = int(os.environ["LOADFRAME_LEVEL"])
until = time.monotonic() + float(os.environ["LOADFRAME_DURATION_S"])
while time.monotonic() < until:
    begin = time.monotonic()
    time.sleep(0.05)
    print(json.dumps(LINE), flush=True)
"""
EACH = {
    "requests": '{"start": begin, "end": time.monotonic(), "operation": "order", "bytes": 9}',
    "errors": '{"end": time.monotonic(), "latency_ms": 0.1, "error": "no worker is free"}), '
    'json.dumps({"start": begin, "end": time.monotonic()}), sep="\\n", flush=True) or print(json.dumps('
    '{"end": time.monotonic(), "latency_ms": 0.1, "ok": False}',
    "seconds": '{"end": time.monotonic(), "latency_ms": time.monotonic() - begin}',
    "micro": '{"end": time.monotonic(), "latency_ms": 1e6 * (time.monotonic() - begin)}',
    "quantiles": '{"second": begin, "length_s": 0.05, "requests": 5 * level, "p50_ms": 1, "p95_ms": 2}',
}


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def text(folder: Path, port: int, kind: str, *, axis: str = "users", loop: str = "closed") -> str:
    driver = folder / "driver.py"
    driver.write_text(DRIVER.replace("LINE", EACH[kind]))
    return STUDY.format(port=port, axis=axis, loop=loop, python=sys.executable, driver=driver, user=USER)


def measured(folder: Path, study: str) -> Measurement:
    return loadframe.measure(parse(study), folder / "runs")


@pytest.mark.long
def test_requests_make_a_curve_with_latencies_in_the_studys_own_words(tmp_path: Path, port: int) -> None:
    found = measured(tmp_path, text(tmp_path, port, "requests"))
    assert found.axis_unit == "users"
    assert found.curve.axis == "users" and found.curve.closed_loop is True
    assert [point.load for point in found.curve.points] == [2, 4]
    assert all(point.latency_p95_ms is not None and point.latency_p95_ms >= 50 for point in found.curve.points)
    assert not {WHOLE_SECONDS, NO_LATENCIES} & found.quality.flags.keys()
    (step, *_) = loadframe.open_run(found.run).steps()
    assert [one.name for one in step.operations] == ["order"]
    assert step.metrics["workload.bytes"] == pytest.approx(9 * step.throughput)


@pytest.mark.long
def test_an_open_loop_is_what_the_study_declares(tmp_path: Path, port: int) -> None:
    found = measured(tmp_path, text(tmp_path, port, "requests", axis="sensors", loop="open"))
    assert found.curve.closed_loop is False
    assert all("workload.offered" in step.metrics for step in loadframe.open_run(found.run).steps())


@pytest.mark.long
def test_quantiles_of_seconds_make_a_curve_without_latencies_that_says_so(tmp_path: Path, port: int) -> None:
    found = measured(tmp_path, text(tmp_path, port, "quantiles"))
    assert all(point.latency_p95_ms is None and point.throughput > 0 for point in found.curve.points)
    assert found.quality.flags[NO_LATENCIES] == found.quality.flags[WHOLE_SECONDS] == found.quality.steps
    for step in loadframe.open_run(found.run).steps():
        assert step.operations == () and step.latency.p95_ms == 0
        assert "workload.concurrency" not in step.metrics and "workload.silence_ms" not in step.metrics


@pytest.mark.long
def test_seconds_in_the_place_of_milliseconds_are_told_and_not_converted(tmp_path: Path, port: int) -> None:
    """The driver of one user; whoever counts something else by its level is not judged."""
    study = text(tmp_path, port, "seconds").replace("[2, 4]", "[1]")
    found = measured(tmp_path, study)
    assert found.quality.flags[TIME_UNIT] == found.quality.steps
    (said,) = [one for one in found.curve.warnings if one.startswith("time-unit")]
    assert "look like seconds, not milliseconds: 1 user / " in said and "the driver reported 0.05" in said
    assert all(step.latency.p95_ms < 1 for step in loadframe.open_run(found.run).steps())
    for other in (study.replace('"users"', '"pages"'), text(tmp_path, port, "requests").replace("[2, 4]", "[1]")):
        assert TIME_UNIT not in measured(tmp_path, other).quality.flags


@pytest.mark.long
def test_microseconds_in_the_place_of_milliseconds_are_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(WorkloadError, match=r"before the driver was started; latency_ms is in milliseconds"):
        measured(tmp_path, text(tmp_path, port, "micro"))


@pytest.mark.long
def test_errors_that_come_at_once_are_no_short_response_times(tmp_path: Path, port: int) -> None:
    """Two requests in three fail within 0.1 ms, the third takes 50 ms: in curve, histogram and operations."""
    found = measured(tmp_path, text(tmp_path, port, "errors"))
    assert all(point.latency_p95_ms is not None and point.latency_p95_ms >= 50 for point in found.curve.points)
    run = loadframe.open_run(found.run)
    for step in run.steps():
        assert step.errors >= 2 * step.requests - 2 and "errors" in step.flags
        assert step.latency.p50_ms >= 50 and step.operations[0].mean_ms >= 50
        counts = run.latency_counts(step.number)
        assert counts is not None and counts.sum() == step.requests
        assert bin_latencies_ms()[counts.nonzero()[0][0]] > 49


@pytest.mark.long
def test_a_limit_for_latencies_takes_a_driver_that_tells_them(tmp_path: Path, port: int) -> None:
    study = text(tmp_path, port, "quantiles") + "[objective]\nwithin = { latency_p95_ms = 50 }\n"
    with pytest.raises(WorkloadError, match="cannot be added up"):
        measured(tmp_path, study)


def test_a_study_is_checked_before_anything_is_started(tmp_path: Path, port: int) -> None:
    study = text(tmp_path, port, "requests")
    check_study(parse(study))
    with pytest.raises(StudyError, match=r"workload\.options\.loop is missing"):
        check_study(parse(study.replace('loop = "closed"', "")))
    with pytest.raises(StudyError, match="whole number"):
        check_study(parse(study.replace("[2, 4]", "[2.5, 4]")))
