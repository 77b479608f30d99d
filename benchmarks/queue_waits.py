"""Whether a queue's get with a short time-out always ends: python benchmarks/queue_waits.py [--seconds S]

Four programs keep the CPUs busy; meanwhile SimpleQueue and Queue are asked with a time-out of 20 us, one after the
other, each in a process of its own. Prints how often, and whether a call did not return within a second. Why it is
asked: docs/journal/2026-11-27-waits-of-a-fleet.md. Ends with 1 where Queue hangs.
"""

from __future__ import annotations

import argparse
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress

TIMEOUT_S, BUSY = 20e-6, 4


def asked(name: str, seconds: float) -> None:
    """Ends this process: 0 after so many seconds, 1 after a second within one call."""
    calls = 0
    waiting = getattr(queue, name)()

    def ask() -> None:
        nonlocal calls
        while True:
            waiting.put(None)
            waiting.get()
            with suppress(queue.Empty):
                waiting.get(timeout=TIMEOUT_S)
            calls += 1

    threading.Thread(target=ask, daemon=True).start()
    until_s, before = time.monotonic() + seconds, -1
    while time.monotonic() < until_s and calls != before:
        before = calls
        time.sleep(1)
    hung = calls == before
    print(f"{name}: {'hung after' if hung else 'no hang in'} {calls:,} calls", flush=True)
    sys.exit(hung)


def main() -> int:
    """Both queues, beside busy programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--of", choices=["SimpleQueue", "Queue"], help="this one alone, without busy programs")
    arguments = parser.parse_args()
    if arguments.of:
        asked(arguments.of, arguments.seconds)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(BUSY)]
    try:
        codes = {
            name: subprocess.run(
                [sys.executable, __file__, "--of", name, "--seconds", str(arguments.seconds)], check=False
            ).returncode
            for name in ("SimpleQueue", "Queue")
        }
    finally:
        for one in busy:
            one.kill()
            one.wait()
    return codes["Queue"]


if __name__ == "__main__":
    sys.exit(main())
