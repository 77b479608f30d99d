"""Books entries at a terminal that takes one at a time, under a lock: ledger.py --port PORT --config FILE.

The file is INI: [ledger] books (each has a lock of its own); [ledger] page_rows and [log] level, which change nothing
that a load shows.
"""

from __future__ import annotations

import argparse
import configparser
import itertools
import threading
from pathlib import Path

from common import Answer, serve, wait

TERMINAL_S = 0.005


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    given = configparser.ConfigParser()
    given.read(arguments.config)
    knobs = {
        "books": given.getint("ledger", "books", fallback=1),
        "page_rows": given.getint("ledger", "page_rows", fallback=50),
        "level": given.get("log", "level", fallback="info"),
    }
    locks = [threading.Lock() for _ in range(int(knobs["books"]))]
    numbers = itertools.count()

    def work(path: str) -> Answer:
        number = next(numbers)
        with locks[number % len(locks)]:
            wait(TERMINAL_S)
        return 200, f"booked {number}\n".encode()

    serve(arguments.port, work, knobs)


if __name__ == "__main__":
    main()
