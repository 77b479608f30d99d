"""A file system that is slow to answer: batches go on in parts, and no entry is in two of them or in none."""

from __future__ import annotations

import errno
import itertools
import os
from contextlib import closing
from pathlib import Path

import pytest

from loadframe_index.beneath import Beneath
from loadframe_index.board import ENTRIES, SCAN, Board, Directory, Frontier, Meter, Queue, Shape
from loadframe_index.entries import id_of
from loadframe_index.stages import Asker, Lister, Piece, Work

SHAPE = Shape(1, (1, 1, 1, 1))


@pytest.mark.parametrize(("held_s", "parts"), [(0.0, 6), (1e6, 1)])
def test_what_is_looked_up_slowly_goes_on_in_parts(tree: Path, held_s: float, parts: int) -> None:
    names = {b"": [b"", b"a", b"gone"], b"a": [b"b", b"c"], b"gone": [b"d"]}
    (tree / "a").mkdir()
    for name in names[b"a"]:
        (tree / "a" / os.fsdecode(name)).touch()
    pieces = [Piece(directory, found, float(at)) for at, (directory, found) in enumerate(names.items())]
    ids = [id_of(b"/".join(filter(None, (piece.directory, name)))) for piece in pieces for name in piece.names]
    clock, given = itertools.count(1), list[Work]()
    (tree.parent / "board").write_bytes(bytes(SHAPE.bytes))
    with closing(Board(tree.parent / "board", SHAPE, 0)) as board, Beneath(tree) as beneath:
        asker = Asker(beneath, board, lambda: next(clock), False, given.append, held_s)
        assert asker.act(Work(pieces, ids)) == len(ids)
        counted = board.counted()
    assert len(given) == parts
    looked = [(piece.directory, name, piece.found_s) for part in given for piece in part.pieces for name in piece.names]
    assert looked == [(piece.directory, name, piece.found_s) for piece in pieces for name in piece.names]
    assert [key for part in given for key in part.found_ids] == [*ids[:2], *ids[3:5]]
    assert [part.seen_ns for part in given] == list(range(1, parts + 1))  # each was looked at later
    assert (counted["vanished"], counted["new"]) == (2, 4)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EACCES, {"unreadable": 2}),
        (errno.EIO, {"unreadable": 2, "failed": 2}),
        (errno.ENOENT, {"vanished": 2}),
        (errno.ENOTDIR, {"vanished": 2}),
    ],
)
def test_the_names_of_a_directory_that_cannot_be_opened_any_more_are_told_as_it_is(
    tree: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: dict[str, int]
) -> None:
    """Each counted as vanished, whatever the reason: a directory that may not be entered had lost its files."""

    def refused(beneath: Beneath, path: bytes) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Beneath, "directory", refused)
    names = [b"b", b"c"]
    (tree.parent / "board").write_bytes(bytes(SHAPE.bytes))
    with closing(Board(tree.parent / "board", SHAPE, 0)) as board, Beneath(tree) as beneath:
        asker = Asker(beneath, board, lambda: 1, False, lambda _: None)
        asker.act(Work([Piece(b"a", names, 0.0)], [id_of(b"a/" + name) for name in names]))
        counted = {what: count for what, count in board.counted().items() if count}
    assert counted == told


class _Closing(Queue[Work]):
    """The time is up once the first batch is handed on."""

    def __init__(self, frontier: Frontier) -> None:
        super().__init__(100)
        self._frontier = frontier

    def put(self, item: Work) -> bool:
        self._frontier.close()
        return super().put(item)


def test_a_directory_that_is_being_listed_when_the_time_is_up_is_not_listed_to_its_end(tree: Path) -> None:
    """One of 40,000 names on a slow file system went on for 15 s after the end of its step."""
    for number in range(50):
        (tree / f"file {number}").touch()
    (tree.parent / "board").write_bytes(bytes(SHAPE.bytes))
    with closing(Board(tree.parent / "board", SHAPE, 0)) as board, Beneath(tree) as beneath:
        frontier, meter = Frontier(board), Meter(board, board.of_worker(0, SCAN, 0))
        frontier.begin(Directory(b"", ()))
        Lister(beneath, frontier, board, meter, _Closing(frontier), 10).work()
        listed = board.sum(SCAN, ENTRIES)
    assert listed == 10
