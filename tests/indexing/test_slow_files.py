"""A file system that is slow to answer: batches go on in parts, and no entry is in two of them or in none."""

from __future__ import annotations

import itertools
import os
from contextlib import closing
from pathlib import Path

import pytest

from loadframe.indexing.beneath import Beneath
from loadframe.indexing.board import Board, Shape
from loadframe.indexing.entries import id_of
from loadframe.indexing.stages import Asker, Piece, Work

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
    Board.make(tree.parent / "board", SHAPE)
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
