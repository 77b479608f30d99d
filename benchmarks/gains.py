"""What the cases give on this machine: python benchmarks/gains.py [--times N] [--profile quick|default|full] [CASE...]

Runs each case N times and prints a row per run: the first finding and its status, the load at which it acts, the gain
with its 95 % interval, what of it keeps durability, how many steps were flagged, and how long it took. With --moved,
the render farm's cause is moved as its README says, and the answer has to move with it. The README's figures are these.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import loadframe
from loadframe.model import Investigation

HEAD = (
    f"{'case':44} {'first finding':38} {'acts at':>8} {'gain':>7} {'interval':>16} "
    f"{'durable':>8} {'flagged':>9} {'seconds':>8}"
)
MOVED = (
    [],
    ["target.settings.table_open_cache=400"],
    ["workload.options.tables_per_job=8"],
    ["cage.open_files=1024"],
    ["target.settings.table_open_cache=4000"],
)


def row(case: str, found: Investigation) -> str:
    """One line of the table."""
    first = found.rounds[0].findings[0] if found.rounds[0].findings else None
    finding = f"{first.id} ({first.status})" if first else found.outcome.kind
    acts_at = f"{first.reached_at.load:.3g}" if first and first.reached_at else "-"
    gain, durable = found.gain, found.gain_durability_kept
    ratio = f"{gain.ratio:.2f}" if gain else "-"
    interval = f"{gain.low:.2f} to {gain.high:.2f}" if gain else "-"
    kept = f"{durable.ratio:.2f}" if durable else "-"
    flagged = f"{sum(found.conduct.flags.values())} of {found.conduct.steps}"
    return f"{case:44} {finding:38} {acts_at:>8} {ratio:>7} {interval:>16} {kept:>8} {flagged:>9} {found.seconds:>8.0f}"


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all of them without any")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", choices=["quick", "default", "full"], default="quick")
    parser.add_argument("--moved", action="store_true", help="the render farm with its cause moved")
    arguments = parser.parse_args()
    names = ["render-farm"] if arguments.moved else arguments.cases or [case.name for case in loadframe.cases()]
    loadframe.sweep_leftovers()
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for overrides in MOVED if arguments.moved else [[]]:
                for _ in range(arguments.times):
                    study = loadframe.case(name).study(profile=arguments.profile, overrides=overrides)
                    found = loadframe.investigate(study, Path(folder))
                    print(row(" ".join([name, *(one.rpartition(".")[2] for one in overrides)]), found), flush=True)


if __name__ == "__main__":
    main()
