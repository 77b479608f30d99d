"""A small service to measure, and its bad habits: `python3 serving.py --port PORT [--habit HABIT]`.

GET /config answers with its settings in use, GET /stored with what was stored, GET /broken fails, POST /store stores;
all else says ok.
POOL is its pool of workers, of at most 16. It takes a request's 2 ms one worker at a time each.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LARGEST_POOL = 16
AT_START: dict[str, object] = {}
"""What a configuration in JSON had when it started."""


def settings(given: argparse.Namespace) -> dict[str, object]:
    """In use."""
    found: dict[str, object] = {
        "pool": min(int(os.environ.get("POOL", "4")), LARGEST_POOL),
        "threads": given.threads,
        "user": os.getuid(),
    }
    if given.config.endswith(".json"):
        found |= AT_START
    if given.config:
        found["file"] = Path(given.config).read_text(encoding="utf-8")
    return found


def serve(given: argparse.Namespace, port: int) -> None:
    found, free = settings(given), threading.Semaphore(int(os.environ.get("POOL", "4")))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def answer(self, body: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def do_GET(self) -> None:
            stored = Path(given.data) / "stored" if given.data else None
            if self.path == "/config":
                told = settings(given) if given.config else found
                self.answer(json.dumps({**told, **chosen(given)}).encode())
            elif self.path == "/stored" and stored is not None:
                self.answer(stored.read_bytes() if stored.exists() else b"")
            elif self.path.startswith("/broken"):
                self.answer(b"broken\n", 503)
            elif self.path.startswith("/set/"):
                name, _, value = self.path.removeprefix("/set/").partition("=")
                (Path(given.data) / f"set-{name}").write_text(value, encoding="utf-8")
                self.answer(b"set\n")
            else:
                with free:
                    time.sleep(0.002)
                self.answer(b"ok\n")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            (Path(given.data) / "stored").write_bytes(body)
            self.answer(b"stored\n")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"listening on {server.server_address[1]}", flush=True)
    server.serve_forever()


def chosen(given: argparse.Namespace) -> dict[str, object]:
    """What was set while it ran."""
    if not given.data:
        return {}
    files = Path(given.data).glob("set-*")
    return {file.name.removeprefix("set-"): json.loads(file.read_text(encoding="utf-8")) for file in files}


def exits(given: argparse.Namespace) -> None:
    print("no database at db:5432", file=sys.stderr, flush=True)
    sys.exit(3)


def goes_to_the_background(given: argparse.Namespace) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    serve(given, given.port)


def is_never_ready(given: argparse.Namespace) -> None:
    print("waiting for a lock", flush=True)
    threading.Event().wait()


def listens_elsewhere(given: argparse.Namespace) -> None:
    serve(given, 0)


def logs_without_end(given: argparse.Namespace) -> None:
    def log() -> None:
        while True:
            print("x" * 1_000_000, flush=True)

    threading.Thread(target=log, daemon=True).start()
    serve(given, given.port)


def ignores_its_end(given: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(given, given.port)


def begins_again(given: argparse.Namespace) -> None:
    """The same pid, another program."""
    words = [word for word in sys.argv if word not in ("--habit", given.habit)]
    os.execv(sys.executable, [sys.executable, *words])


def supervises(given: argparse.Namespace) -> None:
    """Starts a worker, and another once that has ended."""
    command = [sys.executable, __file__, "--port", str(given.port), "--data", given.data]
    while True:
        try:
            subprocess.run(command, check=False)
        except OSError as error:
            sys.exit(f"no worker can be started: {error}")


HABITS = {
    "": lambda given: serve(given, given.port),
    "exits": exits,
    "background": goes_to_the_background,
    "never-ready": is_never_ready,
    "elsewhere": listens_elsewhere,
    "logs": logs_without_end,
    "stubborn": ignores_its_end,
    "again": begins_again,
    "supervisor": supervises,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--habit", choices=HABITS, default="")
    parser.add_argument("--data", default="")
    parser.add_argument("--config", default="")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.config.endswith(".json"):
        AT_START.update(json.loads(Path(given.config).read_text(encoding="utf-8")))
    HABITS[given.habit](given)


if __name__ == "__main__":
    socket.setdefaulttimeout(None)
    main()
