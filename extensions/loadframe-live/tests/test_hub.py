"""One writer, many readers; whoever comes back has missed nothing, or is told to read everything again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from loadframe_live.hub import MOST_KEPT, MOST_SUBSCRIBERS, MOST_WAITING, Hub, TooManySubscribers


def in_a_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 20))  # type: ignore[arg-type]

    run.__name__ = test.__name__
    return run


async def read(stream: AsyncIterator[bytes], count: int) -> list[bytes]:
    assert await anext(stream) == b"retry: 1000\n\n"
    return [await anext(stream) for _ in range(count)]


@in_a_loop
async def test_all_subscribers_get_the_same_bytes() -> None:
    hub = Hub()
    streams = [hub.subscribe(hub.last_id) for _ in range(3)]
    hub.publish("change", {"id": "0/x"})
    answers = [await read(stream, 1) for stream in streams]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0] == [f'id: {hub.last_id}\nevent: change\ndata: {{"id": "0/x"}}\n\n'.encode()]


@in_a_loop
async def test_whoever_comes_back_gets_what_was_missed() -> None:
    hub = Hub()
    for number in range(5):
        hub.publish("change", {"number": number})
    seen = hub.last_id
    hub.publish("change", {"number": 5})
    hub.publish("change", {"number": 6})
    missed = await read(hub.subscribe(seen), 2)
    assert [b'"number": 5' in missed[0], b'"number": 6' in missed[1]] == [True, True]


@pytest.mark.parametrize(
    "after", ["", "nonsense", "00000000-1", "-", "{epoch}-9", "{epoch}-9999", "{epoch}--1", "{epoch}-0"]
)
def test_whoever_has_missed_too_much_reads_everything_again(after: str) -> None:
    async def test() -> None:
        hub = Hub()
        for number in range(MOST_KEPT + 10):
            hub.publish("change", {"number": number})
        epoch = hub.last_id.partition("-")[0]
        (event,) = await read(hub.subscribe(after.format(epoch=epoch)), 1)
        assert event.startswith(f"id: {hub.last_id}\nevent: reset\n".encode())

    in_a_loop(test)()


@in_a_loop
async def test_one_that_reads_too_slowly_is_ended_and_the_others_go_on() -> None:
    hub = Hub()
    slow, quick = hub.subscribe(hub.last_id), hub.subscribe(hub.last_id)
    await read(quick, 0)
    for number in range(MOST_WAITING + 1):
        hub.publish("change", {"number": number})
        await anext(quick)
    assert hub.subscribers == 1
    assert len([event async for event in slow]) == MOST_WAITING + 1


@in_a_loop
async def test_they_are_bounded_and_their_places_become_free() -> None:
    hub = Hub()
    streams = [hub.subscribe("") for _ in range(MOST_SUBSCRIBERS)]
    with pytest.raises(TooManySubscribers):
        hub.subscribe("")
    await read(streams[0], 1)
    await streams[0].aclose()  # type: ignore[attr-defined]
    hub.subscribe("")


@in_a_loop
async def test_at_the_end_every_stream_ends() -> None:
    hub = Hub()
    stream = hub.subscribe(hub.last_id)
    hub.close()
    assert [event async for event in stream] == [b"retry: 1000\n\n"]
    with pytest.raises(TooManySubscribers):
        hub.subscribe("")
