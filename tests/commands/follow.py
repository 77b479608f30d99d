"""Keeps a database equal to a tree whose change log is a file, until the log has ended; a test kills it before.

    python follow.py DATABASE.json TREE LOG

Writes one letter to standard output per moment: "s" before and "S" after the scan, "a" before and "A" after each
transaction; "." when all of the log is applied, once standard input has ended.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

from loadframe_index.applying import Following
from loadframe_index.recorded import Recorded
from loadframe_index.store import Batch, connect
from loadframe_index.syscalls import readable


def say(letter: str) -> None:
    os.write(1, letter.encode())


def main(database: str, tree: str, log: str) -> None:
    with closing(connect(json.loads(Path(database).read_text()))) as store:
        apply = store.apply

        def told(batch: Batch) -> None:
            say("a")
            apply(batch)
            say("A")

        store.apply = told  # type: ignore[method-assign]
        reader = Recorded(Path(log), after=store.acknowledged(Recorded.name))
        following = Following(store, Path(tree), reader, batch=7, rows=50)
        say("s")
        following.start()
        say("S")
        while not readable(0):
            following.step(0.01)
        while following.step(0) or not following.drained:
            pass
        say(".")


if __name__ == "__main__":
    main(*sys.argv[1:])
