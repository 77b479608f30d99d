"""The changes of a ladder are read, kept in order, and refused where they cannot be made or give up too much."""

from __future__ import annotations

import pytest

from loadframe.bench.checking import check_study
from loadframe.errors import CageError, StudyError
from loadframe.kinds import registry as targets
from loadframe.model import SettingValue
from loadframe.study import parse

STUDY = """\
[study]
name = "ladder"
question = "What gives what?"
[target]
kind = "{kind}"
[workload]
kind = "oltp"
[load]
axis = "concurrency"
levels = [1]
"""
RELAXED = '[remedies]\ndurability = "relax"\n'
MARIADB, QUEUE = STUDY.format(kind="mariadb"), STUDY.format(kind="sqlite").replace('"oltp"', '"job-queue"')


ATTACHED = MARIADB.replace('kind = "mariadb"', 'kind = "mariadb"\nattach = "127.0.0.1"')


def changes(*tables: str, start: str = MARIADB) -> str:
    return start + "".join(f"[[change]]\n{table}\n" for table in tables)


@pytest.mark.server
def test_changes_keep_their_order_and_survive_being_written() -> None:
    study = parse(
        changes(
            'name = "pool"\ntarget = { settings = { innodb_buffer_pool_size = "1G" } }',
            'name = "apart"\ncage = { cpus = 0, open_files = 4096, driver = { cpus = "0" } }',
        )
    )
    assert [change.name for change in study.change] == ["pool", "apart"]
    assert study.change[1].cage.bound == {"cage.cpus": "0", "cage.driver.cpus": "0"}
    assert parse(study.as_toml()) == study
    check_study(study)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (['name = "a"'], ["'a' changes nothing"]),
        (['name = "a"\ntarget = { kind = "nginx" }'], ["kind"]),
        (['name = "a"\ncage = { memory = "1GiB" }'], ["memory"]),
        (['name = "a"\ncage = { driver = { memory = "1GiB" } }'], ["memory"]),
        (['name = "a"\ncage = { open_files = 64 }', 'name = "a"\ncage = { open_files = 65 }'], ["two changes", "'a'"]),
    ],
)
def test_a_wrong_change_is_refused_with_its_line(tables: list[str], words: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        parse(changes(*tables))
    for word in [*words, "line 1"]:
        assert word in str(caught.value)


POOL = 'name = "pool"\ntarget = { settings = { innodb_buffer_pool_size = "1G" } }'
SWAPPY = 'name = "swappy"\nhost = { settings = { "vm.swappiness" = 10 } }'
RESTART = 'name = "large"\ntarget = { settings = { innodb_log_buffer_size = "64M" } }'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changes(POOL, POOL.replace('"pool"', '"again"')), "'again' changes nothing: the state before it"),
        (changes('name = "a"\ntarget = { settings = { jurnal_mode = "wal" } }', start=QUEUE), "jurnal_mode"),
        (changes('name = "a"\ntarget = { settings = { innodb_flush_log_at_trx_commit = 2 } }'), "gives up durability"),
        (changes('name = "a"\ncage = { open_files = 64 }', start=QUEUE), "inside the driver's processes"),
        (changes('name = "a"\ncage = { driver = { cpus = "0" } }', start=QUEUE), "inside the driver's processes"),
        (changes(RESTART, start=ATTACHED), "must be restarted"),
        (changes('name = "a"\ncage = { cpus = "0" }', start=ATTACHED), "over the network"),
        (changes(SWAPPY), "remedies.allow does not name that"),
        (
            f'{changes(SWAPPY, start=MARIADB)}[host.settings]\n"vm.swappiness" = 10\n[remedies]\nallow = ["host"]\n',
            "'swappy' changes nothing: the state before it",
        ),
    ],
)
def test_what_cannot_be_a_rung_is_refused(text: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        check_study(parse(text))


def test_cpus_that_are_not_there_are_refused() -> None:
    with pytest.raises(CageError, match="CPU 8000"):
        check_study(parse(changes('name = "a"\ncage = { cpus = "8000" }')))


@pytest.mark.server
def test_durability_is_given_up_where_the_study_says_so_and_a_stronger_value_gives_up_nothing() -> None:
    weaker = 'name = "weak"\ntarget = { settings = { innodb_flush_log_at_trx_commit = 0 } }'
    stronger = 'name = "strong"\ntarget = { settings = { innodb_flush_log_at_trx_commit = 1 } }'
    check_study(parse(changes(weaker) + RELAXED))
    start = MARIADB.replace("[workload]", "[target.settings]\ninnodb_flush_log_at_trx_commit = 2\n[workload]")
    check_study(parse(changes(stronger, start=start)))


@pytest.mark.parametrize(
    ("kind", "setting", "harmless", "weaker"),
    [
        ("mariadb", "innodb_flush_method", "fsync", "nosync"),
        ("mariadb", "innodb_flush_method", "O_DIRECT", "O_DIRECT_NO_FSYNC"),
        ("mariadb", "innodb_flush_log_at_trx_commit", 3, 0),
        ("mariadb", "innodb_flush_method", "O_DSYNC", "littlesync"),
        ("mariadb", "innodb_flush_log_at_timeout", 1, 2),
        ("mariadb", "innodb_doublewrite", True, False),
        ("mariadb", "sync_binlog", 1, 0),
        ("mariadb", "sync_binlog", 1, 100),
        ("mariadb", "sync_relay_log", 1, 10000),
        ("mariadb", "sync_relay_log_info", 1, 0),
        ("mariadb", "sync_master_info", 1, 0),
        ("mariadb", "default_storage_engine", "InnoDB", "MEMORY"),
        ("sqlite", "journal_mode", "wal", "off"),
        ("sqlite", "synchronous", "EXTRA", "NORMAL"),
        ("postgres", "synchronous_commit", "remote_apply", "off"),
        ("postgres", "synchronous_commit", "on", "local"),
        ("postgres", "synchronous_commit", "on", "remote_write"),
        ("postgres", "wal_writer_delay", "10ms", "1s"),
        ("postgres", "wal_level", "logical", "minimal"),
        ("postgres", "wal_sync_method", "open_sync", None),
        ("postgres", "full_page_writes", True, False),
        ("postgres", "fsync", True, False),
        ("mariadb", "innodb_buffer_pool_size", "8M", None),
    ],
)
def test_only_values_that_weaken_durability_give_it_up(
    kind: str, setting: str, harmless: SettingValue, weaker: SettingValue | None
) -> None:
    assert targets.kind_named(kind).gives_up({setting: harmless}) is None
    if weaker is not None:
        said = targets.kind_named(kind).gives_up({setting: weaker})
        assert said is not None and setting in said
