"""Keeps a session of each connection in files: a journal, an index and a lock, open as long as the connection is.

spool.py PORT FOLDER. Environment: RETENTION_DAYS and COMPRESSION, which change nothing that a load shows. Where no more
files may be open (EMFILE), the session is refused with 503, and a connection waits until one can be accepted.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

from common import wait

STORE_S = 0.008
FILES = ("journal", "index", "lock")
KNOBS = {
    "retention_days": int(os.environ.get("RETENTION_DAYS", "30")),
    "compression": os.environ.get("COMPRESSION", "none"),
}


def answer(connection: socket.socket, status: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def session(connection: socket.socket, folder: Path) -> None:
    """Serve one connection to its end; its files are opened with its first request, and tried again while there are
    none."""
    files: list[int] = []
    received = b""
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        stack.callback(lambda: [os.close(each) for each in files])
        while True:
            while b"\r\n\r\n" not in received:
                more = connection.recv(4096)
                if not more:
                    return
                received += more
            head, received = received.split(b"\r\n\r\n", 1)
            if head.startswith(b"GET /config "):
                answer(connection, "200 OK", json.dumps(KNOBS).encode())
            elif files or opened(files, folder):
                wait(STORE_S)
                os.pwrite(files[0], head, 0)
                answer(connection, "200 OK", b"stored\n")
            else:
                answer(connection, "503 Service Unavailable", b"out of files\n")


def opened(files: list[int], folder: Path) -> bool:
    """Whether all files of a session could be opened."""
    name = threading.get_ident()
    try:
        files.extend(os.open(folder / f"{name}.{each}", os.O_RDWR | os.O_CREAT, 0o600) for each in FILES)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        print(f"spool: {error}", file=sys.stderr, flush=True)
        while files:
            os.close(files.pop())
        time.sleep(0.01)
    return bool(files)


def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", port), backlog=512) as listener:
        print(f"listening on {port}", flush=True)
        while True:
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if error.errno != errno.EMFILE:
                    raise
                print(f"accept: {error}", file=sys.stderr, flush=True)
                time.sleep(0.05)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def run(accepted: socket.socket = connection) -> None:
                with contextlib.suppress(ConnectionError):
                    session(accepted, folder)

            threading.Thread(target=run, daemon=True).start()


if __name__ == "__main__":
    main()
