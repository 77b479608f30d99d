"""A small service that answers as it is told, and remembers what it was sent."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from loadframe.model import Endpoint


@dataclass(frozen=True)
class Sent:
    """A request as it came. connection: its number; headers: by their names in lower case."""

    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Service:
    """answer: of a request, the whole answer; b"" closes the connection without one."""

    answer: Callable[[Sent], bytes]
    sent: list[Sent] = field(default_factory=list)
    connections: int = 0
    address: str = ""

    def endpoint(self, kind: str = "service", *, attached: bool = False) -> Endpoint:
        return Endpoint(kind, self.address, {"paths": "/"}, attached=attached)


def said(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    """An answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


@contextmanager
def serving(answer: Callable[[Sent], bytes], *, silent_s: float | None = None, port: int = 0) -> Iterator[Service]:
    """silent_s: after which a connection without a request is closed. port: 0: any that is free."""
    service = Service(answer)

    class Handler(socketserver.StreamRequestHandler):
        timeout = silent_s

        def handle(self) -> None:
            service.connections += 1
            mine = service.connections
            try:
                while line := self.rfile.readline():
                    heads = [head.decode("latin-1").partition(":") for head in iter(self.rfile.readline, b"\r\n")]
                    headers = {name.strip().lower(): value.strip() for name, _, value in heads}
                    body = self.rfile.read(int(headers.get("content-length", 0)))
                    method, path, _ = line.decode("latin-1").split(" ", 2)
                    request = Sent(mine, method, path, headers, body)
                    service.sent.append(request)
                    found = service.answer(request)
                    if not found:
                        return
                    closing = headers.get("connection") == "close"
                    self.wfile.write(found.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) if closing else found)
                    if closing:
                        return
            except OSError:  # the driver has gone, or was silent
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128
        allow_reuse_address = True

    with Server(("127.0.0.1", port), Handler) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
        service.address = f"127.0.0.1:{listening.server_address[1]}"
        try:
            yield service
        finally:
            listening.shutdown()
