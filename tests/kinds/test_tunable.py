"""What may be varied fits the catalogues, and what is written for a target's own file is what it reads."""

from __future__ import annotations

import pytest

from loadframe.kinds.catalogue import Tunable
from loadframe.kinds.config_file import to_copy, written
from loadframe.kinds.mysql.option_files import parse_options
from loadframe.kinds.registry import KINDS, kind_named
from loadframe.model import ChangeRecord

ROWS = [(kind, row) for kind, known in KINDS.items() for row in known.tunables]


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=[f"{kind}-{row.name}" for kind, row in ROWS])
def test_every_value_is_one_that_the_target_takes(kind: str, row: Tunable) -> None:
    catalogue = KINDS[kind].catalogue
    ends = [row.low] if row.high is None else [row.low, row.high]
    for value in (*row.values, *row.relaxed) or [int(end) for end in ends]:
        assert catalogue.check({row.name: value}) == {row.name: value}


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=[f"{kind}-{row.name}" for kind, row in ROWS])
def test_a_setting_that_may_give_durability_up_names_its_safe_values(kind: str, row: Tunable) -> None:
    spec = KINDS[kind].setting(row.name)
    assert spec is not None
    if spec.gives_up is not None:
        assert row.values and row.relaxed, "its values must be told apart"
        assert spec.default in row.values
        assert [value for value in (*row.values, *row.relaxed) if spec.weakens(value)] == list(row.relaxed)


def test_what_is_tuned_can_be_written_to_a_file_of_the_target() -> None:
    tuned = {kind for kind, _ in ROWS}
    assert tuned & KINDS.own.keys() == KINDS.own.keys() - {"service", "url"}, "declared by each study; not changed"
    assert tuned == {kind for kind, known in KINDS.items() if known.file is not None}


def test_what_is_written_for_mariadb_is_what_it_reads() -> None:
    settings = {"innodb_buffer_pool_size": 1 << 27, "innodb_adaptive_hash_index": True, "innodb_flush_method": "fsync"}
    name, text = written(kind_named("mariadb"), settings)
    assert name == "tuned.cnf"
    options = parse_options(text, ("mariadbd",))
    assert kind_named("mariadb").check_settings(options) == settings


def test_sizes_of_postgres_have_their_unit() -> None:
    """A bare number would be pages of 8 KiB."""
    _, text = written(
        kind_named("postgres"), {"shared_buffers": 1 << 27, "wal_buffers": -1, "jit": False, "wal_compression": "on"}
    )
    assert text.splitlines() == [
        "shared_buffers = '134217728B'",
        "wal_buffers = -1",
        "jit = off",
        "wal_compression = 'on'",
    ]


def test_what_is_copied_is_a_line_each_in_the_language_of_its_file() -> None:
    """psql takes a line that begins with # for a statement."""
    buffers = ChangeRecord("shared_buffers", 1 << 27, 1 << 28)
    files = ChangeRecord("RLIMIT_NOFILE", 1024, 4096, layer="process")
    assert to_copy(kind_named("postgres"), [buffers, files]) == (
        "ALTER SYSTEM SET shared_buffers = '268435456B';",
        "LimitNOFILE=4096   # of systemd; in a shell: ulimit -n 4096",
        "-- takes effect at a restart: shared_buffers",
    )
    pool = ChangeRecord("innodb_log_file_size", 1, 1 << 27)
    memory = ChangeRecord("memory.max", 1, 1 << 29, layer="process")
    assert to_copy(kind_named("mariadb"), [pool, memory])[:3] == (
        "[mariadbd]",
        "innodb_log_file_size = 134217728",
        "MemoryMax=536870912   # of systemd",
    )


@pytest.mark.parametrize(
    ("setting", "value", "line"),
    [
        ("net.core.somaxconn", 4096, "sysctl -w net.core.somaxconn=4096"),
        ("block.sda.nr_requests", 512, "echo 512 > /sys/block/sda/queue/nr_requests"),
        (
            "transparent_hugepage.enabled",
            "never",
            "echo never > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        ("cpu.3.governor", "performance", "echo performance > /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"),
        ("block.$(id).scheduler", "none; id", "echo 'none; id' > '/sys/block/$(id)/queue/scheduler'"),
    ],
)
def test_a_setting_of_the_machine_is_typed_in_where_the_kernel_has_it(
    setting: str, value: str | int, line: str
) -> None:
    assert to_copy(kind_named("mariadb"), [ChangeRecord(setting, 1, value, layer="host")]) == (line,)
