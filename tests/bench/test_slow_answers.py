"""A real service whose answers take longer than a window of the study: windows become long enough, and nothing is a
cliff."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import loadframe
import one_truth
from loadframe.errors import TooFewRequests
from loadframe.model import TOO_FEW
from loadframe.study import parse
from loadframe.workloads import request_log

pytestmark = pytest.mark.server

STUDY = """
[study]
name = "slow"
question = "How many answers a second?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:{port}"
[load]
axis = "concurrency"
levels = {levels}
[workload]
kind = "http"
[measure]
window = "1s"
blocks = {{ min = 2, max = 2 }}
budget = "{budget}"
profile = "off"
"""


class Answering(BaseHTTPRequestHandler):
    """Each answer takes as long, and none waits for another."""

    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    server: Server

    def do_GET(self) -> None:
        time.sleep(self.server.takes_s)
        self.send_response(200)
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b"seven items\n")

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 64

    def __init__(self, takes_s: float) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.takes_s = takes_s


@contextmanager
def serving(takes_s: float, *levels: int, budget: str) -> Iterator[str]:
    """The study of such a service."""
    server = Server(takes_s)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield STUDY.format(port=server.server_port, levels=list(levels), budget=budget)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.long
def test_no_window_with_fewer_than_twenty_requests_decides_anything(tmp_path: Path) -> None:
    with serving(2.0, 8, 16, budget="90s") as text:
        found = loadframe.measure(parse(text), tmp_path / "runs")
    assert [point.load for point in found.curve.points] == [8, 16]
    for point in found.curve.points:
        assert point.throughput == pytest.approx(point.load / 2, rel=0.25), "closed loop: N = X R"
        assert point.latency_p95_ms == pytest.approx(2000, rel=0.1)
    assert found.curve.shape != "cliff"
    run = loadframe.open_run(found.run)
    counting = [step for step in run.steps() if step.counts]
    assert len(counting) >= 4
    one_truth.no_window_with_too_little_in_it_decides_anything(run, loadframe.conclude(run))
    for step in run.steps():
        requests = request_log.from_bytes(run.requests(step.number))
        crosses = requests.end_s > step.window_end_s
        assert (requests.outcome[crosses] == 0).all() and crosses.any(), "what is in flight at the end is waited for"
        longest = requests.latency_ms[requests.end_s - requests.latency_ms / 1000 < step.window_end_s].max()
        assert step.latency.max_ms == pytest.approx(float(np.max(longest)), rel=1e-3) or not step.latency_known


@pytest.mark.long
@pytest.mark.parametrize("takes_s", [2.0, 4.5])
def test_where_the_budget_does_not_reach_the_command_says_how_long_windows_must_be(
    tmp_path: Path, takes_s: float
) -> None:
    """Also where a driver would have been ended before the first answer comes."""
    with serving(takes_s, 8, budget="1s") as text, pytest.raises(TooFewRequests, match="would have to be") as raised:
        loadframe.measure(parse(text), tmp_path / "runs")
    assert raised.value.needed_s[8] == pytest.approx(5 * takes_s, rel=0.2)
    assert "measure.budget" in raised.value.remedy
    (folder,) = (tmp_path / "runs").iterdir()
    steps = loadframe.open_run(folder).steps()
    assert steps and all(TOO_FEW in step.flags for step in steps)
