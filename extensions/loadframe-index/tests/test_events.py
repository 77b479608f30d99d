"""What the kernel's event buffers are read as, and that garbage is an UnreadableEventError and nothing else."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_index import fanotify, inotify

NAMES = st.binary(min_size=1, max_size=255).filter(lambda name: b"\0" not in name and b"/" not in name)
HANDLES = st.binary(min_size=1, max_size=128)


def information(kind: int, handle: bytes, name: bytes) -> bytes:
    """As the kernel lays it out (fanotify(7)): aligned to 4 bytes, the name padded with NULs."""
    body = bytes(8) + struct.pack("=Ii", len(handle), 1) + handle + name + b"\0"
    body += bytes(-len(body) % 4)
    return struct.pack("=BBH", kind, 0, 4 + len(body)) + body


def fanotify_event(mask: int, *infos: bytes) -> bytes:
    body = b"".join(infos)
    return struct.pack("=IBBHQii", 24 + len(body), 3, 0, 24, mask, -1, 1) + body


def inotify_event(watch: int, mask: int, cookie: int, name: bytes) -> bytes:
    padded = name + bytes(16 - len(name) % 16) if name else b""
    return struct.pack("=iIII", watch, mask, cookie, len(padded)) + padded


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), HANDLES, NAMES), max_size=10))
def test_events_of_fanotify_tell_mask_handle_and_name(told: list[tuple[int, bytes, bytes]]) -> None:
    data = b"".join(fanotify_event(mask, information(2, handle, name)) for mask, handle, name in told)
    read = [(event.mask, event.at.directory[8:], event.at.name) for event in fanotify.events(data) if event.at]
    assert read == told


@given(HANDLES, NAMES, HANDLES, NAMES)
def test_a_rename_of_fanotify_tells_both_places(one: bytes, name: bytes, other: bytes, new: bytes) -> None:
    data = fanotify_event(fanotify.RENAME, information(10, one, name), information(12, other, new))
    (event,) = fanotify.events(data)
    assert event.at is not None and (event.at.directory[8:], event.at.name) == (one, name)
    assert event.to is not None and (event.to.directory[8:], event.to.name) == (other, new)


def test_an_overflow_of_fanotify_has_no_place() -> None:
    (event,) = fanotify.events(fanotify_event(fanotify.OVERFLOW))
    assert event == fanotify.Event(fanotify.OVERFLOW)


def test_information_of_an_unknown_kind_is_left_out() -> None:
    (event,) = fanotify.events(fanotify_event(8, information(99, b"h", b"n"), information(2, b"h", b"n")))
    assert event.at is not None and event.at.name == b"n"


@given(st.lists(st.tuples(st.integers(-1, 2**31 - 1), st.integers(0, 2**32 - 1), NAMES | st.just(b"")), max_size=10))
def test_events_of_inotify_tell_watch_mask_and_name(told: list[tuple[int, int, bytes]]) -> None:
    data = b"".join(inotify_event(watch, mask, 7, name) for watch, mask, name in told)
    assert [(event.watch, event.mask, event.name) for event in inotify.events(data)] == told


@given(st.binary(max_size=200))
def test_garbage_is_events_or_unreadable(data: bytes) -> None:
    for read, refused in (
        (fanotify.events, fanotify.UnreadableEventError),
        (inotify.events, inotify.UnreadableEventError),
    ):
        with suppress(refused):
            list(read(data))  # type: ignore[operator]


@given(st.data(), HANDLES, NAMES)
def test_a_damaged_event_is_an_event_or_unreadable(data: st.DataObject, handle: bytes, name: bytes) -> None:
    whole = bytearray(fanotify_event(8, information(2, handle, name)))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with suppress(fanotify.UnreadableEventError):
        list(fanotify.events(bytes(whole[:cut])))


@pytest.mark.parametrize("cut", [1, 15, 17])
def test_half_an_event_of_inotify_is_unreadable(cut: int) -> None:
    with pytest.raises(inotify.UnreadableEventError):
        list(inotify.events(inotify_event(1, 2, 3, b"name")[:cut]))
