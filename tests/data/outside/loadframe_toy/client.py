"""One client: asks the toy server until its time is up, and logs each request as Loadframe reads it."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

from loadframe.workloads.request_log import RECORD


def main(arguments: list[str]) -> int:
    """Returns the exit status; what it has written is flushed then."""
    address, log, seconds, pause_ms = arguments
    with socket.socket(socket.AF_UNIX) as connection, Path(log).open("wb", buffering=0) as file:
        connection.connect(address)
        answers = connection.makefile("rb")
        print("ready", flush=True)
        start_s = float(sys.stdin.readline())
        time.sleep(max(0.0, start_s - time.monotonic()))
        while (begin_s := time.monotonic()) < start_s + float(seconds):
            connection.sendall(b"get\n")
            failed = answers.readline() != b"ok\n"
            end_s = time.monotonic()
            file.write(RECORD.pack(end_s, 1e3 * (end_s - begin_s), 0.0, 0, int(failed)))
            time.sleep(int(pause_ms) / 1e3)
    return 0
