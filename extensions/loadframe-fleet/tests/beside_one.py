"""All drivers of a fleet beside the first one alone: `beside_one.py STUDY FLEET RUNS`, at the study's last level.

It prints what the product says of the two, the interval of their ratio at 99.9 %, and the steps of all hosts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import loadframe
from loadframe.analysis import comparison
from loadframe.experiments.frame import new_run, on_bench
from loadframe.experiments.proof import throughputs
from loadframe_fleet.bench import FleetBench
from loadframe_fleet.declaration import load
from loadframe_fleet.over import compare_with, drivers_over
from loadframe_fleet.records import STEPS


def main(study_file: str, fleet_file: str, runs: str) -> None:
    study = loadframe.load_study(Path(study_file))
    with drivers_over(load(Path(fleet_file)), study) as executor:
        run = new_run(study, Path(runs))
        with on_bench(study, run, None, executor=executor) as book:
            assert isinstance(book.bench, FleetBench)
            found = compare_with(book, "A", study.levels[-1], book.bench.drivers[:1])
            names = dict.fromkeys(step.treatment for step in book.steps)
            one, every = (throughputs(book.steps, name) for name in sorted(names, reverse=True))
        verdict = comparison.verdict_at_end(one, every, confidence=0.999)
        steps = [asdict(step) for step in STEPS.of(run)]
        run.close()
    told = {"found": asdict(found), "ratio": verdict.ratio, "low": verdict.low, "high": verdict.high}
    print(json.dumps({**told, "steps": steps}))


if __name__ == "__main__":
    main(*sys.argv[1:])
