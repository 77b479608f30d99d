"""What a file of a stranger costs is bounded by its size on the disk (benchmarks/fuzzing/costs.py)."""

import time

import pytest

from fuzzing import corpus, costs

GIVEN = corpus.load()
BOMBS = costs.bombs(GIVEN)
SMALL_MIB = 6


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_file_costs_no_more_than_its_size_allows(name: str) -> None:
    assert costs.cost_of(BOMBS[name], SMALL_MIB).excess == ""


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
