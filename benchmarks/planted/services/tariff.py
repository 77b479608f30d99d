"""Quotes a price by a partner's tariff: 15 ms each, and no more than RATE a second (a token bucket), however many ask.

Environment: RATE; CURRENCY and KEEP_DAYS, which change nothing that a load shows.
"""

from __future__ import annotations

import argparse
import os
import threading
import time

from common import Answer, serve, wait

PARTNER_S = 0.015
BURST = 5


class Bucket:
    """A turn every 1 / rate seconds, of which a few that were not taken are kept."""

    def __init__(self, rate: float) -> None:
        self._every_s = 1.0 / rate
        self._next_s = 0.0
        self._lock = threading.Lock()

    def take(self) -> None:
        with self._lock:
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - BURST * self._every_s) + self._every_s
            wait_s = self._next_s - now_s
        if wait_s > 0:
            time.sleep(wait_s)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    knobs = {
        "rate": int(os.environ.get("RATE", "250")),
        "currency": os.environ.get("CURRENCY", "EUR"),
        "keep_days": int(os.environ.get("KEEP_DAYS", "30")),
    }
    bucket = Bucket(float(knobs["rate"]))

    def work(path: str) -> Answer:
        bucket.take()
        wait(PARTNER_S)
        return 200, b"12.50\n"

    serve(port, work, knobs)


if __name__ == "__main__":
    main()
