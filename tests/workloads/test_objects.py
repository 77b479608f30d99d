"""Objects whose bytes follow from a seed: the same wherever they are made, none like another, as popular as asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loadframe.workloads.objects import Folder, Objects, path_of

MIXED = Objects(100, 10_000, 1.0, seed=3)


def made(path: Path, number: int) -> bytes:
    return (path / path_of(number)[1:]).read_bytes()


@pytest.mark.long
def test_files_are_what_the_table_and_the_text_say(tmp_path: Path) -> None:
    folder = Folder(tmp_path, MIXED)
    folder.clear()
    folder.fill(1200)
    text, table = folder.text.read_bytes(), MIXED.table(1200)
    for number in (0, 1, 999, 1000, 1199):
        offset, size = int(table["offset"][number]), int(table["size"][number])
        assert made(tmp_path, number) == text[offset : offset + size] == MIXED.content(number, size)
    assert len({made(tmp_path, number) for number in range(1200)}) == 1200
    assert 100 <= table["size"].min() < 200 and 5000 < table["size"].max() <= 10_000


def test_more_of_them_begin_with_the_same_and_those_there_are_stay(tmp_path: Path) -> None:
    assert list(MIXED.sizes(500)[:20]) == list(MIXED.sizes(20))
    folder = Folder(tmp_path, MIXED)
    folder.clear()
    folder.fill(20)
    (tmp_path / path_of(3)[1:]).write_bytes(b"touched")
    folder.fill(10)
    folder.fill(30)
    assert made(tmp_path, 3) == b"touched", "what is there is not made again"
    assert made(tmp_path, 29) == MIXED.content(29, int(MIXED.sizes(30)[29]))
    assert not (tmp_path / path_of(30)[1:]).exists()
    folder.clear()
    assert not (tmp_path / path_of(0)[1:]).exists()
    folder.fill(10)
    assert made(tmp_path, 3) != b"touched"


def test_another_seed_makes_other_objects() -> None:
    other = Objects(100, 10_000, 1.0, seed=4)
    assert other.content(0, 100) != MIXED.content(0, 100)
    assert list(other.sizes(20)) != list(MIXED.sizes(20))


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.2])
def test_weights_follow_zipf(exponent: float) -> None:
    weights = np.diff(Objects(1, 1, exponent, 1).table(100)["up_to"], prepend=0.0)
    assert weights / weights[0] == pytest.approx(np.arange(1.0, 101.0) ** -exponent)


def test_a_working_set_is_as_large_as_asked_for() -> None:
    even = Objects(100, 100, 0.0, 1)
    assert [even.within(total) for total in (1, 100, 199, 200, 100_000)] == [1, 1, 1, 2, 1000]
    count = MIXED.within(1_000_000)
    assert MIXED.sizes(count).sum() <= 1_000_000 < MIXED.sizes(count + 1).sum()
