"""A small service that exposes counters by prometheus-client, as a user may have it: `python exposing.py SIZE`.

It has a pool of SIZE places, and each GET / takes one for 20 ms. It prints its port once it listens.
"""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import Counter, Gauge, Histogram, generate_latest

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 4
POOL = threading.Semaphore(SIZE)
IN_USE, MOST = Gauge("app_pool_in_use", "Places in use."), Gauge("app_pool_size", "Places.")
SERVED = Counter("app_requests", "Requests served.")
TOOK = Histogram("app_took_seconds", "Time of a request.", buckets=(0.01, 0.05, 0.25, 1, 5))


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one write for an answer: two would wait for a delayed acknowledgement

    def do_GET(self) -> None:
        if self.path == "/metrics":
            return self._answer(generate_latest(), "text/plain; version=0.0.4")
        with TOOK.time(), POOL, IN_USE.track_inprogress():
            time.sleep(0.02)
        SERVED.inc()
        return self._answer(b"done\n", "text/plain")

    def _answer(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if __name__ == "__main__":
    MOST.set(SIZE)
    server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Service)
    print(server.server_port, flush=True)
    server.serve_forever()
