"""What the planted services in Python share: a threaded HTTP server, times that scatter, and how their knobs show."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Knobs = Mapping[str, object]
Answer = tuple[int, bytes]
SCATTER = 0.3


def around(mean: float, scatter: float = SCATTER) -> float:
    """A log-normal number with this mean; scatter: the standard deviation of its logarithm."""
    return random.lognormvariate(math.log(mean) - scatter * scatter / 2, scatter)


def wait(mean_s: float) -> None:
    """Wait as for a device or another machine, about mean_s."""
    time.sleep(around(mean_s))


def prometheus(metrics: Mapping[str, float]) -> bytes:
    """Gauges in Prometheus' text format."""
    return "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in metrics.items()).encode()


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 512


def handler(
    work: Callable[[str], Answer], knobs: Knobs, metrics: Callable[[], Mapping[str, float]] | None = None
) -> type[BaseHTTPRequestHandler]:
    """Answers /config with the knobs, /metrics where there are any, /healthz, and anything else with work(path)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one write
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path == "/config":
                self.answer(200, json.dumps(knobs).encode(), "application/json")
            elif self.path == "/metrics" and metrics is not None:
                self.answer(200, prometheus(metrics()), "text/plain; version=0.0.4")
            elif self.path == "/healthz":
                self.answer(200, b"ok\n")
            else:
                self.answer(*work(self.path))

        def answer(self, status: int, body: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def serve(
    port: int,
    work: Callable[[str], Answer],
    knobs: Knobs,
    metrics: Callable[[], Mapping[str, float]] | None = None,
) -> None:
    """Answer on 127.0.0.1 until the process ends."""
    with Server(("127.0.0.1", port), handler(work, knobs, metrics)) as server:
        print(f"listening on {port}", flush=True)
        server.serve_forever()


class Gauge:
    """How many are at something at the moment."""

    def __init__(self) -> None:
        self.value = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.value += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.value -= 1
