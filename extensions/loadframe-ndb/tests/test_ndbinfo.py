"""What ndbinfo_select_all of MySQL Cluster 9.7.2 prints, as counters. The numbers are of two data nodes after 24,718
transactions of a driver, a few rows of each table."""

from __future__ import annotations

from itertools import pairwise

import pytest

from loadframe.metrics import METRICS
from loadframe_ndb.ndbinfo import COLUMNS as ASKED
from loadframe_ndb.ndbinfo import SPECS, TABLES, Ceilings, Totals, blocks, ceilings_of, read_block

API = frozenset({4, 5})
COLUMNS = {
    "counters": "node_id block_number block_instance counter_id val",
    "resources": "node_id resource_id reserved used max high spare",
    "logspaces": "node_id log_type log_id log_part total used high",
    "logbuffers": "node_id log_type log_id log_part total used high",
    "transporters": "node_id remote_node_id connection_status remote_address bytes_sent bytes_received connect_count "
    "overloaded overload_count slowdown slowdown_count encrypted",
    "transactions": "node_id block_instance objid apiref transid0 transid1 state flags c_ops outstanding timer",
    "frag_locks": "node_id block_instance table_id fragment_num ex_req ex_imm_ok ex_wait_ok ex_wait_fail sh_req "
    "sh_imm_ok sh_wait_ok sh_wait_fail wait_ok_millis wait_fail_millis",
    "threads": "node_id thr_no thread_name thread_description",
    "cpustat": "node_id thr_no OS_user OS_system OS_idle thread_exec thread_sleeping thread_spinning thread_send "
    "thread_buffer_full elapsed_time",
    "threadstat": "node_id thr_no thr_nm c_loop c_exec c_wait c_l_sent_prioa c_l_sent_priob c_r_sent_prioa "
    "c_r_sent_priob os_tid os_now os_ru_utime os_ru_stime os_ru_minflt os_ru_majflt os_ru_nvcsw os_ru_nivcsw",
    "nodes": "node_id uptime status start_phase config_generation",
}
ROWS = {
    "counters": ["2 245 1 2 12655", "2 245 1 3 2494", "2 247 1 10 16042", "2 247 1 26 0", "3 245 1 2 12063"],
    "resources": [
        "2 1 3493 497 4294967295 0 0",
        "2 3 2560 11 2560 0 1",
        "3 3 2560 640 2560 0 32",
        "2 6 816 143 1020 0 0",
    ],
    "logspaces": ["2 0 0 0 16777216 0 0", "2 0 0 1 16777216 1048576 0", "2 1 0 0 100 99 0"],
    "logbuffers": ["2 0 0 1 33554432 65536 0"],
    "transporters": [
        "2 3 0 127.0.0.1 1159840 1115276 1 0 0 0 0 0",
        "2 4 0 127.0.0.1 161772 6052 3 0 2 0 1 0",
        "2 5 1 - 0 0 0 0 0 0 0 0",
    ],
    "transactions": [
        "2 1 4096 2147680260 1 4203520 7 0 12 1 0",
        "3 1 4097 2147680260 2 4203520 7 0 3 0 0",
        "3 1 4098 2147680260 3 4203520 7 0 11 0 0",
        "3 2 4099 2147680260 4 4203520 7 0 5 0 0",
    ],
    "frag_locks": ["2 1 10 0 900 890 8 2 50 49 1 0 1500 500", "3 1 10 1 10 10 0 0 0 0 0 0 0 0"],
    "threads": ["2 0 main main", "2 3 send send", "3 3 send send"],
    "cpustat": [
        "2 0 9 9 82 20 80 0 1 0 1000123",
        "2 3 30 20 50 40 60 0 40 0 1000123",
        "3 3 10 20 70 40 60 0 40 0 1000123",
    ],
    "threadstat": [
        "2 0 main 81534 48797 15398 15824 30976 0 0 29160 39048746 184808 260620 20112 0 15566 15966",
        "2 2 ldm 73330 70146 16052 4402 39564 0 0 29162 39048746 116188 220746 14120 0 16054 9477",
        "3 2 ldm 72659 69504 16380 4394 39540 0 0 29175 39048757 153857 205142 14121 0 16379 7298",
    ],
    "nodes": ["2 23 3 0 0"],
}


def printed(rows: dict[str, list[str]]) -> str:
    lines = []
    for table in TABLES:
        lines += [
            f"== {table} ==",
            *(line.replace(" ", "\t") + "\t" for line in (COLUMNS[table], *rows.get(table, []))),
        ]
    return "\n".join(lines) + "\n"


def test_a_block_is_read_once_it_is_complete_wherever_the_text_was_cut() -> None:
    text = "Connecting to management server\n" + printed(ROWS) + printed(ROWS)
    whole, _ = blocks(text)
    assert len(whole) == 2
    for cut in range(0, len(text), 37):
        first, rest = blocks(text[:cut])
        second, _ = blocks(rest + text[cut:])
        assert [*first, *second] == whole


def test_what_a_block_says_is_of_its_own_time_and_of_the_fullest() -> None:
    (block,), _ = blocks(printed(ROWS))
    read = read_block(block, API, Totals())
    assert read is not None
    at_s, found = read
    assert at_s == 39048.757
    assert found["transactions"] == 24718
    assert found["operations"] == 16042
    assert (found["data_memory_used"], found["data_memory"]) == (640 * 32768, 79 * 2**20), (
        "node 3 is the fuller one; less what is kept"
    )
    assert (found["redo_log_used"], found["redo_log"]) == (2**20, 12 * 2**20), "of the redo log alone"
    assert (found["api_nodes"], found["api_slots"], found["data_nodes"]) == (1, 2, 2)
    assert found["send_overloads"] == 3
    assert found["ldm_cpu"] == pytest.approx((0.336934 + 0.358999) / 2)
    assert found["send_cpu"] == pytest.approx(0.4), "of the last second, of both"
    assert "tc_cpu" not in found, "there is no such thread"


def test_what_is_under_way_is_told_of_the_data_node_that_has_most_beside_what_it_may_have() -> None:
    (block,), _ = blocks(printed(ROWS))
    effective = {
        "MaxNoOfConcurrentOperations": 32768,
        "MaxNoOfConcurrentTransactions": 4096,
        "MaxDMLOperationsPerTransaction": 4294967295,
        "SharedGlobalMemory": 1 << 20,
    }
    read = read_block(block, API, Totals(), ceilings_of(effective))
    assert read is not None
    found = read[1]
    assert (found["transactions_open"], found["most_transactions"]) == (3, 4096), "of node 3"
    assert (found["operations_open"], found["most_operations"]) == (14, 32768), "of its first coordinator"
    assert (found["largest_transaction"], found["most_changes"]) == (12, 32768), "of node 2; no number of its own"
    assert (found["transaction_memory_used"], found["transaction_memory"]) == (497 * 32768, (3493 + 32) * 32768)
    assert (found["lock_waits"], found["lock_wait"]) == (11, 2.0), "of both nodes; in seconds"
    assert found["preemptions"] == 15966 + 9477 + 7298


@pytest.mark.parametrize(
    ("effective", "changes"),
    [
        ({"MaxNoOfConcurrentOperations": 64, "MaxDMLOperationsPerTransaction": 32}, 32),
        ({"MaxDMLOperationsPerTransaction": 32}, 32),
        ({"MaxNoOfConcurrentOperations": "many"}, None),
        ({}, None),
    ],
)
def test_a_transaction_may_change_what_the_settings_say(effective: dict[str, object], changes: int | None) -> None:
    assert ceilings_of(effective).changes == changes


def test_what_cannot_be_seen_is_not_told_as_none_of_it() -> None:
    """Without its table there is no reading of transactions, and without the settings no ceiling."""
    text = printed(ROWS).replace("== transactions ==", "== transactions ==\nFailed to open: transactions, res: 4009\n")
    (block,), _ = blocks(text.replace("== transactions ==", "== other =="))
    read = read_block(block, API, Totals())
    assert read is not None
    unseen = {"transactions_open", "operations_open", "largest_transaction", "most_changes", "transaction_memory"}
    assert not unseen & read[1].keys()


def test_the_columns_that_are_asked_for_over_sql_are_all_that_is_read() -> None:
    """A cluster that runs already is asked for these alone."""
    (block,), _ = blocks(printed(ROWS))
    asked_for = {table: [{name: row[name] for name in names} for row in block[table]] for table, names in ASKED.items()}
    assert ASKED.keys() == set(TABLES[:-1])
    effective = {"SharedGlobalMemory": 1 << 20}
    given = (API, Totals(), ceilings_of(effective))
    assert read_block(asked_for, *given) == read_block(block, API, Totals(), ceilings_of(effective))


def test_what_is_told_is_known() -> None:
    (block,), _ = blocks(printed(ROWS))
    read = read_block(block, API, Totals(), Ceilings(1, 1, 1, 1))
    assert read is not None
    assert read[1].keys() <= {spec.name for spec in SPECS}
    assert all(spec.metric in METRICS for spec in SPECS)


def test_a_node_that_ends_and_begins_again_does_not_take_back_what_it_had_counted() -> None:
    totals = Totals()
    gone = {**ROWS, "counters": ROWS["counters"][:-1], "threadstat": ROWS["threadstat"][:-1]}
    back = {**ROWS, "counters": [*ROWS["counters"][:-1], "3 245 1 2 100"]}
    counted = []
    for rows in (ROWS, gone, back):
        (block,), _ = blocks(printed(rows))
        read = read_block(block, API, totals)
        assert read is not None
        counted.append(read[1]["transactions"])
    assert counted == [24718, 24718, 24818]


def test_a_table_that_could_not_be_read_is_passed_over() -> None:
    text = printed(ROWS).replace("== threadstat ==", "== threadstat ==\nFailed to open: threadstat, res: 4009\n== x ==")
    (block,), _ = blocks(text)
    assert read_block(block, API, Totals()) is None


def test_threads_that_there_were_in_another_state_take_nothing_from_those_that_there_are() -> None:
    """One data thread, then four, then one again: each has what was added to it."""
    (block,), _ = blocks(printed(ROWS))
    totals, read = Totals(), []
    for threads, seconds in ((1, 1), (4, 1), (1, 3)):
        rows = [
            {
                **block["threadstat"][1],
                "thr_no": str(2 + number),
                "os_ru_utime": str(seconds * 10**6),
                "os_ru_stime": "0",
            }
            for number in range(threads)
        ]
        told = read_block({**block, "threadstat": rows}, API, totals)
        assert told is not None
        read.append(told[1]["ldm_cpu"])
    assert [now - before for before, now in pairwise(read)] == [pytest.approx(0.75), pytest.approx(2.0)]
