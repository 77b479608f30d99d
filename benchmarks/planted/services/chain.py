"""Renders pages: a worker of a pool, and within its work a connection of a smaller number to a font service.

chain.py --port PORT --config FILE. The file is TOML: workers, [fonts] connections; [fonts] cache and preview, which
change nothing that a load shows.
"""

from __future__ import annotations

import argparse
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import Answer, serve, wait

LAYOUT_S, FONTS_S = 0.004, 0.016


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    given = tomllib.loads(arguments.config.read_text())
    fonts = given.get("fonts", {})
    knobs = {
        "workers": given.get("workers", 4),
        "connections": fonts.get("connections", 8),
        "cache": fonts.get("cache", 16),
        "preview": given.get("preview", False),
    }
    pool = ThreadPoolExecutor(knobs["workers"], thread_name_prefix="render")
    connections = threading.BoundedSemaphore(knobs["connections"])

    def render() -> bytes:
        wait(LAYOUT_S)
        with connections:
            wait(FONTS_S)
        return b"<p>rendered</p>\n" * 40

    def work(path: str) -> Answer:
        return 200, pool.submit(render).result()

    serve(arguments.port, work, knobs)


if __name__ == "__main__":
    main()
