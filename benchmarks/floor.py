"""Processes that benchmarks/recorder.py starts: `floor.py idle THREADS`, `floor.py serve THREADS CONNECTIONS`,
`floor.py processes COUNT`, and the floor, `floor.py PID FILE INTERVAL`.

The floor is the least that recording can cost in Python: it preads the same files as Loadframe's recorder at the same
ticks and writes them as they are. It imports nothing heavy, as the recorder does.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
import threading
import time
from pathlib import Path

from loadframe.recording import held_files, sampling, thread_sampling


def idle(threads: int) -> None:
    """A process whose threads sleep until stdin is closed. threads: their number."""
    threading.stack_size(64 * 1024)
    never = threading.Event()
    for _ in range(threads - 1):
        threading.Thread(target=never.wait, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def serve(threads: int, connections: int) -> None:
    """A process that has accepted so many connections on a port that it prints; half of its threads wait for what comes
    on one of them, the others for work."""
    threading.stack_size(64 * 1024)
    listener = socket.create_server(("127.0.0.1", 0), backlog=connections)
    print(listener.getsockname()[1], flush=True)
    accepted = [listener.accept()[0] for _ in range(connections)]
    never = threading.Event()
    for number in range(threads - 1):
        if number % 2 and number < len(accepted):
            threading.Thread(target=accepted[number].recv, args=(1,), daemon=True).start()
        else:
            threading.Thread(target=never.wait, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def processes(count: int) -> None:
    """A process with so many children, whose pids it prints; all sleep until stdin is closed."""
    children = []
    while len(children) < count and (pid := os.fork()):
        children.append(pid)
    if len(children) == count:
        print(*children, flush=True)
    sys.stdin.read()


def floor(pid: int, path: str, interval_s: float) -> None:
    """Pread what the recorder reads, at the same ticks, and write it as it is: no source, no checksum, no frame."""
    limit = held_files.Descriptors()
    each, second = _floor_files(pid)
    threads = sorted(int(folder.name) for folder in Path(f"/proc/{pid}/task").iterdir())
    census, where, times, switches = (min(len(threads), count) for count in _turns(len(threads), interval_s))
    states, cpu_times, statuses = (itertools.cycle(threads) for _ in range(3))
    opened: dict[str, int | None] = {}
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def thread_file(thread: int, name: str) -> bytes:
        file = f"/proc/{pid}/task/{thread}/{name}"
        if file not in opened:
            opened[file] = limit.hold(file)
        if (descriptor := opened[file]) is not None:
            return os.pread(descriptor, 4096, 0)
        descriptor = os.open(file, os.O_RDONLY)
        try:
            return os.pread(descriptor, 4096, 0)
        finally:
            os.close(descriptor)

    due_s = time.monotonic()
    ticks_per_second = max(1, round(1 / interval_s))
    for tick in range(10**9):
        chunks = [_whole(descriptor) for descriptor in each]
        if tick % ticks_per_second == 0:
            chunks += [_whole(descriptor) for descriptor in second]
        for number in range(census):
            thread = next(states)
            chunks.append(thread_file(thread, "stat"))
            if number < where:
                chunks.append(thread_file(thread, "wchan"))
        chunks += [thread_file(next(cpu_times), "schedstat") for _ in range(times)]
        chunks += [thread_file(next(statuses), "status") for _ in range(switches)]
        os.write(out, b"".join(chunks))
        due_s += interval_s
        time.sleep(max(0.0, due_s - time.monotonic()))


def _turns(threads: int, interval_s: float) -> tuple[int, ...]:
    """How many threads the recorder reads the stat, wchan, schedstat and status of in a tick."""
    least = round(thread_sampling.CENSUS_LEAST_PER_S * interval_s)
    census = max(least, round(min(threads, thread_sampling.CENSUS_MOST_PER_S) * interval_s))
    per_second = (thread_sampling.WHERE_PER_S, thread_sampling.CPU_TIMES_PER_S, thread_sampling.STATUSES_PER_S)
    return census, *(round(count * interval_s) for count in per_second)


def _whole(descriptor: int) -> bytes:
    data = chunk = os.pread(descriptor, 4096, 0)
    while len(chunk) > 3000 and (chunk := os.pread(descriptor, 16384, len(data))):
        data += chunk
    return data


def _floor_files(pid: int) -> tuple[list[int], list[int]]:
    """Descriptors of what is read at each tick and once per second."""
    many = len(list(Path(f"/proc/{pid}/task").iterdir())) > sampling.MANY_THREADS
    own = [f"/proc/{pid}/{name}" for name in sampling.PROCESS_FILES]
    each = [*sampling.SYSTEM_FILES, *sampling.RECORDER_FILES, *([] if many else own)]
    second = [*sampling.HALF_SYSTEM_FILES, *sampling.SLOW_SYSTEM_FILES, *sampling.SLOW_RECORDER_FILES]
    second += [*(f"/proc/{pid}/{name}" for name in sampling.SLOW_PROCESS_FILES), *(own if many else [])]

    def there(paths: list[str]) -> list[int]:
        return [os.open(path, os.O_RDONLY) for path in paths if Path(path).exists()]

    return there(each), there(second)


if __name__ == "__main__":
    if sys.argv[1] == "idle":
        idle(int(sys.argv[2]))
    elif sys.argv[1] == "processes":
        processes(int(sys.argv[2]))
    elif sys.argv[1] == "serve":
        serve(int(sys.argv[2]), int(sys.argv[3]))
    else:
        floor(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
