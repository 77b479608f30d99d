"""Books a seat in 5 ms under the lock of its row. With one row of seats, one at a time.

kiosk.py PORT. Environment: ROWS; DIGITS, which has the same value and changes nothing that a load shows, and HALL.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading

from common import Answer, serve, wait

BOOK_S = 0.005


def main() -> None:
    knobs = {
        "digits": int(os.environ.get("DIGITS", "1")),
        "hall": os.environ.get("HALL", "east"),
        "rows": int(os.environ.get("ROWS", "1")),
    }
    rows = [threading.Lock() for _ in range(int(str(knobs["rows"])))]
    turns = itertools.count()

    def work(path: str) -> Answer:
        with rows[next(turns) % len(rows)]:
            wait(BOOK_S)
        return 200, b"booked\n"

    serve(int(sys.argv[1]), work, knobs)


if __name__ == "__main__":
    main()
