"""Draws a map of four layers, each a file that is open while it is drawn (20 ms): a drawing takes four more open files.

atlas.py PORT FOLDER. Environment: HANDLES, the soft limit of open files that it sets itself; QUALITY and RECENT, which
change nothing that a load shows. Where a layer cannot be opened, it answers 503.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import ExitStack
from pathlib import Path

from common import Answer, serve, wait

DRAW_S = 0.02
LAYERS = ("water", "roads", "relief", "labels")


def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    knobs = {
        "handles": int(os.environ.get("HANDLES", "40")),
        "quality": int(os.environ.get("QUALITY", "80")),
        "recent": int(os.environ.get("RECENT", "100")),
    }
    for layer in LAYERS:
        (folder / layer).write_bytes(layer.encode() * 40)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (knobs["handles"], most))

    def work(path: str) -> Answer:
        with ExitStack() as stack:
            try:
                layers = [stack.enter_context((folder / layer).open("rb", buffering=0)) for layer in LAYERS]
            except OSError:
                return 503, b"try again\n"
            wait(DRAW_S)
            return 200, b"".join(layer.read(16) for layer in layers)

    serve(port, work, knobs)


if __name__ == "__main__":
    main()
