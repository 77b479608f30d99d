"""`relay.py SECONDS COMMAND...`: runs it, and hands on what comes and goes through its standard streams that much
later, however much it is: a way on which each message takes as long as on a far link."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time


def hand_on(source: int, sink: int, later_s: float) -> None:
    """Until the source ends; then the sink is closed, as late."""
    on_the_way: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def deliver() -> None:
        while True:
            due_s, data = on_the_way.get()
            time.sleep(max(0.0, due_s - time.monotonic()))
            if not data:
                os.close(sink)
                return
            while data:
                data = data[os.write(sink, data) :]

    threading.Thread(target=deliver).start()
    data = b"x"
    while data:
        data = os.read(source, 1 << 16)
        on_the_way.put((time.monotonic() + later_s, data))


if __name__ == "__main__":
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    far = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert far.stdin is not None and far.stdout is not None
    there = threading.Thread(target=hand_on, args=(0, os.dup(far.stdin.fileno()), seconds), daemon=True)
    far.stdin.close()
    there.start()
    hand_on(far.stdout.fileno(), 1, seconds)
    sys.exit(far.wait())
