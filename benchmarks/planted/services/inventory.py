"""What the gateway asks: answers from shelves that SLOTS can be at, at a time. inventory.py PORT [SLOTS]"""

from __future__ import annotations

import sys
import threading

from common import Answer, serve, wait

SHELF_S = 0.015


def main() -> None:
    port, slots = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    free = threading.BoundedSemaphore(slots)

    def work(path: str) -> Answer:
        with free:
            wait(SHELF_S)
        return 200, b'{"stock": 7}\n'

    serve(port, work, {"slots": slots})


if __name__ == "__main__":
    main()
