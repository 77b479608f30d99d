"""What a file of a stranger costs is bounded by its size on the disk (benchmarks/fuzzing/costs.py)."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzzing import corpus, costs

SMALL_MIB = 6
MEASURING = f"""
import json
import os
from fuzzing import corpus, costs
for name, bomb in costs.bombs(corpus.load()).items():
    print(json.dumps([name, costs.cost_of(bomb, {SMALL_MIB}).excess]), flush=True)
"""
"""In a process of its own: each file is read in a fork of it, and a library's threads do not come along there."""


@pytest.fixture(scope="module")
def excesses() -> dict[str, str]:
    """file -> what it costs beyond what its size allows, in words."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", MEASURING],
        env={**os.environ, "PYTHONPATH": f"{Path(costs.__file__).parents[1]}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", sorted(costs.bombs(corpus.load())))
def test_a_file_costs_no_more_than_its_size_allows(name: str, excesses: dict[str, str]) -> None:
    assert excesses[name] == ""


def spin() -> None:
    until = time.process_time() + 1.5
    for _ in iter(lambda: time.process_time() < until, False):
        pass


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bytearray(b"x") * (100 << 20), "MiB of memory"),
        (spin, "of CPU time"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: bytearray(b"x") * (4 << 30), "MemoryError"),
    ],
)
def test_what_costs_more_is_seen(call: object, words: str) -> None:
    assert callable(call) and words in costs.measured(call, 1_000).excess
