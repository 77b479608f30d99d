"""What a program says through a pipe, bounded in bytes and in time. Light: the lasting process of a watch imports
it."""

import os
import select
import subprocess
import time
from typing import IO

PIECE = 1 << 16


def until_end(stream: IO[bytes], until_s: float, most_bytes: int) -> bytes:
    """What comes from a pipe until its end, or until it is more than most_bytes. until_s: a moment of CLOCK_MONOTONIC;
    then subprocess.TimeoutExpired."""
    said = bytearray()
    while len(said) <= most_bytes:
        if not select.select([stream], [], [], max(0.0, until_s - time.monotonic()))[0]:
            raise subprocess.TimeoutExpired("", 0.0)
        piece = os.read(stream.fileno(), PIECE)
        if not piece:
            break
        said += piece
    return bytes(said)
