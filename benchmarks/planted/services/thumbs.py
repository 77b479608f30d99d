"""Makes thumbnails on a device: a thread for each connection, and a pool of WORKERS threads that wait for the device.

Environment: WORKERS; CACHE_MB and IDLE_TIMEOUT_S, which change nothing that a load shows.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ThreadPoolExecutor

from common import Answer, Gauge, serve, wait

DEVICE_S = 0.02


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    knobs = {
        "workers": int(os.environ.get("WORKERS", "4")),
        "cache_mb": int(os.environ.get("CACHE_MB", "64")),
        "idle_timeout_s": int(os.environ.get("IDLE_TIMEOUT_S", "60")),
    }
    pool, at_work = ThreadPoolExecutor(knobs["workers"], thread_name_prefix="worker"), Gauge()
    picture = os.urandom(2048)

    def shrink() -> bytes:
        with at_work:
            wait(DEVICE_S)
            return picture

    def work(path: str) -> Answer:
        return 200, pool.submit(shrink).result()

    serve(port, work, knobs, lambda: {"thumbs_workers_busy": at_work.value, "thumbs_workers": knobs["workers"]})


if __name__ == "__main__":
    main()
