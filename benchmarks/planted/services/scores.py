"""Computes scores in Python, a thread for each connection: scores.py --port PORT [--processes N] [--batch N]
[--log-level LEVEL].

With several processes each listens on the same port (SO_REUSEPORT). --batch and --log-level change nothing that a load
shows.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket

from common import Answer, Server, around, handler

ROUNDS = 60_000


def score(rounds: int) -> int:
    total = 1
    for number in range(rounds):
        total = (total * 31 + number) % 1_000_003
    return total


class Shared(Server):
    allow_reuse_port = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--log-level", default="info")
    arguments = parser.parse_args()
    knobs = {"processes": arguments.processes, "batch": arguments.batch, "log_level": arguments.log_level}

    def work(path: str) -> Answer:
        return 200, f"{score(round(around(ROUNDS)))}\n".encode()

    children = []
    for _ in range(arguments.processes - 1):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            children.clear()
            break
        children.append(child)
    if children:
        signal.signal(signal.SIGTERM, lambda *_: [os.kill(one, signal.SIGTERM) for one in children] and os._exit(0))
    with Shared(("127.0.0.1", arguments.port), handler(work, knobs)) as server:
        print(f"listening on {arguments.port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
