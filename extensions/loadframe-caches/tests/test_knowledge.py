"""What is known of each: its limits read what it counts, what gives is named, and its remedies raise it within what the
machine has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.remedies import Situation, propose
from loadframe.diagnosis.windows import look
from loadframe.ledger.reading import DERIVED, read_limits
from loadframe.ledger.rules import RULES
from loadframe.model import Finding, Remedy, SettingValue, Step, TargetState
from loadframe_caches.nginx.kind import NginxCacheTarget
from loadframe_caches.squid.kind import SquidTarget
from loadframe_caches.varnish.kind import VarnishTarget

IDLE = {"system.cpu.utilization": 0.5, "system.cpu.count": 2.0, "system.pressure.io.some": 0.01}


@pytest.mark.parametrize(
    ("target", "kind", "limits"),
    [(NginxCacheTarget, "nginx", 6), (SquidTarget, "squid", 4), (VarnishTarget, "varnish", 2)],
)
def test_every_limit_is_of_what_it_counts(
    target: type[NginxCacheTarget | SquidTarget | VarnishTarget], kind: str, limits: int
) -> None:
    counted = {spec.metric for spec in target.counter_specs}
    for row in (row for row in DERIVED if row.metric.startswith(f"{kind}.")):
        assert counted.issuperset(row.needs), row.metric
        counted.add(row.metric)
    rules = [rule for rule in RULES if rule.id.startswith(f"{kind}.")]
    assert len(rules) == limits
    for rule in rules:
        assert {rule.use, rule.ceiling, rule.thrash, rule.errors} - {None, "one", "workload.errors"} <= counted, rule.id


def finding(name: str) -> Finding:
    return Finding(name, name, None, (), 1.0)


def only(remedies: tuple[Remedy, ...]) -> Remedy:
    (remedy,) = remedies
    return remedy


# --- Squid ---

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


# --- nginx ---

NGINX: dict[str, SettingValue] = {
    "RLIMIT_NOFILE": 1024,
    "worker_rlimit_nofile": 100,
    "worker_connections": 64,
    "worker_processes": 2,
    "keepalive_timeout": 75,
    "keepalive_requests": 1000,
    "aio": "off",
}


def of_nginx(demand: float | None = None, **ceilings: float) -> Situation:
    limits = {name.replace("__", "."): ceiling for name, ceiling in ceilings.items()}
    return Situation("nginx", TargetState(), NGINX, dict.fromkeys(limits, demand), limits)


def test_more_connections_of_a_worker_raise_its_descriptors_first() -> None:
    (name,) = names = ["nginx.worker_connections"]
    remedy = only(propose([finding(name)], of_nginx(3000, nginx__worker_connections=114.0)))
    assert list(remedy.addresses) == names
    process, files, connections = remedy.changes
    assert (process.setting, files.setting) == ("RLIMIT_NOFILE", "worker_rlimit_nofile")
    assert int(connections.after) * 2 >= 1.2 * 3000, "the clients are shared by two workers"
    assert int(files.after) >= 2 * int(connections.after), "and each needs a descriptor, and one for its file"
    assert (process.needed, files.needed) == (True, True)


@pytest.mark.parametrize("cause", ["nginx.worker_rlimit_nofile", "process.open_files"])
def test_descriptors_of_a_worker_are_raised_within_what_the_process_has(cause: str) -> None:
    remedy = only(propose([finding(cause)], of_nginx()))
    process, files = remedy.changes
    assert not process.needed, "1,024 are enough"
    assert (files.setting, files.before) == ("worker_rlimit_nofile", 100) and int(files.after) >= 2 * 64
    assert propose([finding(cause)], replace(of_nginx(), most_open_files=100)) == ()


def test_there_are_no_more_workers_than_cpus() -> None:
    more = [finding("nginx.worker_processes")]
    (change,) = only(propose(more, of_nginx(cpu__saturated=8.0, process__cpus=4.0))).changes
    assert (change.setting, change.before, change.after) == ("worker_processes", 2, 4)
    (change,) = only(propose(more, of_nginx(cpu__saturated=8.0, cage__cpu_quota=2.5))).changes
    assert change.after == 3
    assert propose(more, of_nginx(cpu__saturated=2.0)) == ()
    assert propose(more, of_nginx()) == (), "how many CPUs there are was not read"


def test_connections_are_kept_where_it_is_nginx_that_closes_them() -> None:
    closing = replace(of_nginx(), effective={**NGINX, "keepalive_timeout": 0})
    (change,) = only(propose([finding("nginx.keepalive")], closing)).changes
    assert (change.setting, change.after) == ("keepalive_timeout", 75)
    assert propose([finding("nginx.keepalive")], of_nginx()) == (), "it is the clients that close them"


def test_blocked_workers_read_in_threads() -> None:
    (change,) = only(propose([finding("nginx.blocked_workers")], of_nginx())).changes
    assert (change.setting, change.after) == ("aio", "threads")
    threads = replace(of_nginx(), effective={**NGINX, "aio": "threads"})
    assert propose([finding("nginx.blocked_workers")], threads) == ()


@pytest.mark.parametrize(
    "cause", [f"nginx.{name}" for name in ("worker_connections", "worker_processes", "keepalive", "blocked_workers")]
)
def test_remedies_for_nginx_are_not_for_others(cause: str) -> None:
    other = replace(of_nginx(nginx__worker_connections=10.0, cpu__saturated=8.0), target_kind="mariadb")
    assert propose([finding(cause)], other) == ()


COUNTED = {
    "nginx.workers": 1.0,
    "nginx.worker_cpu": 0.3,
    "nginx.worker_blocked": 0.0,
    "nginx.accepts": 1.0,
    "nginx.connections": 20.0,
    "nginx.connections_allowed": 477.0,
    "nginx.connections_refused": 0.0,
    "nginx.worker_open_files": 30.0,
    "nginx.worker_rlimit_nofile": 1000.0,
    "nginx.descriptors_refused": 0.0,
    "workload.errors": 0.0,
}


def diagnosed(steps: Sequence[Step]) -> list[str]:
    samples = []
    for level in sorted({step.level for step in steps}):
        there = [step for step in steps if step.level == level]
        throughputs, latencies = ([step.throughput for step in there], [step.latency.p95_ms for step in there])
        samples.append(LevelSample(level, tuple(throughputs), tuple(latencies)))
    limits = [series.limit for series in read_limits(steps, TargetState(), {})]
    findings, _ = diagnose(look(fit(samples, axis="concurrency", treatment="A"), steps), limits)
    return [finding.id for finding in findings]


@pytest.mark.parametrize(
    ("there", "cause"),
    [
        ({}, []),
        ({"nginx.worker_cpu": 0.95}, ["nginx.worker_processes"]),
        ({"nginx.worker_cpu": 0.95, "system.cpu.utilization": 0.97}, ["cpu.saturated"]),
        ({"nginx.worker_blocked": 0.7}, ["nginx.blocked_workers"]),
        ({"nginx.accepts": 90.0}, ["nginx.keepalive"]),
        ({"nginx.accepts": 90.0, "nginx.connections_refused": 50.0}, []),
        ({"nginx.descriptors_refused": 2.0}, ["nginx.worker_rlimit_nofile"]),
        ({"nginx.connections": 477.0, "workload.errors": 50.0}, ["nginx.worker_connections"]),
        ({"nginx.connections": 477.0}, []),
        ({"workload.errors": 50.0}, []),
    ],
)
def test_what_gives_in_an_nginx_is_named(
    make_step: Callable[..., Step], there: dict[str, float], cause: list[str]
) -> None:
    steps = [
        make_step(level, 25.0 * min(level, 4), {**IDLE, **COUNTED, **(there if level > 4 else {})}, block=block)
        for block in range(1, 4)
        for level in (1, 2, 4, 8, 16)
    ]
    assert diagnosed(steps) == cause


# --- Varnish ---

VARNISH: dict[str, SettingValue] = {
    "thread_pools": 2, "thread_pool_max": 50, "storage_size": 32 << 20, "storage_kind": "malloc",
}  # fmt: skip


def test_threads_are_shared_out_among_the_pools() -> None:
    asked = Situation("varnish", TargetState(), VARNISH, {"varnish.threads": 300.0}, {"varnish.threads": 100.0})
    (change,) = only(propose([finding("varnish.threads")], asked)).changes
    assert (change.setting, change.before, change.after) == ("thread_pool_max", 50, 180)
    unknown = replace(asked, demands={})
    (change,) = only(propose([finding("varnish.threads")], unknown)).changes
    assert change.after == 200, "four times today's, where nobody can tell what is needed"


def test_storage_in_memory_grows_within_half_of_it() -> None:
    asked = Situation("varnish", TargetState(), VARNISH, {}, {"cage.memory": 256.0 * (1 << 20)}, free_disk_bytes=0.0)
    (change,) = only(propose([finding("varnish.storage")], asked)).changes
    assert (change.setting, change.after) == ("storage_size", 128 << 20)
    assert propose([finding("varnish.storage")], replace(asked, ceilings={"cage.memory": 64.0 * (1 << 20)})) == ()


def test_storage_on_the_disk_grows_within_half_of_what_is_free_there() -> None:
    on_disk: dict[str, SettingValue] = {"storage_size": 100 << 20, "storage_kind": "file"}
    little = Situation("varnish", TargetState(), on_disk, {}, {"system.memory": 64.0 * 2**20})
    little = replace(little, free_disk_bytes=600.0 * 2**20)
    (change,) = only(propose([finding("varnish.storage")], little)).changes
    assert (change.setting, change.before, change.after) == ("storage_size", 100 << 20, 400 << 20), "memory is no bound"
    assert propose([finding("varnish.storage")], replace(little, free_disk_bytes=190.0 * 2**20)) == ()
