"""What a watch reads of a service while its processes come and go, and of one that is on another machine."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadframe_watch.daemon import RealReader
from loadframe_watch.find import Finder, how_to_find
from loadframe_watch.records import WatchPlan
from loadframe_watch.sampling import MOST_READ, Held, Look, Service

FORKS = """
import subprocess, sys
BURNS = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(1, flush=True); input()"
print(0, flush=True)
for line in sys.stdin:
    worker = subprocess.Popen([sys.executable, "-c", BURNS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    worker.stdout.readline()
    print(worker.pid, flush=True)
    if sys.stdin.readline():
        worker.kill(); worker.wait()
        print(0, flush=True)
"""
NESTED = """
import subprocess, sys, threading
BEGINS = "import subprocess, sys; one = subprocess.Popen(['sleep', '60']); print(one.pid, flush=True); one.wait()"
def begin():
    worker = subprocess.Popen([sys.executable, "-c", BEGINS], stdout=subprocess.PIPE, text=True)
    below = int(worker.stdout.readline())
    print(worker.pid, below, flush=True)
    ended.wait()
    subprocess.run(["kill", str(below)]); worker.wait()
ended = threading.Event()
one = threading.Thread(target=begin); one.start()
sys.stdin.read()
ended.set(); one.join()
"""
"""A worker that another thread than the first has begun, and one of that worker."""


@dataclass
class Forking:
    """A service of a first process and workers; each was at work for 0.3 s of CPU time when it is there."""

    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def turn(self) -> int:
        """A worker comes, and the answer is its pid; at the next call it ends."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture
def forking() -> Iterator[Forking]:
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield Forking(process)
        finally:
            process.stdin.close() if process.stdin else None
            process.kill()


def test_what_has_no_process_here_is_not_absent() -> None:
    """A web address: whether it answers is told by the unit of work."""
    reader = RealReader(WatchPlan("a web address", "", load="target.connections"))
    assert reader.read(1.0)[1] and reader.read(11.0)[1]


def test_a_database_elsewhere_is_absent_while_it_does_not_answer() -> None:
    address = {"kind": "mariadb", "address": "127.0.0.1:1", "user": "", "option_file": ""}
    reader = RealReader(WatchPlan("a database", "", server=address))
    assert not reader.read(1.0)[1]


def test_workers_that_come_later_are_watched_too(forking: Forking) -> None:
    """A server that forks replaces its workers all the time: what they use and leak is the service's."""
    reader = RealReader(WatchPlan("a service", "", find=how_to_find(forking.pid)))
    alone, _ = reader.read(1000.0)
    forking.turn()
    together, there = reader.read(2000.0)
    assert there and together["target.threads.count"] == alone["target.threads.count"] + 1
    assert together["target.memory.rss"] > 1.2 * alone["target.memory.rss"]


def test_cpu_time_from_before_a_worker_was_seen_is_no_use_of_now(forking: Forking) -> None:
    service, found = Service(), []
    service.follow((forking.pid,))
    for pids in ((forking.pid,), (forking.pid, forking.turn())):
        service.follow(pids)
        look = Look(0.0)
        assert service.look(look)
        found.append(look.counters["target.cpu.cores"])
    forking.turn()
    after = Look(0.0)
    assert service.look(after) and service.pids == (forking.pid,)
    assert found[1] - found[0] < 0.2
    assert after.counters["target.cpu.cores"] >= found[1], "a worker that ends takes nothing away"


@pytest.mark.parametrize("by_thread", [True, False])
def test_workers_are_found_whatever_the_kernel_tells(forking: Forking, by_thread: bool) -> None:
    """From the lists of children of its threads, or by a walk over all processes."""
    finder = Finder(how_to_find(forking.pid), by_thread=by_thread)
    assert finder.pids() == (forking.pid,)
    worker = forking.turn()
    assert finder.pids() == (forking.pid, worker)
    forking.turn()
    assert finder.pids() == (forking.pid,), "one that has ended is none"


def test_workers_of_threads_and_of_workers_are_found() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None and one.stdin is not None
        told = [int(word) for word in one.stdout.readline().split()]
        found = [Finder(how_to_find(one.pid), by_thread=by_thread).pids() for by_thread in (True, False)]
        one.stdin.close()
    assert len(told) == 2
    assert [sorted(pids) for pids in found] == [sorted([one.pid, *told])] * 2


def test_a_file_of_proc_is_read_to_its_end() -> None:
    """Of one that is longer than a page the kernel gives a page at a time: a machine with many disks has such a one."""
    files = Held(Path("/"))
    lines = files.read("proc/self/maps").splitlines()
    files.close()
    assert len(lines) > 100 and sum(map(len, lines)) > 2 * 4096
    assert lines[-1] == Path("/proc/self/maps").read_bytes().splitlines()[-1]


def test_no_more_of_a_file_is_read_than_the_most(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (MOST_READ + 9999))
    (tmp_path / "short").write_bytes(b"y" * 5000)
    files = Held(tmp_path)
    assert (len(files.read("long")), len(files.read("short")), files.read("none")) == (MOST_READ, 5000, b"")
    (tmp_path / "short").write_bytes(b"z")
    assert files.read("short") == b"z"
    files.close()


def test_every_sample_has_the_machine_also_where_it_was_not_read_again() -> None:
    reader = RealReader(WatchPlan("", "", find=how_to_find(os.getpid(), []), interval_s=10.0))
    first, between, later = (reader.read(at_s)[0] for at_s in (100.0, 110.0, 130.0))
    assert first["system.memory.used"] == between["system.memory.used"] > 0
    assert between["system.cpu.busy_cores"] >= 0.0, "its CPUs are read each time"
    assert all({"system.memory.limit", "system.threads.count"} <= one.keys() for one in (first, between, later))


LISTENS = """
import socket, sys
family, address, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
one = socket.socket(family)
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.bind((address, port)); one.listen()
print(one.getsockname()[1], flush=True)
accepted = one.accept()
print("accepted", flush=True)
sys.stdin.read()
"""


@contextmanager
def listening(family: int, address: str, port: int) -> Iterator[tuple[int, int]]:
    """A service with one connection; its pid and its port."""
    words = [sys.executable, "-c", LISTENS, str(int(family)), address, str(port)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)):
            process.stdout.readline()
            yield process.pid, port
        process.stdin.close()


def test_connections_are_counted_where_a_service_listens_after_its_restart() -> None:
    """One to `::` is in another table of the kernel than one to 127.0.0.1, and only one table is looked through."""
    with listening(socket.AF_INET, "127.0.0.1", 0) as (pid, port):
        find = {**how_to_find(pid), "listen": ["", port]}
        reader = RealReader(WatchPlan("", "", find=find, load="target.connections", interval_s=10.0))
        counts = [reader.read(at_s)[0].get("target.connections") for at_s in (100.0, 200.0)]
    with listening(socket.AF_INET6, "::", port) as (second, _):
        values, there = reader.read(300.0)
        assert there and reader.pids() == (second,)
        counts.append(values["target.connections"])
    reader.close()
    assert counts == [1.0, 1.0, 1.0]


def test_a_limit_of_open_files_that_was_changed_is_read_again() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        service, found = Service(), []
        for most in (100, 90):
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most, 100))
            service.follow((process.pid,))
            look = Look(0.0)
            assert service.look(look)
            found.append(look.gauges["target.open_files.limit"])
        process.kill()
        process.wait()
        assert not service.look(Look(0.0))
        service.follow((process.pid,))
        assert not service.look(Look(0.0)), "its files are gone, whatever has its number later"
        service.close()
    assert found == [100.0, 90.0]
