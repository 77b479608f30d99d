"""Processes share what is to be listed, and a scan ends when all of it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadframe_index.board import (
    BLOCKED_S,
    BUSY,
    BUSY_S,
    IDLE_S,
    SCAN,
    Board,
    Directory,
    Frontier,
    Meter,
    Queue,
    Shape,
)

directories = st.builds(
    Directory, st.binary(max_size=3000), st.lists(st.integers(0, 2**128 - 1), max_size=5).map(tuple)
)


@pytest.fixture
def boards(tmp_path: Path) -> Iterator[list[Board]]:
    """That of two processes, as each of them has it."""
    shape = Shape(2, (2, 1, 1, 1))
    with ExitStack() as stack:
        (tmp_path / "board").write_bytes(bytes(shape.bytes))
        made = [Board(tmp_path / "board", shape, process) for process in range(2)]
        for board in made:
            stack.callback(board.close)
        yield made


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=st.lists(directories, min_size=1, max_size=40))
def test_what_one_process_gives_the_other_gets_and_the_rest_stays(boards: list[Board], given: list[Directory]) -> None:
    first, second = boards
    assert second.received() == []
    assert first.asks() == 1 and second.asks() is None
    taken = first.give(1, given)
    assert taken > 0
    assert first.asks() is None and first.give(1, given) == 0, "it has not read the letter"
    assert second.received() == given[:taken]


def test_a_letter_that_is_too_long_stays(boards: list[Board]) -> None:
    boards[1].received()
    assert boards[0].give(1, [Directory(bytes(1 << 16), ())]) == 0
    assert boards[0].asks() == 1


def test_all_is_listed_only_where_every_process_asks_and_nothing_is_under_way(boards: list[Board]) -> None:
    first, second = boards
    assert not first.all_listed()
    second.received()
    assert not first.all_listed()
    first.received()
    assert first.all_listed()
    first.give(1, [Directory(b"a", ())])
    assert not first.all_listed()
    second.received()
    assert not first.all_listed(), "it has one again"
    second.received()
    assert first.all_listed()


def test_counts_and_seconds_are_sums_over_processes_and_workers(boards: list[Board]) -> None:
    for board in boards:
        board.count("vanished", 3)
        for number in range(2):
            meter = Meter(board, board.of_worker(board.process, SCAN, number))
            began_s = meter.turn(BUSY)
            spent_s = meter.turn(BUSY) - began_s
            assert board.words[meter.at + BUSY_S] == pytest.approx(spent_s)
    assert boards[0].counted()["vanished"] == 6
    assert boards[0].sum(SCAN, BUSY_S) > 0
    assert boards[0].sum(SCAN, IDLE_S) >= 0 == boards[0].sum(SCAN, BLOCKED_S)


class Asked:
    """What a frontier asks of a board."""

    def __init__(self) -> None:
        self.asked = 0
        self.asks_nothing: Callable[[], object] = lambda: None
        self.gives: list[Directory] = []

    def received(self) -> list[Directory]:
        self.asked += 1
        return self.gives


def test_a_frontier_gives_the_last_one_first_and_away_the_first_half() -> None:
    frontier = Frontier(Asked())
    four = [Directory(name, ()) for name in (b"a", b"b", b"c", b"d")]
    frontier.push(four)
    assert frontier.take() == four[3]
    assert frontier.spare() == four[:1]
    assert [frontier.take(), frontier.take()] == [four[2], four[1]]
    assert frontier.take() is None


def test_a_frontier_asks_others_only_when_nothing_is_left_and_nothing_is_being_listed() -> None:
    board = Asked()
    board.gives = [Directory(b"given", ())]
    frontier = Frontier(board)
    frontier.push([Directory(b"own", ())])
    assert frontier.take() is not None
    assert frontier.take() is None and not board.asked
    frontier.done()
    assert frontier.take() == Directory(b"given", ())
    frontier.close()
    assert frontier.take() is None and frontier.closed


def test_a_scan_that_begins_is_asked_for_by_no_thread_that_looks_in_between() -> None:
    """Else it counts as one that has listed everything, and forgets what it has not seen yet."""
    board, taken = Asked(), list[Directory | None]()
    frontier, root = Frontier(board), Directory(b"", ())
    looking = threading.Thread(target=lambda: taken.append(frontier.take()))

    def asks_nothing() -> None:
        looking.start()
        looking.join(0.2)  # a thread that may look has looked by then

    board.asks_nothing = asks_nothing
    frontier.begin(root)
    looking.join()
    assert taken == [root] and not board.asked


def test_whoever_puts_into_a_full_queue_waits_for_room() -> None:
    queue: Queue[int] = Queue(2)
    assert queue.empty() and queue.put(1) and queue.put(2)
    putting = threading.Thread(target=queue.put, args=(3,), daemon=True)
    putting.start()
    assert [queue.get(), queue.get(), queue.get()] == [1, 2, 3]
    putting.join()


def test_a_closed_queue_is_emptied_and_one_that_drops_is_empty() -> None:
    for drop, rest in ((False, [1, None]), (True, [None, None])):
        queue: Queue[int] = Queue(2)
        queue.put(1)
        queue.close(drop=drop)
        assert not queue.put(2)
        assert [queue.get(), queue.get()] == rest


def test_closing_wakes_all_who_wait() -> None:
    full, empty = Queue[int](1), Queue[int](1)
    full.put(1)
    waiting = [threading.Thread(target=full.put, args=(2,)), threading.Thread(target=empty.get, daemon=True)]
    for thread in waiting:
        thread.start()
    full.close()
    empty.close()
    for thread in waiting:
        thread.join()
