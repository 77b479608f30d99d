"""Finds routes over a map that a feed makes larger all the time: its cost grows with time, whatever the load.

routes.py PORT. Environment: FEED (on, or off); HEURISTIC and PRECISION, which change nothing that a load shows.
"""

from __future__ import annotations

import os
import sys
import time

from common import Answer, serve, wait

FIRST_S = 0.004
GROWTH = 0.06
"""Of FIRST_S, each second."""


def main() -> None:
    knobs = {
        "feed": os.environ.get("FEED", "on"),
        "heuristic": os.environ.get("HEURISTIC", "straight"),
        "precision": int(os.environ.get("PRECISION", "6")),
    }
    began_s = time.monotonic()

    def work(path: str) -> Answer:
        age_s = time.monotonic() - began_s if knobs["feed"] == "on" else 0.0
        wait(FIRST_S * (1 + GROWTH * age_s))
        return 200, b"straight on\n"

    serve(int(sys.argv[1]), work, knobs)


if __name__ == "__main__":
    main()
