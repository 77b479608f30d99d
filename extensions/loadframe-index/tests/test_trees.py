"""The tree that is asked for is the tree that is made."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from loadframe.errors import MachineError
from loadframe_index import seeded
from loadframe_index.seeded import Shape


def everything(tree: Path) -> dict[str, os.stat_result]:
    return {str(path.relative_to(tree)): path.lstat() for path in [tree, *tree.rglob("*")]}


@pytest.mark.parametrize("entries", [1, 2, 32, 33, 1000])
@pytest.mark.parametrize("depth", [1, 4])
def test_it_has_exactly_as_many_entries_and_is_as_deep(tree: Path, entries: int, depth: int) -> None:
    seeded.make(tree / "t", Shape(entries, files_per_directory=10, depth=depth))
    found = everything(tree / "t")
    assert len(found) == entries
    directories = [path for path in (tree / "t").rglob("*") if path.is_dir()]
    assert all(len([one for one in path.iterdir() if one.is_file()]) <= 10 for path in directories)
    deepest = max((len(path.relative_to(tree / "t").parts) for path in directories), default=0)
    assert deepest == min(depth, len(directories))


def test_a_seed_makes_the_same_sizes_and_another_one_others(tree: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        seeded.make(tree / name, Shape(300, seed=seed))
    sizes = [{path: status.st_size for path, status in everything(tree / name).items()} for name in "abc"]
    assert sizes[0] == sizes[1] != sizes[2]


def test_its_files_have_a_size_and_no_content(tree: Path) -> None:
    seeded.make(tree / "t", Shape(500, median_bytes=1 << 20))
    files = [path.lstat() for path in (tree / "t").rglob("f*")]
    assert sum(file.st_size for file in files) > 100 << 20
    assert sum(file.st_blocks for file in files) == 0
    middle = sorted(file.st_size for file in files)[len(files) // 2]
    assert 1 << 19 < middle < 1 << 21, "the median of 470 sizes with sigma 2 is within a factor of 1.2"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_its_owners_and_ages_are_spread(tree: Path) -> None:
    seeded.make(tree / "t", Shape(500, owners=3, age_days=100))
    files = [path.lstat() for path in (tree / "t").rglob("f*")]
    assert {file.st_uid for file in files} == {20_000, 20_001, 20_002}
    ages = sorted(max(file.st_mtime for file in files) - file.st_mtime for file in files)
    assert 80 * 86_400 < ages[-1] <= 100 * 86_400


def test_a_tree_that_is_there_is_used_again_and_one_of_another_shape_is_not(tree: Path) -> None:
    shape = Shape(50)
    assert seeded.make(tree / "t", shape)
    assert not seeded.make(tree / "t", shape)
    assert seeded.make(tree / "t", Shape(60))
    assert len(everything(tree / "t")) == 60


def test_a_tree_that_was_not_finished_is_made_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Shape) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(MachineError, match="No space left"):
        patch.setattr(seeded, "directories_of", full)
        seeded.make(tree / "t", Shape(50))
    assert seeded.make(tree / "t", Shape(50))
    assert len(everything(tree / "t")) == 50


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"directory": [0, 0], "shape": {}}', None])
def test_a_directory_of_its_name_is_not_ours_whatever_lies_beside_it(tree: Path, note: str | None) -> None:
    """None: the note of a tree of ours, in whose place its owner has put another directory."""
    seeded.make(tree / "t", Shape(10))
    (tree / "t").rename(tree / "aside")
    (tree / "t").mkdir()
    (tree / "t" / "precious").write_text("7")
    if note is not None:
        seeded.marked(tree / "t").write_text(note)
    with pytest.raises(MachineError, match="has not made it"):
        seeded.make(tree / "t", Shape(20))
    assert (tree / "t" / "precious").read_text() == "7"


def test_what_was_not_made_here_is_never_replaced(tree: Path) -> None:
    (tree / "mine").mkdir()
    with pytest.raises(MachineError, match="has not made it") as caught:
        seeded.make(tree / "mine", Shape(10))
    assert caught.value.remedy
    assert (tree / "mine").exists()


def test_no_tree_has_the_name_of_one_that_was_removed(tree: Path) -> None:
    """ext4 would give it the same inodes, and looks at each one that was freed within the last minute."""
    made = [seeded.apart(tree) for _ in range(20)]
    assert len(set(made)) == 20
    assert {one.parent for one in made} == {tree}
