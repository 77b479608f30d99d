"""A Redis that is not ours, and keys in it of exactly the names that redis-benchmark gives its own: they are as they
were, whatever is sent, and nothing is left behind."""

import os
import pwd
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadframe.errors import TargetError
from loadframe.host import identity
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.workloads import registry
from loadframe_drivers.redis import Redis
from loadframe_drivers.redis_keys import NAMES, OwnKeys, _asking
from waiting import await_that

pytestmark = pytest.mark.server

STUDY = """
[study]
name = "theirs"
question = "How many?"
[target]
kind = "service"
listen = "127.0.0.1:{port}"
[workload]
kind = "redis"
[workload.options]
test = "{test}"
keys = 10
[load]
axis = "clients"
levels = [1]
[measure]
warmup = "150ms"
window = "300ms"
blocks = {{ min = 2, max = 2 }}
budget = "{budget}"
profile = "off"
"""
THEIRS = (
    *(("SET", f"key:{number:012d}", "precious") for number in range(10)),
    *(("SET", f"counter:{number:012d}", "7") for number in range(10)),
    ("RPUSH", "mylist", "precious", "too"),
    ("SADD", "myset", "precious", "too"),
    ("HSET", "myhash", "field", "precious"),
    ("ZADD", "myzset", "7", "precious"),
    ("SET", "memtier-1", "precious"),
)
TESTS = ("set", "incr", "lpop", "spop", "zpopmin")
MAIN = "from loadframe.cli.entry import main; main()"
Loadframe = Callable[..., Any]


@pytest.fixture
def redis(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of one with so many databases, all keys of the names above in the first."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    databases = str(getattr(request, "param", 16))
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--databases", databases]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", user=user)
    own = identity.identify(process.pid)
    try:
        await_that(lambda: listens(port), "a Redis that listens", of=process)
        with _asking(f"127.0.0.1:{port}") as ask:
            for keys in THEIRS:
                ask(*keys)
        yield port
    finally:
        if own is not None:
            identity.end_all([own], 5.0)
        process.wait(10)


def listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def dump(port: int) -> list[Any]:
    """Every key of every database, as the server itself writes it."""
    found = []
    with _asking(f"127.0.0.1:{port}") as ask:
        for database in range(int(ask("CONFIG", "GET", "databases")[1])):
            ask("SELECT", str(database))
            found += [(database, name, ask("DUMP", name)) for name in sorted(ask("KEYS", "*"))]
    return found


def killed_amid_its_load(port: int, folder: Path) -> None:
    before = dump(port)
    (folder / "study.toml").write_text(STUDY.format(port=port, test="set", budget="60s"))
    with (folder / "said").open("wb") as said:
        command = [sys.executable, "-P", "-c", MAIN, "measure", "study.toml"]
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said, start_new_session=True)
    try:
        await_that(lambda: len(dump(port)) >= len(before) + 2, "the mark, and a key of the load", of=process)
    finally:
        process.kill()
        process.wait()
    await_that(lambda: _left_alone(port), "the end of the driver, which outlives the command by a moment")


def _left_alone(port: int) -> bool:
    """For half a second: a driver may have been started and not be connected yet."""
    seen = dump(port), _clients(port)
    time.sleep(0.5)
    return seen == (dump(port), _clients(port)) and seen[1] == 1


def _clients(port: int) -> int:
    with _asking(f"127.0.0.1:{port}") as ask:
        return len(str(ask("CLIENT", "LIST", "TYPE", "normal")).strip().splitlines())


@pytest.mark.long
def test_keys_of_the_names_of_a_load_are_as_they_were(redis: int, loadframe: Loadframe, tmp_path: Path) -> None:
    before = dump(redis)
    assert len(before) == len(THEIRS)
    for test in TESTS:
        (tmp_path / "study.toml").write_text(STUDY.format(port=redis, test=test, budget="10s"))
        done = loadframe("measure", "study.toml")
        assert done.code == 0, (test, done.err)
        assert dump(redis) == before, test


@pytest.mark.long
@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_one_that_evicts_keys_is_refused_in_words(
    redis: int, loadframe: Loadframe, tmp_path: Path, policy: str
) -> None:
    """Its databases share one memory."""
    with _asking(f"127.0.0.1:{redis}") as ask:
        ask("CONFIG", "SET", "maxmemory", "12mb")
        ask("CONFIG", "SET", "maxmemory-policy", policy)
    before = dump(redis)
    (tmp_path / "study.toml").write_text(STUDY.format(port=redis, test=TESTS[0], budget="2s"))
    done = loadframe("measure", "study.toml")
    assert done.code == 1 and f"evicts keys ({policy})" in " ".join(done.err.split())
    assert dump(redis) == before


@pytest.mark.long
@pytest.mark.parametrize(("test", "keys", "room"), [("set", 1000, 300_000), ("lpush", 10, 1 << 30)])
def test_a_load_that_would_fill_the_memory_is_refused_in_words(
    redis: int, loadframe: Loadframe, tmp_path: Path, test: str, keys: int, room: int
) -> None:
    """Its owner's next write would be refused."""
    with _asking(f"127.0.0.1:{redis}") as ask:
        ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        ask("CONFIG", "SET", "maxmemory", str(used_bytes(redis) + room))
    before = dump(redis)
    study = STUDY.format(port=redis, test=test, budget="2s").replace("keys = 10", f"keys = {keys}")
    (tmp_path / "study.toml").write_text(study)
    done = loadframe("measure", "study.toml")
    assert done.code == 1 and "(noeviction), its owner's too" in " ".join(done.err.split()), done.err
    assert dump(redis) == before


@pytest.mark.long
def test_a_load_that_fits_into_the_memory_is_measured(redis: int, loadframe: Loadframe, tmp_path: Path) -> None:
    before = dump(redis)
    with _asking(f"127.0.0.1:{redis}") as ask:
        ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        ask("CONFIG", "SET", "maxmemory", str(used_bytes(redis) + (16 << 20)))
    (tmp_path / "study.toml").write_text(STUDY.format(port=redis, test="set", budget="10s"))
    done = loadframe("measure", "study.toml")
    assert done.code == 0, done.err
    assert dump(redis) == before


def used_bytes(port: int) -> int:
    with _asking(f"127.0.0.1:{port}") as ask:
        return int(re.findall(r"used_memory:(\d+)", ask("INFO", "memory"))[0])


@pytest.mark.parametrize("data_bytes", [3, 1030])
@pytest.mark.parametrize("test", ["set", "incr", "sadd", "hset", "zadd", "mset"])
def test_keys_take_no_more_memory_than_they_are_thought_to(redis: int, test: str, data_bytes: int) -> None:
    keys = 40_000
    made = registry.make("redis", {"test": test, "keys": keys, "data_bytes": data_bytes}, Allowance(US))
    assert isinstance(made, Redis)
    needs, before = made.needs_bytes(), used_bytes(redis)
    ran = ("-c", "4", "-P", "100", "-r", str(keys), "-n", str(4 * keys), "-d", str(data_bytes), "-t", test)
    subprocess.run(["redis-benchmark", "-q", "-p", str(redis), *ran], check=True, capture_output=True, timeout=60)
    assert needs is not None and needs / 20 < used_bytes(redis) - before < needs


@pytest.mark.parametrize("redis", [1], indirect=True)
def test_one_without_an_empty_database_is_refused_in_words(redis: int, loadframe: Loadframe, tmp_path: Path) -> None:
    before = dump(redis)
    (tmp_path / "study.toml").write_text(STUDY.format(port=redis, test="set", budget="2s"))
    done = loadframe("measure", "study.toml")
    assert (done.code, "no empty logical database" in done.err) == (1, True), done.err
    assert dump(redis) == before


@pytest.mark.long
def test_a_kill_in_the_middle_leaves_nothing_once_it_is_reverted(
    redis: int, loadframe: Loadframe, tmp_path: Path
) -> None:
    before = dump(redis)
    killed_amid_its_load(redis, tmp_path)
    reverted = loadframe("changes", "revert")
    assert (reverted.code, "keys in database 15" in reverted.out) == (0, True), reverted.out
    assert dump(redis) == before


def test_a_database_that_others_use_meanwhile_is_not_cleared_of_their_keys(redis: int) -> None:
    keys = OwnKeys.found(f"127.0.0.1:{redis}", "loadframe_run_1", 0)
    with _asking(f"127.0.0.1:{redis}") as ask:
        ask("SELECT", str(keys.database))
        ask("SET", "mylist", "precious")
        with pytest.raises(TargetError, match="now has keys of others"):
            keys.make()
        before = dump(redis)
        keys.write(keys.name, "absent")
        assert dump(redis) == before, "without its mark nothing is ours"
        with pytest.raises(TargetError, match="mark any more"):
            keys.check()
        ask("DEL", "mylist")
        keys.make()
        for name in NAMES:
            ask("SET", name, "ours")
        ask("SET", "another", "precious")
        keys.write(keys.name, "absent")
        assert ask("KEYS", "*") == ["another"]


@pytest.mark.long
@pytest.mark.parametrize("left", ["ours", "theirs"])
def test_without_the_mark_keys_are_neither_removed_nor_said_to_be_gone(
    redis: int, loadframe: Loadframe, tmp_path: Path, left: str
) -> None:
    """A kill amid the load, then the mark goes: alone, or with all others, and the owner makes keys of these names."""
    before = dump(redis)
    killed_amid_its_load(redis, tmp_path)
    with _asking(f"127.0.0.1:{redis}") as ask:
        ask("SELECT", "15")
        ask("DEL", *[key for key in ask("KEYS", "*") if left == "theirs" or key.startswith("loadframe_run_")])
        if left == "theirs":
            ask("SET", "key:000000000001", "precious")
    kept = dump(redis)
    reverted = loadframe("changes", "revert")
    words = " ".join((reverted.out + reverted.err).split())
    assert reverted.code == 1 and "among them key:" in words and f"-p {redis} -n 15 --scan" in words, words
    assert dump(redis) == kept
    with _asking(f"127.0.0.1:{redis}") as ask:
        ask("SELECT", "15")
        ask("FLUSHDB")
    reverted = loadframe("changes", "revert")
    assert reverted.code == 0, reverted.out
    assert dump(redis) == before
