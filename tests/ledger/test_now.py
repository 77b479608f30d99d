"""The ledger now: every limit that has a meaning here is there, with its state, or with the reason why not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.kinds.registry import KINDS
from loadframe.ledger.reading import counter_metrics, derive, judge, read_now
from loadframe.ledger.rules import RULES
from loadframe.model import CounterSpec, Limit

FILES = {"target.open_files": 900.0, "target.open_files.limit": 1024.0, "target.open_files.hard_limit": math.inf}


def limit(found: tuple[Limit, ...], name: str) -> Limit:
    return next(one for one in found if one.id == name)


def test_a_process_near_its_limit() -> None:
    limits, _ = read_now(FILES, {}, kinds={"process"})
    files = limit(limits, "process.open_files")
    assert (files.use, files.ceiling, files.headroom, files.status) == (900, 1024, 124, "near")
    assert files.loud
    assert files.near == 0.8


def test_a_limit_that_the_machine_does_not_set_is_unlimited() -> None:
    limits, _ = read_now(FILES, {}, kinds={"process"})
    assert limit(limits, "process.open_files_hard").status == "unlimited"


def test_nothing_that_exists_here_is_left_out_silently() -> None:
    limits, unread = read_now(FILES, {"system.swap.used": "no swap"}, kinds={"process", *KINDS})
    assert {one.id for one in (*limits, *unread)} == {rule.id for rule in RULES if not rule.id.startswith("cage.")}
    assert next(one.reason for one in unread if one.id == "memory.swap") == "no swap"
    assert all(one.reason for one in unread)


def test_servers_that_are_not_there_are_not_listed() -> None:
    limits, unread = read_now(FILES, {}, kinds={"process"})
    assert not [one.id for one in (*limits, *unread) if one.id.startswith(("mariadb.", "lock."))]


def test_configured_and_effective_are_told_apart() -> None:
    values = {"mariadb.open_tables": 1883.0, "mariadb.table_open_cache": 1883.0, "mariadb.opened_tables": 7.0}
    limits, _ = read_now(
        values, {}, kinds={"mariadb"}, configured={"table_open_cache": 12000}, effective={"table_open_cache": 1883}
    )
    cache = limit(limits, "mariadb.table_open_cache")
    assert (cache.configured, cache.effective, cache.status, cache.harm) == (12000, 1883, "reached", 7.0)
    assert not cache.loud


def test_a_ceiling_of_nothing_is_no_division_by_it() -> None:
    _, unread = read_now({"system.aio": 0.0, "system.aio.limit": 0.0}, {}, kinds=())
    assert "switched off" in next(one.reason for one in unread if one.id == "kernel.aio")


@pytest.mark.parametrize(
    ("use", "near", "pressure", "status"),
    [
        (79.0, 0.8, False, "free"),
        (80.0, 0.8, False, "near"),
        (97.0, 0.8, False, "reached"),
        (99.0, 0.8, True, "near"),
        (0.0, 0.0, True, "free"),
        (0.1, 0.0, True, "near"),
        (50.0, None, False, "free"),
    ],
)
def test_the_state_of_a_limit(use: float, near: float | None, pressure: bool, status: str) -> None:
    assert judge(use, 100.0, near=near, pressure=pressure) == status


def test_a_threshold_of_the_use_itself() -> None:
    values = {"mariadb.threads_running": 26.0, "system.cpu.count": 64.0}
    limits, _ = read_now(values, {}, kinds={"mariadb"})
    assert limit(limits, "mariadb.threads_running").status == "near"
    limits, _ = read_now({**values, "mariadb.threads_running": 24.0}, {}, kinds={"mariadb"})
    assert limit(limits, "mariadb.threads_running").status == "free"


# --- what follows from other numbers ---


def test_the_servers_own_arithmetic_of_files() -> None:
    def wanted(connections: float, tables: float, files: float) -> float:
        names = ("max_connections", "table_open_cache", "open_files_limit")
        asked = zip(names, (connections, tables, files), strict=True)
        return derive({f"mariadb.{name}.asked": value for name, value in asked}, {})[0]["mariadb.files_wanted"]

    assert wanted(300, 12000, 0) == 10 + 300 + 2 * 12000
    assert wanted(300, 400, 0) == 5 * 300
    assert wanted(300, 400, 65535) == 65535


def test_the_tightest_memory_counts_and_one_is_enough() -> None:
    both, _ = derive({"target.cgroup.memory.limit": 5.0, "system.memory.limit": 9.0}, {})
    one, _ = derive({"system.memory.limit": 9.0}, {"target.cgroup.memory.limit": "not mounted"})
    assert (both["target.memory.allowed"], one["target.memory.allowed"]) == (5.0, 9.0)


def test_a_limit_on_files_is_held_against_what_any_process_may_ask_for() -> None:
    values = {**FILES, "target.open_files.hard_limit": 1048576.0, "system.files.per_process_limit": 1048576.0}
    highest = limit(read_now(values, {}, kinds={"process"})[0], "kernel.nr_open")
    assert (highest.use, highest.headroom, highest.status) == (1048576, 0, "free")
    unlimited = {**values, "target.open_files.hard_limit": math.inf}
    assert "no bound" in next(
        one.reason for one in read_now(unlimited, {}, kinds={"process"})[1] if one.id == "kernel.nr_open"
    )


@pytest.mark.parametrize(("granted", "status"), [(65535.0, "free"), (20000.0, "near")])
def test_files_that_were_asked_for_and_granted_are_no_cut(granted: float, status: str) -> None:
    asked = {"max_connections": 151.0, "table_open_cache": 2000.0, "open_files_limit": 65535.0}
    values = {f"mariadb.{name}.asked": value for name, value in asked.items()}
    found, _ = read_now(derive({**values, "mariadb.open_files_limit": granted}, {})[0], {}, kinds={"mariadb"})
    assert limit(found, "mariadb.files_wanted").status == status


def test_connections_come_no_faster_than_ports_come_back() -> None:
    values, _ = derive({"system.network.local_ports.limit": 28200.0, "system.network.connections_opened": 480.0}, {})
    new = limit(read_now(values, {}, kinds=())[0], "network.new_connections")
    assert (new.ceiling, new.status) == (470, "near")


@pytest.mark.parametrize(("overflows", "status"), [(0.0, "free"), (0.2, "near")])
def test_a_queue_that_overflowed_between_two_readings_is_not_free(overflows: float, status: str) -> None:
    values = {"target.accept_queue": 0.0, "target.accept_queue.limit": 128.0, "system.network.somaxconn": 4096.0}
    limits, _ = read_now({**values, "system.network.listen_overflows": overflows}, {}, kinds={"process"})
    assert limit(limits, "process.accept_queue").status == status
    assert limit(limits, "kernel.somaxconn").status == status


def test_connections_that_were_refused_tell_that_all_were_taken() -> None:
    values = {"mariadb.connections": 12.0, "mariadb.max_connections": 151.0, "mariadb.connection_errors_max": 0.5}
    assert limit(read_now(values, {}, kinds={"mariadb"})[0], "mariadb.max_connections").status == "reached"


def test_a_full_buffer_pool_costs_its_misses() -> None:
    pool = {"mariadb.pool_pages": 8192.0, "mariadb.pool_pages_free": 0.0, "mariadb.pool_read_requests": 2000.0}
    for reads, harm in ((0.0, 0.0), (100.0, 0.05)):
        found = limit(
            read_now(derive({**pool, "mariadb.pool_reads": reads}, {})[0], {}, kinds={"mariadb"})[0],
            "mariadb.buffer_pool",
        )
        assert (found.status, found.harm, found.costs_nothing) == ("reached", harm, reads == 0)


def test_connections_that_were_closed_long_ago_are_not_in_use_now() -> None:
    values = {"mariadb.max_used_connections": 151.0, "mariadb.connections": 12.0, "mariadb.max_connections": 151.0}
    limits, _ = read_now(values, {}, kinds={"mariadb"})
    connections = limit(limits, "mariadb.max_connections")
    assert (connections.use, connections.status, connections.use_metric) == (12, "free", "mariadb.connections")


def test_only_statements_that_run_hold_tables() -> None:
    connected = {"mariadb.max_used_connections": 900.0, "mariadb.connections": 500.0, "mariadb.threads_running": 3.0}
    looked_up = {"mariadb.table_cache_hits": 90.0, "mariadb.table_cache_misses": 10.0, "mariadb.questions": 25.0}
    values, _ = derive({**connected, **looked_up}, {})
    assert values["mariadb.tables_at_once"] == 3 * 4


@pytest.mark.parametrize(("waits", "status"), [(0.0, "free"), (0.5, "near")])
def test_a_log_buffer_is_judged_by_its_waits_not_by_what_was_not_flushed_to_the_disk(waits: float, status: str) -> None:
    lagging = {"mariadb.lsn_current": 1e9, "mariadb.lsn_flushed": 0.5e9, "mariadb.log_buffer_size": 16e6}
    values, _ = derive({**lagging, "mariadb.log_waits": waits, "mariadb.log_write_requests": 500.0}, {})
    limits, _ = read_now(values, {}, kinds={"mariadb"})
    assert limit(limits, "mariadb.log_buffer").status == status


def test_an_affinity_that_names_cpus_which_are_not_there_gives_none_of_them() -> None:
    named = {"target.cpus.named": 128.0, "system.cpu.count": 4.0, "target.cpu.cores": 3.9, "target.cpu.run_delay": 2.0}
    limits, _ = read_now(derive(named, {})[0], {}, kinds={"process"})
    cpus = limit(limits, "process.cpus")
    assert (cpus.ceiling, cpus.status) == (4, "reached")


def test_shares_of_nothing_are_nothing() -> None:
    values, _ = derive({"mariadb.threads_created": 0.0, "mariadb.new_connections": 0.0}, {})
    assert values["mariadb.new_thread_share"] == 0


def test_what_does_not_follow_has_the_reason_of_what_it_lacks() -> None:
    _, missing = derive({"mariadb.log_waits": 5.0}, {"mariadb.log_write_requests": "the server does not tell it"})
    assert missing["mariadb.log_buffer_waits"] == "the server does not tell it"


# --- counters of a server ---

SPECS = (CounterSpec("Opened", "opened", cumulative=True), CounterSpec("Open", "open", cumulative=False))


def test_levels_are_as_they_are_and_counters_become_rates() -> None:
    values, missing = counter_metrics({"Opened": 10, "Open": 1}, {"Opened": 30, "Open": 5}, 4.0, SPECS)
    assert (values, missing) == ({"opened": 5.0, "open": 5}, {})


def test_a_reset_and_a_counter_that_is_not_there_are_said() -> None:
    _, missing = counter_metrics({"Opened": 10}, {"Opened": 0}, 4.0, SPECS)
    assert "was reset" in missing["opened"]
    assert missing["open"] == "the server does not tell Open"


NUMBERS = st.dictionaries(st.sampled_from(["Opened", "Open"]), st.floats(allow_nan=False, allow_infinity=False))


@given(NUMBERS, NUMBERS, st.floats(-1, 1e6))
def test_every_counter_has_a_value_or_a_reason(first: dict[str, float], last: dict[str, float], elapsed: float) -> None:
    values, missing = counter_metrics(first, last, elapsed, SPECS)
    assert {*values, *missing} == {"opened", "open"}
    assert not {*values} & {*missing}
