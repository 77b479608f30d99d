"""Takes reports of devices, a connection for each: beacon.py --port PORT [--backlog N] [--history N] [--site NAME].

Its loop has a beat of 10 ms, in which it also does other things; at each beat it accepts whoever waits. --history and
--site change nothing that a load shows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from common import around

BEAT_S = 0.01


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int, default=2)
    parser.add_argument("--history", type=int, default=100)
    parser.add_argument("--site", default="north")
    arguments = parser.parse_args()
    knobs = {"backlog": arguments.backlog, "history": arguments.history, "site": arguments.site}
    config = json.dumps(knobs).encode()

    def report(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            received = b""
            while b"\r\n\r\n" not in received:
                more = connection.recv(4096)
                if not more:
                    return
                received += more
            body = config if received.startswith(b"GET /config ") else b"noted\n"
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode() + body)

    with (
        socket.create_server(("127.0.0.1", arguments.port), backlog=arguments.backlog) as listener,
        ThreadPoolExecutor(64) as pool,
    ):
        listener.setblocking(False)
        print(f"listening on {arguments.port}", flush=True)
        while True:
            time.sleep(around(BEAT_S))
            with contextlib.suppress(BlockingIOError):
                while True:
                    connection, _ = listener.accept()
                    pool.submit(report, connection)


if __name__ == "__main__":
    main()
