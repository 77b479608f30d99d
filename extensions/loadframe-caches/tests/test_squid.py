"""Squid before an origin of its own: what it counts, what it keeps, what it refuses, and how its pages are read."""

from __future__ import annotations

import http.client
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from loadframe.errors import TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.catalogue import SettingSpec
from loadframe.kinds.own_counts import LogCounts
from loadframe.model import SettingValue, TargetState
from loadframe_caches.squid.kind import SquidTarget
from loadframe_caches.squid.manager import CATALOGUE, connected, descriptors, parse_config, parse_counters, parse_info
from waiting import await_that

DISK = {"cache_dir_kind": "aufs", "cache_dir_size": 20 << 20, "maximum_object_size_in_memory": 1000}


@pytest.fixture
def squid(lease: Lease) -> Iterator[SquidTarget]:
    target = SquidTarget(lease=lease, resources=Resources())
    target.create()
    yield target
    target.destroy()


def put(target: SquidTarget, count: int, size: int = 50_000) -> list[str]:
    """Files of its origin, last changed some time ago, as a cache thinks of that when it asks whether it has them."""
    names = [f"{number}" for number in range(count)]
    for name in names:
        path = Path(target.endpoint().options["files"]) / name
        path.write_bytes(name.encode() * (size // len(name)))
        os.utime(path, (time.time() - 2, time.time() - 2))
    return names


def get(target: SquidTarget, name: str) -> bytes:
    with urllib.request.urlopen(f"http://{target.endpoint().address}/{name}", timeout=10) as answer:
        return bytes(answer.read())


def kill(target: SquidTarget) -> None:
    os.kill(target.pids()[0], signal.SIGKILL)
    await_that(lambda: target.pids() == (), "it has ended")
    target.stop()


# --- what it counts and keeps ---


@pytest.mark.server
def test_hits_misses_and_what_is_stored_are_counted_without_our_questions(squid: SquidTarget) -> None:
    squid.start(TargetState(DISK))
    names = put(squid, 5)
    before = squid.counters()
    for _ in range(3):
        assert [len(get(squid, name)) for name in names] == [50_000] * 5
    await_that(lambda: squid.counters()["disk_writes"] == 5, "five files are written")
    grown = {name: value - before[name] for name, value in squid.counters().items()}
    assert (grown["requests"], grown["hits"], grown["misses"], grown["fetches"]) == (15, 10, 5, 5)
    assert grown["not_in_memory"] == 5 + grown["disk_reads"]
    assert grown["disk_reads"] >= 10, "they are too large to be kept in memory"
    assert grown["objects_on_disk"] == 5
    assert grown["disk_used"] >= 250_000
    assert squid.counters()["disk_allowed"] == 18 << 20, "from cache_swap_low on objects are dropped"
    assert squid.counters()["client_connections"] == 0, "our own is not counted"


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("kind", ["none", "aufs", "rock"])
def test_what_is_on_the_disk_survives_either_end_until_it_is_emptied(squid: SquidTarget, kind: str) -> None:
    state = TargetState({**DISK, "cache_dir_kind": kind})
    squid.start(state)
    names = put(squid, 8)

    def kept() -> float:
        before = squid.counters()["fetches"]
        for name in names:
            get(squid, name)
        return len(names) - (squid.counters()["fetches"] - before)

    assert kept() == 0
    if kind != "none":
        await_that(lambda: squid.counters()["disk_writes"] == 8, "eight files are written")
    squid.stop()
    squid.start(state)
    assert kept() == (0 if kind == "none" else 8)
    kill(squid)
    squid.start(state)
    assert kept() == (0 if kind == "none" else 8)
    kill(squid)
    squid.empty()
    squid.start(state)
    assert kept() == 0


@pytest.mark.long
@pytest.mark.server
def test_what_makes_room_on_the_disk_is_counted(squid: SquidTarget) -> None:
    squid.start(TargetState({**DISK, "cache_dir_size": 1 << 20, "cache_swap_low": 40, "cache_swap_high": 50}))
    for name in put(squid, 16, size=100_000):
        get(squid, name)
    await_that(lambda: squid.counters()["evictions"] > 0, "one is evicted")
    found = squid.counters()
    assert found["disk_writes"] - found["objects_on_disk"] <= found["evictions"] <= found["disk_writes"]


# --- its settings ---

OTHERS: dict[str, SettingValue] = {
    "cache_dir_kind": "aufs", "cache_dir_size": 30 << 20, "cache_dir_l1": 4, "cache_dir_l2": 8, "cache_swap_low": 80,
    "cache_swap_high": 85, "max_open_disk_fds": 10, "workers": 1, "max_filedescriptors": 100,
    "client_ip_max_connections": 50,
}  # fmt: skip


def other(spec: SettingSpec) -> SettingValue:
    """A value that is not the default."""
    if spec.name in OTHERS:
        return OTHERS[spec.name]
    assert spec.default is not None
    if spec.choices:
        return spec.choices[-1]
    return not spec.default if spec.kind == "boolean" else 2 * spec.default


@pytest.mark.long
@pytest.mark.server
def test_every_setting_of_the_catalogue_is_taken_by_the_installed_squid(squid: SquidTarget) -> None:
    asked = {spec.name: other(spec) for spec in CATALOGUE.specs}
    dynamic = {spec.name: asked[spec.name] for spec in CATALOGUE.specs if spec.dynamic}
    squid.start(TargetState())
    defaults = {spec.name: spec.default for spec in CATALOGUE.specs if spec.default is not None}
    assert defaults.items() <= squid.effective().items()
    pids = squid.pids()
    squid.apply(TargetState(dynamic))
    assert dynamic.items() <= squid.effective().items()
    assert squid.pids() == pids
    squid.apply(TargetState(asked))
    assert asked.items() <= squid.effective().items()
    assert squid.pids() != pids


# --- what it refuses ---


@pytest.mark.server
def test_connections_beyond_those_of_a_client_are_refused_and_counted(squid: SquidTarget) -> None:
    squid.start(TargetState({"client_ip_max_connections": 4}))
    host, port = squid.endpoint().address.split(":")
    (name,) = put(squid, 1)

    def answers(connection: http.client.HTTPConnection) -> bool:
        try:
            connection.request("GET", f"/{name}")
            return len(connection.getresponse().read()) == 50_000
        except (OSError, http.client.HTTPException):
            return False

    assert squid.counters()["client_connections_allowed"] == 4
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(http.client.HTTPConnection(host, int(port)))) for _ in range(6)]
        assert [answers(client) for client in clients] == [True] * 4 + [False] * 2
        found = squid.counters()
        assert found["client_connections"] == 4, "and it tells us all the same: our connection was there first"
        assert found["connections_refused"] == 2


@pytest.mark.server
def test_descriptors_that_it_keeps_for_itself_are_not_for_clients(squid: SquidTarget) -> None:
    squid.start(TargetState({"max_filedescriptors": 64}))
    assert squid.effective()["max_filedescriptors"] == 64
    found = squid.counters()
    assert found["descriptors_allowed"] == 48, "a quarter is reserved"
    assert 0 < found["descriptors"] < 48


@pytest.mark.server
def test_more_descriptors_than_the_process_may_have_are_cut_and_that_is_seen(lease: Lease) -> None:
    target = SquidTarget(lease=lease, resources=Resources(limits={"RLIMIT_NOFILE": 200}))
    target.create()
    try:
        target.start(TargetState({"max_filedescriptors": 1000}))
        assert target.effective()["max_filedescriptors"] == target.effective()["RLIMIT_NOFILE"] == 200
    finally:
        target.destroy()


@pytest.mark.server
def test_what_it_does_not_take_is_refused_in_its_own_words(squid: SquidTarget) -> None:
    with pytest.raises(TargetError, match="cache_mem") as caught:
        squid.start(TargetState({"cache_mem": 10**20 - 1}))
    assert "cache_mem" in caught.value.details
    assert squid.pids() == ()


@pytest.mark.server
def test_its_death_is_told_and_nothing_of_it_is_left_in_shared_memory(squid: SquidTarget, lease: Lease) -> None:
    squid.start(TargetState(DISK))
    ours = f"{lease.shared_name}-*"
    assert list(Path("/dev/shm").glob(ours))
    os.kill(squid.pids()[0], signal.SIGKILL)
    await_that(lambda: squid.pids() == (), "it has ended")
    with pytest.raises(TargetError, match="SIGKILL"):
        squid.counters()
    squid.destroy()
    assert not list(Path("/dev/shm").glob(ours))


# --- how its pages are read ---

INFO = """Cache information for squid:
\tStorage Swap size:\t2932 KB
\tStorage Swap capacity:\t 2.9% used, 97.1% free
\tStorage Mem size:\t220 KB
File descriptor usage for squid:
\tMaximum number of file descriptors:    512
\tReserved number of file descriptors:   100
\tStore Disk files open:                   3
Internal Data Structures:
\t    54 StoreEntries
\t     7 on-disk objects
"""


def test_the_page_info() -> None:
    assert parse_info(INFO) == {
        "memory_used": 220 * 1024,
        "disk_used": 2932 * 1024,
        "objects_on_disk": 7,
        "disk_files_open": 3,
    }
    assert descriptors(INFO) == (512, 100)
    assert parse_info("") == {}


def test_the_pages_counters_and_client_list() -> None:
    text = "client_http.requests = 15\nclient_http.hits = 10\nserver.all.requests = 5\nserver.http.requests = 4\n"
    assert parse_counters(text) == {"requests": 15, "hits": 10, "fetches": 5}
    assert connected("Address: ::1\nCurrently established connections: 2\nCurrently established connections: 3\n") == 5


def test_the_page_config() -> None:
    text = """cache_mem 268435456 bytes
memory_replacement_policy heap GDSF
cache_dir aufs /a/store/aufs-8-32 20 8 32 IOEngine=DiskThreads
refresh_pattern . 1440 100% 1440 override-lastmod
collapsed_forwarding on
client_idle_pconn_timeout 120 seconds
client_ip_max_connections -1
"""
    found = parse_config(text, "Maximum Swap Size      : 20480 KB\n")
    assert {name: found[name] for name in found if name.startswith("cache_dir_")} == {
        "cache_dir_kind": "aufs",
        "cache_dir_size": 20 << 20,
        "cache_dir_l1": 8,
        "cache_dir_l2": 32,
    }
    assert (found["cache_mem"], found["memory_replacement_policy"]) == (256 << 20, "heap GDSF")
    assert (found["refresh_pattern_min"], found["collapsed_forwarding"]) == (1440, True)
    assert (found["client_idle_pconn_timeout"], found["client_ip_max_connections"]) == (120, -1)
    assert parse_config(text.replace("cache_dir", "#"), "")["cache_dir_kind"] == "none"


def test_only_whole_lines_of_a_log_are_counted_and_each_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    counts = LogCounts(log, (b"too many", b"too few"))
    assert counts.read() == {b"too many": 0, b"too few": 0}
    log.write_text("too many\ntoo few\ntoo ma")
    assert counts.read() == {b"too many": 1, b"too few": 1}
    with log.open("a") as more:
        more.write("ny\n")
    assert counts.read() == counts.read() == {b"too many": 2, b"too few": 1}
