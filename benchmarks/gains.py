"""What the cases give on this machine: python benchmarks/gains.py [--times N] [--profile quick|default|full] [CASE...]

Runs each case N times and prints a row per run: the first finding and its status, the load at which it acts, the gain
with its 95 % interval, how many steps were flagged, and how long it took. The figures of the README come from here.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import loadframe
from loadframe.model import Investigation

HEAD = f"{'case':14} {'first finding':28} {'acts at':>8} {'gain':>7} {'interval':>16} {'flagged':>9} {'seconds':>8}"


def row(case: str, found: Investigation) -> str:
    """One line of the table."""
    first = found.rounds[0].findings[0] if found.rounds[0].findings else None
    finding = f"{first.id} ({first.status})" if first else "none"
    acts_at = f"{first.reached_at.load:.3g}" if first and first.reached_at else "-"
    gain = found.gain
    ratio = f"{gain.ratio:.2f}" if gain else "-"
    interval = f"{gain.low:.2f} to {gain.high:.2f}" if gain else "-"
    flagged = sum(found.conduct.flags.values())
    return (
        f"{case:14} {finding:28} {acts_at:>8} {ratio:>7} {interval:>16} "
        f"{f'{flagged} of {found.conduct.steps}':>9} {found.seconds:>8.0f}"
    )


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all of them without any")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", choices=["quick", "default", "full"], default="quick")
    arguments = parser.parse_args()
    names = arguments.cases or [case.name for case in loadframe.cases()]
    loadframe.sweep_leftovers()
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for _ in range(arguments.times):
                study = loadframe.case(name).study(profile=arguments.profile)
                print(row(name, loadframe.investigate(study, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
