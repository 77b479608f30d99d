"""How many changes per second a database follows: python benchmarks/following.py [--entries N] [SOURCE ...]

On a tree of its own and an SQLite file, with the program that keeps a database current. Of each source (injected,
inotify, fanotify) first as many changes as come at once: what is applied per second, and the time of a record in the
file system and in the database. Then at parts of that rate: the lag in the middle and at the end, and whether it is
followed without end (docs/growth.md). Changes of inotify and fanotify are real ones, made by one process at its own
speed where that is lower: then that is what was offered. After each run the database is compared with the tree; ends
with 1 where they differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.host.environment import python
from loadframe_index import seeded
from loadframe_index.config import RESULT, STATISTICS
from loadframe_index.keeping import INJECTED, Keeping
from loadframe_index.store import connect
from loadframe_watch.growth.lag import Following, followed, following
from loadframe_watch.growth.report import following_sentences
from tree_churn import changing, permit
from whole_tree import everything

SOURCES = (INJECTED, "inotify", "fanotify")
FLAT_OUT = 200_000.0
PARTS = (0.5, 0.7, 0.9, 1.2)
HEAD = f"{'source':<9} {'changes/s':>9} {'applied/s':>10} {'fs ms':>8} {'db ms':>8} {'lag s':>8} {'at end':>8}  lost  "
PRAGMAS = '{"journal_mode": "wal", "synchronous": "NORMAL"}'
PROGRAM = tuple(python("loadframe_index.keeping"))


@dataclass(frozen=True, slots=True)
class Run:
    """applied: records per second. middle_s, end_s: the lag. follows: what its lag shows. differs: from the tree, in
    words."""

    applied: float
    fs_ms: float
    db_ms: float
    middle_s: float
    end_s: float
    lost: int
    follows: Following
    differs: str


def run(folder: Path, tree: Path, database: dict[str, str], source: str, rate: float, seconds: float) -> Run:
    """Once, and the comparison. subprocess.CalledProcessError where the program refuses."""
    place = Path(tempfile.mkdtemp(dir=folder))
    keeping = Keeping(
        tree=str(tree),
        folder=str(place),
        database=database,
        log=source,
        change_rate=rate,
        seconds=seconds,
        drain=source != INJECTED,  # whose records leave the tree as it is
    )
    (place / "config.json").write_text(keeping.text())
    command = [*PROGRAM, str(place / "config.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin and program.stdout
        if program.stdout.readline() == "ready\n":
            program.stdin.write(f"{time.monotonic()!r}\n")
            program.stdin.flush()
        with changing(tree, rate) if rate and source != INJECTED else nullcontext():
            while program.poll() is None and not (place / RESULT).exists():
                time.sleep(0.01)
        program.communicate()
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, command)
    told = json.loads((place / RESULT).read_text())
    lines = [json.loads(line) for line in (place / STATISTICS).read_text().splitlines()]
    lags = [line["lag_s"] for line in lines if "log" in line][:-1] or [0.0]
    with closing(connect(database)) as store:
        compared = everything(store, tree)
    last = {line["stage"]: line for line in lines if "stage" in line}
    records = max(1, [line["applied"] for line in lines if "log" in line][-1])
    return Run(
        told["applied"] / told["seconds"],
        1e3 * last["GET_INFO_FS"]["busy_s"] / records,
        1e3 * last["DB_APPLY"]["busy_s"] / records,
        lags[len(lags) // 2],
        told["lag_s"],
        len(told["lost"]),
        _follows([line for line in lines if "log" in line], told["seconds"], rate if source == INJECTED else None),
        "" if compared.equal else str(compared),
    )


def _follows(lines: Sequence[dict[str, Any]], seconds: float, rate: float | None) -> Following:
    """From the lines of the log: the age of what is applied is so many changes at the rate at which they come. rate:
    that of the changes; without one they are made as fast as they were read."""
    kept = [line for line in lines if line["time"] <= lines[0]["time"] + seconds]
    span, count = kept[-1]["time"] - kept[0]["time"], kept[-1]["read"] - kept[0]["read"]
    offered = rate or max(1.0, count / max(span, 1e-9))
    return following([line["time"] for line in kept], [offered * line["lag_s"] for line in kept], offered)


def shown(source: str, asked: str, one: Run) -> str:
    said = f"{one.middle_s:8.2f} {one.end_s:8.2f} {one.lost:>5}  {one.follows.verdict}"
    return f"{source:<9} {asked:>9} {one.applied:>10,.0f} {one.fs_ms:>8.3f} {one.db_ms:>8.3f} {said}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", default=list(SOURCES), metavar="SOURCE", help=", ".join(SOURCES))
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=4.0)
    given: Any = parser.parse_args(arguments)
    differs: list[str] = []
    print(HEAD)
    with tempfile.TemporaryDirectory(prefix="loadframe-") as name:
        folder = Path(name)
        for source in given.sources:
            tree, path = folder / f"tree-{source}", folder / f"{source}.db"
            seeded.make(tree, seeded.Shape(entries=given.entries))
            permit(tree)
            path.touch()
            database = {"kind": "sqlite", "path": str(path), "pragmas": PRAGMAS}
            with closing(connect(database)) as store:
                store.create("all")
            if source == INJECTED:  # it makes records over what the database has
                run(folder, tree, database, "inotify", 0.0, 0.1)
            most = run(folder, tree, database, source, FLAT_OUT, given.seconds)
            runs = {"most": most}
            for part in PARTS:
                rate = max(1.0, part * most.applied)
                runs[f"{rate:,.0f}"] = run(folder, tree, database, source, rate, given.seconds)
            for asked, one in runs.items():
                print(shown(source, asked, one), flush=True)
                differs += [one.differs] if one.differs else []
            print("\n".join(following_sentences(followed([one.follows for one in runs.values()]))), flush=True)
    for one in differs:
        print(f"the database and the tree differ: {one}")
    return bool(differs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
