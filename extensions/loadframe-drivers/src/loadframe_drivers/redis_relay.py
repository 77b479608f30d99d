"""Runs redis-benchmark part after part for the length of a step, or memtier_benchmark once, under the same user and
resource limits. Each line of the output is {"begin": .., "end": .., "text": ..}, times in seconds of
CLOCK_MONOTONIC."""

import json
import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

FIRST_REQUESTS = 200
"""Requests of the first part, for each client: too short to measure the rate well, long enough to size the next."""
SHORTEST_S, LONGEST_S = 0.25, 1.0
PARTS = 6
LATE_S = 1.5
"""How long the last part may take beyond the step."""
MEMTIER_LATE_S = 4.0
"""memtier_benchmark rounds up to a second, and checks once a second whether it has ended."""
MOST_TEXT = 64 << 10
LEAST_S = 0.02
"""What is left of the time after the last part: redis-benchmark counts in milliseconds, and of a part that took none
it says "inf requests per second" (redis-benchmark.c, showLatencyReport)."""


def main(arguments: list[str]) -> int:
    """arguments: duration (s), clients, the file for the program's report ("": it prints it), and the program with its
    own arguments, apart from -n or --test-time."""
    duration_s, clients, report, command = float(arguments[0]), int(arguments[1]), arguments[2], arguments[3:]
    part_s = min(max(duration_s / PARTS, SHORTEST_S), LONGEST_S)
    until = time.monotonic() + duration_s
    count, rate = FIRST_REQUESTS * clients, 0.0
    with Path(os.environ["LOADFRAME_OUTPUT"]).open("a", encoding="utf-8") as output:
        while (begin := time.monotonic()) < until - (LEAST_S if rate > 0 else 0.0):
            if rate > 0:
                count = max(int(rate * min(part_s, until - begin)), clients)
            size = ("--test-time", str(math.ceil(duration_s))) if report else ("-n", str(count))
            text = _part([*command, *size], report, until + (MEMTIER_LATE_S if report else LATE_S) - begin)
            if text is None:
                return 1
            end = time.monotonic()
            output.write(json.dumps({"begin": begin, "end": end, "text": text[:MOST_TEXT]}) + "\n")
            output.flush()
            if report:
                break
            rate = count / (end - begin)
    return 0


def _part(command: list[str], report: str, within_s: float) -> str | None:
    """None, with its output on our standard error, if there is no report."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, timeout=within_s, check=False)
    except subprocess.TimeoutExpired:
        print(f"{name} did not end within {within_s:.3g} s", file=sys.stderr)
        return None
    text, output = done.stdout.decode("utf-8", "replace"), ""
    if report:
        with suppress(OSError), Path(report).open(encoding="utf-8", errors="replace") as file:
            output = file.read(MOST_TEXT)
    else:  # redis-benchmark prints its report at the end
        before, _, after = text.rpartition("======\n")
        if title := before.rpartition("====== ")[2].strip():
            output = f"====== {title} ======\n{after}"
    if done.returncode or not output:
        print(done.stderr.decode("utf-8", "replace")[-2000:], text[-2000:], sep="\n", file=sys.stderr)
        print(f"{name} ended with {done.returncode}", file=sys.stderr)
        return None
    return output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
