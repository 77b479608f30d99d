"""What clients and the bulk loader say to each other, and what neither understands."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_bulk.protocol import BLOCK, END, HEAD, LONGEST, REFUSED, HungUpError, OutOfStepError, Stream


@pytest.fixture
def ends() -> Iterator[tuple[Stream, socket.socket]]:
    one, other = socket.socketpair()
    stream = Stream(one)
    yield stream, other
    stream.close()
    other.close()


@given(st.lists(st.tuples(st.sampled_from([BLOCK, END, REFUSED]), st.binary(max_size=300)), max_size=20))
def test_what_is_sent_arrives(frames: list[tuple[bytes, bytes]]) -> None:
    one, other = socket.socketpair()
    sender, receiver = Stream(one), Stream(other)
    for kind, body in frames:
        sender.send(kind, body)
        assert receiver.receive() == (kind, body)
    sender.close()
    with pytest.raises(HungUpError):
        receiver.receive()
    receiver.close()


@given(st.binary(max_size=60))
def test_garbage_is_a_frame_or_no_frame_and_nothing_else(data: bytes) -> None:
    one, other = socket.socketpair()
    one.sendall(data)
    one.close()
    receiver = Stream(other)
    with pytest.raises((HungUpError, OutOfStepError)):
        while True:
            receiver.receive()
    receiver.close()


def test_a_frame_that_is_cut_off_is_no_frame(ends: tuple[Stream, socket.socket]) -> None:
    stream, other = ends
    other.sendall(HEAD.pack(BLOCK, 10) + b"12345")
    other.close()
    with pytest.raises(HungUpError):
        stream.receive()


def test_an_impossible_length_is_refused_before_it_is_read(ends: tuple[Stream, socket.socket]) -> None:
    stream, other = ends
    other.sendall(HEAD.pack(BLOCK, LONGEST + 1))
    with pytest.raises(OutOfStepError, match=str(LONGEST + 1)):
        stream.receive()


def test_a_refusal_is_told_in_its_own_words(ends: tuple[Stream, socket.socket]) -> None:
    stream, other = ends
    other.sendall(HEAD.pack(REFUSED, 9) + b"disk full")
    with pytest.raises(OutOfStepError, match="disk full"):
        stream.expect(END)


def test_who_sends_to_nobody_learns_it(ends: tuple[Stream, socket.socket]) -> None:
    stream, other = ends
    other.close()
    with pytest.raises(HungUpError):
        stream.send(BLOCK, b"row\n")
