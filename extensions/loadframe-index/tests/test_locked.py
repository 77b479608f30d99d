"""What a stage waits for a lock of the one behind it is not its work."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from loadframe_index.board import BLOCKED_S, BUSY, BUSY_S, IDLE, Board, Meter, Shape
from loadframe_index.stages import Piece, Work, ask_database
from loadframe_index.store import AgainError, connect

HELD_S = 0.3


@pytest.fixture
def meter(tmp_path: Path) -> Iterator[Meter]:
    shape = Shape(1, (1, 1, 1, 1))
    (tmp_path / "board").write_bytes(bytes(shape.bytes))
    with closing(Board(tmp_path / "board", shape, 0)) as board:
        yield Meter(board, board.of_worker(0, 1, 0))


def test_a_question_that_waits_for_the_writer_is_blocked(meter: Meter, tmp_path: Path) -> None:
    words, at = meter.board.words, meter.at
    database = {"kind": "sqlite", "path": str(tmp_path / "entries.db"), "pragmas": '{"journal_mode": "delete"}'}
    Path(database["path"]).touch()
    with closing(connect(database)) as store:
        store.create()
        store.refuse_to_wait()
        writer = sqlite3.connect(database["path"], isolation_level=None, check_same_thread=False)
        with closing(writer):
            writer.execute("BEGIN EXCLUSIVE")
            with pytest.raises(AgainError):
                store.known([b"a"])
            release = threading.Timer(HELD_S, writer.execute, ["COMMIT"])
            release.start()
            meter.turn(BUSY)
            assert ask_database(store, Work([Piece(b"", [b"a", b"b"], 0.0)]), meter) == 2
            meter.turn(IDLE)
            release.join()
    assert words[at + BLOCKED_S] >= HELD_S / 2
    assert words[at + BUSY_S] < words[at + BLOCKED_S]
