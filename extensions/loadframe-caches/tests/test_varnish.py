"""Varnish before an origin of its own: what it counts, what it loses, and what it refuses in its own words."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.model import TargetState
from loadframe_caches.nginx.kind import NginxCacheTarget
from loadframe_caches.nginx.server import NoRoom
from loadframe_caches.origin import Origin
from loadframe_caches.varnish.kind import VarnishTarget
from waiting import await_that

pytestmark = pytest.mark.server
FILE = {"storage_kind": "file", "storage_size": 16 << 20}


@pytest.fixture
def varnish(lease: Lease) -> Iterator[VarnishTarget]:
    target = VarnishTarget(lease=lease, resources=Resources())
    target.create()
    yield target
    target.destroy()


def get(target: VarnishTarget | NginxCacheTarget, name: str) -> bytes:
    with urllib.request.urlopen(f"http://{target.endpoint().address}/{name}", timeout=10) as answer:
        return bytes(answer.read())


def test_hits_misses_and_what_is_stored_are_counted(varnish: VarnishTarget) -> None:
    varnish.start(TargetState(FILE, {}))
    (Path(varnish.endpoint().options["files"]) / "one").write_bytes(b"1" * 100_000)
    before = varnish.counters()
    assert {get(varnish, "one") for _ in range(5)} == {b"1" * 100_000}
    # a thread of Varnish tells what it has done once it has done with the client
    await_that(lambda: varnish.counters()["requests"] >= before["requests"] + 5, "five requests are counted")
    grown = {name: value - before[name] for name, value in varnish.counters().items()}
    assert (grown["requests"], grown["hits"], grown["misses"], grown["fetches"]) == (5, 4, 1, 1)
    assert grown["storage_used"] >= 100_000
    assert varnish.counters()["storage_size"] == 16 << 20
    assert varnish.counters()["threads_allowed"] == 2 * 5000


@pytest.mark.long
def test_a_cache_process_that_was_started_anew_is_noticed(varnish: VarnishTarget) -> None:
    """The manager starts another one at once, with nothing in it: what is measured then is another server."""
    varnish.start(TargetState(FILE, {}))
    manager, cache = varnish.pids()
    os.kill(cache, signal.SIGKILL)
    await_that(lambda: not Path(f"/proc/{cache}").exists(), "the cache process has ended")
    with pytest.raises(TargetError, match="cache process has ended"):
        varnish.counters()
    varnish.stop()
    varnish.start(TargetState(FILE, {}))
    assert varnish.pids()[0] != manager
    assert varnish.counters()["requests"] >= 0


@pytest.mark.parametrize(("least", "most"), [(6000, 8000), (20, 50), (6000, 6000), (100, 100)])
def test_threads_are_taken_whichever_way_both_bounds_move(varnish: VarnishTarget, least: int, most: int) -> None:
    """By default there are 100 to 5000 in a pool. It is asked without a start: 6000 threads are started at once."""
    varnish.check(TargetState({"thread_pool_min": least, "thread_pool_max": most}, {}))


def test_fewer_threads_than_the_default_least_are_in_effect(varnish: VarnishTarget) -> None:
    varnish.start(TargetState({"thread_pool_max": 50, "thread_pool_min": 20}, {}))
    effective = varnish.effective()
    assert (effective["thread_pool_min"], effective["thread_pool_max"]) == (20, 50)


def test_settings_that_contradict_one_another_are_refused_in_its_own_words(varnish: VarnishTarget) -> None:
    with pytest.raises(TargetError) as caught:
        varnish.start(TargetState({"thread_pool_min": 200, "thread_pool_max": 100}, {}))
    assert "thread_pool_max" in caught.value.details
    assert varnish.pids() == ()


def test_an_nginx_cache_keeps_what_it_has_over_a_restart_until_it_is_emptied(lease: Lease) -> None:
    target = NginxCacheTarget(lease=lease, resources=Resources())
    target.create()
    try:
        target.start(TargetState({}, {}))
        origin = Path(target.endpoint().options["files"])
        (origin / "one").write_bytes(b"1" * 5000)
        get(target, "one")
        assert target.counters()["fetches"] == 1
        (origin / "one").write_bytes(b"2" * 5000)
        target.stop()
        target.start(TargetState({}, {}))
        assert get(target, "one") == b"1" * 5000, "from the cache: the origin has another one now"
        assert target.counters()["fetches"] == 0
        target.stop()
        target.empty()
        target.start(TargetState({}, {}))
        assert get(target, "one") == b"2" * 5000, "there is nothing in it any more"
        assert target.counters()["fetches"] == 1
    finally:
        target.destroy()


def test_of_an_origin_that_is_too_busy_to_answer_the_number_known_last_counts(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = Origin(lease, "origin")
    reads: list[Callable[[], dict[str, float]]] = [lambda: {"requests": 8.0}, dict, full, lambda: {"requests": 12.0}]
    monkeypatch.setattr(origin.status, "read", lambda: reads.pop(0)())
    assert [origin.requests() for _ in range(4)] == [7, 7, 7, 10]


def full() -> dict[str, float]:
    raise NoRoom
