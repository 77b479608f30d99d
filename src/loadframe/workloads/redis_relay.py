"""Runs redis-benchmark part after part for the length of a step, and notes when each part ended.

A program of its own, beside redis-benchmark under the same user and in the same cage. redis-benchmark sends a number of
requests and then prints one distribution of their latencies: parts of about a second show how both go on. Each line of
the output is {"begin": .., "end": .. (CLOCK_MONOTONIC, s), "text": ..}.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

FIRST_REQUESTS = 200
"""Of the first part, for each client: too short to tell the rate well, long enough to size the next."""
SHORTEST_S, LONGEST_S = 0.25, 1.0
PARTS = 6
"""At least as many in a step."""
LATE_S = 1.0
"""How long the last part may take beyond the step."""
MOST_TEXT = 64 << 10


def main(arguments: list[str]) -> int:
    """arguments: the duration in s, the clients, and redis-benchmark with its own, but for -n."""
    duration_s, clients, command = float(arguments[0]), int(arguments[1]), arguments[2:]
    until = time.monotonic() + duration_s
    part_s = min(max(duration_s / PARTS, SHORTEST_S), LONGEST_S)
    count, rate = FIRST_REQUESTS * clients, 0.0
    while (begin := time.monotonic()) < until:
        if rate > 0:
            count = max(int(rate * min(part_s, until - begin)), clients)
        text = _part([*command, "-n", str(count)], until + LATE_S - begin)
        if text is None:
            return 1
        end = time.monotonic()
        print(json.dumps({"begin": begin, "end": end, "text": text[:MOST_TEXT]}), flush=True)
        rate = count / (end - begin)
    return 0


def _part(command: list[str], within_s: float) -> str | None:
    """The report of one part; None, with what it said on our standard error, where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=within_s, check=False)
    except subprocess.TimeoutExpired:
        print(f"redis-benchmark did not end within {within_s:.3g} s", file=sys.stderr)
        return None
    text = done.stdout.decode("utf-8", "replace")
    report = text.rpartition("======\n")
    title = report[0].rpartition("====== ")[2].strip()
    if done.returncode or not title:
        print(done.stderr.decode("utf-8", "replace")[-2000:], text[-2000:], sep="\n", file=sys.stderr)
        print(f"redis-benchmark ended with {done.returncode}", file=sys.stderr)
        return None
    return f"====== {title} ======\n{report[2]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
