"""One scan after the other: between two of them every stage is idle, which must not look like a slow source."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from loadframe_index import config as configs
from loadframe_index.board import Board, Directory, Frontier
from loadframe_index.config import Config
from loadframe_index.coordinator import LOOK_EVERY_S, Coordinator
from loadframe_index.store import connect

ROOT = Directory(b"", ())


@pytest.fixture
def config(tmp_path: Path, sqlite_database: dict[str, str]) -> Config:
    with closing(connect(sqlite_database)) as store:
        store.create()
    return Config(str(tmp_path), str(tmp_path), sqlite_database, seconds=60.0)


@pytest.fixture
def board(config: Config) -> Iterator[Board]:
    config.path(configs.BOARD).write_bytes(bytes(config.shape.bytes))
    with closing(Board(config.path(configs.BOARD), config.shape, 0)) as board:
        yield board


def test_a_scan_that_has_ended_is_followed_by_the_next_one_at_once(config: Config, board: Board) -> None:
    with closing(connect(config.database)) as store:
        frontier = Frontier(board)
        coordinator = Coordinator(config, board, frontier, store, time.time_ns)
        assert coordinator.look() == LOOK_EVERY_S
        for _ in range(3):
            assert frontier.take() == ROOT
            frontier.done()
            assert frontier.take() is None
            pause_s = coordinator.look()
        coordinator.end()
    assert pause_s < LOOK_EVERY_S, "a short scan is looked at more often"


def test_where_one_scan_is_asked_for_there_is_no_other(config: Config, board: Board) -> None:
    with closing(connect(config.database)) as store:
        frontier = Frontier(board)
        coordinator = Coordinator(
            Config(config.tree, config.folder, config.database, seconds=0.0), board, frontier, store, time.time_ns
        )
        coordinator.look()
        assert frontier.take() == ROOT
        frontier.done()
        assert frontier.take() is None
        coordinator.look()
        assert frontier.take() is None
        coordinator.end()
