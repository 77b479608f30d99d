"""What is known of Squid: its limits read what it counts, and its remedies raise them within what the machine has."""

from __future__ import annotations

from dataclasses import replace

from loadframe.diagnosis.remedies import Situation, propose
from loadframe.ledger.rules import RULES
from loadframe.model import Finding, Remedy, SettingValue, TargetState
from loadframe_squid.settings import ALL_COUNTERS


def test_every_limit_is_of_what_it_counts() -> None:
    counted = {spec.metric for spec in ALL_COUNTERS}
    rules = [rule for rule in RULES if rule.id.startswith("squid.")]
    assert len(rules) == 4
    for rule in rules:
        assert {rule.use, rule.ceiling, rule.thrash or rule.use, rule.errors or rule.use} <= counted, rule.id


def finding(name: str) -> Finding:
    return Finding(name, name, None, (), 1.0)


def only(remedies: tuple[Remedy, ...]) -> Remedy:
    (remedy,) = remedies
    return remedy


SQUID: dict[str, SettingValue] = {
    "client_ip_max_connections": 20, "max_filedescriptors": 64, "RLIMIT_NOFILE": 64, "cache_mem": 16 << 20,
    "cache_dir_size": 100 << 20,
}  # fmt: skip


def of_squid(**ceilings: float) -> Situation:
    named = {name.replace("__", "."): value for name, value in ceilings.items()}
    return Situation("squid", TargetState(), SQUID, {}, named)


def test_descriptors_are_raised_below_it_first_and_no_further_than_the_machine_allows() -> None:
    short = of_squid(squid__max_filedescriptors=48.0)
    below, own = only(propose([finding("squid.max_filedescriptors")], short)).changes
    assert (below.layer, below.setting, own.layer, own.setting) == (
        "process", "RLIMIT_NOFILE", "server", "max_filedescriptors",
    )  # fmt: skip
    assert below.after == own.after == 400, "four times today's 48, what it reserves, and other files"
    assert propose([finding("squid.max_filedescriptors")], replace(short, most_open_files=64)) == ()


def test_a_client_may_have_more_connections_where_there_is_a_limit() -> None:
    limited = of_squid(squid__client_ip_max_connections=20.0)
    (change,) = only(propose([finding("squid.client_ip_max_connections")], limited)).changes
    assert (change.setting, change.before, change.after) == ("client_ip_max_connections", 20, 80)
    free = replace(limited, effective={**SQUID, "client_ip_max_connections": -1})
    assert propose([finding("squid.client_ip_max_connections")], free) == ()


def test_it_keeps_objects_within_half_of_the_memory() -> None:
    (change,) = only(propose([finding("squid.cache_mem")], of_squid(cage__memory=2.0 * (1 << 30)))).changes
    assert (change.setting, change.after) == ("cache_mem", 128 << 20)
    (change,) = only(propose([finding("squid.cache_mem")], of_squid(cage__memory=64.0 * (1 << 20)))).changes
    assert change.after == 32 << 20


def test_what_is_on_the_disk_grows_within_half_of_what_is_free_there() -> None:
    short = replace(of_squid(system__memory=64.0 * 2**20), free_disk_bytes=600.0 * 2**20)
    (change,) = only(propose([finding("squid.cache_dir_size")], short)).changes
    assert (change.setting, change.before, change.after) == ("cache_dir_size", 100 << 20, 400 << 20)
    (change,) = only(propose([finding("squid.cache_dir_size")], replace(short, free_disk_bytes=300.0 * 2**20))).changes
    assert change.after == 250 << 20
