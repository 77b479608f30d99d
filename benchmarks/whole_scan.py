"""One scan of a tree by all processes of the pipeline, without a study: python -P benchmarks/whole_scan.py CONFIG.json

What a workload does for its steps, for benchmarks/metadata.py and the tests. Ends with the exit code of the worst one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from loadframe.host.environment import python
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe_index import config as configs
from loadframe_index.coordinator import LOOK_EVERY_S


def alone(path: str) -> int:
    """Make the board, start every process, and let them begin at one instant. They end with us. The exit code."""
    config = configs.Config.read(Path(path))
    config.path(configs.BOARD).write_bytes(bytes(config.shape.bytes))
    pipe, folder = subprocess.PIPE, Path.cwd()
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(config.scanners):
            command = python("loadframe_index.pipeline", path, str(number))
            started.append(spawn(command, Allowance(US), stdin=pipe, stdout=pipe, stderr=None, cwd=folder))
        if all(each.stdout is not None and each.stdout.readline() == b"ready\n" for each in started):
            start_s = time.monotonic()
            for each in started:
                _tell(each, start_s)
        return _ended(started)
    finally:
        for each in started:
            each.kill()
            each.wait()


def _tell(process: subprocess.Popen[bytes], start_s: float) -> None:
    """One that ended before has said why, and its exit code tells."""
    with suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.write(f"{start_s!r}\n".encode())
            process.stdin.close()


def _ended(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait for all of them; one that failed ends the others, which would wait for it. The exit code of the worst."""
    left = list(processes)
    while left:
        left = [each for each in left if each.poll() is None]
        if any(each.returncode for each in processes):
            break
        time.sleep(LOOK_EVERY_S)
    for each in left:
        each.kill()
        each.wait()
    codes: list[int] = [abs(each.returncode) for each in processes if each not in left]
    return max(codes)


if __name__ == "__main__":
    sys.exit(alone(sys.argv[1]))
