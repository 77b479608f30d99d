"""A server that answers over a Unix socket: `slots` clients are served at once, each for `delay_ms`.

Run as `python -m loadframe_toy.server SOCKET SLOTS DELAY_MS`. It answers "get" with "ok", "served" with the number of
answers since its start, "settings" with its settings.
"""

from __future__ import annotations

import itertools
import os
import socketserver
import sys
import threading
import time

SERVED = itertools.count(1)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
    slots: threading.Semaphore
    delay_s: float
    settings: str
    served = 0


class Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(f"{self.answer(line.decode().strip())}\n".encode())

    def answer(self, asked: str) -> str:
        if asked == "served":
            return str(self.server.served)
        if asked == "settings":
            return self.server.settings
        with self.server.slots:
            time.sleep(self.server.delay_s)
        self.server.served = next(SERVED)
        return "ok"


def main(path: str, slots: str, delay_ms: str) -> None:
    os.umask(0)  # whoever may enter the folder may connect: the driver has a user of its own
    with Server(path, Handler) as server:
        server.slots, server.delay_s = threading.Semaphore(int(slots)), int(delay_ms) / 1e3
        server.settings = f"{slots} {delay_ms}"
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
