"""Answers with quotes as http.server does it by itself: the head is one write, the body another.

quotes.py --port PORT [--nodelay on|off] [--currency NAME] [--depth N]. With Nagle's algorithm on (off: no TCP_NODELAY)
the body waits until the client has acknowledged the head, which it delays by 40 ms. --currency and --depth change
nothing that a load shows.
"""

from __future__ import annotations

import argparse

from common import Answer, Server, handler, wait

LOOK_UP_S = 0.002


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--nodelay", choices=("on", "off"), default="off")
    parser.add_argument("--currency", default="EUR")
    parser.add_argument("--depth", type=int, default=5)
    arguments = parser.parse_args()
    knobs = {"nodelay": arguments.nodelay, "currency": arguments.currency, "depth": arguments.depth}

    def work(path: str) -> Answer:
        wait(LOOK_UP_S)
        return 200, b'{"quote": 101.25}\n'

    answers = handler(work, knobs)
    answers.wbufsize = 0
    answers.disable_nagle_algorithm = arguments.nodelay == "on"
    with Server(("127.0.0.1", arguments.port), answers) as server:
        print(f"listening on {arguments.port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
