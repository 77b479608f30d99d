"""What a start as another user costs, with a /tmp of its own and without: python benchmarks/spawning.py [--pairs N]

Root only. Pairs in random order; the median of each side and of the differences, with a 95 % bootstrap interval.
"""

import argparse
import random
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources, spawn

DRAWS = 2000


def started_ms(command: Sequence[str], allowance: Allowance) -> float:
    began_s = time.perf_counter()
    process = spawn(command, allowance, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took_s = time.perf_counter() - began_s
    if (status := process.wait()) != 0:
        raise SystemExit(f"{command[0]} ended with {status}")
    return 1e3 * took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    pairs = parser.parse_args().pairs
    with Lease.acquire("benchmarks/spawning.py") as lease:
        plain = Resources().run_by(lease.runs_as)
        sides = ((0, replace(plain, shared_group=lease.user)), (1, lease.admitted(plain)))
        rows = []
        for _ in range(pairs):
            took = {side: started_ms(["true"], allowance) for side, allowance in random.sample(sides, 2)}
            rows.append((took[0], took[1]))
    values = np.array(rows)
    more = values[:, 1] - values[:, 0]
    draws = np.median(np.random.default_rng(1).choice(more, (DRAWS, pairs)), axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    before, after = np.median(values, axis=0)
    print(f"a start: {before:.1f} ms; with a /tmp of its own: {after:.1f}")
    print(f"the median pair: {np.median(more):.1f} ms more ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
