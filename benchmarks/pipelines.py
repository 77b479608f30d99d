"""Which stage limits real pipelines: python benchmarks/pipelines.py [--seconds S] [--json] [NAME...]

Each pipeline of PIPELINES runs as a program of its own (benchmarks/planted/services/press.py) and prints its stages.
Loadframe reads the lines; three rules of thumb say something of the same lines: the stage that has most CPU time, the
longest queue, and the longest operation. The truth is moved: the named stage is given twice the workers (or four times
the batch) and the pipeline runs again, and every other stage twice the workers. It is `as planted` where the first
gives GAINS times the entries at least and no other does. Where all stages are alike, or two take turns at a lock, no
single stage gains: right is who names none, or says that others limit as well; of a lock also a stage that has it.
Whether stages wait for a CPU their lines do not tell: `investigate` does (planted/pipeline-interpreter.toml).

Ends with 1 where Loadframe names a wrong stage, or tells less than LEAST_TOLD of those that have one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.recording.metrics import of_readings
from loadframe_pipelines.families import in_order
from loadframe_pipelines.stage_tail import Tail
from loadframe_pipelines.stages import Limiting, Stage, limiting, stages_in

PROGRAM = Path(__file__).parent / "planted/services/press.py"
WARM_S, GAINS = 0.7, 1.25
AT_ONCE = 3
"""Pipelines that wait; those that compute run alone."""
LEAST_TOLD = 0.9
NONE, SOURCE, SEVERAL = "none", "source", "and others"
RULES = ("loadframe", "most CPU", "longest queue", "longest operation")


@dataclass(frozen=True)
class Pipeline:
    """right: the stages of which each may be named, or SOURCE; NONE: no single one gains, and none need be named.
    more: the option that gives the right one more, where it is not its workers."""

    name: str
    stages: tuple[str, ...]
    right: tuple[str, ...]
    options: tuple[str, ...] = ()
    more: Mapping[str, str] | None = None
    computes: bool = False


PIPELINES = (
    Pipeline("slow sink", ("READ,workers=2,ms=2", "PARSE,workers=2,ms=2", "WRITE,workers=2,ms=12"), ("WRITE",)),
    Pipeline("slow source", ("READ,workers=1,ms=12", "PARSE,workers=2,ms=4", "WRITE,workers=2,ms=8"), ("READ",)),
    Pipeline(
        "source from outside",
        ("READ,workers=2,ms=2", "PARSE,workers=2,ms=4", "WRITE,workers=2,ms=6"),
        (SOURCE,),
        ("--rate", "120"),
    ),
    Pipeline(
        "one worker in the middle",
        ("READ,workers=4,ms=6", "STAT,workers=1,ms=5", "PARSE,workers=4,ms=8", "WRITE,workers=4,ms=9"),
        ("STAT",),
    ),
    Pipeline(
        "batches of one",
        ("READ,workers=2,ms=3", "PARSE,workers=2,ms=3", "APPLY,workers=1,fixed=6,ms=0.2,batch=1"),
        ("APPLY",),
        more={"BATCH_APPLY": "4"},
    ),
    Pipeline(
        "long operations, many workers",
        ("READ,workers=2,ms=1", "FETCH,workers=12,ms=40", "HASH,workers=1,ms=8", "WRITE,workers=8,ms=30"),
        ("HASH",),
    ),
    Pipeline(
        "deep queue before a fast stage",
        ("READ,workers=2,ms=3", "PARSE,workers=2,ms=5.5,room=2000", "WRITE,workers=1,ms=6,room=4"),
        ("WRITE",),
    ),
    Pipeline(
        "CPU in a stage that is not short",
        ("READ,workers=2,ms=4", "HASH,workers=4,cpu=1.5", "WRITE,workers=1,ms=8"),
        ("WRITE",),
        computes=True,
    ),
    Pipeline(
        "large batches behind it",
        ("READ,workers=1,ms=5", "STAT,workers=2,ms=4", "APPLY,workers=1,fixed=20,ms=0.5,batch=50,room=500"),
        ("READ",),
    ),
    Pipeline(
        "one pool for all",
        ("READ,ms=1", "STAT,ms=6", "APPLY,ms=2"),
        ("STAT",),
        ("--pool", "4"),
    ),
    Pipeline("all alike", ("READ,workers=2,ms=8", "PARSE,workers=2,ms=8", "WRITE,workers=2,ms=8"), (NONE,)),
    Pipeline(
        "a lock between two",
        ("READ,workers=2,ms=2", "LOOK,workers=2,ms=4,lock=db", "WRITE,workers=2,ms=4,lock=db"),
        (NONE, "LOOK", "WRITE"),
    ),
)


@dataclass(frozen=True)
class Seen:
    """What its lines said: metrics of the window, and of each stage its CPU time."""

    metrics: Mapping[str, float]
    cpu: Mapping[str, float]

    @property
    def entries(self) -> float:
        """A second, of the last stage."""
        return self.metrics[f"pipeline.{in_order(self.metrics)[-1]}.entries"]


def ran(pipeline: Pipeline, seconds: float, more: Mapping[str, str] | None = None) -> Seen:
    """The lines of one run."""
    stages = [word for stage in pipeline.stages for word in ("--stage", stage)]
    command = [sys.executable, str(PROGRAM), *stages, *pipeline.options, "--seconds", str(WARM_S + seconds)]
    with tempfile.TemporaryDirectory() as folder:
        file, tail = Path(folder) / "stages.jsonl", Tail()
        with file.open("w") as log, tail.watching([], [file]):
            subprocess.run(command, check=True, stdout=log, env=dict(more or {}), timeout=60 + 2 * seconds)
        cpu = Counter[str]()
        for line in map(json.loads, file.read_text().splitlines()):
            cpu[line["stage"]] = line["cpu_s"]
        readings = tail.readings()
    begin_s, end_s = readings[0].at_s + WARM_S, readings[-1].at_s
    notes = [(one.at_s, one.counters) for one in readings]
    return Seen(of_readings(notes, begin_s, end_s, tail.counter_specs), cpu)


def answers(seen: Seen) -> dict[str, str]:
    """What each rule names."""
    stages = stages_in(seen.metrics)
    found = limiting(stages)
    return {
        "loadframe": NONE if isinstance(found, str) else _named(found, stages),
        "most CPU": max(stages, key=lambda one: seen.cpu[one.name]).name,
        "longest queue": max(stages, key=lambda one: one.waiting or 0.0).name,
        "longest operation": max(stages, key=lambda one: one.ms_per_op or 0.0).name,
    }


def _named(found: Limiting, stages: Sequence[Stage]) -> str:
    """SEVERAL where it says that another one limits as well."""
    if found.kind == "source":
        return SOURCE
    return stages[found.at].name if found.also is None else f"{stages[found.at].name} {SEVERAL}"


def gains(pipeline: Pipeline, before: Seen, seconds: float) -> dict[str, float]:
    """Of each stage how many times the entries come with twice its workers, or with `more` of the right one."""
    found = {}
    for stage in pipeline.stages:
        name, *pairs = stage.split(",")
        workers = int(dict(pair.split("=") for pair in pairs).get("workers", "1"))
        more = {f"WORKERS_{name}": str(2 * workers)}
        if pipeline.more is not None and name in pipeline.right:
            more = dict(pipeline.more)
        found[name] = ran(pipeline, seconds, more).entries / before.entries
    return found


def as_planted(pipeline: Pipeline, found: Mapping[str, float]) -> bool:
    """Whether what was planted is there."""
    lifts = {name for name, gain in found.items() if gain >= GAINS}
    return lifts == set(pipeline.right) if not {NONE, SOURCE} & set(pipeline.right) else not lifts


def judged(pipeline: Pipeline, seconds: float, *, moved: bool) -> dict[str, Any]:
    """One pipeline: what each rule names, whether it is right, and whether it is as planted."""
    seen = ran(pipeline, seconds)
    named = answers(seen)
    outcomes = {rule: outcome(pipeline, answer) for rule, answer in named.items()}
    found: dict[str, Any] = {"name": pipeline.name, "right": pipeline.right, "named": named, "outcome": outcomes}
    if not moved or "--pool" in pipeline.options:  # its workers are no stage's
        return {**found, "gains": {}, "as_planted": None}
    times = {name: round(gain, 2) for name, gain in gains(pipeline, seen, seconds).items()}
    return {**found, "gains": times, "as_planted": as_planted(pipeline, times)}


def outcome(pipeline: Pipeline, answer: str) -> str:
    """ "right", "wrong" or "not told"."""
    if answer.removesuffix(f" {SEVERAL}") in pipeline.right or (NONE in pipeline.right and answer.endswith(SEVERAL)):
        return "right"
    return "not told" if answer == NONE else "wrong"


def all_judged(chosen: Sequence[Pipeline], seconds: float, *, moved: bool) -> Iterator[dict[str, Any]]:
    """Those that wait run beside others; the others alone."""
    with ThreadPoolExecutor(AT_ONCE) as several:
        waiting = [one for one in chosen if not one.computes]
        yield from several.map(lambda one: judged(one, seconds, moved=moved), waiting)
    for one in chosen:
        if one.computes:
            yield judged(one, seconds, moved=moved)


def main() -> int:
    """1 where Loadframe names a wrong one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--not-moved", action="store_true", help="do not check that they are as planted")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    chosen = [one for one in PIPELINES if not given.names or one.name in given.names]
    began_s, rows = time.monotonic(), list[dict[str, Any]]()
    counts = {rule: Counter[str]() for rule in RULES}
    for turn in range(given.times):
        for row in all_judged(chosen, given.seconds, moved=not given.not_moved and turn == 0):
            rows.append(row)
            for rule in RULES:
                counts[rule][row["outcome"][rule]] += 1
            if not given.json:
                said = "; ".join(f"{rule}: {answer}" for rule, answer in dict(row["named"]).items())  # type: ignore[call-overload]
                print(
                    f"{row['name']} ({', '.join(dict.fromkeys(row['right']))}): {said}; as planted: {row['as_planted']}"
                )  # type: ignore[call-overload]
    if given.json:
        print(json.dumps({"schema": "loadframe.pipelines-score/1", "rows": rows, "rules": counts}))
    else:
        print(f"\n| rule | right | not told | wrong |\n|---|---|---|---|   ({time.monotonic() - began_s:.0f} s)")
        for rule, found in counts.items():
            print(f"| {rule} | {found['right']} | {found['not told']} | {found['wrong']} |")
    ours = counts["loadframe"]
    return int(ours["wrong"] > 0 or ours["right"] < LEAST_TOLD * sum(ours.values()))


if __name__ == "__main__":
    sys.exit(main())
