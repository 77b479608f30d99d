"""Something between a client and a server that listens at a socket of this machine."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Handler(socketserver.BaseRequestHandler):
    """Passes everything on, once `begin` has done what is done at the beginning of a connection."""

    server: "Relay"
    request: socket.socket

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as behind:
            behind.connect(self.server.behind)
            self.begin(behind)
            back = threading.Thread(target=_pass, args=(behind, self.request), daemon=True)
            back.start()
            _pass(self.request, behind)
            back.join(10)

    def begin(self, behind: socket.socket) -> None:
        raise NotImplementedError


class Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    behind: str


@contextmanager
def relay(handler: type[Handler], behind: str) -> Iterator[int]:
    """The port at which it listens, in front of the server with this socket."""
    with Relay(("127.0.0.1", 0), handler) as server:
        server.behind = behind
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            serving.join(10)


def exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = source.recv(size - len(found))
        assert part, "it has closed the connection"
        found += part
    return found


def _pass(source: socket.socket, sink: socket.socket) -> None:
    try:
        while part := source.recv(1 << 16):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # the other end has gone
        return
