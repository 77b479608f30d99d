"""Takes a coupon in 8 ms of waiting, and looks through all that were taken before: their CPU time grows, and is a small
part of the response time for long.

coupons.py PORT. Environment: TILL and RECEIPTS, which change nothing that a load shows.
"""

from __future__ import annotations

import os
import sys
import threading

from common import Answer, serve, wait

PRINTER_S = 0.008


def main() -> None:
    knobs = {"till": os.environ.get("TILL", "north"), "receipts": int(os.environ.get("RECEIPTS", "50"))}
    taken: list[str] = []
    lock = threading.Lock()

    def work(path: str) -> Answer:
        wait(PRINTER_S)
        with lock:
            code = f"{17 * len(taken):010d}"
            alike = sum(1 for other in taken for end in range(5, 11) if other[:end] == code[:end])
            taken.append(code)
        return 200, b"taken\n" if alike < 1000 else b"refused\n"

    serve(int(sys.argv[1]), work, knobs)


if __name__ == "__main__":
    main()
