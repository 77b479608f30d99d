"""A service that is a pipeline: each request passes through the stages PARSE, APPLY and SEND, and is answered then. It
prints what its stages do (docs/pipelines.md).

The time of an operation is waited for, not computed: `apply` ms in APPLY, by `workers` threads; 1 ms in the others.
"""

from __future__ import annotations

import argparse
import json
import queue
import socketserver
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

EVERY_S = 0.1


@dataclass
class Stage:
    name: str
    workers: int
    ms: float
    room: int
    behind: Stage | None = None
    done: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("busy_s", "idle_s", "blocked_s"), 0.0))

    def __post_init__(self) -> None:
        self.entries: queue.Queue[threading.Event] = queue.Queue(self.room)
        self.lock = threading.Lock()
        self.now = [("idle_s", time.monotonic())] * self.workers
        for number in range(self.workers):
            threading.Thread(target=self.work, args=(number,), daemon=True).start()

    def enter(self, number: int, state: str) -> None:
        """A worker goes on to another state; the seconds of the one before are counted."""
        with self.lock:
            before, since = self.now[number]
            self.seconds[before] += time.monotonic() - since
            self.now[number] = state, time.monotonic()

    def work(self, number: int) -> None:
        while True:
            self.enter(number, "idle_s")
            entry = self.entries.get()
            self.enter(number, "busy_s")
            time.sleep(self.ms / 1000)
            self.enter(number, "blocked_s")
            if self.behind is None:
                entry.set()
            else:
                self.behind.entries.put(entry)
            with self.lock:
                self.done += 1

    def line(self, order: int) -> str:
        with self.lock:
            at_s, seconds = time.monotonic(), dict(self.seconds)
            for state, since in self.now:
                seconds[state] += at_s - since
            idle = sum(state == "idle_s" for state, _ in self.now)
            done = self.done
        told = {"stage": self.name, "order": order, "time": at_s, "waiting": self.entries.qsize(), "queue": self.room}
        return json.dumps(told | {"current": self.workers - idle, "done": done, "workers": self.workers} | seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--apply", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    send = Stage("SEND", 2, 1.0, 64)
    apply = Stage("APPLY", given.workers, given.apply, 8, send)
    parse = Stage("PARSE", 2, 1.0, 64, apply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answered = threading.Event()
            parse.entries.put(answered)
            answered.wait()
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Nothing: the log has the statistics."""

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True
        request_queue_size = 128

    def tell() -> None:
        while True:
            time.sleep(EVERY_S)
            for order, stage in enumerate((parse, apply, send)):
                print(stage.line(order), flush=True)

    threading.Thread(target=tell, daemon=True).start()
    with Server(("127.0.0.1", given.port), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
