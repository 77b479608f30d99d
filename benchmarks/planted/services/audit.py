"""Checks the marks of each request against those of all before it, which it keeps: its cost grows with the requests
served.

audit.py PORT. Environment: KEEP (how many it keeps; 0: all); REGION and EXPORT_BATCH, which change nothing that a load
shows.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque

from common import Answer, around, serve, wait

STORE_S = 0.002
DISTINCT = 1 << 50
NEAR = 3
MARKS = 3
"""Of a request: its account, device and address."""


def main() -> None:
    knobs = {
        "keep": int(os.environ.get("KEEP", "0")),
        "region": os.environ.get("REGION", "eu"),
        "export_batch": int(os.environ.get("EXPORT_BATCH", "500")),
    }
    seen: deque[int] = deque(maxlen=int(str(knobs["keep"])) or None)
    lock = threading.Lock()

    def work(path: str) -> Answer:
        marks = [round(around(DISTINCT)) for _ in range(MARKS)]
        wait(STORE_S)
        with lock:
            known = any(abs(marks[0] - other) < NEAR for other in seen)
            seen.extend(marks)
        return 200, b"seen before\n" if known else b"new\n"

    serve(int(sys.argv[1]), work, knobs, lambda: {"audit_kept": len(seen)})


if __name__ == "__main__":
    main()
