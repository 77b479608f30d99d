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
levels = [8, 16]
[workload]
kind = "http"
[measure]
window = "1s"
blocks = {{ min = 2, max = 2 }}
budget = "{budget}"
profile = "off"
"""


class Answering(BaseHTTPRequestHandler):
    """Each answer takes two seconds, and none waits for another."""

    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    def do_GET(self) -> None:
        time.sleep(2.0)
        self.send_response(200)
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b"seven items\n")

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 64


@contextmanager
def serving(budget: str) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield STUDY.format(port=server.server_port, budget=budget)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_no_window_with_fewer_than_twenty_requests_decides_anything(tmp_path: Path) -> None:
    with serving("90s") as text:
        found = loadframe.measure(parse(text), tmp_path / "runs")
    assert [point.load for point in found.curve.points] == [8, 16]
    for point in found.curve.points:
        assert point.throughput == pytest.approx(point.load / 2, rel=0.25), "closed loop: N = X R"
        assert point.latency_p95_ms == pytest.approx(2000, rel=0.1)
    assert found.curve.shape != "cliff"
    run = loadframe.open_run(found.run)
    counting = [step for step in run.steps() if step.counts]
    assert len(counting) >= 4
    for step in counting:
        window_s = step.window_end_s - step.window_start_s
        assert step.requests + step.errors >= 20 and window_s >= 5 * step.latency.mean_ms / 1000
    for step in run.steps():
        requests = request_log.from_bytes(run.requests(step.number))
        crosses = requests.end_s > step.window_end_s
        assert (requests.outcome[crosses] == 0).all() and crosses.any(), "what is in flight at the end is waited for"
        longest = requests.latency_ms[requests.end_s - requests.latency_ms / 1000 < step.window_end_s].max()
        assert step.latency.max_ms == pytest.approx(float(np.max(longest)), rel=1e-3) or not step.latency_known


def test_where_the_budget_does_not_reach_the_command_says_how_long_windows_must_be(tmp_path: Path) -> None:
    with serving("1s") as text, pytest.raises(TooFewRequests, match=r"1\d(\.\d+)? s at 8") as raised:
        loadframe.measure(parse(text), tmp_path / "runs")
    assert "measure.budget" in raised.value.remedy
    (folder,) = (tmp_path / "runs").iterdir()
    steps = loadframe.open_run(folder).steps()
    assert steps and all(TOO_FEW in step.flags for step in steps)
