"""Lines between coordinator and agent, also damaged ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_fleet import wire
from loadframe_fleet.wire import Closed, Lines, Silent, WireError, read, send, written


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    source, sink = os.pipe()
    yield source, sink
    for each in (source, sink):
        try:
            os.close(each)
        except OSError:  # a test has closed it
            continue


def test_messages_come_in_order_however_they_are_cut(pipe: tuple[int, int]) -> None:
    lines = Lines(pipe[0])
    data = written({"id": 1, "ask": "clock"}) + written({"id": 2})
    os.write(pipe[1], data[:9])
    with pytest.raises(Silent):
        lines.message(0.01)
    os.write(pipe[1], data[9:])
    assert [lines.message(1.0)["id"], lines.message(1.0)["id"]] == [1, 2]
    os.close(pipe[1])
    with pytest.raises(Closed):
        lines.message(1.0)


def test_a_line_without_an_end_is_not_kept_for_ever(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_LINE", 1000)
    os.write(pipe[1], b"x" * 2000)
    with pytest.raises(WireError, match="more than"):
        Lines(pipe[0]).line(1.0)
    with pytest.raises(WireError, match="more than"):
        written({"long": "x" * 2000})


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(line: bytes) -> None:
    try:
        assert isinstance(read(line), dict)
    except WireError as error:
        assert "is no message" in str(error)


def test_what_the_other_side_does_not_take_keeps_the_sender_no_longer_than_told(pipe: tuple[int, int]) -> None:
    data = bytes(300_000)
    assert not send(pipe[1], data, 0.05), "more than a pipe holds"
    taken = list[bytes]()

    def take() -> None:
        while sum(map(len, taken)) < len(data):
            taken.append(os.read(pipe[0], 1 << 16))

    os.set_blocking(pipe[0], False)
    while True:
        try:
            os.read(pipe[0], 1 << 20)
        except BlockingIOError:
            break
    os.set_blocking(pipe[0], True)
    reading = threading.Thread(target=take, daemon=True)
    reading.start()
    assert send(pipe[1], data, 5.0)
    reading.join(5)
    assert b"".join(taken) == data
    os.close(pipe[0])
    with pytest.raises(BrokenPipeError):
        send(pipe[1], b"x", 1.0)


def test_a_part_of_a_line_is_no_silence(pipe: tuple[int, int]) -> None:
    lines = Lines(pipe[0])
    with pytest.raises(Silent):
        lines.line(0.05)
    assert lines.silent_for(0.05)
    os.write(pipe[1], b"half of")
    with pytest.raises(Silent):
        lines.line(0.01)
    assert not lines.silent_for(1.0)


@pytest.mark.parametrize("line", [b'{"ask": {}}', b'{"id": [1]}', b'{"id": 1.5, "ask": "clock"}'])
def test_a_question_has_a_name_and_a_whole_number(line: bytes) -> None:
    """They are looked up: what cannot be ended an agent in a traceback."""
    with pytest.raises(WireError, match="is no message"):
        read(line)
