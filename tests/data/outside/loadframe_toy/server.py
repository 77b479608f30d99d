"""A server that answers over a Unix socket: `slots` clients are served at once, each for `delay_ms` on average
(half to one and a half times that).

Run as `python -m loadframe_toy.server SOCKET SLOTS DELAY_MS`. It answers "get" with "ok"; "counters" with the answers
since its start, those of them that waited for a slot, the most slots in use at once since "reset", and the slots;
"settings" with its settings.
"""

from __future__ import annotations

import os
import random
import socketserver
import sys
import threading
import time


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: str, slots: int, delay_ms: int) -> None:
        super().__init__(path, Handler)
        self.slots, self.delay_s = slots, delay_ms / 1e3
        self.freed = threading.Condition()
        self.served = self.waited = self.used = self.most = 0

    def serve(self) -> None:
        with self.freed:
            self.waited += self.used >= self.slots
            self.freed.wait_for(lambda: self.used < self.slots)
            self.used += 1
            self.most = max(self.most, self.used)
        time.sleep(self.delay_s * random.uniform(0.5, 1.5))
        with self.freed:
            self.used -= 1
            self.served += 1
            self.freed.notify()


class Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(f"{self.answer(line.decode().strip())}\n".encode())

    def answer(self, asked: str) -> str:
        server = self.server
        if asked == "counters":
            return f"{server.served} {server.waited} {server.most} {server.slots}"
        if asked == "settings":
            return f"{server.slots} {server.delay_s * 1e3:.0f}"
        if asked == "reset":
            server.most = server.used
        else:
            server.serve()
        return "ok"


def main(path: str, slots: str, delay_ms: str) -> None:
    os.umask(0)  # whoever may enter the folder may connect: the driver has a user of its own
    with Server(path, int(slots), int(delay_ms)) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
