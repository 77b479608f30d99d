"""Which threads a data node has, and on which CPUs: as ndbmtd makes them of its settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_ndb.records import NdbThreads, cpu_list
from loadframe_ndb.settings import read_cpus
from loadframe_ndb.threads import EXECUTION, bound, by_config, by_number, check_apart


def on(groups: tuple[NdbThreads, ...]) -> dict[str, str]:
    """Kind -> CPUs, of those that are bound."""
    return {group.kind: cpu_list(group.cpus) for group in groups if group.cpus}


def counts(groups: tuple[NdbThreads, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in groups:
        found[group.kind] = found.get(group.kind, 0) + group.count
    return found


@pytest.mark.parametrize(
    ("threads", "ldm", "running"),
    [(2, 1, 4), (4, 2, 5), (6, 2, 5), (7, 4, 7), (8, 4, 7), (9, 4, 9), (12, 6, 12), (39, 16, 39), (72, 32, 72)],
)
def test_how_many_threads_there_are_follows_from_one_number(threads: int, ldm: int, running: int) -> None:
    groups = by_number(threads)
    assert counts(groups)["ldm"] == ldm
    assert sum(group.count for group in groups) == running


def test_the_storys_six_cpus_give_each_ldm_thread_its_own() -> None:
    assert on(bound(by_number(8), read_cpus("0-5"))) == {"ldm": "0-3", "main": "4", "rep": "4", "recv": "5"}


@pytest.mark.parametrize(
    ("config", "locked", "expected"),
    [
        ("main,ldm={count=4},recv,rep", "1-8", {"main": "1", "ldm": "2-5", "recv": "6", "rep": "7"}),
        ("main={count=0},rep={count=0},recv,ldm={count=4}", "1-4", {"recv": "1", "ldm": "2-4"}),
        ("main={count=0},rep={count=0},recv,ldm={count=4,cpubind=1,4,5,6}", "1-8", {"recv": "2", "ldm": "1,4-6"}),
        ("tc", "1-5", {"main": "1", "ldm": "2", "recv": "3", "rep": "4", "tc": "5"}),
        ("ldm,ldm,main", "0-4", {"main": "0", "ldm": "1-2", "recv": "3", "rep": "4"}),
        ("main", "3", {"main": "3", "ldm": "3", "recv": "3", "rep": "3"}),
        ("main,io={cpubind=3}", "0-3", {"main": "0", "ldm": "1", "recv": "2", "rep": "3", "io": "3"}),
        ("main,io={cpuset=0}", "0-4", {"main": "1", "ldm": "2", "recv": "3", "rep": "4", "io": "0"}),
    ],
)
def test_cpus_go_to_threads_that_have_none(config: str, locked: str, expected: dict[str, str]) -> None:
    assert on(bound(by_config(config), read_cpus(locked))) == expected


def test_with_threads_for_tc_each_needs_a_cpu() -> None:
    with pytest.raises(ValueError, match="9 execution threads for 6 CPUs"):
        bound(by_number(9), read_cpus("0-5"))
    with pytest.raises(ValueError, match="6 execution threads for 5 CPUs"):
        bound(by_config("tc,tc"), read_cpus("0-4"))
    with pytest.raises(ValueError, match="5 execution threads for 4 CPUs"):
        bound(by_config("recv={count=2}"), read_cpus("0-3"))


@given(st.integers(2, 72), st.frozensets(st.integers(0, 99), min_size=1))
def test_every_thread_gets_a_cpu_of_the_list_or_the_list_is_refused(threads: int, locked: frozenset[int]) -> None:
    try:
        groups = bound(by_number(threads), locked)
    except ValueError:
        assert threads >= 9 and len(locked) < threads
        return
    assert all(group.cpus and group.cpus <= locked for group in groups)
    if len(locked) >= sum(group.count for group in groups):
        assert sum(len(group.cpus or ()) for group in groups) == sum(group.count for group in groups)
        assert len(frozenset[int]().union(*(group.cpus or () for group in groups))) == sum(one.count for one in groups)


@pytest.mark.parametrize(
    "config",
    [
        "ldm",
        " main , LDM = { count = 2, CPUBIND = 1-2, 5 } , recv,rep",
        "main,rep,recv,ldm={}",
        "ldm={count=4,cpuset=1-4},tc={count=4,cpuset=5,6,7},io={cpubind=8},idxbld={cpuset=1-8}",
        "main={cpubind=9},io={cpubind=9},rep={cpubind=10}",
        "ldm={count=2,cpuset=1-2},query={count=2,cpuset=1-2}",
        "main={count=0},rep={count=0},recv,ldm={count=0}",
    ],
)
def test_thread_configs_that_are_right(config: str) -> None:
    groups = by_config(config)
    check_apart(groups)
    assert counts(groups)["recv"] == 1
    assert {group.kind for group in groups} >= {"io", "watchdog"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("", "kind of thread is missing"),
        ("ldm,", "kind of thread is missing"),
        ("ldb", "'ldb' is not a kind of thread"),
        ("ldm{count=4}", "cannot be read"),
        ("ldm={cpubind=1,tc={cpubind=2}", "cannot be read|no kind|none of"),
        ("ldm={count=4,}", "none of count"),
        ("ldm={cores=4}", "'cores=4' is none of count"),
        ("ldm={count=two}", "not a number"),
        ("ldm={count=3,count=3}", "twice"),
        ("ldm={cpubind=1,cpuset=2}", "only one"),
        ("ldm={cpubind=1;3}", "such as 0-3,6"),
        ("ldm={count=4,cpubind=1-3}", "4 threads cannot be bound one to one to 3 CPUs"),
        ("main,main", "2 threads of kind main; there may be 1"),
        ("ldm={count=333}", "there may be 332"),
        ("recv={count=0}", "at least one thread has to receive"),
        ("main={count=0}", "rep thread needs a main thread"),
        ("ldm={count=4},query={count=6}", "0, 1, 2 or 3 for each of 4 ldm"),
        ("main={cpuset=1-3},ldm={cpuset=3-4}", "ldm and main have CPU 3|main and ldm have CPU 3"),
        ("main={cpuset=1-3},ldm={cpubind=2}", "main and ldm have CPU 2"),
    ],
)
def test_thread_configs_that_would_be_refused(config: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_apart(by_config(config))


@given(st.text(alphabet="lmdainrectv={},-0123 count", max_size=30))
def test_any_text_is_a_thread_config_or_refused(config: str) -> None:
    try:
        groups = by_config(config)
    except ValueError as error:
        assert str(error)
    else:
        assert counts(groups)["recv"] >= 1
        assert all(group.count >= 0 for group in groups)
        assert set(EXECUTION) & {group.kind for group in groups}


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_cpu_lists_are_written_short_and_read_back(cpus: frozenset[int]) -> None:
    assert read_cpus(cpu_list(cpus)) == cpus
