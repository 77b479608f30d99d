"""Keeps documents, each safe on the disk before it is confirmed: journal.py --port PORT --data FOLDER --config FILE.

The file has lines NAME=VALUE: sync (always, or never: the system writes when it likes, and a power loss takes what it
has not); index_pages and checksum, which change nothing that a load shows. A document, its index and a line of the log
are written aside, flushed and renamed, and then the folder flushed, one document at a time.
"""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path

from common import Answer, around, serve

BYTES = 4096
FILES = 256
PARTS = ("document", "index", "log")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    lines = (line.split("=", 1) for line in arguments.config.read_text().splitlines() if "=" in line)
    given = {name.strip(): value.strip() for name, value in lines}
    knobs = {"sync": "always", "index_pages": "64", "checksum": "crc32", **given}
    arguments.data.mkdir(exist_ok=True)
    folder = os.open(arguments.data, os.O_RDONLY)
    writing, flushed = threading.Lock(), knobs["sync"] == "always"
    count = 0

    def work(path: str) -> Answer:
        nonlocal count
        text = os.urandom(max(1, round(around(BYTES))))
        with writing:
            count += 1
            for part in PARTS:
                aside = os.open("aside", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=folder)
                os.write(aside, text)
                if flushed:
                    os.fsync(aside)
                os.close(aside)
                os.rename("aside", f"{count % FILES}.{part}", src_dir_fd=folder, dst_dir_fd=folder)
            if flushed:
                os.fsync(folder)
        return 200, f"{count}\n".encode()

    serve(arguments.port, work, knobs)


if __name__ == "__main__":
    main()
